//! How far a bot's messages were read, as a cursor, where they are both posted and listed.
//!
//! A provider lists messages by time, to the second, and may be late with the newest.
//! So each look goes back a little before the newest message of the last one, and for a
//! quiet bot it lists the same messages for ever. What was taken in is known
//! by its id, and that is kept here: the journal forgets after some days.

use angelia_core::store::Cursor;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// How far back a look goes, in seconds: much longer than a provider takes to list
/// a message, and a crash to lose one.
const OVERLAP: i64 = 15 * 60;
/// Ids kept of messages that were listed, some 50 bytes each. With more of them
/// within [`OVERLAP`] a look goes back less far, so that none is forgotten that it lists.
const LISTED: usize = 500;
/// Ids kept of messages that reached nobody and may not be listed yet. With more of
/// them between two looks the oldest would be asked about, and dropped, once more.
const SETTLED: usize = 256;
/// Ids kept of messages that an agent got, and that may not be listed yet.
/// With more of them between two looks the journal knows the rest, for some days.
const TAKEN: u64 = 256;
/// The stream that the position is kept in.
const STREAM: &str = "messages";
/// What the streams begin with that those are kept in.
const TAKEN_STREAM: &str = "taken ";

/// Where reading is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Nothing before this second is read: the bot was not ours to read then,
    /// or all of it was.
    floor: i64,
    /// When the newest message came that was listed.
    newest: i64,
    /// Messages that reached nobody, oldest first.
    settled: VecDeque<String>,
    /// Messages that were listed from [`from`](Self::from) on, and when they came.
    #[serde(default)]
    listed: BTreeSet<(i64, String)>,
    /// Messages that an agent got.
    #[serde(skip)]
    taken: Taken,
}

/// The newest messages that an agent got. Each has a cursor of its own, so that it is
/// committed with its message and nobody waits for anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Taken {
    /// Oldest first.
    ids: VecDeque<String>,
    /// The number of the next.
    next: u64,
}

impl Taken {
    fn read(cursors: &[Cursor]) -> Self {
        let numbered = cursors.iter().filter(|cursor| cursor.stream.starts_with(TAKEN_STREAM));
        let mut numbered: Vec<(u64, String)> = numbered
            .filter_map(|cursor| {
                let (number, id) = cursor.position.split_once(' ')?;
                Some((number.parse().ok()?, id.to_owned()))
            })
            .collect();
        numbered.sort_unstable();
        let next = numbered.last().map_or(0, |(number, _)| number + 1);
        Self { ids: numbered.into_iter().map(|(_, id)| id).collect(), next }
    }
}

impl Position {
    /// The beginning: what came before is history.
    pub(crate) fn beginning(now: i64) -> Self {
        Self { floor: now, newest: now, ..Self::default() }
    }

    /// Reads a bot's cursors back; `None` if it was never read.
    pub(crate) fn read(cursors: &[Cursor]) -> Option<Self> {
        let kept = cursors.iter().find(|cursor| cursor.stream == STREAM)?;
        let kept: Self = serde_json::from_str(&kept.position).ok()?;
        Some(Self { taken: Taken::read(cursors), ..kept })
    }

    /// The cursor of it.
    pub(crate) fn cursor(&self) -> Cursor {
        let position = serde_json::to_string(self).unwrap_or_default();
        Cursor { stream: STREAM.into(), position }
    }

    /// The second from which on messages are listed.
    pub(crate) fn from(&self) -> i64 {
        (self.newest - OVERLAP).max(self.floor)
    }

    /// These messages were listed, with the second each came in, and are taken in.
    pub(crate) fn listed(&mut self, messages: impl IntoIterator<Item = (i64, String)>) {
        self.listed.extend(messages);
        let newest = self.listed.last().map_or(self.newest, |(second, _)| *second);
        self.newest = self.newest.max(newest);
        while self.listed.len() > LISTED
            && let Some((second, _)) = self.listed.pop_first()
        {
            self.floor = self.floor.max(second + 1);
        }
        let from = self.from();
        self.listed.retain(|(second, _)| *second >= from);
    }

    /// Whether a message was taken in, whoever got it.
    pub(crate) fn knows(&self, message_id: &str) -> bool {
        self.is_settled(message_id)
            || self.listed.iter().any(|(_, listed)| listed == message_id)
            || self.taken.ids.iter().any(|taken| taken == message_id)
    }

    /// Whether a message is known to have reached nobody.
    pub(crate) fn is_settled(&self, message_id: &str) -> bool {
        self.settled.iter().any(|settled| settled == message_id)
    }

    /// A message reached nobody.
    pub(crate) fn settle(&mut self, message_id: &str) {
        if self.settled.len() >= SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back(message_id.to_owned());
    }

    /// What to commit together with a message that an agent gets.
    pub(crate) fn taking(&mut self, message_id: &str) -> Cursor {
        let number = self.taken.next;
        self.taken.next += 1;
        let stream = format!("{TAKEN_STREAM}{}", number % TAKEN);
        Cursor { stream, position: format!("{number} {message_id}") }
    }

    /// That was committed.
    pub(crate) fn took(&mut self, message_id: &str) {
        if self.taken.ids.len() as u64 >= TAKEN {
            self.taken.ids.pop_front();
        }
        self.taken.ids.push_back(message_id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(position: &mut Position, second: i64) {
        position.listed([(second, format!("SM{second}"))]);
    }

    #[test]
    fn reading_begins_now_and_looks_back_a_little() {
        let mut position = Position::beginning(10_000);
        assert_eq!(position.from(), 10_000, "no history");
        list(&mut position, 10_300);
        assert_eq!(position.from(), 10_000);
        list(&mut position, 20_000);
        list(&mut position, 15_000);
        assert_eq!(position.from(), 20_000 - OVERLAP);
        position.settle("SM1");
        assert_eq!(Position::read(&[position.cursor()]), Some(position));
        assert_eq!(Position::read(&[]), None);
        let before =
            Cursor { stream: STREAM.into(), position: r#"{"floor":1,"newest":9,"settled":[]}"#.into() };
        assert_eq!(Position::read(&[before]).unwrap().from(), 1, "one without listed ids");
    }

    #[test]
    fn what_a_look_lists_again_is_known() {
        let mut position = Position::beginning(0);
        list(&mut position, 1_000);
        list(&mut position, 1_000 + OVERLAP);
        assert!(position.knows("SM1000") && position.knows(&format!("SM{}", 1_000 + OVERLAP)));
        list(&mut position, 1_001 + OVERLAP);
        assert!(!position.knows("SM1000"), "it is listed no more");
        assert!(Position::read(&[position.cursor()]).unwrap().knows(&format!("SM{}", 1_000 + OVERLAP)));
    }

    #[test]
    fn what_is_forgotten_is_not_listed_either() {
        let mut position = Position::beginning(0);
        for number in 0..2 * LISTED {
            // Two in each second.
            let second = 10_000 + number as i64 / 2;
            position.listed([(second, format!("SM{number}"))]);
            let from = position.from();
            let known = |number: &usize| position.knows(&format!("SM{number}"));
            assert!((0..=number).filter(|one| 10_000 + *one as i64 / 2 >= from).all(|one| known(&one)));
        }
        assert!(position.listed.len() <= LISTED && position.from() > 10_000);
    }

    #[test]
    fn the_newest_that_reached_nobody_are_known() {
        let mut position = Position::beginning(0);
        (0..SETTLED + 10).for_each(|n| position.settle(&format!("SM{n}")));
        assert!(!position.is_settled("SM9") && position.is_settled("SM10"));
        assert!(position.is_settled(&format!("SM{}", SETTLED + 9)));
        assert_eq!(position.settled.len(), SETTLED);
    }

    #[test]
    fn the_newest_that_an_agent_got_are_known_to_the_next_process_too() {
        let mut position = Position::beginning(0);
        let mut kept = std::collections::BTreeMap::new();
        for number in 0..TAKEN + 10 {
            let id = format!("SM{number}");
            let cursor = position.taking(&id);
            position.took(&id);
            kept.insert(cursor.stream.clone(), cursor);
        }
        assert_eq!(kept.len() as u64, TAKEN);
        let cursors: Vec<Cursor> = kept.into_values().chain([position.cursor()]).collect();
        let next = Position::read(&cursors).unwrap();
        assert_eq!(next, position);
        assert!(!next.knows("SM9") && next.knows("SM10") && next.knows(&format!("SM{}", TAKEN + 9)));
    }
}
