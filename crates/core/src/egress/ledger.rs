//! The life of an action, written down before the provider is called.

use crate::clock::UnixMillis;
use crate::words::words;
use std::time::Duration;

/// A process that works on actions, and the token it is fenced by: of two that
/// believe an action to be theirs, the ledger listens to the one it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub i64);

impl Owner {
    /// Whether this one is replaced once `by` takes up what `whose` left, or what
    /// everybody before it left. It takes up and accepts nothing from then on: nobody
    /// would look for that again.
    pub fn is_replaced(self, by: Owner, whose: Option<Owner>) -> bool {
        self != by && whose.map_or(self < by, |whose| whose == self)
    }
}

words! {
    /// Where an action is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ActionState {
        /// Durable. The provider was not called, or certainly did not take it; one
        /// that dedupes may be under call.
        Accepted = "accepted",
        /// A provider that does not dedupe is being called.
        Sending = "sending",
        /// The provider has it.
        Sent = "sent",
        /// The provider may or may not have it.
        Ambiguous = "ambiguous",
        /// The provider does not have it and will not get it.
        Failed = "failed",
        /// A newer edit of the same message took its place.
        Superseded = "superseded",
    }
}

impl ActionState {
    /// Whether nothing more comes of it.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Accepted | Self::Sending)
    }

    /// Whether somebody may have heard what it says.
    pub fn may_be_heard(self) -> bool {
        matches!(self, Self::Sent | Self::Ambiguous)
    }
}

/// What decides who may do what to an action in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionRow {
    /// Where it is.
    pub state: ActionState,
    /// Who works on it.
    pub owner: Owner,
    /// When its provider was first about to be called.
    pub begun_at: Option<UnixMillis>,
    /// Who was about to call it last. Of what earlier releases left, nobody knows better
    /// than that its owner was.
    pub begun_by: Owner,
    /// How many processes ended while they called.
    pub crashes: u32,
}

impl ActionRow {
    /// The row of an action that is being accepted.
    pub fn accepted(by: Owner) -> Self {
        Self { state: ActionState::Accepted, owner: by, begun_at: None, begun_by: Owner(0), crashes: 0 }
    }

    /// The row once its provider is about to be called; `None` if `by` must not call.
    /// The first time counts, until it is postponed.
    pub fn begin(self, by: Owner, now: UnixMillis) -> Option<Self> {
        match self.state {
            _ if self.owner != by => None,
            ActionState::Accepted => {
                Some(Self { state: ActionState::Sending, begun_at: Some(now), begun_by: by, ..self })
            }
            ActionState::Sending => Some(Self { begun_by: by, ..self }),
            _ => None,
        }
    }

    /// The row once it is known that nothing was written; `None` if nothing changes.
    pub fn postpone(self, by: Owner) -> Option<Self> {
        let changes = self.owner == by && self.state == ActionState::Sending;
        changes.then_some(Self { state: ActionState::Accepted, begun_at: None, begun_by: Owner(0), ..self })
    }

    /// The row once it ended in `state`; `None` if it has ended, or is not `by`'s to end.
    pub fn finish(self, by: Owner, state: ActionState) -> Option<Self> {
        let changes = self.owner == by && !self.state.is_over() && state.is_over();
        changes.then_some(Self { state, ..self })
    }

    /// The row once `by` works on what `whose` left, or what anybody left. If it was
    /// being called then, that counts: it may be what ended whoever called. What only
    /// waited for its turn has nothing to do with it.
    pub fn adopt(self, by: Owner, whose: Option<Owner>) -> Option<Self> {
        let left = !self.state.is_over() && whose.is_none_or(|whose| whose == self.owner) && self.owner != by;
        let called = self.state == ActionState::Sending && self.begun_by == self.owner;
        left.then_some(Self { owner: by, crashes: self.crashes + u32::from(called), ..self })
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

/// Whether an action that so many processes ended with may be what ends them.
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

    const ME: Owner = Owner(7);
    const BEFORE: Owner = Owner(6);

    #[test]
    fn nobody_changes_what_is_not_theirs_or_has_ended() {
        for (state, owner) in ActionState::ALL.into_iter().flat_map(|state| [(state, ME), (state, BEFORE)]) {
            let row = ActionRow { state, owner, ..ActionRow::accepted(owner) };
            let open = !state.is_over();
            let mine = open && owner == ME;
            assert_eq!(row.begin(ME, UnixMillis(1)).is_some(), mine, "{row:?}");
            assert_eq!(row.postpone(ME).is_some(), mine && state == ActionState::Sending, "{row:?}");
            assert_eq!(row.finish(ME, ActionState::Failed).is_some(), mine, "{row:?}");
            assert_eq!(row.finish(ME, ActionState::Sending), None, "that is no end");
            let others = open && owner == BEFORE;
            assert_eq!(row.adopt(ME, None).map(|row| row.owner), others.then_some(ME), "{row:?}");
            assert_eq!(row.adopt(ME, Some(BEFORE)).is_some(), open && owner == BEFORE, "{row:?}");
        }
    }

    #[test]
    fn whoever_left_something_is_replaced_by_whoever_takes_it_up() {
        assert!(BEFORE.is_replaced(ME, Some(BEFORE)) && BEFORE.is_replaced(ME, None));
        assert!(!ME.is_replaced(BEFORE, None), "it came later");
        assert!(!Owner(5).is_replaced(ME, Some(BEFORE)), "it left nothing that was taken up");
        assert!(!ME.is_replaced(ME, None) && !ME.is_replaced(ME, Some(ME)));
    }

    #[test]
    fn only_what_was_being_called_counts_as_a_crash() {
        let [one, two, three, four] = [1, 2, 3, 4].map(Owner);
        let accepted = ActionRow::accepted(one);
        assert_eq!(accepted.adopt(two, None).unwrap().crashes, 0, "it waited");
        let begun = accepted.begin(one, UnixMillis(1)).unwrap();
        let again = begun.adopt(two, None).unwrap();
        assert_eq!(again.crashes, 1);
        assert_eq!(again.adopt(three, None).unwrap().crashes, 1, "the second only had it waiting");
        let again = again.begin(two, UnixMillis(2)).unwrap().adopt(three, None).unwrap();
        assert!(again.crashes == 2 && is_suspect(again.state, again.crashes));
        let postponed = again.begin(three, UnixMillis(3)).unwrap().postpone(three).unwrap();
        assert_eq!(postponed.adopt(four, None).unwrap().crashes, 2);
        let of_old = ActionRow { state: ActionState::Sending, owner: Owner(0), ..accepted };
        assert_eq!(of_old.adopt(one, None).unwrap().crashes, 1, "nobody knows better");
    }

    #[test]
    fn the_first_call_counts_until_nothing_came_of_it() {
        let row = ActionRow::accepted(ME).begin(ME, UnixMillis(1)).unwrap();
        assert_eq!(row.begin(ME, UnixMillis(2)).unwrap().begun_at, Some(UnixMillis(1)));
        let row = row.postpone(ME).unwrap();
        assert_eq!(row, ActionRow::accepted(ME));
        assert_eq!(row.begin(ME, UnixMillis(3)).unwrap().begun_at, Some(UnixMillis(3)));
    }

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
