//! The way of an action: authorize, write down, perform, answer.
//!
//! Each chat that has something to do has a task, which drives the chat's
//! [`ChatQueue`](angelia_core::egress::delivery::ChatQueue): its actions are
//! accepted and performed in order, chats run in parallel. An action that takes
//! longer than a gateway waits is answered by its session; it stays in the ledger
//! and is performed all the same (docs/decisions/0011, 0030).
//!
//! Where several nodes share a store, a bot's calls are made by the node that holds the bot
//! (docs/decisions/0046):
//!
//! | Question | File |
//! |---|---|
//! | What does the node do that holds a bot? | `outbox.rs` |
//! | What do the others do? | `elsewhere.rs` |
//! | How are they asked what is not written down? | `asked.rs` |
//! | Who goes on with what a node left in the web chat? | `left_behind.rs` |
//!
//! Threads for what comes in are opened here as well, within the same limits: `openings.rs`.

mod action;
mod asked;
mod capability;
mod chat_info;
mod chat_task;
mod chats;
mod delete;
mod draft;
mod elsewhere;
mod follow_up;
mod in_hand;
mod left_behind;
mod openings;
mod outbox;
mod perform;
mod prompt;
mod rate_limit;
mod react;
mod remark;
mod resume;
mod send_media;
mod target_lookup;
mod threads;
mod typing;

pub use angelia_core::egress::EgressTimings;
pub(crate) use openings::Beginnings;
pub(crate) use target_lookup::LIMITS;

use crate::cluster::Cluster;
use crate::identities::Identities;
use crate::ingress::Bots;
use crate::keyring::Keyring;
use crate::media::Media;
use crate::notices::Notices;
use crate::relay::Mailbox;
use crate::server::Parts;
use crate::supervise::Lifecycle;
use crate::telemetry::Metrics;
use action::{Origin, OutboundAction, Reply, failed};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::frame::Outbound;
use angelia_core::directory::BotKey;
use angelia_core::egress::{Goal, NO_CAPABILITY, Owner, Refusal, Sender, decide};
use angelia_core::error::Result;
use angelia_core::identity::GatewayRecord;
use angelia_core::memory::{HeldBytes, Memory};
use angelia_core::ports::{ActionId, Ingest, Ledger, Upkeep};
use angelia_core::records::Records;
use capability::Claims;
use chats::ChatQueues;
use draft::Drafts;
use elsewhere::Elsewhere;
use openings::OpeningWork;
use outbox::Outbox;
use rate_limit::{RateLimit, RefusalLimit};
use react::Marks;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use target_lookup::{TargetLookup, Waiting};
use tokio::sync::{OnceCell, Semaphore};

/// The hints beside an action that are read here; others are not kept.
const HINTS: [&str; 3] = ["thread_id", "notify", "user_id"];

/// Everything that is on its way out, and what it takes to get it there.
pub(crate) struct Egress {
    ledger: Arc<dyn Ledger>,
    ingest: Arc<dyn Ingest>,
    records: Arc<dyn Records>,
    upkeep: Arc<dyn Upkeep>,
    bots: Arc<Bots>,
    /// Whose bots are this node's.
    cluster: Arc<Cluster>,
    identities: Arc<Identities>,
    /// What capabilities are sealed with.
    keys: Arc<Keyring>,
    /// Files, if there is a place for them.
    media: Option<Arc<Media>>,
    memory: Arc<Memory>,
    metrics: Arc<Metrics>,
    life: Arc<Lifecycle>,
    /// As whom a server that is alone works, and the last action that others left it.
    owner: OnceCell<(Owner, ActionId)>,
    chats: ChatQueues,
    /// One for each bot whose calls only one of several nodes makes, in their order.
    outboxes: Vec<Option<Outbox>>,
    /// What other nodes perform.
    elsewhere: Elsewhere,
    /// What other nodes ask.
    asked: Semaphore,
    /// One for each bot, in their order.
    rate_limits: Vec<RateLimit>,
    refusals: Arc<RefusalLimit>,
    marks: Marks,
    drafts: Drafts,
    /// Where messages wait for threads, and what is done about it.
    beginnings: Arc<Beginnings>,
    openings: OpeningWork,
    target_lookup: TargetLookup,
    timings: EgressTimings,
    notices: Notices,
    /// Provider calls whose outcome is not written down yet.
    in_flight: AtomicUsize,
}

impl Egress {
    pub(crate) fn new(
        parts: &Parts,
        media: Option<Arc<Media>>,
        timings: EgressTimings,
        notices: Notices,
    ) -> Arc<Self> {
        let rate_limits = parts.bots.all().iter().map(|bot| RateLimit::new(bot.budget())).collect();
        let outboxes = (0..parts.bots.all().len()).map(|bot| Outbox::of(parts, bot)).collect();
        let egress = Arc::new(Self {
            ledger: parts.ports.ledger.clone(),
            ingest: parts.ports.ingest.clone(),
            records: parts.ports.records.clone(),
            upkeep: parts.ports.upkeep.clone(),
            bots: parts.bots.clone(),
            cluster: parts.cluster.clone(),
            identities: parts.identities.clone(),
            keys: parts.keys.clone(),
            media,
            memory: parts.memory.clone(),
            metrics: parts.metrics.clone(),
            life: parts.life.clone(),
            owner: OnceCell::new(),
            chats: ChatQueues::default(),
            outboxes,
            elsewhere: Elsewhere::default(),
            asked: Semaphore::new(asked::MAX_ASKED),
            rate_limits,
            refusals: Arc::default(),
            marks: Marks::default(),
            drafts: Drafts::default(),
            beginnings: parts.beginnings.clone(),
            openings: OpeningWork::default(),
            target_lookup: TargetLookup::default(),
            timings,
            notices,
            in_flight: AtomicUsize::new(0),
        });
        asked::answer_others(&egress);
        egress
    }

    fn bot_key(&self, bot: usize) -> BotKey {
        BotKey::new(self.bots[bot].platform(), self.bots[bot].id())
    }

    /// Whether a provider is being called. A server that stops waits for it:
    /// what ends without an outcome may be ambiguous for ever.
    pub(crate) fn is_calling(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) > 0
    }

    /// As whom a server that is alone works on actions: found out once, with the first commit.
    async fn owner(&self) -> Result<Owner> {
        self.ownership().await.map(|(owner, _)| owner)
    }

    /// The same, and the last action that others left: all of them are ours.
    async fn ownership(&self) -> Result<(Owner, ActionId)> {
        let take = async || {
            let owner = self.cluster.owner().await?;
            Ok((owner, self.ledger.adopt(owner, None).await?))
        };
        self.owner.get_or_try_init(take).await.copied()
    }

    /// Whether the platform of an action offers what it asks for.
    fn offers(&self, action: &OutboundAction) -> bool {
        self.bots[action.bot].descriptor().offers(action.action.op())
    }

    /// Takes a request of a socket; its answer goes to `mailbox` under `ticket`.
    ///
    /// What is not allowed is answered at once and takes nobody's place in a queue.
    pub(crate) fn submit(
        self: &Arc<Self>,
        record: &Arc<GatewayRecord>,
        mailbox: &Arc<Mailbox>,
        ticket: u64,
        mut outbound: Outbound,
        held: HeldBytes,
    ) {
        outbound.action.keep_hints(&HINTS);
        let reply = Reply::to(mailbox.clone(), ticket, outbound.request_id.clone(), &outbound.action);
        let waits = Waiting { record: record.clone(), reply, outbound, held };
        let Some(waits) = self.target_lookup.behind(waits) else { return };
        match decide_for(self, &waits) {
            Err(Refusal::Unknown(_) | Refusal::InVault) => target_lookup::ask(self, waits),
            // The same way as for a chat that nobody knows, or asking would tell the two apart.
            Err(Refusal::Declined) if target_lookup::only_tells(&waits) => target_lookup::ask(self, waits),
            // Another node may have learnt meanwhile where the chat is.
            Err(Refusal::Declined) if self.cluster.is_shared() => target_lookup::ask(self, waits),
            decided => proceed(self, waits, decided),
        }
    }

    /// Says something of the connector's own in a chat that belongs to an instance,
    /// on its behalf and within its rights: in the ledger, in the chat's order, in
    /// answer to a message.
    pub(crate) fn say(self: &Arc<Self>, owner: Sender<'_>, goal: Goal, content: String, reply_to: String) {
        let action = remark::own_send(&goal.target, content, Some(reply_to));
        // A gateway may come, or be replaced, before this is sent; the instance remains.
        let origin = Origin { tenant: owner.tenant.to_owned(), instance: owner.instance, gateway_id: None };
        // Whoever waits for the agent is not answered by this.
        let (claims, reply) = (Claims::Nothing, Reply::default());
        chats::enter(self, OutboundAction::new(origin, goal, action, claims, reply, None));
    }
}

fn decide_for(egress: &Egress, waits: &Waiting) -> Result<Goal, Refusal> {
    decide(egress.identities.now().routes(), egress.bots.all(), waits.sender(), &waits.outbound)
}

/// Performs an action or refuses it, by what is known now.
fn proceed_as_known(egress: &Arc<Egress>, waits: Waiting) {
    let decided = decide_for(egress, &waits);
    proceed(egress, waits, decided);
}

/// Performs an action or refuses it, as was just decided.
fn proceed(egress: &Arc<Egress>, waits: Waiting, decided: Result<Goal, Refusal>) {
    let Waiting { record, reply, outbound, held } = waits;
    let goal = match decided {
        Ok(goal) => goal,
        Err(Refusal::Declined | Refusal::Unknown(_)) => return reply.decline(egress),
        Err(Refusal::InVault) => return reply.give(failed(NO_CAPABILITY)),
        Err(Refusal::Unusable(why)) => return reply.give(ActionResult::failed(why)),
    };
    let origin = Origin::of(&record);
    if origin.is_revoked(&egress.identities.now()) {
        return reply.decline(egress);
    }
    let action = OutboundAction::new(origin, goal, outbound.action, Claims::Fitting, reply, Some(held));
    match action.action {
        Action::Send { .. } | Action::Edit { .. } | Action::Prompt { .. } | Action::Delete { .. } => {
            chats::enter(egress, action)
        }
        Action::SendMedia { .. } if egress.media.is_none() => {
            action.reply.give(ActionResult::failed(send_media::NO_FILES));
        }
        Action::SendMedia { .. } | Action::ThreadCreate { .. } | Action::ThreadRename { .. }
            if egress.offers(&action) =>
        {
            chats::enter(egress, action)
        }
        Action::Draft { .. } if egress.offers(&action) => draft::show(egress, action),
        Action::Typing { .. } => {
            // Ornaments: a gateway that waits for one does not work meanwhile.
            action.reply.give(ActionResult::ok());
            chats::enter(egress, action);
        }
        Action::React { .. } => {
            action.reply.give(ActionResult::ok());
            react::show(egress, action);
        }
        Action::GetChatInfo { .. } => chat_info::chat_info(egress, action),
        ref other => {
            let platform = egress.bots[action.bot].platform();
            let why = format!("{platform} does not offer {:?}", other.op());
            action.reply.give(ActionResult::failed(why));
        }
    }
}
