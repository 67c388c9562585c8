//! The way of an action: authorize, write down, perform, answer.
//!
//! Actions of one chat are accepted and performed in order, chats run in
//! parallel. An action that takes longer than a gateway waits is answered by
//! its session; it stays in the ledger and is performed all the same
//! (docs/decisions/0011).

mod answer;
mod aside;
mod asking;
mod capability;
mod deliver;
mod errand;
mod follow_up;
mod gate;
mod hand;
mod lanes;
mod light;
mod resume;

pub(crate) use capability::open;
pub(crate) use resume::resume;

use crate::relay::Mailbox;
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::frame::Outbound;
use angelia_core::egress::{Goal, NO_CAPABILITY, QUEUED_FOR, Refusal, Sender, Target, decide};
use angelia_core::identity::GatewayRecord;
use angelia_core::memory::HeldBytes;
use angelia_platforms::Platform;
use answer::Reply;
use aside::Aside;
use asking::{Asking, Waiting};
use capability::Claims;
use errand::{Errand, Origin};
use gate::{Brake, Gate};
use lanes::Lanes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The hints beside an action that are read here; others are not kept.
const HINTS: [&str; 3] = ["thread_id", "notify", "user_id"];

/// How long and how often actions are tried. The default is meant for
/// everybody; tests have less time.
#[derive(Clone, Copy, Debug)]
pub struct EgressTimings {
    /// How long an accepted action is tried for.
    pub queued_for: Duration,
    /// The pause after a store that did not commit, and the first one after a
    /// provider whose answer is not known.
    pub again: Duration,
    /// How long a chat waits for an answer that takes a place of its own.
    pub aside: Duration,
}

impl Default for EgressTimings {
    fn default() -> Self {
        Self { queued_for: QUEUED_FOR, again: Duration::from_secs(1), aside: Duration::from_secs(10) }
    }
}

/// Everything that is on its way out.
pub(crate) struct Egress {
    lanes: Lanes,
    /// One for each platform, in their order.
    gates: Vec<Gate>,
    brake: Arc<Brake>,
    asking: Asking,
    aside: Arc<Aside>,
    timings: EgressTimings,
    /// Provider calls whose outcome is not written down yet.
    under_way: AtomicUsize,
}

impl Egress {
    pub(crate) fn new(platforms: &[Arc<dyn Platform>], timings: EgressTimings) -> Self {
        let gates = platforms.iter().map(|platform| Gate::new(platform.budget())).collect();
        Self {
            lanes: Lanes::default(),
            gates,
            brake: Arc::default(),
            asking: Asking::default(),
            aside: Arc::default(),
            timings,
            under_way: AtomicUsize::new(0),
        }
    }

    /// Whether a provider is being called. A server that stops waits for it:
    /// what ends without an outcome may be ambiguous for ever.
    pub(crate) fn is_calling(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
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
    mut outbound: Outbound,
    held: HeldBytes,
) {
    outbound.action.keep_hints(&HINTS);
    let reply = Reply::to(mailbox.clone(), ticket, outbound.request_id.clone());
    let waits = Waiting { record: record.clone(), reply, outbound, held };
    let Some(waits) = server.egress.asking.behind(waits) else { return };
    match decide_for(server, &waits) {
        Err(Refusal::Unknown(_) | Refusal::InVault) => asking::ask(server, waits),
        // The same way as for a chat that nobody knows, or asking would tell the two apart.
        Err(Refusal::Declined) if asking::only_tells(&waits) => asking::ask(server, waits),
        _ => proceed(server, waits),
    }
}

fn decide_for(server: &Server, waits: &Waiting) -> Result<Goal, Refusal> {
    let Waiting { record, outbound, .. } = waits;
    let sender = Sender { tenant: &record.tenant, instance: record.instance };
    decide(&server.roster.routes(), server.platforms(), sender, outbound)
}

/// Performs an action or refuses it, by what is known now.
fn proceed(server: &Arc<Server>, waits: Waiting) {
    let goal = decide_for(server, &waits);
    let Waiting { record, reply, outbound, held } = waits;
    let goal = match goal {
        Ok(goal) => goal,
        Err(Refusal::Declined | Refusal::Unknown(_)) => return reply.decline(server),
        Err(Refusal::InVault) => return reply.give(answer::failed(NO_CAPABILITY)),
        Err(Refusal::Unusable(why)) => return reply.give(ActionResult::failed(why)),
    };
    let origin = Origin::of(&record);
    if origin.is_revoked(server) {
        return reply.decline(server);
    }
    let (Goal { bot, target }, action) = (goal, outbound.action);
    let errand =
        Arc::new(Errand { origin, bot, target, action, claims: Claims::Fitting, reply, _held: Some(held) });
    match errand.action {
        Action::Send { .. } | Action::Edit { .. } => lanes::enter(server, errand),
        Action::Typing { .. } => light::typing(server, errand),
        Action::GetChatInfo { .. } => light::chat_info(server, errand),
        ref other => {
            let platform = server.platforms()[errand.bot].platform();
            let why = format!("{platform} does not offer {:?}", other.op());
            errand.reply.give(ActionResult::failed(why));
        }
    }
}

/// Says something of the connector's own in a chat that belongs to an instance,
/// on its behalf and within its rights: in the ledger, in the chat's order, in
/// answer to a message.
pub(crate) fn say(
    server: &Arc<Server>,
    record: &GatewayRecord,
    bot: usize,
    target: Target,
    content: String,
    reply_to: String,
) {
    let thread = target.thread_id.clone().map(|thread| ("thread_id".to_owned(), thread.into()));
    let action = Action::Send {
        chat_id: target.chat_id.clone(),
        content,
        reply_to: Some(reply_to),
        metadata: thread.into_iter().collect(),
    };
    // The gateway may be replaced before this is sent; the instance remains.
    let origin = Origin { gateway_id: None, ..Origin::of(record) };
    // Whoever waits for the agent is not answered by this.
    let (claims, reply) = (Claims::Nothing, Reply::default());
    lanes::enter(server, Arc::new(Errand { origin, bot, target, action, claims, reply, _held: None }));
}

/// Counts a target that the sender may not write to.
fn count_declined(server: &Server) {
    server.metrics.count(Counter::OutboundDeclined);
}
