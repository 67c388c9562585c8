//! How often the connector itself answers people.

use angelia_core::clock::Mono;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
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

impl Default for Pace {
    fn default() -> Self {
        Self { memory: Mutex::default(), answers: Arc::new(Semaphore::new(MAX_ANSWERS)) }
    }
}

type Times = HashMap<String, Vec<Mono>>;

#[derive(Debug, Default)]
struct Memory {
    chats: Times,
    people: Times,
}

impl Pace {
    /// Whether somebody may be answered in a chat; if so, it counts.
    pub(super) fn may_answer(&self, chat: &str, person: &str, now: Mono) -> bool {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Memory { chats, people } = &mut *memory;
        if !has_room(chats, chat, MAX_IN_CHAT, now) || !has_room(people, person, MAX_TO_PERSON, now) {
            return false;
        }
        for (times, key) in [(chats, chat), (people, person)] {
            times.entry(key.to_owned()).or_default().push(now);
        }
        true
    }

    /// Room for one more answer on its way, if there is any.
    pub(super) fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.answers.clone().try_acquire_owned().ok()
    }
}

/// Whether one more fits, of `most`, into the window; what left it is forgotten.
fn has_room(times: &mut Times, key: &str, most: usize, now: Mono) -> bool {
    times.retain(|_, times| {
        times.retain(|at| now.since(*at) < WINDOW);
        !times.is_empty()
    });
    match times.get(key) {
        Some(times) => times.len() < most,
        None => times.len() < MAX_REMEMBERED,
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
