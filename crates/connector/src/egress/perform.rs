//! What a chat's queue wants done, done: the ledger, the limits, the vault, the
//! provider. Each answers with what came of it; an error stands for what its caller says
//! comes of a failure.

use super::action::OutboundAction;
use super::chats::{ChatKey, FirstPart, Inbox};
use super::outbox::ActingAs;
use super::rate_limit::{Permit, Slot};
use super::{Egress, delete, elsewhere, prompt, send_media, threads};
use crate::telemetry::Counter;
use angelia_contract::action::Action;
use angelia_core::clock;
use angelia_core::egress::delivery::{Begun, Claimed, DeliveryId, Event, Opened, Permission, Text};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::fail;
use angelia_core::ports::{Accepted, ActionId, ActionOutcome};
use angelia_core::vault::{Capability, Use};
use angelia_platforms::{Answer, Delivery, Earlier, Outcome, OutgoingFile, Progress, Reach};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const NOT_NOW: &str = "this node did not know whether the bot is its own";
const STORE_FAILS: &str = "the connector's store does not commit; nothing was sent";

/// Permission for one call: the tenant's, and the bot's; and the file that the call sends.
pub(super) struct CallPermit {
    slot: Slot,
    /// `None` if there is a reason to make no call.
    permit: Option<Permit>,
    file: Result<Option<OutgoingFile>, Outcome>,
}

/// What came of something that was done, with what is to be kept of it.
pub(super) enum Done {
    Nothing,
    Happened(Event),
    Accepted(Vec<(DeliveryId, ActionId)>, Vec<Claimed>, ActingAs),
    Read(DeliveryId, Option<Arc<OutboundAction>>, Text),
    Permission(DeliveryId, Permission, Option<CallPermit>),
    Opened(DeliveryId, Opened, Option<Answer>),
    /// The ledger has what is said of a message in doubt.
    Remarked(DeliveryId, Arc<OutboundAction>, (ActionId, ActingAs)),
    /// What the ledger knows now, and what it does not want to hear of us.
    Finished(Event, Option<Event>),
}

/// Makes actions of one chat durable.
pub(super) async fn accept(
    egress: Arc<Egress>,
    key: ChatKey,
    actions: Vec<(DeliveryId, Arc<OutboundAction>)>,
) -> Result<Done> {
    let Some(under) = egress.under(key.bot) else { return Ok(hand_on(&egress, &key, &actions)) };
    let entries = || actions.iter().map(|(_, action)| action.entry(&egress)).collect();
    let owner = egress.owner_under(under).await?;
    let accepting = match &egress.outboxes[key.bot] {
        Some(outbox) => Some(outbox.accepting(owner).await),
        None => None,
    };
    let mut accepted = egress.ledger.accept(owner, entries()).await;
    if accepted.as_ref().is_err_and(|error| error.kind() == Kind::Conflict) && egress.cluster.is_shared() {
        // Others believed this node gone. It goes on as somebody else, or has lost the bot.
        if under != ActingAs::Node {
            egress.replaced(key.bot, owner);
            return Ok(hand_on(&egress, &key, &actions));
        }
        accepted = egress.ledger.accept(egress.cluster.renew_owner(owner).await?, entries()).await;
    }
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(error) => return Ok(Done::Happened(Event::NotAccepted(refusal(&egress, actions.len(), &error)))),
    };
    if let Some(accepting) = accepting {
        accepting.took(accepted.iter().map(|it| it.id));
    }
    accepted.iter().for_each(|_| fail::point("action_accepted"));
    let numbers = actions.iter().zip(&accepted).map(|((id, _), accepted)| (*id, accepted.id)).collect();
    Ok(Done::Accepted(numbers, accepted.iter().map(claimed).collect(), under))
}

/// Another node has the bot: whoever waits is answered from there, and by nothing that is said here.
fn hand_on(egress: &Arc<Egress>, key: &ChatKey, actions: &[(DeliveryId, Arc<OutboundAction>)]) -> Done {
    for (_, action) in actions {
        elsewhere::enter(egress, key.clone(), action.hand_on());
    }
    Done::Happened(Event::NotAccepted(String::new()))
}

pub(super) fn not_accepted() -> Done {
    Done::Happened(Event::NotAccepted(STORE_FAILS.to_owned()))
}

/// Why nothing was written down.
pub(super) fn refusal(egress: &Egress, count: usize, error: &Error) -> String {
    match error.kind() {
        // Of this tenant's own making, and its to mend.
        Kind::TooMany => {
            egress.metrics.add(Counter::OutboundOverBudget, count as u64);
            error.to_string()
        }
        _ => STORE_FAILS.to_owned(),
    }
}

/// What an accepted action answers with, and for how long.
fn claimed(accepted: &Accepted) -> Claimed {
    let lasts = accepted.uses_until.and_then(|end| u64::try_from(end.0 - clock::wall().0).ok());
    Claimed { uses: accepted.uses, lasts: lasts.map(Duration::from_millis) }
}

/// Waits until the tenant and the bot may call. A file is here before: it comes from where its agent
/// says, takes as long as that takes, and nobody else's call waits for it. Answers to interactions do not
/// take turns in their chat: the provider counts each for itself, and a crowd
/// that asked in one second must not wait for longer than it can be answered.
pub(super) async fn ask_permission(
    egress: Arc<Egress>,
    action: Arc<OutboundAction>,
    (id, number): (DeliveryId, Option<ActionId>),
    paced: bool,
) -> Result<Done> {
    let tenant = &action.origin.tenant;
    let file = send_media::file(&egress, &action, number).await;
    let Some(slot) = egress.refusals.slot(tenant).await else {
        return Ok(Done::Permission(id, Permission::Denied, None));
    };
    if file.is_err() {
        return Ok(Done::Permission(id, Permission::Granted, Some(CallPermit { slot, permit: None, file })));
    }
    let paced = if paced && action.is_paced(&egress) {
        // How fast a chat is written to depends on what it is.
        action.recall(&egress).await?;
        action.paced(&egress)
    } else {
        None
    };
    let permit = action.rate_limit(&egress).turn_for(tenant, paced).await;
    // Known now, it may be forgotten again while it waits.
    action.recall(&egress).await?;
    let permit = CallPermit { slot, permit: Some(permit), file };
    Ok(Done::Permission(id, Permission::Granted, Some(permit)))
}

/// Opens a capability for one call.
pub(super) async fn open(
    egress: Arc<Egress>,
    action: Arc<OutboundAction>,
    id: DeliveryId,
    used: Use,
) -> Result<Done> {
    let origin = &action.origin;
    let is_meant = |it: &Capability| it.tenant == origin.tenant && it.instance == origin.instance;
    let answer = egress.open(used, is_meant).await?;
    let told = if answer.is_some() { Opened::Live } else { Opened::Over };
    Ok(Done::Opened(id, told, answer))
}

/// Tells the ledger that a provider is about to be called.
pub(super) async fn begin(
    egress: Arc<Egress>,
    id: DeliveryId,
    (number, under): (ActionId, ActingAs),
) -> Result<Done> {
    let is_ours = egress.ledger.begin(egress.owner_under(under).await?, number).await?;
    Ok(Done::Happened(if is_ours {
        Event::Begun(id, Begun::Ours)
    } else if egress.cluster.is_shared() {
        // Whoever has it answers.
        Event::GivenUp(vec![id])
    } else {
        Event::Begun(id, Begun::NotOurs)
    }))
}

/// A call of the provider.
pub(super) struct Call {
    pub(super) id: DeliveryId,
    pub(super) number: ActionId,
    pub(super) under: ActingAs,
    pub(super) action: Arc<OutboundAction>,
    pub(super) answer: Option<Answer>,
    pub(super) earlier: Earlier,
    pub(super) within: Duration,
    pub(super) permit: CallPermit,
}

/// Calls the provider.
pub(super) async fn call(egress: Arc<Egress>, task: Arc<Inbox>, call: Call) -> Result<Done> {
    let Call { id, number, under, action, answer, earlier, within, permit } = call;
    let CallPermit { slot, permit, file } = permit;
    let progress = Arc::new(DeliveryProgress {
        egress: egress.clone(),
        action: action.clone(),
        id,
        under,
        task,
        withdrawn: AtomicBool::new(false),
        not_now: AtomicBool::new(false),
    });
    let mut delivery = Delivery {
        id: number,
        received_at: action.received_at,
        target: action.target.clone(),
        action: action.action.clone(),
        answer,
        file: None,
        earlier,
        progress: progress.clone(),
    };
    let platform = action.platform(&egress);
    let ready = match file {
        Ok(file) => prepare(&egress, &action, number, &*progress).await.map(|()| file),
        Err(outcome) => Err(outcome),
    };
    // What was refused here is no call that a provider counts.
    let called = ready.is_ok();
    let outcome = match ready {
        Err(outcome) => outcome,
        Ok(file) => {
            delivery.file = file;
            if let Some(permit) = permit {
                permit.made();
            }
            match tokio::time::timeout(within, platform.deliver(delivery)).await {
                Ok(outcome) => outcome,
                Err(_) => Outcome::Unknown { why: "the platform did not answer".into() },
            }
        }
    };
    prompt::took(&egress, &action, number, &outcome).await;
    threads::took(&egress, &action, &outcome).await;
    let outcome = match outcome {
        // Not its sender may not, but this node.
        Outcome::Refused { .. } if progress.not_now.load(Ordering::Acquire) => {
            Outcome::Later { after: egress.timings.again, reach: Reach::Action, why: NOT_NOW.into() }
        }
        outcome => outcome,
    };
    let withdrawn = progress.withdrawn.load(Ordering::Acquire);
    let refused = called && matches!(outcome, Outcome::Refused { .. });
    slot.over(refused && !platform.is_own() && !withdrawn);
    Ok(Done::Happened(Event::Called { id, outcome, withdrawn }))
}

/// What some actions need before their call, which takes a while: whether that may still be made is
/// asked again then. A file took a while before.
async fn prepare(
    egress: &Egress,
    action: &OutboundAction,
    number: ActionId,
    progress: &dyn Progress,
) -> Result<(), Outcome> {
    match &action.action {
        Action::SendMedia { .. } => {}
        Action::Prompt { .. } | Action::Delete { .. } | Action::ThreadRename { .. } => {
            threads::check(egress, action).await?;
            delete::check(egress, action).await?;
            prompt::write_down(egress, action, number).await?;
        }
        _ => return Ok(()),
    }
    let refused = || Outcome::Refused { why: "the sender may not write there any more".into() };
    progress.still_allowed().then_some(()).ok_or_else(refused)
}

/// A call that ended by a panic.
pub(super) fn broke_off(id: DeliveryId) -> Done {
    let outcome = Outcome::Unknown { why: "the connector failed while it was sending".into() };
    Done::Happened(Event::Called { id, outcome, withdrawn: false })
}

/// Tells the ledger that nothing was written; it need not hear it.
pub(super) async fn postpone(
    egress: Arc<Egress>,
    id: DeliveryId,
    (number, under): (ActionId, ActingAs),
) -> Result<Done> {
    egress.ledger.postpone(egress.owner_under(under).await?, number).await?;
    Ok(Done::Happened(Event::Postponed(id)))
}

/// How an action ended, and as whom that is told.
pub(super) struct End {
    pub(super) id: DeliveryId,
    pub(super) number: ActionId,
    pub(super) under: ActingAs,
    pub(super) outcome: ActionOutcome,
}

/// Tells the ledger how actions ended.
pub(super) async fn finish(egress: Arc<Egress>, mut ends: Vec<End>) -> Result<Done> {
    let (mut ours, mut lost) = (Vec::new(), Vec::new());
    // Mostly they are all one's.
    while let Some(under) = ends.first().map(|end| end.under) {
        let told: Vec<End> = ends.extract_if(.., |end| end.under == under).collect();
        let outcomes = told.iter().map(|end| (end.number, end.outcome.clone())).collect();
        let others = egress.ledger.finish(egress.owner_under(under).await?, outcomes).await?;
        for end in told {
            if others.contains(&end.number) { lost.push(end.id) } else { ours.push(end.id) }
        }
    }
    let lost = (!lost.is_empty()).then(|| not_ours(&egress, lost));
    Ok(Done::Finished(Event::Finished { ids: ours, durable: true }, lost))
}

/// Somebody else works on these. Where nodes share a store, that one answers.
pub(super) fn not_ours(egress: &Egress, ids: Vec<DeliveryId>) -> Event {
    if egress.cluster.is_shared() { Event::GivenUp(ids) } else { Event::Disowned(ids) }
}

/// A provider call that a stopping server waits for, from the note that it is
/// made to the note of what came of it.
pub(super) struct InFlight(Arc<Egress>);

impl InFlight {
    pub(super) fn begin(egress: &Arc<Egress>) -> Self {
        egress.in_flight.fetch_add(1, Ordering::AcqRel);
        Self(egress.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a platform holds of us while it works on a delivery.
struct DeliveryProgress {
    egress: Arc<Egress>,
    action: Arc<OutboundAction>,
    id: DeliveryId,
    under: ActingAs,
    /// The task of its chat.
    task: Arc<Inbox>,
    /// Whether the platform was told to make no further call.
    withdrawn: AtomicBool,
    /// The same, because this node does not know whether the bot is its own.
    not_now: AtomicBool,
}

impl Progress for DeliveryProgress {
    fn first_part(&self, message_id: &str) {
        self.task.tell_first_part(FirstPart(self.id, message_id.to_owned()));
    }

    fn next_call(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let paced = self.action.paced(&self.egress);
            let limit = self.action.rate_limit(&self.egress);
            let permit = limit.turn_for(&self.action.origin.tenant, paced).await;
            // What is not known is not written to.
            let known = self.action.recall(&self.egress).await.is_ok();
            let allowed = known && self.still_allowed();
            if allowed {
                permit.made();
            }
            allowed
        })
    }

    fn pause(&self, reach: Reach, pause: Duration) {
        self.action.pause(&self.egress, reach, pause);
    }

    fn still_allowed(&self) -> bool {
        if !self.egress.may_call(self.action.bot, self.under) {
            self.not_now.store(true, Ordering::Release);
            return false;
        }
        let allowed = self.action.is_allowed(&self.egress);
        if !allowed {
            self.withdrawn.store(true, Ordering::Release);
        }
        allowed
    }
}
