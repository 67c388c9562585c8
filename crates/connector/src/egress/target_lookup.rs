//! Actions for chats that nobody here knows: the store is asked, then, within
//! limits, the provider. Those that name a conversation are looked up in the
//! vault. What follows for the same chat waits behind them, so that the chat's
//! order is kept.

use super::action::{Origin, Reply, never_sent};
use super::follow_up::{self, Found};
use super::{Egress, asked as other_nodes};
use super::{decide_for, proceed_as_known};
use angelia_contract::action::Action;
use angelia_contract::frame::Outbound;
use angelia_core::clock;
use angelia_core::egress::{Lookups, Refusal, Sender, Target, could_know, is_named};
use angelia_core::error::{Error, Result};
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::InstanceId;
use angelia_core::memory::HeldBytes;
use angelia_core::vault::chat_of;
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

angelia_contract::limits! {
    /// Providers are asked slowly, so that nobody finds out whom they know. Further ones are refused, and their agent is told.
    const MAX_WAITING: usize = 64, count "actions of one instance that wait to learn where their chats are";
}
/// How long a provider gets to tell where a chat is. Gateways wait 30 s.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to find out where a chat is that is only to be told of, where another node
/// may have to be asked then: both together within five seconds.
const FOUND_WITHIN: Duration = Duration::from_secs(2);

/// When somebody is told that they may not know of a chat. Looking for one that
/// is not there takes longer than finding one that is, by less than this.
const TELL_AFTER: Duration = Duration::from_millis(25);

const NOT_IN_TIME: &str = "the platform did not tell in time";

/// A chat as one instance names it.
type Asked = (InstanceId, String);

/// An action that waits.
pub(super) struct Waiting {
    pub(super) record: Arc<GatewayRecord>,
    pub(super) reply: Reply,
    pub(super) outbound: Outbound,
    /// What it makes the server hold.
    pub(super) held: HeldBytes,
}

impl Waiting {
    pub(super) fn sender(&self) -> Sender<'_> {
        Sender { tenant: &self.record.tenant, instance: self.record.instance }
    }
}

/// What waits for an answer, chat by chat.
#[derive(Default)]
pub(super) struct TargetLookup {
    waiting: Mutex<HashMap<Asked, Vec<Waiting>>>,
    lookups: Mutex<Lookups>,
}

impl TargetLookup {
    /// Lets an action wait behind others for the same chat, if there are any;
    /// gives it back if there are none.
    pub(super) fn behind(&self, waits: Waiting) -> Option<Waiting> {
        let Some(asked) = asked(&waits) else { return Some(waits) };
        let mut waiting = self.waiting.lock();
        if !waiting.contains_key(&asked) {
            return Some(waits);
        }
        join(&mut waiting, asked, waits);
        None
    }

    /// What came for a chat since it was asked for; `None`, and the chat is
    /// forgotten, if nothing did.
    fn next(&self, asked: &Asked) -> Option<Vec<Waiting>> {
        let mut waiting = self.waiting.lock();
        let came = waiting.get_mut(asked).map(std::mem::take).filter(|came| !came.is_empty());
        if came.is_none() {
            waiting.remove(asked);
        }
        came
    }

    fn may_look_up(&self, bot: usize, chat: &str, origin: &Origin) -> bool {
        let gateway = format!("{}/{}", origin.tenant, origin.gateway_id.as_deref().unwrap_or_default());
        self.lookups.lock().ask(bot, chat, &gateway, clock::mono())
    }
}

fn asked(waits: &Waiting) -> Option<Asked> {
    let chat_id = match &waits.outbound.action {
        Action::FollowUp { session_key, .. } => chat_of(session_key)?,
        other => other.chat_id()?,
    };
    Some((waits.record.instance, chat_id.to_owned()))
}

fn join(waiting: &mut HashMap<Asked, Vec<Waiting>>, asked: Asked, waits: Waiting) {
    let of_instance = waiting.iter().filter(|((instance, _), _)| *instance == asked.0);
    if of_instance.map(|(_, held)| held.len()).sum::<usize>() >= MAX_WAITING {
        return waits.reply.give(never_sent("too much waits for chats that are not known yet"));
    }
    waiting.entry(asked).or_default().push(waits);
}

/// Finds out where an action's chat is, and then decides about it and about
/// what came for the same chat meanwhile.
pub(super) fn ask(egress: &Arc<Egress>, waits: Waiting) {
    let Some(asked) = asked(&waits) else { return proceed_as_known(egress, waits) };
    let egress = egress.clone();
    join(&mut egress.target_lookup.waiting.lock(), asked.clone(), waits);
    tokio::spawn(async move {
        while let Some(came) = egress.target_lookup.next(&asked) {
            for waits in came {
                let within = if only_tells(&waits) && egress.cluster.is_shared() {
                    FOUND_WITHIN
                } else {
                    Duration::MAX
                };
                let found = tokio::time::timeout(within, find_out(&egress, &waits));
                let found = AssertUnwindSafe(found).catch_unwind().await;
                match found.map(|found| found.unwrap_or_else(|_| Err(Error::unavailable(NOT_IN_TIME)))) {
                    Ok(Ok(None)) => proceed_as_known(&egress, waits),
                    Ok(Ok(Some(found))) => follow_up::perform(&egress, waits, found),
                    // It is not known yet whose the chat is: nothing was sent, and it may be asked again.
                    _ => waits.reply.give(never_sent("it could not be found out where this chat is")),
                }
            }
        }
    });
}

/// Asks whoever may know, until it is known or nobody is left; tells what the
/// vault has for one that names a conversation.
async fn find_out(egress: &Arc<Egress>, waits: &Waiting) -> Result<Option<Found>> {
    let Some(target) = Target::of(&waits.outbound.action) else {
        return match decide_for(egress, waits) {
            Err(Refusal::InVault) => follow_up::find(egress, waits).await,
            _ => Ok(None),
        };
    };
    if only_tells(waits) && !is_named(egress.identities.now().routes(), waits.sender(), &target.chat_id) {
        return recall_alike(egress, waits, &target).await.map(|()| None);
    }
    if egress.cluster.is_shared() {
        recall_all(egress, waits, &target).await?;
    }
    for bot in unknown_to(egress, waits) {
        egress.bots[bot].recall(&target).await?;
    }
    for bot in unknown_to(egress, waits) {
        look_up(egress, bot, &target, &Origin::of(&waits.record)).await?;
    }
    Ok(None)
}

/// Whether an action asks what a chat is, and does nothing there.
pub(super) fn only_tells(waits: &Waiting) -> bool {
    matches!(waits.outbound.action, Action::GetChatInfo { .. })
}

/// What is done for a chat that is asked about, whether it is somebody else's or
/// nobody's: who asks must not learn which from the words, the time or the
/// calls it takes. So the store is asked, and never the provider, unless a route of
/// their own names the chat.
async fn recall_alike(egress: &Egress, waits: &Waiting, target: &Target) -> Result<()> {
    let answer_at = tokio::time::Instant::now() + TELL_AFTER;
    recall_all(egress, waits, target).await?;
    if decide_for(egress, waits).is_err() {
        tokio::time::sleep_until(answer_at).await;
    }
    Ok(())
}

/// Asks the store what every bot that could know a chat knows of it.
async fn recall_all(egress: &Egress, waits: &Waiting, target: &Target) -> Result<()> {
    let bots =
        could_know(egress.identities.now().routes(), egress.bots.all(), waits.sender(), &waits.outbound);
    for bot in bots {
        egress.bots[bot].recall(target).await?;
    }
    Ok(())
}

/// The bots that could still find out.
fn unknown_to(egress: &Egress, waits: &Waiting) -> Vec<usize> {
    match decide_for(egress, waits) {
        Err(Refusal::Unknown(bots)) => bots,
        _ => Vec::new(),
    }
}

/// Asks the provider, by way of the node that holds the bot.
async fn look_up(egress: &Egress, bot: usize, target: &Target, origin: &Origin) -> Result<()> {
    if egress.is_elsewhere(bot) {
        return other_nodes::look_up(egress, bot, target, origin, LOOK_UP_WITHIN).await;
    }
    look_up_here(egress, bot, target, origin).await
}

/// Asks the provider, if it may be asked. What it could not be asked for is no
/// answer: the chat may be asked for again soon.
pub(super) async fn look_up_here(
    egress: &Egress,
    bot: usize,
    target: &Target,
    origin: &Origin,
) -> Result<()> {
    let tenant = &origin.tenant;
    let chat = egress.bots[bot].chat_key(target);
    let Some(slot) = egress.refusals.slot_at_once(tenant) else { return Ok(()) };
    if !egress.target_lookup.may_look_up(bot, &chat, origin) {
        return Ok(());
    }
    let call = async {
        let permit = egress.rate_limits[bot].turn(tenant).await;
        if !egress.may_call_now(bot) {
            return Err(Error::unavailable("the bot went to another node"));
        }
        permit.made();
        egress.bots[bot].look_up(target).await
    };
    let told = match tokio::time::timeout(LOOK_UP_WITHIN, call).await {
        Ok(told) => told,
        Err(_) => Err(Error::unavailable(NOT_IN_TIME)),
    };
    slot.over(matches!(told, Ok(false)));
    if told.is_err() {
        egress.target_lookup.lookups.lock().unanswered(bot, &chat, clock::mono());
    }
    told.map(drop)
}
