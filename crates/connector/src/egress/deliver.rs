//! Carrying one action to its provider: as often as needed, never doubly.

mod finish;

use super::capability;
use super::gate::{Permit, Slot};
use super::hand::{Calling, Hand};
use super::lanes::{Begun, Lane, Owed};
use crate::server::Server;
use angelia_core::clock;
use angelia_core::egress::{ANSWER_WITHIN, Dedupe, NO_CAPABILITY};
use angelia_core::vault::{Capability, Way};
use angelia_platforms::{Answer, Delivery, Earlier, Outcome};
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The shortest pause between two calls for one action, whatever a provider says.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after calls whose outcome is not known.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How soon an answer that somebody waits for asks for leave again, if the tenant is braked.
const BRAKED_AGAIN: Duration = Duration::from_secs(5);

const BRAKED: &str = "the platform refused too many messages of this tenant in the last minute";

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
    let (begun, way) = (owed.begun, owed.uses.map(|it| it.way));
    let cut_off = owed.resumed && owed.perhaps_sent;
    let mut courier = Courier {
        server,
        lane,
        owed,
        news,
        progress,
        why: String::new(),
        unknown: 0,
        begun,
        cut_off,
        way,
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
    begun: Option<Begun>,
    /// Whether an earlier process ended in the middle of it.
    cut_off: bool,
    /// How it answers; nothing once its capability is over.
    way: Option<Way>,
    /// Held from the call to the note of its outcome.
    calling: Option<Calling<'a>>,
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
        let answer = match self.answer().await {
            Ok(answer) => answer,
            Err(step) => return step,
        };
        self.calling = Some(Calling::begin(self.server));
        if self.is_noted() && self.server.store.begin_action(self.owed.id).await.is_err() {
            return self.store_fails();
        }
        self.begun.get_or_insert_with(|| Begun::ago(Duration::ZERO));
        // Asked once more: much may have changed while this waited.
        if let Some(end) = self.is_over() {
            return Step::End(end);
        }
        permit.made();
        let outcome = self.call(answer).await;
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
        } else if self.owed.errand.is_follow_up() && self.owed.uses.is_none() {
            // It was over in the moment it should have been claimed.
            Some(End::Refused(NO_CAPABILITY.into()))
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

    /// Waits until the tenant and the bot may call. Answers to interactions do not
    /// take turns in their chat: the provider counts each for itself, and a crowd
    /// that asked in one second must not wait for longer than it can be answered.
    async fn leave(&self) -> Result<(Slot, Permit), Step> {
        let (errand, egress) = (&self.owed.errand, &self.server.egress);
        let tenant = &errand.origin.tenant;
        let waiting = async {
            let slot = egress.brake.slot(tenant).await?;
            // What answers by a credential of its own is not counted with the chat's messages.
            let paced = if self.way.is_none() { errand.paced(self.server) } else { None };
            Some((slot, errand.gate(self.server).turn_for(tenant, paced).await))
        };
        let patience = self.owed.until.since(clock::mono());
        match self.unless_overtaken(tokio::time::timeout(patience, waiting)).await {
            Some(Ok(Some(leave))) => Ok(leave),
            // It would leave somebody with "thinking…".
            Some(Ok(None)) if self.way == Some(Way::Original) => Err(Step::Again(BRAKED_AGAIN)),
            Some(Ok(None)) => Err(Step::End(End::Braked)),
            Some(Err(_)) => Err(Step::End(End::Expired)),
            None => Err(Step::End(End::Superseded)),
        }
    }

    async fn call(&self, answer: Option<Answer>) -> Outcome {
        let Owed { id, errand, until, .. } = &self.owed;
        let delivery = Delivery {
            id: *id,
            target: errand.target.clone(),
            action: errand.action.clone(),
            answer,
            earlier: self.earlier(),
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
            Outcome::Refused { why } if self.way == Some(Way::Original) => {
                // What the same place does not take now it did not take before either.
                self.owed.perhaps_sent = false;
                Step::End(End::Refused(why))
            }
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
            Outcome::Open { why } if in_parts => {
                Step::End(End::Ambiguous(format!("only a part was sent: {why}")))
            }
            Outcome::Open { why } => Step::End(End::Ambiguous(why)),
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

    /// What this call answers with. An answer whose capability is over is a
    /// message like any other, unless it may be there already: a message would
    /// be a second one.
    async fn answer(&mut self) -> Result<Option<Answer>, Step> {
        let Some(used) = self.owed.uses else { return Ok(None) };
        let origin = &self.owed.errand.origin;
        let is_meant = |it: &Capability| it.tenant == origin.tenant && it.instance == origin.instance;
        let comes_first = self.server.egress.aside.is_before(used);
        let answer = match comes_first {
            true => Ok(None),
            false => capability::open(self.server, used, is_meant).await,
        };
        let Ok(answer) = answer else { return Err(self.store_fails()) };
        if answer.is_none() && self.may_be_out() {
            let why = match self.progress.said_first() {
                Some(_) => "only a part was sent: its interaction ended",
                None => "its interaction ended before it was known whether it was answered",
            };
            return Err(Step::End(End::Ambiguous(why.into())));
        }
        if answer.is_none() && self.owed.errand.is_follow_up() && !comes_first {
            return Err(Step::End(End::Refused(NO_CAPABILITY.into())));
        }
        let was_live = self.way.is_some();
        self.way = answer.as_ref().map(|it| it.way);
        match answer.is_none() && was_live {
            // A message like any other waits for its chat like any other.
            true => Err(Step::Again(Duration::ZERO)),
            false => Ok(answer),
        }
    }

    /// What earlier calls may have left at the provider.
    fn earlier(&self) -> Earlier {
        match (self.may_be_out(), self.cut_off) {
            (false, _) => Earlier::Nothing,
            (true, false) => Earlier::Perhaps,
            (true, true) => Earlier::CutOff(self.since_begun()),
        }
    }

    fn dedupe(&self) -> Dedupe {
        self.owed.errand.dedupe(self.server, self.way)
    }

    /// Whether the ledger is told before the provider is called. What answers an
    /// interaction is always noted: should that end, it has to be known whether
    /// a message may take its place.
    fn is_noted(&self) -> bool {
        self.owed.uses.is_some() || self.dedupe() != Dedupe::Yes
    }

    /// Whether giving it to the provider once more cannot say it twice.
    fn may_repeat(&self) -> bool {
        self.dedupe().holds(self.since_begun())
    }

    fn since_begun(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, Begun::elapsed)
    }

    /// Notes that the provider has nothing of it, unless an earlier call left something there.
    async fn postpone(&mut self) {
        if !self.is_noted() || self.may_be_out() {
            return;
        }
        self.begun = None;
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

    /// Whether some of it may be at the provider.
    fn may_be_out(&self) -> bool {
        self.owed.perhaps_sent || self.progress.said_first().is_some()
    }
}
