//! What people are told by the connector itself: that their agent is away and the message is
//! kept, that messages were lost, that an answer does not come.

use crate::egress::Egress;
use crate::identities::Identities;
use crate::ingress::Bots;
use crate::relay::Sessions;
use crate::server::Parts;
use crate::supervise::Lifecycle;
use angelia_core::directory::ChatKind;
use angelia_core::egress::{Sender, Target};
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::ports::Ports;
use angelia_core::store::{NoticeKind, NoticeStore, Overdue};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How long a message waits before its writer is told that the agent is away.
const AWAY_AFTER: Duration = Duration::from_secs(60);
/// How often it is looked for such messages.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Messages of one inbox that are looked at in one go.
const PAGE: usize = 256;

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

/// Tells people. Its loops run until the server stops.
pub(crate) struct Notifier {
    pub(super) ports: Ports,
    pub(super) identities: Arc<Identities>,
    sessions: Arc<Sessions>,
    pub(super) bots: Arc<Bots>,
    pub(super) egress: Arc<Egress>,
    pub(super) notices: Notices,
}

impl Notifier {
    pub(crate) fn new(parts: &Parts, egress: Arc<Egress>, notices: Notices) -> Arc<Self> {
        Arc::new(Self {
            ports: parts.ports.clone(),
            identities: parts.identities.clone(),
            sessions: parts.sessions.clone(),
            bots: parts.bots.clone(),
            egress,
            notices,
        })
    }

    /// Tells people whose messages wait for long that their agent is away.
    pub(crate) async fn watch_waiting(self: Arc<Self>, life: Arc<Lifecycle>) {
        if self.notices.away == Away::Never {
            return;
        }
        let mut watch = Watch { notifier: &self, seen: HashMap::new(), told: HashMap::new() };
        match self.ports.records.noticed().await {
            // Of which message is not known any more: all that waits may be older.
            Ok(told) => watch.told.extend(told.into_iter().map(|instance| (instance, Seq(i64::MAX)))),
            Err(error) => tracing::warn!(%error, "earlier notices are not known"),
        }
        while life.pause(self.look_every()).await {
            if let Err(error) = watch.look().await {
                tracing::debug!(%error, "messages that wait could not be looked for");
            }
        }
    }

    pub(super) fn look_every(&self) -> Duration {
        LOOK_EVERY.min(self.notices.away_after)
    }
}

struct Watch<'a> {
    notifier: &'a Notifier,
    /// Up to where each inbox was looked at: a message is looked at once.
    seen: HashMap<InstanceId, Seq>,
    /// Instances with chats that were told, and the first message that was told of.
    told: HashMap<InstanceId, Seq>,
}

impl Watch<'_> {
    async fn look(&mut self) -> Result<()> {
        let Notifier { ports, sessions, .. } = self.notifier;
        let waiting: BTreeSet<InstanceId> = ports.log.waiting().await?.into_iter().collect();
        self.seen.retain(|instance, _| waiting.contains(instance));
        for (instance, of) in self.told.clone() {
            if !waiting.contains(&instance) || self.was_here_since(instance, of).await? {
                ports.records.end_notices(instance).await?;
                self.told.remove(&instance);
            }
        }
        for instance in waiting {
            if !sessions.is_live(instance) {
                self.look_at(instance).await?;
            }
        }
        Ok(())
    }

    /// Whether an agent took what was told of: then the next outage is another
    /// one, also if something waits again by the time somebody looks.
    async fn was_here_since(&self, instance: InstanceId, of: Seq) -> Result<bool> {
        let inboxes = &self.notifier.ports.inboxes;
        let oldest = inboxes.overdue(instance, Seq(0), Duration::ZERO, 1).await?;
        Ok(oldest.first().is_some_and(|oldest| oldest.seq > of))
    }

    async fn look_at(&mut self, instance: InstanceId) -> Result<()> {
        let waited = self.notifier.notices.away_after;
        let after = self.seen.get(&instance).copied().unwrap_or(Seq(0));
        for overdue in self.notifier.ports.inboxes.overdue(instance, after, waited, PAGE).await? {
            self.tell(instance, &overdue).await?;
            self.seen.insert(instance, overdue.seq);
        }
        Ok(())
    }

    async fn tell(&mut self, instance: InstanceId, overdue: &Overdue) -> Result<()> {
        let Notifier { ports, identities, bots, egress, notices, .. } = self.notifier;
        let wanted = notices.away == Away::All || overdue.kind == Some(ChatKind::Dm);
        let tenant = identities.now().tenant_of(instance).filter(|_| wanted);
        let (Some(tenant), Some(bot)) = (tenant, bots.position_of_others(&overdue.bot)) else {
            return Ok(());
        };
        let noticed =
            ports.records.notice(NoticeKind::Away, &overdue.bot, &overdue.chat_id, Some(instance)).await?;
        if noticed {
            self.told.entry(instance).or_insert(overdue.seq);
            let target = Target { chat_id: overdue.chat_id.clone(), thread_id: overdue.thread_id.clone() };
            let owner = Sender { tenant: &tenant, instance };
            egress.say(owner, bot, target, notices.away_text.clone(), overdue.message_id.clone());
        }
        Ok(())
    }
}
