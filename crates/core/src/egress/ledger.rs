//! The life of an action, written down before the provider is called.

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
    /// It does not: repeating may say a thing twice.
    No,
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

/// Decides the fate of an action found in `state` at start.
pub fn after_crash(state: ActionState, dedupe: Dedupe) -> Resume {
    match (state, dedupe) {
        (ActionState::Accepted, _) | (ActionState::Sending, Dedupe::Yes) => Resume::Send,
        (ActionState::Sending, Dedupe::No) => Resume::ShowAmbiguous,
        (ActionState::Sent | ActionState::Ambiguous | ActionState::Failed | ActionState::Superseded, _) => {
            Resume::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_double_is_repeated() {
        assert_eq!(after_crash(ActionState::Accepted, Dedupe::No), Resume::Send);
        assert_eq!(after_crash(ActionState::Sending, Dedupe::Yes), Resume::Send);
        assert_eq!(after_crash(ActionState::Sending, Dedupe::No), Resume::ShowAmbiguous);
        assert_eq!(after_crash(ActionState::Sent, Dedupe::Yes), Resume::Nothing);
    }
}
