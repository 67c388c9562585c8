//! How an entry left its inbox, in the words that the journal keeps, and what the audit
//! log says of an operator who had a hand in it.

use super::Seq;
use crate::audit::{Actor, AuditEntry};
use crate::identity::instances::shown;

/// It went for the quota. An index knows it by its words.
pub const OVER_QUOTA: &str = "lost: the inbox was over its quota";
/// It was acknowledged on another socket than it was pushed on.
pub const ACKNOWLEDGED_LATE: &str = "acknowledged late";
/// An operator threw it away.
pub const PURGED: &str = "purged by the operator";
/// It was deleted where it was written, before anybody was given it. Platforms do not say by
/// whom: its author, or somebody who keeps order there.
pub const WITHDRAWN: &str = "withdrawn: it was deleted where it was written";
/// It was taken out of the way of those behind it.
pub const DEAD_LETTER: &str = "dead letter: three sockets ended on it without an acknowledgement";

/// It was too old.
pub fn overaged(dead: bool) -> &'static str {
    if dead {
        "lost: a dead letter that nobody redrove for longer than the quota allows"
    } else {
        "lost: it waited longer than the quota allows"
    }
}

/// What the audit log says of somebody who put so many entries back in line, or threw them
/// away; nothing if there were none. `owner` is the tenant and the name of their instance,
/// if it was one, and `seq` the only one that was meant.
pub fn audit_entry(
    by: &Actor,
    action: &'static str,
    owner: Option<(String, String)>,
    seq: Option<Seq>,
    count: u64,
) -> Option<AuditEntry> {
    let (tenant, name) = owner.map(|(tenant, name)| (tenant, shown(name))).unwrap_or_default();
    let what = seq.map_or_else(|| format!("all dead letters: {count}"), Seq::buffer_id);
    (count > 0).then(|| AuditEntry::done(by, action, &tenant, &name).with(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_did_to_nothing_is_not_written_down() {
        let by = Actor::operator();
        let owner = || Some(("acme".to_owned(), "gw".to_owned()));
        assert!(audit_entry(&by, "inbox.purge", owner(), None, 0).is_none());
        let all = audit_entry(&by, "inbox.purge", owner(), None, 3).unwrap();
        assert_eq!((&*all.tenant, &*all.target, &*all.detail), ("acme", "gw", "all dead letters: 3"));
        let one = audit_entry(&by, "inbox.redrive", None, Some(Seq(7)), 1).unwrap();
        assert_eq!((&*one.tenant, &*one.detail), ("", "b7"));
    }
}
