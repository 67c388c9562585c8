//! The one answer a request gets, in words that gateways understand rightly.

use super::Egress;
use super::count_declined;
use crate::relay::{Answer, Mailbox};
use angelia_contract::action::ActionResult;
use angelia_contract::frame::ConnectorFrame;
use angelia_core::egress::delivery::ActionAnswer;
use parking_lot::Mutex;
use std::sync::Arc;

/// Words by which gateways take a failure for one to be tried again, or for
/// one that may have been delivered. A reason that happens to contain one
/// would make them do the wrong thing.
const TELLING: [&str; 13] = [
    "timed out",
    "readtimeout",
    "writetimeout",
    "connecterror",
    "connectionerror",
    "connectionreset",
    "connectionrefused",
    "connecttimeout",
    "network",
    "broken pipe",
    "remotedisconnected",
    "eoferror",
    "egress_declined",
];
/// What is said instead of such a reason.
const UNSAID: &str = "the reason is in the connector's ledger";

/// Who waits for an answer; nobody does after a restart.
#[derive(Default)]
pub(super) struct Reply(Mutex<Option<Addressee>>);

struct Addressee {
    mailbox: Arc<Mailbox>,
    ticket: u64,
    request_id: String,
}

impl Reply {
    pub(super) fn to(mailbox: Arc<Mailbox>, ticket: u64, request_id: String) -> Self {
        Self(Mutex::new(Some(Addressee { mailbox, ticket, request_id })))
    }

    /// Gives the answer; only the first one counts.
    pub(super) fn give(&self, result: ActionResult) {
        let addressee = self.0.lock().take();
        if let Some(Addressee { mailbox, ticket, request_id }) = addressee {
            let line = ConnectorFrame::OutboundResult { request_id, result }.to_line();
            mailbox.answer(Answer { ticket, line });
        }
    }

    /// Tells that the target is not the sender's, and counts it.
    pub(super) fn decline(&self, egress: &Egress) {
        count_declined(egress);
        self.give(ActionResult::declined("relay"));
    }
}

/// An answer in the words that gateways read.
pub(super) fn result(answer: ActionAnswer) -> ActionResult {
    match answer {
        ActionAnswer::Sent { message_id } => ActionResult::sent(&message_id),
        ActionAnswer::Shown => ActionResult::ok(),
        ActionAnswer::Failed(why) => failed(&why),
        ActionAnswer::NeverSent(why) => never_sent(&why),
        ActionAnswer::PerhapsSent(why) => perhaps_sent(&why),
        ActionAnswer::Declined => ActionResult::declined("relay"),
    }
}

/// Not done, and another attempt will not help.
pub(super) fn failed(why: &str) -> ActionResult {
    ActionResult::failed(plain(why))
}

/// Certainly never written, and will not be.
pub(super) fn never_sent(why: &str) -> ActionResult {
    ActionResult::network(plain(why))
}

/// Perhaps written.
pub(super) fn perhaps_sent(why: &str) -> ActionResult {
    ActionResult::timed_out(plain(why))
}

fn plain(why: &str) -> &str {
    let lowered = why.to_lowercase();
    if TELLING.iter().any(|word| lowered.contains(word)) { UNSAID } else { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_does_not_change_what_a_failure_means() {
        let says = |result: ActionResult, word: &str| result.error.unwrap().contains(word);
        assert!(says(failed("the text is empty"), "the text is empty"));
        for why in ["ReadTimeout", "Network is unreachable", "it timed out", "ConnectionReset by peer"] {
            assert!(!says(failed(why), "etwork") && !says(failed(why), "imed out"), "{why}");
            assert!(says(never_sent(why), "network") && !says(never_sent(why), "timed out"), "{why}");
            assert!(says(perhaps_sent(why), "timed out") && !says(perhaps_sent(why), "etwork"), "{why}");
        }
        assert_eq!(plain(UNSAID), UNSAID);
    }

    #[test]
    fn a_request_is_answered_once() {
        let mailbox = Arc::new(Mailbox::default());
        let reply = Reply::to(mailbox.clone(), 7, "r".into());
        reply.give(ActionResult::sent("m1"));
        reply.give(ActionResult::failed("too late"));
        let answers = mailbox.take().answers;
        assert_eq!(answers.len(), 1);
        assert!(answers[0].ticket == 7 && answers[0].line.contains("m1"));
        Reply::default().give(ActionResult::ok());
    }
}
