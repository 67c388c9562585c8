//! What is not written down, for a bot that another node holds: asked of that node over the bus.
//!
//! It may get lost. Marks and typing are ornaments; whoever asks what a chat is hears after a
//! while that nobody told. The node that holds the bot decides for itself whether the sender may:
//! who that is was authenticated by the node that asks.

use super::action::{Origin, OutboundAction, Reply, perhaps_sent};
use super::capability::Claims;
use super::openings::{NoThread, open_for_other};
use super::{Egress, chat_info, chats, draft, react, target_lookup};
use crate::cluster::Subject;
use angelia_contract::action::{Action, ActionResult};
use angelia_core::directory::BotKey;
use angelia_core::egress::{Goal, Target};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::InstanceId;
use angelia_core::threads::Opened;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long another node gets to tell what a chat is. Where that is may have been looked up before:
/// both together take five seconds at the most.
const TOLD_WITHIN: Duration = Duration::from_secs(3);
/// Questions of other nodes that are answered at one time. Further ones are not: each may make a
/// provider be called.
pub(super) const MAX_ASKED: usize = 1_024;

/// What one node asks another.
#[derive(Serialize, Deserialize)]
struct Question {
    tenant: String,
    instance: i64,
    gateway_id: Option<String>,
    chat_id: String,
    thread_id: Option<String>,
    /// What is to be done; nothing if only the chat is to be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
}

impl Question {
    fn of(origin: &Origin, target: &Target, action: Option<&Action>) -> Value {
        let question = Self {
            tenant: origin.tenant.clone(),
            instance: origin.instance.0,
            gateway_id: origin.gateway_id.clone(),
            chat_id: target.chat_id.clone(),
            thread_id: target.thread_id.clone(),
            action: action.cloned(),
        };
        // Made of strings and maps of strings: it can always be written.
        serde_json::to_value(question).unwrap_or_default()
    }
}

/// Has the node that holds the bot show something.
pub(super) fn tell(egress: &Egress, action: &OutboundAction) {
    let question = Question::of(&action.origin, &action.target, Some(&action.action));
    egress.cluster.calls().tell(&egress.bot_key(action.bot), Subject::Egress, question);
}

/// Has the node that holds the bot show a draft; `true` if there are none in that chat.
pub(super) async fn show_draft(egress: &Egress, action: &OutboundAction) -> bool {
    let question = Question::of(&action.origin, &action.target, Some(&action.action));
    let key = egress.bot_key(action.bot);
    let told = egress.cluster.calls().ask(&key, Subject::Egress, question, TOLD_WITHIN).await;
    let told = told.and_then(|told| serde_json::from_value::<ActionResult>(told).ok());
    told.is_some_and(|told| !told.success)
}

/// Asks the node that holds the bot what a chat is.
pub(super) fn chat_info(egress: &Arc<Egress>, action: Arc<OutboundAction>) {
    let egress = egress.clone();
    tokio::spawn(async move {
        let question = Question::of(&action.origin, &action.target, Some(&action.action));
        let key = egress.bot_key(action.bot);
        let told = egress.cluster.calls().ask(&key, Subject::Egress, question, TOLD_WITHIN).await;
        let told = told.and_then(|told| serde_json::from_value::<ActionResult>(told).ok());
        action.reply.give(told.unwrap_or_else(|| perhaps_sent("the platform did not tell in time")));
    });
}

/// Has the node that holds the bot open a thread.
pub(super) async fn open_thread(
    egress: &Egress,
    action: &OutboundAction,
    within: Duration,
) -> Result<Opened, NoThread> {
    let question = Question::of(&action.origin, &action.target, Some(&action.action));
    let key = egress.bot_key(action.bot);
    let told = egress.cluster.calls().ask(&key, Subject::Egress, question, within).await;
    match told.map(serde_json::from_value::<Result<Opened, NoThread>>) {
        Some(Ok(told)) => told,
        _ => Err(NoThread::NotAsked("the node that has the bot did not tell".into())),
    }
}

/// Has the node that holds the bot ask its provider where a chat is, and keep that.
pub(super) async fn look_up(
    egress: &Egress,
    bot: usize,
    target: &Target,
    origin: &Origin,
    within: Duration,
) -> Result<()> {
    let (key, question) = (egress.bot_key(bot), Question::of(origin, target, None));
    match egress.cluster.calls().ask(&key, Subject::Egress, question, within).await {
        Some(Value::Bool(true)) => egress.bots[bot].recall(target).await,
        _ => Err(Error::unavailable("the node that has the bot did not tell")),
    }
}

/// Answers what other nodes ask.
pub(super) fn answer_others(egress: &Arc<Egress>) {
    let weak = Arc::downgrade(egress);
    egress.cluster.calls().answer_by(
        Subject::Egress,
        Arc::new(move |bot, what| {
            let egress = Weak::upgrade(&weak);
            Box::pin(async move { answer(&egress?, &bot, what).await })
        }),
    );
}

async fn answer(egress: &Arc<Egress>, bot: &BotKey, what: Value) -> Option<Value> {
    let _one = egress.asked.try_acquire().ok()?;
    let Question { tenant, instance, gateway_id, chat_id, thread_id, action } =
        serde_json::from_value(what).ok()?;
    let bot = egress.bots.position(bot)?;
    // It may have gone to another node since.
    if !egress.may_call_now(bot) {
        return None;
    }
    let origin = Origin { tenant, instance: InstanceId(instance), gateway_id };
    if origin.is_revoked(&egress.identities.now()) {
        return None;
    }
    let target = Target { chat_id, thread_id };
    let Some(action) = action else {
        let looked = target_lookup::look_up_here(egress, bot, &target, &origin).await;
        return Some(json!(looked.is_ok()));
    };
    let (reply, told) = Reply::and_answer();
    let action = OutboundAction::new(origin, Goal { bot, target }, action, Claims::Nothing, reply, None);
    match action.action {
        Action::Typing { .. } => chats::enter(egress, action),
        Action::React { .. } => react::show(egress, action),
        Action::Draft { .. } | Action::GetChatInfo { .. } => {
            match action.action {
                Action::Draft { .. } => draft::show(egress, action),
                _ => chat_info::chat_info(egress, action),
            }
            let told = tokio::time::timeout(TOLD_WITHIN, told).await.ok()?.ok()?;
            return serde_json::to_value(told).ok();
        }
        // Those of gateways are in the ledger.
        Action::ThreadCreate { .. } if action.origin.gateway_id.is_none() => {
            return serde_json::to_value(open_for_other(egress, &action).await).ok();
        }
        // Everything else is in the ledger.
        _ => {}
    }
    None
}
