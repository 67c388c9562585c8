//! Lines on their way into WebSocket messages.

use super::websocket::{Message, WebSocket};
use angelia_contract::line::{MAX_COALESCED_MESSAGE, MAX_CONNECTOR_MESSAGE, split_message};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, ready};

/// Bytes that may wait for a peer that does not read; answers only pile up
/// while it keeps asking, so it is no longer heard beyond this.
const MAX_WAITING: usize = 256 * 1024;

/// Messages being written, and the lines that will be joined into the next.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    lines: String,
    messages: VecDeque<Message>,
    /// Bytes in `messages`.
    waiting: usize,
    /// Bytes that the socket was given and may not have written yet.
    handed: usize,
    unflushed: bool,
    /// The newest ping to be answered; the protocol asks for no more.
    ping: Option<Bytes>,
    /// A close frame is in line: nothing may follow it.
    closed: bool,
}

impl Outgoing {
    /// Whether the next message takes more lines. Lines only pile up while the
    /// socket takes them: a gateway that does not read is not written for.
    pub(super) fn has_room(&self) -> bool {
        self.messages.is_empty() && !self.unflushed && self.lines.len() < MAX_COALESCED_MESSAGE
    }

    /// Whether so much waits for a peer that does not read that it should not be heard either.
    pub(super) fn is_backed_up(&self) -> bool {
        self.waiting() > MAX_WAITING
    }

    /// Adds a line; one that would make the message too large starts the next.
    pub(super) fn line(&mut self, line: &str) {
        if self.closed {
            return;
        }
        if !self.lines.is_empty() && self.lines.len() + line.len() > MAX_COALESCED_MESSAGE {
            self.seal();
        }
        self.lines.push_str(line);
        if self.lines.len() > MAX_COALESCED_MESSAGE {
            self.seal();
        }
    }

    /// Adds a message of its own, after the lines so far.
    pub(super) fn message(&mut self, message: Message) {
        if self.closed {
            return;
        }
        self.seal();
        self.closed = message.is_last();
        self.messages.push_back(message);
    }

    /// Answers a ping with the next write.
    pub(super) fn pong(&mut self, payload: Bytes) {
        self.ping = Some(payload);
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.lines.len() + self.waiting + self.handed
    }

    /// Whether there is anything to write.
    pub(super) fn is_pending(&self) -> bool {
        self.unflushed || self.ping.is_some() || !self.messages.is_empty() || !self.lines.is_empty()
    }

    /// Writes what there is. Safe to drop and call again.
    pub(super) fn poll_write(
        &mut self,
        socket: &mut WebSocket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.seal();
        if let Some(payload) = self.ping.take()
            && !self.closed
        {
            self.messages.push_front(Message::Pong(payload));
        }
        while !self.messages.is_empty() {
            while socket.takes_more()
                && let Some(message) = self.messages.pop_front()
            {
                self.waiting = self.waiting.saturating_sub(message.size());
                self.handed += message.size();
                self.unflushed = true;
                socket.write(message);
            }
            ready!(socket.poll_flush(cx))?;
            self.handed = 0;
        }
        ready!(socket.poll_flush(cx))?;
        self.handed = 0;
        self.unflushed = false;
        Poll::Ready(Ok(()))
    }

    /// Turns the lines so far into messages that every gateway takes.
    fn seal(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.lines);
        if lines.len() <= MAX_CONNECTOR_MESSAGE {
            self.queue(Message::Text(lines.into()));
            return;
        }
        for piece in split_message(&lines, MAX_CONNECTOR_MESSAGE) {
            self.queue(Message::Text(Bytes::copy_from_slice(piece.as_bytes())));
        }
    }

    fn queue(&mut self, message: Message) {
        self.waiting += message.size();
        self.messages.push_back(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(outgoing: &mut Outgoing) -> Vec<String> {
        outgoing.seal();
        let text = |message| match message {
            Message::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        outgoing.messages.drain(..).map(text).collect()
    }

    #[test]
    fn small_lines_share_a_message_and_large_ones_are_cut() {
        let mut outgoing = Outgoing::default();
        outgoing.line("a\n");
        outgoing.line("b\n");
        assert_eq!(texts(&mut outgoing), ["a\nb\n"]);

        let long = format!("{}\n", "x".repeat(2_000_000));
        outgoing.line("a\n");
        outgoing.line(&long);
        let sent = texts(&mut outgoing);
        assert!(sent.iter().all(|text| text.len() <= MAX_CONNECTOR_MESSAGE));
        assert_eq!(sent.concat(), format!("a\n{long}"));

        let line = format!("{}\n", "y".repeat(1_000));
        (0..200).for_each(|_| outgoing.line(&line));
        let sent = texts(&mut outgoing);
        assert!(sent.len() > 1 && sent.iter().all(|text| text.len() <= MAX_COALESCED_MESSAGE));
        assert_eq!(sent.concat(), line.repeat(200));
    }
}
