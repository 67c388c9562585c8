//! The life of an action, written down before the provider is called.

use std::time::Duration;

/// Where an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionState {
    /// Durable. The provider was not called, or certainly did not take it; one
    /// that dedupes may be under call.
    Accepted,
    /// A provider that does not dedupe is being called.
    Sending,
    /// The provider has it.
    Sent,
    /// The provider may or may not have it.
    Ambiguous,
    /// The provider does not have it and will not get it.
    Failed,
    /// A newer edit of the same message took its place.
    Superseded,
}

impl ActionState {
    /// The word the store keeps.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Ambiguous => "ambiguous",
            Self::Failed => "failed",
            Self::Superseded => "superseded",
        }
    }

    /// Reads [`ActionState::as_str`] back.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Accepted, Self::Sending, Self::Sent, Self::Ambiguous, Self::Failed, Self::Superseded]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

/// Whether a provider recognises the same action given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dedupe {
    /// It does: repeating is safe.
    Yes,
    /// It does, for so long after it was first called.
    For(Duration),
    /// It does not: repeating may say a thing twice.
    No,
}

impl Dedupe {
    /// Whether repeating is safe when the first call was so long ago.
    pub fn holds(self, since_begun: Duration) -> bool {
        match self {
            Self::Yes => true,
            Self::For(life) => since_begun < life,
            Self::No => false,
        }
    }
}

/// What to do with an unfinished action after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Send it.
    Send,
    /// Leave it and show it: repeating could double it.
    ShowAmbiguous,
    /// It is finished.
    Nothing,
}

/// Crashes at which an action may have been under way and is still tried again.
/// One may be chance; whatever is under way at two of them is left alone.
const CRASHES_SURVIVED: u32 = 1;

/// Whether an action that was found under way at so many starts may be what
/// ends the server.
pub fn is_suspect(state: ActionState, crashes: u32) -> bool {
    state == ActionState::Sending && crashes > CRASHES_SURVIVED
}

/// Decides the fate of an action found in `state` at start, whose provider was
/// first called so long ago.
pub fn after_crash(state: ActionState, dedupe: Dedupe, since_begun: Duration) -> Resume {
    match state {
        ActionState::Accepted => Resume::Send,
        ActionState::Sending if dedupe.holds(since_begun) => Resume::Send,
        ActionState::Sending => Resume::ShowAmbiguous,
        ActionState::Sent | ActionState::Ambiguous | ActionState::Failed | ActionState::Superseded => {
            Resume::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_double_is_repeated() {
        let minute = Duration::from_secs(60);
        assert_eq!(after_crash(ActionState::Accepted, Dedupe::No, minute), Resume::Send);
        assert_eq!(after_crash(ActionState::Sending, Dedupe::Yes, minute), Resume::Send);
        assert_eq!(after_crash(ActionState::Sending, Dedupe::No, minute), Resume::ShowAmbiguous);
        assert_eq!(after_crash(ActionState::Sending, Dedupe::For(2 * minute), minute), Resume::Send);
        assert_eq!(after_crash(ActionState::Sending, Dedupe::For(minute), minute), Resume::ShowAmbiguous);
        assert_eq!(after_crash(ActionState::Accepted, Dedupe::For(minute), 9 * minute), Resume::Send);
        assert_eq!(after_crash(ActionState::Sent, Dedupe::Yes, minute), Resume::Nothing);
    }

    #[test]
    fn what_was_under_way_at_two_crashes_is_suspect() {
        assert!(!is_suspect(ActionState::Sending, 1), "that may be chance");
        assert!(is_suspect(ActionState::Sending, 2));
        assert!(!is_suspect(ActionState::Accepted, 9), "it was not under way");
    }
}
