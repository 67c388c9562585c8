//! How much a room keeps: its newest lines, by number and by bytes. The oldest
//! go in the commit that brings one too many.

angelia_contract::limits! {
    /// A chat page shows fewer. The oldest lines go.
    const KEPT_PER_ROOM: u64 = 2_000, count "lines kept of a room of the web chat";
    /// Thousands of ordinary lines. The oldest go.
    const ROOM_BYTES: u64 = 8 * 1024 * 1024, bytes "of text kept of a room of the web chat";
}

/// Lines that may be too many before they are looked for: looking costs a walk through the room.
const SLACK: u64 = 100;
/// What is left of a room that was too large, so that the next line is not too much again.
const LEFT: u64 = ROOM_BYTES / 8 * 7;

/// What a room holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomSize {
    /// Its lines.
    pub lines: u64,
    /// The bytes of their texts.
    pub bytes: u64,
}

impl RoomSize {
    /// Counts lines that came, or one that says something else. What it said before is not
    /// taken off: whoever looks through the room finds out.
    pub fn grow(&mut self, lines: u64, bytes: usize) {
        self.lines += lines;
        self.bytes += bytes as u64;
    }

    /// Whether it is time to look through the room for lines that have to go.
    pub fn is_too_much(self) -> bool {
        self.lines > KEPT_PER_ROOM + SLACK || self.bytes > ROOM_BYTES
    }
}

/// What stays of a room, and the number of the newest line that goes, with all before it.
/// Its lines come with their bytes, the newest first; that one stays, whatever its size.
pub fn cut(newest_first: impl IntoIterator<Item = (i64, u64)>) -> (RoomSize, Option<i64>) {
    let mut left = RoomSize::default();
    for (number, bytes) in newest_first {
        let with = RoomSize { lines: left.lines + 1, bytes: left.bytes + bytes };
        if with.lines > KEPT_PER_ROOM || (with.bytes > LEFT && with.lines > 1) {
            return (left, Some(number));
        }
        left = with;
    }
    (left, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_looked_through_now_and_then_and_not_for_every_line() {
        let of = |lines, bytes| RoomSize { lines, bytes }.is_too_much();
        assert!(!of(KEPT_PER_ROOM + SLACK, ROOM_BYTES));
        assert!(of(KEPT_PER_ROOM + SLACK + 1, 0) && of(1, ROOM_BYTES + 1));
    }

    #[test]
    fn the_newest_lines_stay() {
        let lines = |count: i64, bytes: u64| (1..=count).rev().map(move |number| (number, bytes));
        assert_eq!(cut(lines(0, 0)), (RoomSize::default(), None));
        assert_eq!(cut(lines(2_000, 1)), (RoomSize { lines: 2_000, bytes: 2_000 }, None));
        assert_eq!(cut(lines(2_101, 1)), (RoomSize { lines: 2_000, bytes: 2_000 }, Some(101)));
        let (left, goes_to) = cut(lines(9, LEFT / 3));
        assert_eq!((left.lines, goes_to), (3, Some(6)), "as much text as is left of a large room");
        assert_eq!(cut(lines(2, ROOM_BYTES)).1, Some(1), "the newest stays, whatever its size");
    }
}
