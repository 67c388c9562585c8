//! The way of an action: authorize, write down, perform, answer.
//!
//! Actions of one chat run in order, chats run in parallel. An action that
//! takes longer than a gateway waits is answered by its session; it stays in
//! the ledger and is performed all the same.

use crate::relay::{Answer, Mailbox};
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::frame::{ConnectorFrame, Outbound};
use angelia_core::egress::{ActionState, Resume, Sender, after_crash, authorize};
use angelia_core::error::Kind;
use angelia_core::identity::GatewayRecord;
use angelia_core::store::{ActionOutcome, NewAction, StoredAction};
use angelia_core::{clock, fail};
use angelia_platforms::{Delivery, Platform};
use futures_util::FutureExt;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Actions that may wait for one chat. Sockets wait for their answers, so only
/// a store or provider that stands still fills it.
const MAX_LANE: usize = 1_024;

/// One queue per chat that has something to do.
#[derive(Default)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<String, VecDeque<Job>>>,
}

impl Lanes {
    /// Runs `job` after everything that was given for the same chat; `false` if too much waits.
    fn run(self: &Arc<Self>, chat: &str, job: Job) -> bool {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get_mut(chat) {
            let room = lane.len() < MAX_LANE;
            if room {
                lane.push_back(job);
            }
            return room;
        }
        lanes.insert(chat.to_owned(), VecDeque::new());
        let (all, chat) = (self.clone(), chat.to_owned());
        tokio::spawn(async move {
            let mut next = Some(job);
            while let Some(job) = next {
                // A job that panics must not take the chat's later ones with it.
                let _ = AssertUnwindSafe(job).catch_unwind().await;
                next = all.next(&chat);
            }
        });
        true
    }

    fn next(&self, chat: &str) -> Option<Job> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let job = lanes.get_mut(chat)?.pop_front();
        if job.is_none() {
            lanes.remove(chat);
        }
        job
    }
}

/// Takes a request of a socket; its answer goes to `mailbox` under `ticket`.
pub(crate) fn submit(
    server: &Arc<Server>,
    record: &Arc<GatewayRecord>,
    mailbox: &Arc<Mailbox>,
    ticket: u64,
    outbound: Outbound,
) {
    let Outbound { request_id, action, .. } = outbound;
    let lane = action.chat_id().unwrap_or_default().to_owned();
    let (server, record, mailbox) = (server.clone(), record.clone(), mailbox.clone());
    let lanes = server.lanes.clone();
    let (busy, refused) = (mailbox.clone(), request_id.clone());
    let job = async move {
        let result = perform(&server, &record, action).await;
        let line = ConnectorFrame::OutboundResult { request_id, result }.to_line();
        mailbox.answer(Answer { ticket, line });
    };
    if !lanes.run(&lane, Box::pin(job)) {
        let result = ActionResult::network("too much waits for this chat; nothing was sent");
        let line = ConnectorFrame::OutboundResult { request_id: refused, result }.to_line();
        busy.answer(Answer { ticket, line });
    }
}

async fn perform(server: &Server, record: &GatewayRecord, action: Action) -> ActionResult {
    let (op, chat_id) = match (&action, action.chat_id()) {
        (Action::Unreadable { reason, .. }, _) => {
            return ActionResult::failed(format!("this action cannot be read: {reason}"));
        }
        (Action::FollowUp { .. }, _) => {
            return ActionResult::failed("there is no capability for this session");
        }
        (_, None) => return ActionResult::failed("this action names no chat"),
        (action, Some(chat_id)) => (action.op().to_owned(), chat_id.to_owned()),
    };
    let Some(platform) = target(server, record, &chat_id) else {
        server.metrics.count(Counter::OutboundDeclined);
        return ActionResult::declined("relay");
    };
    match action {
        Action::Typing { .. } => answer(platform.typing(&chat_id).await),
        Action::GetChatInfo { .. } => answer(platform.chat_info(&chat_id).await),
        Action::Send { .. } | Action::Edit { .. } => send(server, record, platform, chat_id, action).await,
        _ => ActionResult::failed(format!("{} does not offer {op:?}", platform.name())),
    }
}

/// The platform of a chat, if the sender may write there by the routes as they stand now.
fn target<'a>(server: &'a Server, record: &GatewayRecord, chat_id: &str) -> Option<&'a Arc<dyn Platform>> {
    let sender = Sender { tenant: &record.tenant, instance: record.instance };
    server.platforms().iter().find(|platform| {
        platform.places(chat_id).is_some_and(|places| {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            authorize(&server.roster.routes(), sender, platform.name(), platform.bot(), &places)
        })
    })
}

async fn send(
    server: &Server,
    record: &GatewayRecord,
    platform: &Arc<dyn Platform>,
    chat_id: String,
    action: Action,
) -> ActionResult {
    let reply_to = match &action {
        Action::Send { reply_to, .. } => reply_to.clone(),
        _ => None,
    };
    let Ok(body) = serde_json::to_vec(&action) else {
        return ActionResult::failed("this action cannot be written down");
    };
    let new = NewAction {
        tenant: record.tenant.clone(),
        instance: record.instance,
        platform: platform.name().to_owned(),
        bot: platform.bot().to_owned(),
        chat_id,
        op: action.op().to_owned(),
        reply_to,
        body,
        received_at: clock::wall(),
    };
    let id = match server.store.accept_action(new).await {
        Ok(id) => id,
        Err(error) => return answer(Err(error)),
    };
    fail::point("action_accepted");
    answer(platform.deliver(Delivery { id, action }).await)
}

/// What a failure tells the gateway: the words decide whether it tries again.
fn answer(outcome: angelia_core::error::Result<ActionResult>) -> ActionResult {
    match outcome {
        Ok(result) => result,
        Err(error) if error.kind() == Kind::Unavailable => {
            ActionResult::network("the connector's store cannot commit; nothing was sent")
        }
        Err(error) => ActionResult::failed(error.to_string()),
    }
}

/// Performs what a crash left unfinished, each chat in its order.
pub(crate) async fn resume(server: &Arc<Server>) -> angelia_core::error::Result<()> {
    let unfinished = server.store.unfinished_actions().await?;
    if !unfinished.is_empty() {
        tracing::info!(count = unfinished.len(), "finishing actions that were under way");
    }
    for stored in unfinished {
        let chat = stored.action.chat_id.clone();
        let (server, lanes) = (server.clone(), server.lanes.clone());
        lanes.run(&chat, Box::pin(async move { resume_one(&server, stored).await }));
    }
    Ok(())
}

async fn resume_one(server: &Server, stored: StoredAction) {
    let named = |p: &&Arc<dyn Platform>| p.name() == stored.action.platform && p.bot() == stored.action.bot;
    let platform = server.platforms().iter().find(named);
    let action = serde_json::from_slice::<Action>(&stored.action.body).ok();
    let (Some(platform), Some(action)) = (platform, action) else {
        return give_up(server, &stored, ActionState::Failed, "its platform is gone").await;
    };
    match after_crash(stored.state, platform.dedupe()) {
        Resume::Send => {
            let _ = platform.deliver(Delivery { id: stored.id, action }).await;
        }
        Resume::ShowAmbiguous => {
            give_up(server, &stored, ActionState::Ambiguous, "the connector stopped while sending").await;
        }
        Resume::Nothing => {}
    }
}

async fn give_up(server: &Server, stored: &StoredAction, state: ActionState, why: &str) {
    let outcome = ActionOutcome { state, message_id: None, error: Some(why.to_owned()) };
    let _ = server.store.finish_action(stored.id, outcome).await;
}
