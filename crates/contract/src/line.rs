//! Lines out of socket messages, and socket messages out of lines.
//!
//! The stream of text on a relay socket is cut twice, independently: into
//! WebSocket messages and, by newlines, into frames. One message may hold
//! several frames and one frame may span several messages.

use std::borrow::Cow;

/// Largest WebSocket message, and largest line, taken from a gateway.
///
/// Gateways do not limit what they send; a long answer with pasted files can
/// pass 1 MiB. Eight of them leave room and still bound what one socket costs.
pub const MAX_GATEWAY_MESSAGE: usize = 8 * 1024 * 1024;

/// Largest WebSocket message sent to a gateway.
///
/// Its library closes with 1009 above 1 MiB after decompression. The margin
/// is for whoever counts characters where the library counts bytes.
pub const MAX_CONNECTOR_MESSAGE: usize = 900_000;

/// Largest WebSocket message made by joining small lines.
///
/// Joining saves system calls and the gateway's 16-message queue; beyond this
/// size neither gets better, while a slow reader waits longer for its start.
pub const MAX_COALESCED_MESSAGE: usize = 64 * 1024;

/// Why a line was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line was longer than the buffer takes; it is skipped to its end.
    #[error("a line is longer than {max} bytes")]
    TooLong {
        /// The limit it went over.
        max: usize,
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
            return Lines::new(None, &[], overflow, self.max);
        };
        let first = self.finish(&message[..first_end]);
        let body = &message[first_end + 1..];
        let tail_start = body.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (whole, tail) = body.split_at(tail_start);
        let overflow = self.keep(tail);
        Lines::new(first, whole, overflow, self.max)
    }

    /// Bytes of an unfinished line held at the moment.
    pub fn held(&self) -> usize {
        self.carry.len()
    }

    /// Completes the carried line with the start of a message.
    fn finish<'a>(&mut self, start: &'a [u8]) -> Option<Result<Cow<'a, [u8]>, LineError>> {
        if std::mem::take(&mut self.skipping) {
            return None;
        }
        if self.carry.len() + start.len() > self.max {
            self.carry = Vec::new();
            return Some(Err(LineError::TooLong { max: self.max }));
        }
        if self.carry.is_empty() {
            return Some(Ok(Cow::Borrowed(start)));
        }
        let mut line = std::mem::take(&mut self.carry);
        line.extend_from_slice(start);
        Some(Ok(Cow::Owned(line)))
    }

    /// Keeps the start of an unfinished line; true if it just went over.
    fn keep(&mut self, start: &[u8]) -> bool {
        if self.skipping || start.is_empty() {
            return false;
        }
        if self.carry.len() + start.len() > self.max {
            self.carry = Vec::new();
            self.skipping = true;
            return true;
        }
        self.carry.extend_from_slice(start);
        false
    }
}

/// The lines one message completed.
#[derive(Debug)]
pub struct Lines<'a> {
    first: Option<Result<Cow<'a, [u8]>, LineError>>,
    whole: &'a [u8],
    overflow: bool,
    max: usize,
}

impl<'a> Lines<'a> {
    fn new(
        first: Option<Result<Cow<'a, [u8]>, LineError>>,
        whole: &'a [u8],
        overflow: bool,
        max: usize,
    ) -> Self {
        Self { first, whole, overflow, max }
    }
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
                return Some(Err(LineError::TooLong { max: self.max }));
            }
            let line = without_return(Cow::Borrowed(line));
            if !line.is_empty() {
                return Some(Ok(line));
            }
        }
        let max = self.max;
        std::mem::take(&mut self.overflow).then_some(Err(LineError::TooLong { max }))
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
        let long = Err(LineError::TooLong { max: 3 });
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
