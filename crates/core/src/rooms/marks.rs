//! Marks that agents put on lines: the eyes while they work on one, a tick when they are done.

use crate::store::Line;

angelia_contract::limits! {
    /// A turn has two or three. The oldest makes way.
    const MAX_MARKS: usize = 8, count "marks on a line of the web chat";
    /// The longest emoji, a family with its joiners, has less.
    const MAX_MARK_BYTES: usize = 40, bytes "of a mark on a line of the web chat";
}

/// A mark as it is kept; `None` if it is none: a short sign, not words.
pub fn check_mark(emoji: &str) -> Option<&str> {
    let mark = emoji.trim();
    let is_sign = !mark.is_empty() && mark.len() <= MAX_MARK_BYTES;
    let is_word = |c: char| c.is_control() || c.is_whitespace() || c.is_alphabetic();
    (is_sign && !mark.contains(is_word)).then_some(mark)
}

/// The marks of a line with one more, or without one; `None` if nothing changes.
pub fn marked(marks: &[String], mark: &str, remove: bool) -> Option<Vec<String>> {
    let is_there = marks.iter().any(|known| known == mark);
    if is_there != remove {
        return None;
    }
    let mut marks: Vec<String> = marks.iter().filter(|known| *known != mark).cloned().collect();
    if !remove {
        marks.push(mark.to_owned());
    }
    let surplus = marks.len().saturating_sub(MAX_MARKS);
    marks.drain(..surplus);
    Some(marks)
}

impl Line {
    /// Whether there is something to see of it.
    pub fn is_there(&self) -> bool {
        !self.text.is_empty() || !self.files.is_empty()
    }

    /// The same line with other marks, under its next number. That is no edit.
    pub fn with_marks(self, id: i64, marks: Vec<String>) -> Self {
        Self { id, marks, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(marks: &[&str]) -> Vec<String> {
        marks.iter().map(|mark| (*mark).to_owned()).collect()
    }

    #[test]
    fn a_mark_is_a_short_sign() {
        for good in ["👀", "✅", "❌", "👨‍👩‍👧‍👦", " 👍🏽 ", "❤️", "1️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"]
        {
            assert_eq!(check_mark(good), Some(good.trim()), "{good}");
        }
        for bad in ["", " ", "ok", "👀 seen", "\u{7}", "👀\n✅", &"👀".repeat(11)] {
            assert_eq!(check_mark(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_mark_is_there_once_and_the_oldest_makes_way() {
        let eyes = marked(&[], "👀", false).unwrap();
        assert_eq!(eyes, ["👀"]);
        assert_eq!(marked(&eyes, "👀", false), None);
        assert_eq!(marked(&eyes, "✅", true), None);
        let both = marked(&eyes, "✅", false).unwrap();
        assert_eq!(both, ["👀", "✅"]);
        assert_eq!(marked(&both, "👀", true).unwrap(), ["✅"]);
        let full = all(&["1", "2", "3", "4", "5", "6", "7", "8"]);
        assert_eq!(marked(&full, "9", false).unwrap(), all(&["2", "3", "4", "5", "6", "7", "8", "9"]));
    }
}
