//! What people are told by the connector itself: that their agent is away and
//! the message is kept, and, if the operator wants it, why nothing answers.

use crate::egress;
use crate::server::Server;
use angelia_core::admission::{DropReason, Observed};
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::egress::{Sender, Target};
use angelia_core::error::{Kind, Result};
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::store::{NoticeKind, NoticeStore, Overdue};
use angelia_platforms::Which;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a message waits before its writer is told that the agent is away.
const AWAY_AFTER: Duration = Duration::from_secs(60);
/// How often it is looked for such messages.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Messages of one inbox that are looked at in one go.
const PAGE: usize = 256;
/// Hints being given at the same time; more are left for the next occasion.
const HINTS: usize = 4;

/// Whom to tell that their agent is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Away {
    /// Nobody.
    Never,
    /// People in private chats.
    #[default]
    Dms,
    /// Everybody.
    All,
}

/// What the connector says of its own.
#[derive(Clone, Debug)]
pub struct Notices {
    /// Whom to tell that their agent is away.
    pub away: Away,
    /// How.
    pub away_text: String,
    /// What somebody is told whose command or press nobody has answered, shortly
    /// before it can be answered in its place no more.
    pub unanswered_text: String,
    /// What a chat is told, once, of which messages were dropped because too much waited.
    pub lost_text: String,
    /// What a place is told once where the bot answers nobody; `None`: nothing.
    pub hint: Option<String>,
    /// How long a message waits before its writer is told. Tests have less time.
    pub away_after: Duration,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            away: Away::default(),
            away_text: "Your agent is away at the moment. Your message is kept and will be answered \
                        when it is back."
                .into(),
            unanswered_text: "Your agent has not answered yet. If it does, the answer comes here as a new \
                              message."
                .into(),
            lost_text: "More messages waited for your agent than are kept, and the oldest from this chat \
                        were dropped. Please send again what still matters."
                .into(),
            hint: None,
            away_after: AWAY_AFTER,
        }
    }
}

/// Tells people whose messages wait for long, until the server stops.
pub(crate) async fn watch(server: Arc<Server>) {
    if server.options.notices.away == Away::Never {
        return;
    }
    let mut watch = Watch { server: server.clone(), seen: HashMap::new(), told: HashMap::new() };
    match server.ports.records.noticed().await {
        // Of which message is not known any more: all that waits may be older.
        Ok(told) => watch.told.extend(told.into_iter().map(|instance| (instance, Seq(i64::MAX)))),
        Err(error) => tracing::warn!(%error, "earlier notices are not known"),
    }
    let every = LOOK_EVERY.min(server.options.notices.away_after);
    loop {
        tokio::select! {
            () = server.stopped() => return,
            () = tokio::time::sleep(every) => {}
        }
        if let Err(error) = watch.look().await {
            tracing::debug!(%error, "messages that wait could not be looked for");
        }
    }
}

struct Watch {
    server: Arc<Server>,
    /// Up to where each inbox was looked at: a message is looked at once.
    seen: HashMap<InstanceId, Seq>,
    /// Instances with chats that were told, and the first message that was told of.
    told: HashMap<InstanceId, Seq>,
}

impl Watch {
    async fn look(&mut self) -> Result<()> {
        let waiting: BTreeSet<InstanceId> = self.server.ports.log.waiting().await?.into_iter().collect();
        self.seen.retain(|instance, _| waiting.contains(instance));
        for (instance, of) in self.told.clone() {
            if !waiting.contains(&instance) || self.was_here_since(instance, of).await? {
                self.server.ports.records.end_notices(instance).await?;
                self.told.remove(&instance);
            }
        }
        for instance in waiting {
            if !self.server.sessions.is_live(instance) {
                self.look_at(instance).await?;
            }
        }
        Ok(())
    }

    /// Whether an agent took what was told of: then the next outage is another
    /// one, also if something waits again by the time somebody looks.
    async fn was_here_since(&self, instance: InstanceId, of: Seq) -> Result<bool> {
        let oldest = self.server.ports.inboxes.overdue(instance, Seq(0), Duration::ZERO, 1).await?;
        Ok(oldest.first().is_some_and(|oldest| oldest.seq > of))
    }

    async fn look_at(&mut self, instance: InstanceId) -> Result<()> {
        let waited = self.server.options.notices.away_after;
        let after = self.seen.get(&instance).copied().unwrap_or(Seq(0));
        for overdue in self.server.ports.inboxes.overdue(instance, after, waited, PAGE).await? {
            self.tell(instance, &overdue).await?;
            self.seen.insert(instance, overdue.seq);
        }
        Ok(())
    }

    async fn tell(&mut self, instance: InstanceId, overdue: &Overdue) -> Result<()> {
        let server = &self.server;
        let wanted = server.options.notices.away == Away::All || overdue.kind == Some(ChatKind::Dm);
        let Some(tenant) = server.identities.tenant_of(instance).filter(|_| wanted) else { return Ok(()) };
        let named = |bot: &Arc<dyn angelia_platforms::Platform>| {
            *bot.platform() == *overdue.bot.platform && *bot.id() == *overdue.bot.bot && !bot.is_own()
        };
        let Some(bot) = server.platforms().iter().position(named) else { return Ok(()) };
        if server
            .ports
            .records
            .notice(NoticeKind::Away, &overdue.bot, &overdue.chat_id, Some(instance))
            .await?
        {
            self.told.entry(instance).or_insert(overdue.seq);
            let target = Target { chat_id: overdue.chat_id.clone(), thread_id: overdue.thread_id.clone() };
            let text = server.options.notices.away_text.clone();
            let owner = Sender { tenant: &tenant, instance };
            egress::say(server, owner, bot, target, text, overdue.message_id.clone());
        }
        Ok(())
    }
}

/// Gives hints where the bot answers nobody.
pub(crate) struct Hints {
    turns: Arc<Semaphore>,
}

impl Default for Hints {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(HINTS)) }
    }
}

impl Hints {
    /// Tells a place once why nothing answers, if the operator wants that and
    /// somebody was waiting for an answer.
    pub(crate) fn give(
        &self,
        server: &Arc<Server>,
        observed: Observed<'_>,
        which: Which<'_>,
        reason: DropReason,
    ) {
        let Some(text) = server.options.notices.hint.clone() else { return };
        let expected = (observed.private || observed.addressed) && !observed.author_is_bot;
        let puzzling =
            matches!(reason, DropReason::NoRoute | DropReason::AuthorNotAllowed | DropReason::NoInstance);
        let Ok(turn) = self.turns.clone().try_acquire_owned() else { return };
        if !expected || !puzzling {
            return;
        }
        let bot = BotKey::new(observed.platform, observed.bot);
        let target =
            Target { chat_id: which.chat_id.to_owned(), thread_id: which.thread_id.map(str::to_owned) };
        let server = server.clone();
        tokio::spawn(async move {
            let _turn = turn;
            if let Err(error) = hint(&server, &bot, &target, &text).await {
                tracing::debug!(%error, "a hint could not be given");
            }
        });
    }
}

async fn hint(server: &Server, bot: &BotKey, target: &Target, text: &str) -> Result<()> {
    let named = |it: &&Arc<dyn angelia_platforms::Platform>| {
        *it.platform() == *bot.platform && *it.id() == *bot.bot && !it.is_own()
    };
    let Some(platform) = server.platforms().iter().find(named) else { return Ok(()) };
    if server.ports.records.notice(NoticeKind::Hint, bot, &target.chat_id, None).await? {
        let told = platform.tell(target, text).await;
        // What the provider refuses it would refuse again.
        if told.as_ref().is_err_and(|error| error.kind() == Kind::Unavailable) {
            server.ports.records.clear_notice(NoticeKind::Hint, bot, &target.chat_id).await?;
        }
        return told;
    }
    Ok(())
}
