//! Requests of one socket that wait for their answer: each gets exactly one.

use angelia_contract::action::ActionResult;
use angelia_contract::frame::ConnectorFrame;
use angelia_core::clock::Mono;
use angelia_core::egress::ANSWER_WITHIN;
use std::collections::VecDeque;

/// Requests that may wait at once; with more the socket is not read further.
pub(super) const MAX_PENDING: usize = 64;

struct Request {
    ticket: u64,
    id: String,
    deadline: Mono,
    /// The chat whose turn this request answers.
    final_in: Option<String>,
}

/// The open requests of one socket, oldest first.
#[derive(Default)]
pub(super) struct Pending {
    requests: VecDeque<Request>,
    tickets: u64,
}

impl Pending {
    /// Takes a request; answers the ticket under which its answer comes.
    ///
    /// `final_in` names the chat if the request is an agent's answer to it.
    pub(super) fn open(&mut self, request_id: String, final_in: Option<String>, now: Mono) -> u64 {
        self.tickets += 1;
        self.requests.push_back(Request {
            ticket: self.tickets,
            id: request_id,
            deadline: now + ANSWER_WITHIN,
            final_in,
        });
        self.tickets
    }

    /// Closes a request if its answer is still wanted; tells the chat it was final in.
    pub(super) fn close(&mut self, ticket: u64) -> Option<Option<String>> {
        let position = self.requests.iter().position(|request| request.ticket == ticket)?;
        self.requests.remove(position).map(|request| request.final_in)
    }

    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= MAX_PENDING
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.requests.front().map(|request| request.deadline)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Gives up on the oldest request; its line says that the outcome is unknown.
    pub(super) fn abandon(&mut self) -> Option<String> {
        self.give_up("the connection is closing; it may still be sent").map(|(_, line)| line)
    }

    /// The line that tells the oldest request its time is over, and the request's ticket.
    pub(super) fn expire(&mut self, now: Mono) -> Option<(u64, String)> {
        self.next_deadline().filter(|deadline| *deadline <= now)?;
        self.give_up("the platform did not answer in time; it may still be sent")
    }

    fn give_up(&mut self, why: &str) -> Option<(u64, String)> {
        let request = self.requests.pop_front()?;
        Some((request.ticket, result_line(request.id, ActionResult::timed_out(why))))
    }
}

/// An `outbound_result` line.
pub(super) fn result_line(request_id: String, result: ActionResult) -> String {
    ConnectorFrame::OutboundResult { request_id, result }.to_line()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_request_is_answered_once() {
        let mut pending = Pending::default();
        let start = Mono::default();
        let (first, second) = (pending.open("a".into(), None, start), pending.open("a".into(), None, start));
        assert!(pending.close(first).is_some());
        assert!(pending.close(first).is_none());
        assert!(pending.expire(start + Duration::from_secs(24)).is_none());
        let (_, line) = pending.expire(start + Duration::from_secs(25)).unwrap();
        assert!(line.contains("timed out"), "{line}");
        assert!(pending.close(second).is_none(), "a late answer is not written");
    }
}
