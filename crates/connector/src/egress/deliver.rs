//! Carrying one action to its provider: as often as needed, never doubly.

use super::answer::{failed, never_sent, perhaps_sent};
use super::count_declined;
use super::gate::{Permit, Slot};
use super::hand::Hand;
use super::lanes::{Lane, Owed};
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_contract::action::ActionResult;
use angelia_core::clock::{self, Mono};
use angelia_core::egress::{ANSWER_WITHIN, ActionState, Dedupe};
use angelia_core::store::ActionOutcome;
use angelia_platforms::{Delivery, Outcome};
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;

/// The shortest pause between two calls for one action, whatever a provider says.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after calls whose outcome is not known.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

const BRAKED: &str =
    "the platform refused too many messages of this tenant in the last minute; nothing was sent";

/// How an action ends.
enum End {
    Sent {
        message_id: String,
        recorded: bool,
    },
    /// A newer edit took its place.
    Superseded,
    /// The provider will not take it.
    Refused(String),
    /// The sender may not write there any more.
    Declined,
    /// Too many calls of the tenant were refused.
    Braked,
    /// Its time is over.
    Expired,
    /// Whether the provider has it is not known.
    Ambiguous(String),
    /// The server stops: it goes on at the next start.
    Parked,
}

/// What is to be done after an attempt.
enum Step {
    Again(Duration),
    End(End),
}

/// Performs what is in the ledger, and sees to its answer and its end there.
pub(super) async fn carry(server: &Arc<Server>, lane: &Lane, owed: Owed) {
    let progress = Arc::new(Hand::new(server.clone(), owed.errand.clone()));
    let news = server.egress.lanes.news(lane);
    let begun_at = owed.begun_at;
    let mut courier = Courier {
        server,
        lane,
        owed,
        news,
        progress,
        why: String::new(),
        unknown: 0,
        begun_at,
        calling: None,
    };
    loop {
        match courier.attempt().await {
            Step::End(end) => return courier.finish(end).await,
            Step::Again(pause) if clock::mono() + pause >= courier.owed.until => {
                return courier.finish(End::Expired).await;
            }
            Step::Again(pause) => {
                courier.calling = None;
                courier.unless_overtaken(tokio::time::sleep(pause)).await;
            }
        }
    }
}

struct Courier<'a> {
    server: &'a Arc<Server>,
    lane: &'a Lane,
    owed: Owed,
    news: Arc<Notify>,
    progress: Arc<Hand>,
    /// Why the last attempt did not get through.
    why: String,
    /// Calls whose outcome is not known.
    unknown: u32,
    /// When the provider was first called.
    begun_at: Option<Mono>,
    /// Held from the call to the note of its outcome.
    calling: Option<Calling<'a>>,
}

/// A provider call that a stopping server waits for.
struct Calling<'a>(&'a Server);

impl<'a> Calling<'a> {
    fn begin(server: &'a Server) -> Self {
        server.egress.under_way.fetch_add(1, Ordering::AcqRel);
        Self(server)
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.egress.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Courier<'_> {
    async fn attempt(&mut self) -> Step {
        if self.owed.errand.recall(self.server).await.is_err() {
            return self.store_fails();
        }
        if let Some(end) = self.is_over() {
            return Step::End(end);
        }
        let (slot, permit) = match self.leave().await {
            Ok(leave) => leave,
            Err(step) => return step,
        };
        self.calling = Some(Calling::begin(self.server));
        if self.dedupe() != Dedupe::Yes && self.server.store.begin_action(self.owed.id).await.is_err() {
            return self.store_fails();
        }
        self.begun_at.get_or_insert_with(clock::mono);
        // Asked once more: much may have changed while this waited.
        if let Some(end) = self.is_over() {
            return Step::End(end);
        }
        permit.made();
        let outcome = self.call().await;
        let own = self.owed.errand.platform(self.server).is_own();
        let withdrawn = self.progress.was_stopped();
        slot.over(matches!(outcome, Outcome::Refused { .. }) && !own && !withdrawn);
        self.judge(outcome).await
    }

    fn store_fails(&mut self) -> Step {
        self.why = "the connector's store does not answer".into();
        Step::Again(self.server.egress.timings.again)
    }

    /// Whether there is nothing left to try.
    fn is_over(&self) -> Option<End> {
        if self.may_be_out() && !self.may_repeat() {
            // It waited for longer than the provider would recognise it.
            Some(End::Ambiguous(self.why.clone()))
        } else if self.server.is_stopping() {
            Some(End::Parked)
        } else if self.is_overtaken() {
            Some(End::Superseded)
        } else if clock::mono() >= self.owed.until {
            Some(End::Expired)
        } else if !self.owed.errand.is_allowed(self.server) {
            Some(End::Declined)
        } else {
            None
        }
    }

    /// Waits until the tenant and the bot may call.
    async fn leave(&self) -> Result<(Slot, Permit), Step> {
        let (errand, egress) = (&self.owed.errand, &self.server.egress);
        let tenant = &errand.origin.tenant;
        let waiting = async {
            let slot = egress.brake.slot(tenant).await?;
            Some((slot, errand.gate(self.server).turn_for(tenant, errand.paced(self.server)).await))
        };
        let patience = self.owed.until.since(clock::mono());
        match self.unless_overtaken(tokio::time::timeout(patience, waiting)).await {
            Some(Ok(Some(leave))) => Ok(leave),
            Some(Ok(None)) => Err(Step::End(End::Braked)),
            Some(Err(_)) => Err(Step::End(End::Expired)),
            None => Err(Step::End(End::Superseded)),
        }
    }

    async fn call(&self) -> Outcome {
        let Owed { id, errand, until, .. } = &self.owed;
        let delivery = Delivery {
            id: *id,
            target: errand.target.clone(),
            action: errand.action.clone(),
            progress: self.progress.clone(),
        };
        // Whatever is begun in time gets as long as a gateway waits.
        let now = clock::mono();
        let patience = until.max(&(now + ANSWER_WITHIN)).since(now);
        let call = async { errand.platform(self.server).deliver(delivery).await };
        match tokio::time::timeout(patience, AssertUnwindSafe(call).catch_unwind()).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Outcome::Unknown { why: "the connector failed while it was sending".into() },
            Err(_) => Outcome::Unknown { why: "the platform did not answer".into() },
        }
    }

    async fn judge(&mut self, outcome: Outcome) -> Step {
        let in_parts = self.progress.said_first().is_some();
        match outcome {
            Outcome::Sent { message_id, recorded } => Step::End(End::Sent { message_id, recorded }),
            Outcome::Refused { why } if in_parts => {
                Step::End(End::Ambiguous(format!("only a part was sent: {why}")))
            }
            Outcome::Refused { .. } if self.progress.was_stopped() => Step::End(End::Declined),
            Outcome::Refused { why } => Step::End(End::Refused(why)),
            Outcome::Later { why, .. } if in_parts && !self.may_repeat() => {
                Step::End(End::Ambiguous(format!("only a part was sent: {why}")))
            }
            Outcome::Later { after, reach, why } => {
                self.why = why;
                self.owed.errand.pause(self.server, reach, after);
                self.postpone().await;
                Step::Again(after.max(LEAST_PAUSE))
            }
            Outcome::Unknown { why } if !self.may_repeat() => Step::End(End::Ambiguous(why)),
            Outcome::Unknown { why } => {
                self.why = why;
                self.owed.perhaps_sent = true;
                self.unknown += 1;
                let doubled = self.server.egress.timings.again * 2u32.pow((self.unknown - 1).min(5));
                Step::Again(doubled.min(LONGEST_PAUSE))
            }
        }
    }

    fn dedupe(&self) -> Dedupe {
        self.owed.errand.dedupe(self.server)
    }

    /// Whether giving it to the provider once more cannot say it twice.
    fn may_repeat(&self) -> bool {
        let since_begun = self.begun_at.map_or(Duration::ZERO, |begun| clock::mono().since(begun));
        self.dedupe().holds(since_begun)
    }

    /// Notes that the provider has nothing of it, unless an earlier call left something there.
    async fn postpone(&mut self) {
        if self.dedupe() == Dedupe::Yes || self.may_be_out() {
            return;
        }
        self.begun_at = None;
        // Should this fail, a crash shows it as ambiguous, which is no harm.
        let _ = self.server.store.postpone_action(self.owed.id).await;
    }

    fn is_overtaken(&self) -> bool {
        let Owed { errand, superseded, .. } = &self.owed;
        *superseded || errand.edits().is_some() && self.server.egress.lanes.has_newer(self.lane, errand)
    }

    /// Waits, but not longer than until a newer edit of the same message takes over.
    async fn unless_overtaken<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        let mut wait = std::pin::pin!(wait);
        loop {
            tokio::select! {
                done = &mut wait => return Some(done),
                () = self.news.notified(), if self.owed.errand.edits().is_some() => {}
            }
            if self.is_overtaken() {
                return None;
            }
        }
    }

    /// Answers and writes down how it ended. That nothing was sent is told
    /// only when it is durable: a restart would send it after all.
    async fn finish(&self, end: End) {
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
                if self.is_unsure() {
                    let why =
                        "its sender may not write there any more; it may have been sent before a restart";
                    self.record(ActionState::Ambiguous, None, Some(why.to_owned())).await;
                    return reply.give(ActionResult::declined("relay"));
                }
                self.fail("its sender may not write there any more", ActionResult::declined("relay")).await;
            }
            End::Expired => self.expire().await,
            End::Refused(why) if self.may_be_out() => self.leave_open(&why).await,
            End::Refused(why) => self.fail(&why, failed(&why)).await,
            End::Braked if self.may_be_out() => self.leave_open(BRAKED).await,
            End::Braked => self.fail(BRAKED, never_sent(BRAKED)).await,
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
        self.owed.resumed && self.dedupe() == Dedupe::Yes
    }

    /// Whether some of it may be at the provider.
    fn may_be_out(&self) -> bool {
        self.owed.perhaps_sent || self.progress.said_first().is_some()
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
