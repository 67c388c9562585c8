//! How much of the audit log is kept.

use super::{Actor, AuditEntry};
use crate::words::words;
use angelia_contract::limits;
use std::time::Duration;

limits! {
    /// The newest lines of each sort stay whatever their age, so that no clock and no quiet year empties the log. The schema refuses to drop the newest lines of all.
    pub const KEPT_LINES: u64 = 100_000, count "audit lines of one sort that stay whatever their age";
    /// Beyond the newest lines a line goes after this time: a year, and time to look at it.
    pub const KEPT_FOR: Duration = Duration::from_secs(401 * 24 * 3600), time "an audit line beyond those";
    /// The log ends somewhere: of each sort the oldest go beyond this. Operators' deeds, others' deeds and refusals are counted apart, so that nobody who is refused pushes out what an operator did.
    pub const MOST_LINES: u64 = 250_000, count "audit lines of one sort";
}

words! {
    /// Lines that are kept and counted together.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Sort {
        /// What the operator and the server itself did.
        Operator = "operator",
        /// What others did who may: they enrol, rotate, link.
        Other = "other",
        /// What was refused to anybody.
        Refusal = "refusal",
    }
}

impl Sort {
    /// Of which sort a line is.
    pub fn of(entry: &AuditEntry) -> Self {
        if entry.outcome.starts_with(super::REFUSED) || entry.action == super::SWALLOWED {
            Self::Refusal
        } else if entry.actor == Actor::operator() || entry.actor == Actor::server() {
            Self::Operator
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_a_sort_of_their_own_whoever_was_refused() {
        let entry = |actor: &Actor| Sort::of(&AuditEntry::done(actor, "gateway.rotate", "", "gw"));
        assert_eq!(entry(&Actor::operator()), Sort::Operator);
        assert_eq!(entry(&Actor::server()), Sort::Operator);
        assert_eq!(entry(&Actor::gateway("acme", "gw")), Sort::Other);
        let refused = |actor: &Actor| Sort::of(&AuditEntry::refused(actor, "gateway.rotate", "", "gw", "no"));
        assert_eq!(refused(&Actor::stranger()), Sort::Refusal);
        assert_eq!(refused(&Actor::operator()), Sort::Refusal);
        let counted = AuditEntry::done(&Actor::server(), super::super::SWALLOWED, "", "strangers");
        assert_eq!(Sort::of(&counted), Sort::Refusal);
    }
}
