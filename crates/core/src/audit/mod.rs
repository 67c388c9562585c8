//! The audit log: who did what, in which words, and how it is asked.

mod keep;
mod refusals;

pub use keep::{KEPT_FOR, KEPT_LINES, LIMITS, MOST_LINES, Sort};
pub use refusals::FoldedRefusals;

use crate::clock::UnixMillis;
use crate::error::Result;
use crate::identity::Subject;
use crate::ports::BoxFuture;
use crate::records::{Change, Records, change, look};
use crate::visible::visible_up_to;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest text of one column; what others send may be longer.
const MAX_WORDS: usize = 200;
/// What the outcome of a refusal begins with.
const REFUSED: &str = "refused";
/// The action of a line that tells of refusals that were only counted.
const SWALLOWED: &str = "audit.swallowed";

/// Who changed something, or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(String);

impl Actor {
    /// Whoever holds the admin token or the data directory.
    pub fn operator() -> Self {
        Self("operator".into())
    }

    /// The server itself, in its upkeep.
    pub fn server() -> Self {
        Self("server".into())
    }

    /// Somebody who has not proven who they are.
    pub fn stranger() -> Self {
        Self("stranger".into())
    }

    /// The holder of an identity token.
    pub fn subject(subject: &Subject) -> Self {
        Self(short(&format!("subject {subject}")))
    }

    /// A gateway, by its own secret.
    pub fn gateway(tenant: &str, gateway_id: &str) -> Self {
        Self(short(&format!("gateway {tenant}/{gateway_id}")))
    }

    /// A person on a platform.
    pub fn person(platform: &str, user: &str) -> Self {
        Self(short(&format!("person {platform}:{user}")))
    }

    /// The word in the log.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One line of the log, before it has a number.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// Who.
    pub actor: Actor,
    /// What, as `noun.verb`.
    pub action: &'static str,
    /// Whose; empty if nobody's.
    pub tenant: String,
    /// To which thing.
    pub target: String,
    /// `done`, or `refused` and why.
    pub outcome: String,
    /// What else is worth knowing. Never a secret, never a message's text.
    pub detail: String,
}

impl AuditEntry {
    /// Something that was done.
    pub fn done(actor: &Actor, action: &'static str, tenant: &str, target: &str) -> Self {
        Self {
            actor: actor.clone(),
            action,
            tenant: short(tenant),
            target: short(target),
            outcome: "done".into(),
            detail: String::new(),
        }
    }

    /// Something that was refused; the reason is one of ours, not the caller's words.
    pub fn refused(actor: &Actor, action: &'static str, tenant: &str, target: &str, why: &str) -> Self {
        Self { outcome: format!("{REFUSED}: {}", short(why)), ..Self::done(actor, action, tenant, target) }
    }

    /// With something else worth knowing.
    pub fn with(mut self, detail: impl AsRef<str>) -> Self {
        self.detail = short(detail.as_ref());
        self
    }
}

/// One line of the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditLine {
    /// Its number; grows.
    pub id: i64,
    /// When.
    pub at: UnixMillis,
    /// Who.
    pub actor: String,
    /// What, as `noun.verb`.
    pub action: String,
    /// Whose.
    pub tenant: String,
    /// To which thing.
    pub target: String,
    /// `done`, or `refused` and why.
    pub outcome: String,
    /// What else is worth knowing.
    pub detail: String,
}

/// The audit log, asked of any records: lines come and stay.
pub trait AuditStore: Records {
    /// Writes down what was not a change of the store: a refusal, a rotation.
    fn audit(&self, entry: AuditEntry) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("write the audit log"), move |view| {
            view.audit(&entry);
            Ok(())
        })
    }

    /// The newest lines first, of one tenant or of all.
    fn audit_lines(&self, tenant: Option<&str>, limit: usize) -> BoxFuture<'_, Result<Vec<AuditLine>>> {
        let tenant = tenant.map(str::to_owned);
        look(self, "read the audit log", move |view| match &tenant {
            Some(tenant) => view.newest(&["tenant"], (tenant,), limit),
            None => view.newest(&[], (), limit),
        })
    }
}

impl<R: Records + ?Sized> AuditStore for R {}

/// Cuts what others made up, and shows what hides in it: people read the log in terminals.
fn short(text: &str) -> String {
    visible_up_to(text, MAX_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_made_up_is_cut_and_harmless() {
        let entry = AuditEntry::refused(
            &Actor::stranger(),
            "gateway.enroll",
            "a\u{1b}[2J",
            &"x".repeat(10_000),
            "unknown token",
        );
        assert_eq!(entry.tenant, "a\\u{1b}[2J");
        assert_eq!(entry.target.len(), MAX_WORDS);
        assert_eq!(entry.outcome, "refused: unknown token");
        let person = Actor::person("telegram", "nna\u{202e}");
        let entry = AuditEntry::done(&person, "route.link", "", "x\u{2066}y").with("\u{200b}");
        let words = [entry.actor.as_str(), &entry.target, &entry.detail];
        assert_eq!(words, ["person telegram:nna\\u{202e}", "x\\u{2066}y", "\\u{200b}"]);
    }
}
