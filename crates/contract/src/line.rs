//! Lines out of socket messages, and socket messages out of lines.
//!
//! The stream of text on a relay socket is cut twice, independently: into
//! WebSocket messages and, by newlines, into frames. One message may hold
//! several frames and one frame may span several messages.

use std::borrow::Cow;

crate::limits! {
    /// The largest action there is, with every character of it escaped. Longer lines are refused one by one, and an action among them is answered; the socket lives.
    pub const MAX_GATEWAY_LINE: usize = 2 * 1024 * 1024, bytes "a line from a gateway";
    /// A gateway's library closes with 1009 above 1 MiB. The margin is for whoever counts characters where the library counts bytes.
    pub const MAX_CONNECTOR_MESSAGE: usize = 900_000, bytes "a message to a gateway";
    /// Joining small lines saves system calls and the gateway's queue of 16 messages; beyond this neither gets better, while a slow reader waits longer for its start.
    pub const MAX_COALESCED_MESSAGE: usize = 64 * 1024, bytes "lines joined into one message to a gateway";
}

/// How much of a refused line is shown to whoever has to answer it: its type and its id come first.
const BEGINS: usize = 1024;

/// Why a line was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line was longer than the buffer takes; it is skipped to its end.
    #[error("a line is longer than {max} bytes")]
    TooLong {
        /// The limit it went over.
        max: usize,
        /// How it begins.
        begins: Box<[u8]>,
    },
}

/// Cuts a stream of messages into lines.
///
/// Between messages it holds the unfinished line and nothing else; while no
/// line is unfinished it owns no heap memory, which is what ten thousand idle
/// sockets are billed for.
#[derive(Debug)]
pub struct LineBuffer {
    carry: Vec<u8>,
    skipping: bool,
    max: usize,
}

impl LineBuffer {
    /// A buffer that takes lines of up to `max_line` bytes, newline excluded.
    pub fn new(max_line: usize) -> Self {
        Self { carry: Vec::new(), skipping: false, max: max_line }
    }

    /// Takes one message and gives the lines it completes.
    ///
    /// Lines that lie wholly inside the message are borrowed from it. Empty
    /// lines are left out and a carriage return before the newline is taken
    /// off. A line over the limit is reported once, as soon as it is known to
    /// be over; later lines are not affected. Lines the caller does not take
    /// from the iterator are lost, the buffer itself stays consistent.
    pub fn push<'a>(&mut self, message: &'a [u8]) -> Lines<'a> {
        let Some(first_end) = position_of_newline(message) else {
            let overflow = self.keep(message);
            return Lines { first: None, whole: &[], overflow, max: self.max };
        };
        let first = self.finish(&message[..first_end]);
        let body = &message[first_end + 1..];
        let tail_start = body.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (whole, tail) = body.split_at(tail_start);
        let overflow = self.keep(tail);
        Lines { first, whole, overflow, max: self.max }
    }

    /// Bytes of memory held for an unfinished line.
    pub fn held(&self) -> usize {
        self.carry.capacity()
    }

    /// Whether a line has begun and not ended, be it kept or skipped.
    pub fn is_unfinished(&self) -> bool {
        self.skipping || !self.carry.is_empty()
    }

    /// Takes lines of up to `max_line` bytes from now on.
    pub fn set_max(&mut self, max_line: usize) {
        self.max = max_line;
    }

    /// Gives up the unfinished line, for want of memory, and skips the rest of
    /// it; answers how it begins. `None` if there is none to give up.
    pub fn give_up(&mut self) -> Option<Box<[u8]>> {
        if self.carry.is_empty() {
            return None;
        }
        self.skipping = true;
        Some(beginning(&std::mem::take(&mut self.carry), &[]))
    }

    /// Completes the carried line with the start of a message.
    fn finish<'a>(&mut self, start: &'a [u8]) -> Option<Result<Cow<'a, [u8]>, LineError>> {
        if std::mem::take(&mut self.skipping) {
            return None;
        }
        if self.carry.len() + start.len() > self.max {
            return Some(Err(self.too_long(start)));
        }
        if self.carry.is_empty() {
            return Some(Ok(Cow::Borrowed(start)));
        }
        let mut line = std::mem::take(&mut self.carry);
        line.extend_from_slice(start);
        Some(Ok(Cow::Owned(line)))
    }

    /// Keeps the start of an unfinished line; says so if it just went over.
    fn keep(&mut self, start: &[u8]) -> Option<LineError> {
        if self.skipping || start.is_empty() {
            return None;
        }
        if self.carry.len() + start.len() > self.max {
            self.skipping = true;
            return Some(self.too_long(start));
        }
        self.carry.extend_from_slice(start);
        None
    }

    fn too_long(&mut self, rest: &[u8]) -> LineError {
        LineError::TooLong { max: self.max, begins: beginning(&std::mem::take(&mut self.carry), rest) }
    }
}

/// The first bytes of a line that is in two parts.
fn beginning(first: &[u8], second: &[u8]) -> Box<[u8]> {
    first.iter().chain(second).take(BEGINS).copied().collect()
}

/// The lines one message completed.
#[derive(Debug)]
pub struct Lines<'a> {
    first: Option<Result<Cow<'a, [u8]>, LineError>>,
    whole: &'a [u8],
    overflow: Option<LineError>,
    max: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<Cow<'a, [u8]>, LineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            match first.map(without_return) {
                Ok(line) if line.is_empty() => {}
                item => return Some(item),
            }
        }
        while let Some(end) = position_of_newline(self.whole) {
            let (line, rest) = (&self.whole[..end], &self.whole[end + 1..]);
            self.whole = rest;
            if line.len() > self.max {
                return Some(Err(LineError::TooLong { max: self.max, begins: beginning(line, &[]) }));
            }
            let line = without_return(Cow::Borrowed(line));
            if !line.is_empty() {
                return Some(Ok(line));
            }
        }
        self.overflow.take().map(Err)
    }
}

fn position_of_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

fn without_return(line: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match line {
        Cow::Borrowed(line) => Cow::Borrowed(line.strip_suffix(b"\r").unwrap_or(line)),
        Cow::Owned(mut line) => {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            Cow::Owned(line)
        }
    }
}

/// Cuts a line into messages of at most `max` bytes, at character boundaries.
///
/// A `max` below the four bytes a character can take is read as four.
pub fn split_message(line: &str, max: usize) -> impl Iterator<Item = &str> {
    let max = max.max(char::MAX.len_utf8());
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.len().min(max);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (message, later) = rest.split_at(end);
        rest = later;
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(buffer: &mut LineBuffer, message: &str) -> Vec<Result<String, LineError>> {
        buffer
            .push(message.as_bytes())
            .map(|line| line.map(|line| String::from_utf8(line.into_owned()).unwrap()))
            .collect()
    }

    #[test]
    fn lines_and_messages_are_independent() {
        let mut buffer = LineBuffer::new(10);
        assert_eq!(feed(&mut buffer, "a\nb\r\n\n\r\nc"), [Ok("a".into()), Ok("b".into())]);
        assert_eq!(feed(&mut buffer, "d"), []);
        assert_eq!(feed(&mut buffer, "\r"), []);
        assert_eq!(feed(&mut buffer, "\ne\n"), [Ok("cd".into()), Ok("e".into())]);
    }

    #[test]
    fn a_long_line_is_reported_once_and_skipped() {
        let long = Err(LineError::TooLong { max: 3, begins: (*b"abcd").into() });
        let mut buffer = LineBuffer::new(3);
        assert_eq!(feed(&mut buffer, "ok\nabc"), [Ok("ok".into())]);
        assert_eq!(feed(&mut buffer, "d"), vec![long.clone()]);
        assert_eq!(feed(&mut buffer, "efgh"), []);
        assert_eq!(feed(&mut buffer, "i\nx\n"), [Ok("x".into())]);
        assert_eq!(feed(&mut buffer, "abcd\ny\n"), [long.clone(), Ok("y".into())]);
        assert_eq!(feed(&mut buffer, "z\nabcd\nabcd"), [Ok("z".into()), long.clone(), long]);
        assert_eq!(feed(&mut buffer, "\nabc\n"), [Ok("abc".into())]);
    }

    #[test]
    fn a_line_that_is_given_up_shows_how_it_began() {
        let mut buffer = LineBuffer::new(10_000);
        assert_eq!(buffer.give_up(), None);
        let begins = format!("{{\"type\":\"hello\"{}", " ".repeat(3_000));
        assert_eq!(feed(&mut buffer, &begins), []);
        assert!(buffer.is_unfinished() && buffer.held() >= begins.len());
        assert_eq!(*buffer.give_up().unwrap(), begins.as_bytes()[..BEGINS]);
        assert!(buffer.is_unfinished() && buffer.held() == 0);
        assert_eq!(feed(&mut buffer, "the rest}\nnext\n"), [Ok("next".into())]);
        assert!(!buffer.is_unfinished());
    }

    #[test]
    fn nothing_is_held_or_copied_without_need() {
        let mut buffer = LineBuffer::new(100);
        let lines: Vec<_> = buffer.push(b"one\ntwo\n").collect();
        assert!(lines.iter().all(|line| matches!(line, Ok(Cow::Borrowed(_)))));
        assert_eq!(buffer.carry.capacity(), 0);
        assert_eq!(buffer.push(b"half").count(), 0);
        assert_eq!(buffer.push(b" done\n").count(), 1);
        assert_eq!(buffer.carry.capacity(), 0);
    }

    #[test]
    fn messages_are_cut_between_characters() {
        let parts: Vec<_> = split_message("aé😀b😀", 5).collect();
        assert_eq!(parts, ["aé", "😀b", "😀"]);
        assert_eq!(split_message("", 5).count(), 0);
        assert_eq!(split_message("😀😀", 0).count(), 2);
    }
}
