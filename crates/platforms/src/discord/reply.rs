//! What an interaction is answered with at once.

use angelia_core::admission::DropReason;
use angelia_core::inbox::Patience;
use angelia_core::store::Taken;
use angelia_core::vault::Deferral;
use serde_json::{Value, json};

/// The flag of a message that only the person who asked sees.
pub(super) const EPHEMERAL: u64 = 1 << 6;

pub(super) const TRY_AGAIN: &str = "I could not take this just now. Please try again in a moment.";
const MAY_HAVE_ARRIVED: &str = "This took too long to be sure: it may have arrived. \
                                If no answer comes within a minute, please ask again.";
pub(super) const NOT_UNDERSTOOD: &str = "I do not understand this kind of request.";
pub(super) const LINK_IN_WRITING: &str =
    "A link code has to be written as a message: mention me, followed by /link and the code.";

/// What Discord is told within its three seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It asked whether anybody is here.
    Pong,
    /// Nothing is suggested to somebody who types.
    NoChoices,
    /// The answer follows.
    Deferred(Deferral),
    /// This is the answer, for the person's eyes only.
    Words(&'static str),
}

impl Reply {
    /// What to say to somebody whose interaction reaches nobody. Names nobody.
    pub(super) fn refusal(reason: DropReason) -> Self {
        Self::Words(match reason {
            DropReason::NoRoute => "Nobody answers here: no agent is connected to this place.",
            DropReason::AuthorNotAllowed => "You are not among those who may talk to the agent here.",
            DropReason::NoInstance => "The agent of this place is not set up at the moment.",
            DropReason::InboxFull => TRY_AGAIN,
            DropReason::BotNotAllowed => "The agent here does not listen to bots.",
            DropReason::NotAddressed | DropReason::Keyword | DropReason::Consumed => NOT_UNDERSTOOD,
        })
    }

    /// What it is once the store has told what became of what was taken in.
    pub(super) fn after(self, taken: Taken) -> Self {
        match self {
            Self::Deferred(_) if taken.given_up => Self::Words(TRY_AGAIN),
            Self::Deferred(_) if taken.no_instance => Self::refusal(DropReason::NoInstance),
            other => other,
        }
    }

    /// What it is if the store has not told in time: nothing is promised that
    /// nobody keeps.
    pub(super) fn late(self, patience: Option<&Patience>) -> Self {
        match (self, patience) {
            (Self::Deferred(_), Some(patience)) if !patience.give_up() => Self::Words(MAY_HAVE_ARRIVED),
            (Self::Deferred(_), _) => Self::Words(TRY_AGAIN),
            (other, _) => other,
        }
    }

    /// What Discord reads.
    pub(super) fn body(self) -> Value {
        match self {
            Self::Pong => json!({ "type": 1 }),
            Self::Words(words) => json!({
                "type": 4,
                "data": { "content": words, "flags": EPHEMERAL, "allowed_mentions": { "parse": [] } },
            }),
            Self::Deferred(Deferral::Message) => json!({ "type": 5 }),
            Self::Deferred(Deferral::Update) => json!({ "type": 6 }),
            Self::NoChoices => json!({ "type": 8, "data": { "choices": [] } }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deferral_is_only_said_for_what_is_kept() {
        let deferred = Reply::Deferred(Deferral::Message);
        assert_eq!(deferred.after(Taken::default()), deferred);
        let given_up = Taken { given_up: true, ..Taken::default() };
        assert_eq!(deferred.after(given_up), Reply::Words(TRY_AGAIN));
        let gone = Taken { no_instance: true, ..Taken::default() };
        assert_eq!(deferred.after(gone), Reply::refusal(DropReason::NoInstance));
        assert_eq!(Reply::Words(NOT_UNDERSTOOD).after(gone), Reply::Words(NOT_UNDERSTOOD));
        let (waits, begun) = (Patience::default(), Patience::default());
        begun.begin();
        assert_eq!(deferred.late(Some(&waits)), Reply::Words(TRY_AGAIN));
        assert!(!waits.begin(), "and it is not written later");
        assert_eq!(deferred.late(Some(&begun)), Reply::Words(MAY_HAVE_ARRIVED));
        assert_eq!(Reply::Words(NOT_UNDERSTOOD).late(None), Reply::Words(NOT_UNDERSTOOD));
    }

    #[test]
    fn replies_have_discords_numbers() {
        for (reply, kind) in [
            (Reply::Pong, 1),
            (Reply::Words("x"), 4),
            (Reply::Deferred(Deferral::Message), 5),
            (Reply::Deferred(Deferral::Update), 6),
            (Reply::NoChoices, 8),
        ] {
            assert_eq!(reply.body()["type"], kind);
        }
        assert_eq!(Reply::NoChoices.body()["data"]["choices"], json!([]));
        assert_eq!(Reply::Words("x").body()["data"]["flags"], 64);
        let words = DropReason::ALL.map(|reason| Reply::refusal(reason).body()["data"]["content"].clone());
        assert!(words.iter().all(|words| words.as_str().is_some_and(|words| words.len() < 100)));
    }
}
