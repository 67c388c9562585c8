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
use angelia_core::inbox::InstanceId;
use angelia_core::store::{ActionOutcome, NewAction, StoredAction};
use angelia_core::{clock, fail};
use angelia_platforms::{Delivery, Platform};
use futures_util::FutureExt;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Actions that may wait for one chat. Sockets wait for their answers, so only
/// a store or provider that stands still fills it.
const MAX_LANE: usize = 1_024;

/// Longest text of one action. Agents write pages, not books; the platforms'
/// limits are far below.
const MAX_CONTENT: usize = 256 * 1024;
/// How long an accepted action is tried again while the store does not commit.
const TRY_FOR: Duration = Duration::from_secs(600);
const TRY_EVERY: Duration = Duration::from_secs(1);

/// A chat as one instance writes to it: what others do there is not waited for.
type Lane = (InstanceId, String);

/// One queue per chat that has something to do.
#[derive(Default)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<Lane, VecDeque<Job>>>,
}

impl Lanes {
    /// Runs `job` after everything that was given for the same chat; `false` if too much waits.
    fn run(self: &Arc<Self>, lane: Lane, job: Job) -> bool {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = lanes.get_mut(&lane) {
            let room = waiting.len() < MAX_LANE;
            if room {
                waiting.push_back(job);
            }
            return room;
        }
        lanes.insert(lane.clone(), VecDeque::new());
        let all = self.clone();
        tokio::spawn(async move {
            let mut next = Some(job);
            while let Some(job) = next {
                // A job that panics must not take the chat's later ones with it.
                let _ = AssertUnwindSafe(job).catch_unwind().await;
                next = all.next(&lane);
            }
        });
        true
    }

    fn next(&self, lane: &Lane) -> Option<Job> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let job = lanes.get_mut(lane)?.pop_front();
        if job.is_none() {
            lanes.remove(lane);
        }
        job
    }
}

/// Takes a request of a socket; its answer goes to `mailbox` under `ticket`.
///
/// What is not allowed is answered at once and takes nobody's place in a queue.
pub(crate) fn submit(
    server: &Arc<Server>,
    record: &Arc<GatewayRecord>,
    mailbox: &Arc<Mailbox>,
    ticket: u64,
    outbound: Outbound,
) {
    let Outbound { request_id, action, .. } = outbound;
    let answer = {
        let (mailbox, request_id) = (mailbox.clone(), request_id);
        move |result| {
            let line = ConnectorFrame::OutboundResult { request_id, result }.to_line();
            mailbox.answer(Answer { ticket, line });
        }
    };
    let (chat_id, platform) = match target(server, record, &action) {
        Ok(target) => target,
        Err(refusal) => return answer(refusal),
    };
    let lane = (record.instance, chat_id.clone());
    let (lanes, busy) = (server.lanes.clone(), answer.clone());
    let (server, record) = (server.clone(), record.clone());
    let job = async move { answer(perform(&server, &record, &platform, chat_id, action).await) };
    if !lanes.run(lane, Box::pin(job)) {
        busy(ActionResult::network("too much waits for this chat; nothing was sent"));
    }
}

/// The chat and platform an action is for, if it can be read and the sender
/// may write there.
#[expect(clippy::result_large_err, reason = "a refusal is the answer itself, and made once")]
fn target(
    server: &Server,
    record: &GatewayRecord,
    action: &Action,
) -> Result<(String, Arc<dyn Platform>), ActionResult> {
    let chat_id = match (action, action.chat_id()) {
        (Action::Unreadable { reason, .. }, _) => {
            return Err(ActionResult::failed(format!("this action cannot be read: {reason}")));
        }
        (Action::FollowUp { .. }, _) => {
            return Err(ActionResult::failed("there is no capability for this session"));
        }
        (_, None) => return Err(ActionResult::failed("this action names no chat")),
        (_, Some(chat_id)) => chat_id.to_owned(),
    };
    if let Action::Send { content, .. } | Action::Edit { content, .. } = action
        && content.len() > MAX_CONTENT
    {
        return Err(ActionResult::failed(format!("the text is longer than {MAX_CONTENT} bytes")));
    }
    let sender = Sender { tenant: &record.tenant, instance: record.instance };
    let Some(platform) = writable(server, sender, &chat_id) else {
        server.metrics.count(Counter::OutboundDeclined);
        return Err(ActionResult::declined("relay"));
    };
    Ok((chat_id, platform))
}

/// The platform of a chat, if the sender may write there by the routes as they stand now.
fn writable(server: &Server, sender: Sender<'_>, chat_id: &str) -> Option<Arc<dyn Platform>> {
    let found = server.platforms().iter().find(|platform| {
        platform.places(chat_id).is_some_and(|places| {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            authorize(&server.roster.routes(), sender, platform.name(), platform.bot(), &places)
        })
    });
    found.cloned()
}

async fn perform(
    server: &Server,
    record: &GatewayRecord,
    platform: &Arc<dyn Platform>,
    chat_id: String,
    action: Action,
) -> ActionResult {
    match action {
        Action::Typing { .. } => answer(platform.typing(&chat_id).await),
        Action::GetChatInfo { .. } => answer(platform.chat_info(&chat_id).await),
        Action::Send { .. } | Action::Edit { .. } => send(server, record, platform, chat_id, action).await,
        other => ActionResult::failed(format!("{} does not offer {:?}", platform.name(), other.op())),
    }
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
    answer(deliver(platform, Delivery { id, action }).await)
}

/// Performs what is in the ledger. It is accepted, so a store that does not
/// commit is tried again, in the chat's order; its socket has been answered
/// that it timed out by then. What is still not done waits for the next start.
async fn deliver(
    platform: &Arc<dyn Platform>,
    delivery: Delivery,
) -> angelia_core::error::Result<ActionResult> {
    let until = clock::mono() + TRY_FOR;
    loop {
        match platform.deliver(delivery.clone()).await {
            Err(error) if error.kind() == Kind::Unavailable && clock::mono() < until => {
                tokio::time::sleep(TRY_EVERY).await;
            }
            Err(error) if error.kind() == Kind::Unavailable => {
                return Ok(ActionResult::timed_out("the store does not commit; it will be sent later"));
            }
            done => return done,
        }
    }
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
    let mut chats: Vec<(Lane, Vec<StoredAction>)> = Vec::new();
    for stored in unfinished {
        let lane = (stored.action.instance, stored.action.chat_id.clone());
        match chats.iter_mut().find(|(known, _)| *known == lane) {
            Some((_, actions)) => actions.push(stored),
            None => chats.push((lane, vec![stored])),
        }
    }
    for (lane, actions) in chats {
        let (server, lanes) = (server.clone(), server.lanes.clone());
        let job = async move {
            for stored in actions {
                resume_one(&server, stored).await;
            }
        };
        lanes.run(lane, Box::pin(job));
    }
    Ok(())
}

/// Finishes one action, if its sender may still write there.
async fn resume_one(server: &Server, stored: StoredAction) {
    let sender = Sender { tenant: &stored.action.tenant, instance: stored.action.instance };
    let platform = writable(server, sender, &stored.action.chat_id);
    let action = serde_json::from_slice::<Action>(&stored.action.body).ok();
    let (Some(platform), Some(action)) = (platform, action) else {
        return give_up(server, &stored, ActionState::Failed, "its sender may not write there any more")
            .await;
    };
    match after_crash(stored.state, platform.dedupe()) {
        Resume::Send => {
            let _ = deliver(&platform, Delivery { id: stored.id, action }).await;
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
