//! How often the connector itself answers people.

use angelia_core::clock::Mono;
use angelia_core::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Answers in one chat within [`WINDOW`]: a few attempts at typing a code.
/// Anybody can ask for one, and each is a call of the bot's.
const MAX_IN_CHAT: usize = 6;
/// Answers to one person: less than a chat's, so that nobody uses up the others' share.
const MAX_TO_PERSON: usize = 2;
const WINDOW: Duration = Duration::from_secs(60);
/// Chats and people remembered, each. With more in a minute nobody is answered.
const MAX_REMEMBERED: usize = 4_096;
/// Answers on their way at once.
const MAX_ANSWERS: usize = 8;

/// Who was answered when.
#[derive(Debug)]
pub(super) struct Pace {
    memory: Mutex<Memory>,
    answers: Arc<Semaphore>,
}

#[derive(Debug)]
struct Memory {
    chats: SlidingWindowOf<String>,
    people: SlidingWindowOf<String>,
}

impl Default for Pace {
    fn default() -> Self {
        let each = |most| {
            let of_one = SlidingWindow::new(most, WINDOW);
            SlidingWindowOf::new(MAX_REMEMBERED, WhenCrowded::TurnAway, of_one)
        };
        let memory = Memory { chats: each(MAX_IN_CHAT), people: each(MAX_TO_PERSON) };
        Self { memory: Mutex::new(memory), answers: Arc::new(Semaphore::new(MAX_ANSWERS)) }
    }
}

impl Pace {
    /// Whether somebody may be answered in a chat; if so, it counts.
    pub(super) fn may_answer(&self, chat: &str, person: &str, now: Mono) -> bool {
        let mut memory = self.memory.lock();
        let Memory { chats, people } = &mut *memory;
        let room = chats.check(chat, now).and_then(|()| people.take(person, now));
        room.and_then(|()| chats.take(chat, now)).is_ok()
    }

    /// Room for one more answer on its way, if there is any.
    pub(super) fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.answers.clone().try_acquire_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_and_a_person_are_answered_now_and_then() {
        let (pace, start) = (Pace::default(), Mono::default());
        let may = |chat: &str, person: &str, second: u64| {
            pace.may_answer(chat, person, start + Duration::from_secs(second))
        };
        assert!(may("1", "ann", 0) && may("1", "ann", 0));
        assert!(!may("1", "ann", 0) && !may("2", "ann", 59), "two to a person, wherever");
        assert!(may("1", "bob", 1) && may("1", "bob", 1), "others have their own share");
        assert!(may("1", "cat", 2) && may("1", "cat", 2));
        assert!(!may("1", "dan", 59), "six in a chat");
        assert!(may("1", "dan", 60) && may("1", "ann", 60));
        assert!(!may("1", "eve", 60) && may("2", "eve", 60));
    }

    #[test]
    fn memory_is_bounded_and_room_too() {
        let pace = Pace::default();
        let answered = (0..2 * MAX_REMEMBERED)
            .filter(|n| pace.may_answer(&format!("c{n}"), &format!("p{n}"), Mono::default()));
        assert_eq!(answered.count(), MAX_REMEMBERED);
        let held: Vec<_> = std::iter::from_fn(|| pace.room()).collect();
        assert_eq!(held.len(), MAX_ANSWERS);
    }
}
