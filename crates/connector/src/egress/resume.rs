//! Performing what a crash left unfinished, each chat in its order.
//!
//! A start reads who asked for what and where it goes, page by page; the texts
//! stay in the store until their turn comes. However much was left behind, and
//! by whom, a start costs little and every other tenant goes on.

use super::Egress;
use super::action::{Origin, OutboundAction, Reply};
use super::capability::Claims;
use super::chats::{self, ChatKey, News};
use super::outbox::ActingAs;
use super::perform::Done;
use angelia_contract::action::Action;
use angelia_core::clock;
use angelia_core::directory::BotKey;
use angelia_core::egress::delivery::{Claimed, DeliveryId, Edited, Left, Text};
use angelia_core::egress::{
    ActionState, FOLLOW_UP, NO_CAPABILITY, Owner, REMARK, Target, is_suspect, remark_on,
};
use angelia_core::error::Result;
use angelia_core::memory::HeldBytes;
use angelia_core::ports::{ActionId, ActionOutcome, StoredAction};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Unfinished actions read at once.
const PAGE: usize = 256;

const STOPPED_WHILE_SENDING: &str = "the connector stopped while it was sending";
const GONE_BOT: &str = "its bot is not configured any more";
const TOO_OLD: &str = "it could not be sent in the time it is kept for: the connector was stopped";

impl Egress {
    /// Takes up the ledger where the last process left it. A store that does not
    /// commit does not hold up the start: nothing is taken up until it does.
    pub(crate) async fn resume(self: &Arc<Self>) -> Result<()> {
        if self.cluster.is_shared() {
            self.work_with_others();
            return Ok(());
        }
        if self.owner().await.is_ok() {
            return take_up(self).await;
        }
        self.life.supervise("resume", self, |egress, life| async move {
            while life.pause(egress.timings.again).await {
                if egress.owner().await.is_ok() && take_up(&egress).await.is_ok() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Keeps the outboxes of the bots that this node holds, and waits for what other nodes do.
    fn work_with_others(self: &Arc<Self>) {
        for bot in (0..self.outboxes.len()).filter(|bot| self.outboxes[*bot].is_some()) {
            self.life.supervise("outbox", self, move |egress, life| egress.keep_outbox(bot, life));
        }
        self.life.supervise("answers", self, Self::look_for_answers);
        self.life.supervise("left behind", self, Self::take_up_left_behind);
    }
}

/// Takes up everything that others left. Only when all is read is anything
/// begun: an edit that a later one overtakes is not.
async fn take_up(egress: &Arc<Egress>) -> Result<()> {
    let (owner, last) = egress.ownership().await?;
    let mut found = unfinished(egress, owner, ActionId(0)).await?;
    // What came since is in its queue already.
    found.retain(|stored| stored.id <= last);
    if !found.is_empty() {
        tracing::info!(count = found.len(), "finishing actions that were under way");
    }
    let (under, untouched) = (ActingAs::Node, false);
    for (key, stored) in sort(egress, found, under).await {
        chats::tell(egress, key, News::Adopted { stored, under, untouched });
    }
    Ok(())
}

/// Actions as they are found in the ledger, oldest first.
pub(super) type Found = Vec<StoredAction>;

/// What is unfinished of an owner's after `after`, page by page.
pub(super) async fn unfinished(egress: &Egress, owner: Owner, mut after: ActionId) -> Result<Found> {
    let mut found = Vec::new();
    loop {
        let page = egress.ledger.unfinished(owner, after, PAGE).await?;
        let is_last = page.len() < PAGE;
        after = page.last().map_or(after, |stored| stored.id);
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

/// Sorts what goes on from here by its chat, and ends what does not.
pub(super) async fn sort(egress: &Egress, found: Found, under: ActingAs) -> HashMap<ChatKey, Found> {
    let (mut sorted, mut ends) = (HashMap::<ChatKey, Found>::new(), Vec::new());
    for stored in found {
        match judge(egress, &stored) {
            Ok(bot) => {
                let key = ChatKey::of(egress, stored.instance, bot, &target(&stored));
                sorted.entry(key).or_default().push(stored);
            }
            Err((state, why)) => {
                let error = Some(why.to_owned());
                ends.push((stored.id, ActionOutcome { state, message_id: None, error }));
            }
        }
    }
    if !ends.is_empty()
        && let Ok(owner) = egress.owner_under(under).await
    {
        // Not durable: whoever finds it next comes to the same end.
        let _ = egress.ledger.finish(owner, ends).await;
    }
    sorted
}

pub(super) fn target(stored: &StoredAction) -> Target {
    Target { chat_id: stored.chat_id.clone(), thread_id: stored.thread_id.clone() }
}

/// The bot that an action goes on with, or how it ends.
fn judge(egress: &Egress, stored: &StoredAction) -> Result<usize, (ActionState, &'static str)> {
    let Some(bot) = egress.bots.position(&BotKey::new(&stored.platform, &stored.bot)) else {
        // It cannot be asked what it has.
        return Err(match stored.state {
            ActionState::Sending => (ActionState::Ambiguous, STOPPED_WHILE_SENDING),
            _ => (ActionState::Failed, GONE_BOT),
        });
    };
    if stored.op == FOLLOW_UP && stored.uses.is_none() {
        return Err((ActionState::Failed, NO_CAPABILITY));
    }
    if is_suspect(stored.state, stored.crashes) {
        let (tenant, gateway) = (&stored.tenant, stored.gateway_id.as_deref().unwrap_or("unknown"));
        let (action, bytes) = (stored.id.0, stored.bytes);
        tracing::warn!(%tenant, gateway, action, bytes, "set aside: it was under way at two crashes");
    }
    match stored.state {
        // It was not begun, and nobody wants it any more: not even its text is read.
        ActionState::Accepted if is_outdated(egress, stored) && !egress.bots[bot].is_own() => {
            Err((ActionState::Failed, TOO_OLD))
        }
        _ => Ok(bot),
    }
}

/// Whether nobody waits for it any more. That something may be missing is worth knowing
/// however long the server was stopped.
fn is_outdated(egress: &Egress, stored: &StoredAction) -> bool {
    let old = egress.upkeep.age(stored.received_at).at_least > egress.timings.queued_for;
    old && stored.uses.is_none() && stored.op != REMARK
}

/// What is known of an action before its text is read.
pub(super) fn left(egress: &Egress, stored: &StoredAction, untouched: bool) -> Left {
    let edited = |message_id: &String| Edited { message_id: message_id.clone(), target: target(stored) };
    let lasts = stored.uses_until.and_then(|end| u64::try_from(end.0 - clock::wall().0).ok());
    // Where the clock leapt, the worst is assumed: what may be too long ago is not relied on.
    let begun = stored.begun_at.map(|at| egress.upkeep.age(at).at_most);
    let remark = stored.op == REMARK;
    let age = if remark { Duration::ZERO } else { egress.upkeep.age(stored.received_at).at_least };
    Left {
        edits: stored.edits.as_ref().map(edited),
        follow_up: stored.op == FOLLOW_UP,
        claimed: Claimed { uses: stored.uses, lasts: lasts.map(Duration::from_millis) },
        in_doubt: remark_on(&stored.op, stored.gateway_id.is_some(), egress.notices.ambiguous),
        remark,
        suspect: is_suspect(stored.state, stored.crashes),
        sending: stored.state == ActionState::Sending,
        begun,
        left: egress.timings.queued_for.saturating_sub(age),
        untouched,
    }
}

/// An action whose turn has come; gone if it ended meanwhile, or the next
/// start finds it again.
pub(super) async fn read(egress: Arc<Egress>, bot: usize, id: DeliveryId, stored: Box<StoredAction>) -> Done {
    let gone = Done::Read(id, None, Text::Gone);
    let Some(held) = room(&egress, &stored).await else { return gone };
    let Some(body) = text(&egress, stored.id).await else { return gone };
    let action = serde_json::from_slice::<Action>(&body).ok();
    let Some((target, action)) = action.and_then(|action| Some((Target::of(&action)?, action))) else {
        return Done::Read(id, None, Text::Unreadable);
    };
    // What it claimed when it was accepted stays claimed.
    let claims = match (stored.op == FOLLOW_UP, stored.uses) {
        (true, Some(used)) => Claims::Named(used.capability),
        _ => Claims::Nothing,
    };
    let origin = Origin { tenant: stored.tenant, instance: stored.instance, gateway_id: stored.gateway_id };
    let (remark, reply, received_at) = (stored.op == REMARK, Reply::default(), stored.received_at);
    let _held = Some(held);
    let action = OutboundAction { origin, bot, target, action, claims, remark, reply, received_at, _held };
    let repeats = action.repeats(&egress);
    Done::Read(id, Some(Arc::new(action)), Text::Read(repeats))
}

/// The text of an action, as long as it takes to read it: what comes after it in its
/// chat must not overtake it. `None` if it ended meanwhile, or once the server stops.
async fn text(egress: &Egress, id: ActionId) -> Option<Vec<u8>> {
    loop {
        if let Ok(body) = egress.ledger.body(id).await {
            return body;
        }
        tokio::select! {
            () = tokio::time::sleep(egress.timings.again) => {}
            () = egress.life.stopped() => return None,
        }
    }
}

/// Waits until there is memory for the action's text; `None` once the server stops.
async fn room(egress: &Egress, stored: &StoredAction) -> Option<HeldBytes> {
    let share = egress.memory.instance(&stored.tenant, stored.instance);
    let bytes = usize::try_from(stored.bytes).unwrap_or(usize::MAX).saturating_mul(2);
    // What earlier releases took in may be larger than everything there is.
    let bytes = bytes.min(share.limit() / 2);
    loop {
        if let Some(held) = share.hold(bytes) {
            return Some(held);
        }
        tokio::select! {
            () = tokio::time::sleep(egress.timings.again) => {}
            () = egress.life.stopped() => return None,
        }
    }
}
