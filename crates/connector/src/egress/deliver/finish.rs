//! The end of an action: its answer, and what the ledger keeps.

use super::super::answer::{failed, never_sent, perhaps_sent};
use super::super::count_declined;
use super::{BRAKED, Courier, End};
use crate::telemetry::Counter;
use angelia_contract::action::ActionResult;
use angelia_core::clock::{self, Mono};
use angelia_core::egress::{ActionState, NO_CAPABILITY};
use angelia_core::store::ActionOutcome;

impl Courier<'_> {
    /// Answers and writes down how it ended. That nothing was sent is told
    /// only when it is durable: a restart would send it after all.
    pub(super) async fn finish(&self, end: End) {
        let reply = &self.owed.errand.reply;
        match end {
            End::Sent { message_id, recorded } => {
                reply.give(ActionResult::sent(&message_id));
                if !recorded {
                    self.record(ActionState::Sent, Some(message_id), None).await;
                }
            }
            End::Superseded => {
                let message_id = self.owed.errand.edits().unwrap_or_default();
                reply.give(ActionResult::sent(message_id));
                // One that was marked while it waited is counted already.
                if !self.owed.superseded {
                    self.server.metrics.count(Counter::OutboundSuperseded);
                }
                self.record(ActionState::Superseded, Some(message_id.to_owned()), None).await;
            }
            End::Ambiguous(why) => self.leave_open(&why).await,
            End::Parked if self.may_be_out() => {}
            End::Parked => drop(self.server.store.postpone_action(self.owed.id).await),
            End::Declined => {
                count_declined(self.server);
                let declined = match self.owed.errand.is_follow_up() {
                    true => failed(NO_CAPABILITY),
                    false => ActionResult::declined("relay"),
                };
                if self.is_unsure() {
                    let why =
                        "its sender may not write there any more; it may have been sent before a restart";
                    self.record(ActionState::Ambiguous, None, Some(why.to_owned())).await;
                    return reply.give(declined);
                }
                self.fail("its sender may not write there any more", declined).await;
            }
            End::Expired => self.expire().await,
            End::Refused(why) if self.may_be_out() => self.leave_open(&why).await,
            End::Refused(why) => self.fail(&why, failed(&why)).await,
            End::Braked if self.may_be_out() => self.leave_open(BRAKED).await,
            End::Braked => {
                let why = format!("{BRAKED}; nothing was sent");
                self.fail(&why, never_sent(&why)).await;
            }
        }
    }

    async fn expire(&self) {
        let reason = if self.why.is_empty() { "its turn did not come" } else { &self.why };
        let why = format!("it could not be sent in the time it is kept for: {reason}");
        if self.may_be_out() || self.is_unsure() {
            return self.leave_open(&why).await;
        }
        self.server.metrics.count(Counter::OutboundExpired);
        self.fail(&why, never_sent(&why)).await;
    }

    /// What a provider that dedupes was given before a crash was not written down.
    fn is_unsure(&self) -> bool {
        self.owed.resumed && !self.is_noted()
    }

    async fn fail(&self, why: &str, answer: ActionResult) {
        let state = if self.may_be_out() { ActionState::Ambiguous } else { ActionState::Failed };
        let first_part = self.progress.said_first().cloned();
        if self.record(state, first_part, Some(why.to_owned())).await {
            self.owed.errand.reply.give(answer);
        }
    }

    async fn leave_open(&self, why: &str) {
        self.server.metrics.count(Counter::OutboundAmbiguous);
        self.owed.errand.reply.give(perhaps_sent(why));
        let first_part = self.progress.said_first().cloned();
        self.record(ActionState::Ambiguous, first_part, Some(why.to_owned())).await;
    }

    /// Writes the end into the ledger, as long as that takes; `false` if it was in vain.
    async fn record(&self, state: ActionState, message_id: Option<String>, error: Option<String>) -> bool {
        let timings = self.server.egress.timings;
        let until: Mono = clock::mono() + timings.queued_for;
        let outcome = ActionOutcome { state, message_id, error };
        loop {
            match self.server.store.finish_action(self.owed.id, outcome.clone()).await {
                Ok(()) => return true,
                Err(_) if clock::mono() < until => tokio::time::sleep(timings.again).await,
                Err(error) => {
                    tracing::error!(action = self.owed.id.0, %error, "the end of an action is not in the ledger");
                    return false;
                }
            }
        }
    }
}
