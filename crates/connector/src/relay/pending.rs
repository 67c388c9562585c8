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
}

/// The open requests of one socket, oldest first.
#[derive(Default)]
pub(super) struct Pending {
    requests: VecDeque<Request>,
    tickets: u64,
}

impl Pending {
    /// Takes a request; answers the ticket under which its answer comes.
    pub(super) fn open(&mut self, request_id: String, now: Mono) -> u64 {
        self.tickets += 1;
        self.requests.push_back(Request {
            ticket: self.tickets,
            id: request_id,
            deadline: now + ANSWER_WITHIN,
        });
        self.tickets
    }

    /// Whether an answer with this ticket is still wanted.
    pub(super) fn close(&mut self, ticket: u64) -> bool {
        let position = self.requests.iter().position(|request| request.ticket == ticket);
        position.and_then(|index| self.requests.remove(index)).is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= MAX_PENDING
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.requests.front().map(|request| request.deadline)
    }

    /// The line that tells the oldest request its time is over.
    pub(super) fn expire(&mut self, now: Mono) -> Option<String> {
        if self.next_deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        let request = self.requests.pop_front()?;
        let result = ActionResult::timed_out("the platform did not answer in time; it may still be sent");
        Some(result_line(request.id, result))
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
        let (first, second) = (pending.open("a".into(), start), pending.open("a".into(), start));
        assert!(pending.close(first));
        assert!(!pending.close(first));
        assert!(pending.expire(start + Duration::from_secs(24)).is_none());
        let line = pending.expire(start + Duration::from_secs(25)).unwrap();
        assert!(line.contains("timed out"), "{line}");
        assert!(!pending.close(second), "a late answer is not written");
    }
}
