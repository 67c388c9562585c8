//! What people are told by the connector itself: that their agent is away and the message is
//! kept, that messages were lost, that an answer does not come.

use crate::cluster::{Chore, Cluster, Presence};
use crate::egress::Egress;
use crate::identities::Identities;
use crate::ingress::Bots;
use crate::notices::{Away, Notices};
use crate::relay::Sessions;
use crate::server::Parts;
use crate::supervise::Lifecycle;
use angelia_core::clock::{self, Mono};
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::egress::{Goal, Sender, Target};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::own_words::OwnWords;
use angelia_core::ports::Ports;
use angelia_core::records::Records;
use angelia_core::store::{NoticeKind, NoticeStore, Overdue, Untold, VaultStore};
use angelia_core::vault::{Capability, CapabilityId, Deferral, NOTICE_BEFORE, Use, Way};
use futures_util::stream::{self, StreamExt};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked for such messages.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Messages of one inbox that are looked at in one go.
const PAGE: usize = 256;
/// Chats told of their losses in one go; the others in the next.
const LOSSES: usize = 64;
/// How often it is looked for people to tell. A read of an index, and an outage
/// of the provider leaves a dozen attempts.
const LOOK_FOR_UNANSWERED: Duration = Duration::from_secs(2);
/// People looked at in one go.
const UNANSWERED: usize = 256;
/// People told at the same time: thousands may have asked in one second, and
/// all of them have to be told within [`NOTICE_BEFORE`].
const AT_ONCE: usize = 64;
/// How long a provider gets. Others wait behind it.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// Tells people. Its loops run until the server stops.
pub(crate) struct Notifier {
    ports: Ports,
    identities: Arc<Identities>,
    sessions: Arc<Sessions>,
    presence: Arc<Presence>,
    cluster: Arc<Cluster>,
    bots: Arc<Bots>,
    egress: Arc<Egress>,
    notices: Notices,
}

impl Notifier {
    pub(crate) fn new(parts: &Parts, egress: Arc<Egress>, notices: Notices) -> Arc<Self> {
        Arc::new(Self {
            ports: parts.ports.clone(),
            identities: parts.identities.clone(),
            sessions: parts.sessions.clone(),
            presence: parts.presence.clone(),
            cluster: parts.cluster.clone(),
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
        let mut watch = None;
        while life.pause(self.look_every()).await {
            if !self.cluster.does(Chore::Notices) {
                watch = None;
                continue;
            }
            if watch.is_none() {
                watch = Some(Watch::begin(&self).await);
            }
            if let Some(watch) = &mut watch
                && let Err(error) = watch.look().await
            {
                tracing::debug!(%error, "messages that wait could not be looked for");
            }
        }
    }

    /// Tells chats that messages of theirs were dropped because too much waited. Agents see
    /// the same as a gap of their inbox.
    pub(crate) async fn watch_losses(self: Arc<Self>, life: Arc<Lifecycle>) {
        let mut told = None;
        while life.pause(self.look_every()).await {
            if !self.cluster.does(Chore::Notices) {
                told = None;
                continue;
            }
            if told.is_none() {
                told = Some(self.told_earlier().await.into_iter().collect());
            }
            if let Some(told) = &mut told
                && let Err(error) = self.tell_losses(told).await
            {
                tracing::debug!(%error, "who lost messages could not be told");
            }
        }
    }

    async fn tell_losses(&self, told: &mut BTreeSet<InstanceId>) -> Result<()> {
        for untold in self.ports.records.untold(LOSSES).await? {
            let bot = self.bots.position(&BotKey::new(&untold.platform, &untold.bot));
            if self.tell_once(NoticeKind::Lost, bot, &untold, OwnWords::Lost).await? {
                told.insert(untold.instance);
            }
            self.written()?.told(&untold).await?;
        }
        // An inbox that was emptied since is another story: the next loss is told again.
        for instance in told.clone() {
            if self.ports.log.usage(instance).await?.entries == 0 {
                self.written()?.end_notices(instance).await?;
                told.remove(&instance);
            }
        }
        Ok(())
    }

    /// Tells people whose command or press nobody answers. What is due is in the store, so
    /// that a restart forgets nobody.
    pub(crate) async fn watch_unanswered(self: Arc<Self>, life: Arc<Lifecycle>) {
        loop {
            if self.cluster.does(Chore::Notices)
                && let Err(error) = self.tell_unanswered().await
            {
                tracing::debug!(%error, "interactions nobody answered could not be looked for");
            }
            if !life.pause(LOOK_FOR_UNANSWERED).await {
                return;
            }
        }
    }

    /// Tells everybody whose time is nearly over, once; who cannot be told is tried
    /// again when it is looked the next time.
    async fn tell_unanswered(&self) -> Result<()> {
        let mut after = CapabilityId(0);
        loop {
            let now = clock::wall();
            let due = self.ports.records.unanswered(after, now, now.after(NOTICE_BEFORE), UNANSWERED).await?;
            let (count, last) = (due.len(), due.last().map(|it| it.id));
            stream::iter(due).for_each_concurrent(AT_ONCE, |capability| self.settle(capability)).await;
            match last {
                Some(last) if count == UNANSWERED => after = last,
                _ => return Ok(()),
            }
        }
    }

    async fn settle(&self, capability: Capability) {
        if let Err(error) = self.tell_one(&capability).await {
            tracing::debug!(%error, bot = %capability.bot, "somebody who waits could not be told");
        }
    }

    async fn tell_one(&self, capability: &Capability) -> Result<()> {
        // An answer that is accepted from here on is a message of its own.
        if !self.written()?.begin_notice(capability.id).await? {
            return Ok(());
        }
        let way = match capability.deferral {
            Deferral::Message => Way::Original,
            Deferral::Update => Way::Further,
        };
        let used = Use { capability: capability.id, way };
        let (answer, bot) =
            (self.egress.open(used, |_| true).await?, self.bots.position(&capability.bot_key()));
        if let (Some(answer), Some(bot)) = (answer, bot) {
            let language = self.egress.language(bot, &Target::chat(&*capability.chat_id)).await;
            let awaits_first = self.identities.now().awaits_first(capability.instance);
            let words = if awaits_first { OwnWords::NoAgentYet } else { OwnWords::Unanswered };
            let name = self.identities.now().display_name(capability.instance);
            let text = self.notices.text(words, language, name.as_deref());
            let call = self.bots[bot].tell_waiting(&answer, &text);
            let told = match tokio::time::timeout(TOLD_WITHIN, call).await {
                Ok(told) => told,
                // The same words in the same place do no harm; as messages they would come twice.
                Err(_) if way == Way::Original => {
                    Err(Error::unavailable("the platform did not answer in time"))
                }
                Err(_) => Ok(()),
            };
            match told {
                Err(error) if error.kind() == Kind::Unavailable => return Err(error),
                // What the provider refuses it would refuse again.
                Err(error) => tracing::debug!(%error, "somebody who waits was not told"),
                Ok(()) => {}
            }
        }
        self.written()?.end_notice(capability.id).await
    }

    /// Tells a chat something through the bot at a position, on behalf of its instance. Only the
    /// first time: answers whether it was told now.
    async fn tell_once(
        &self,
        kind: NoticeKind,
        at: Option<usize>,
        of: &Untold,
        words: OwnWords,
    ) -> Result<bool> {
        let Untold { instance, platform, bot, chat_id, thread_id, message_id } = of;
        let tenant = self.identities.now().tenant_of(*instance);
        let (Some(tenant), Some(at)) = (tenant, at) else { return Ok(false) };
        if !self.written()?.notice(kind, &BotKey::new(platform, bot), chat_id, Some(*instance)).await? {
            return Ok(false);
        }
        let target = Target { chat_id: chat_id.clone(), thread_id: thread_id.clone() };
        let owner = Sender { tenant: &tenant, instance: *instance };
        let text = self.egress.own_words(at, &target, *instance, words).await;
        self.egress.say(owner, Goal { bot: at, target }, text, message_id.clone());
        Ok(true)
    }

    /// Where is written who was told, for as long as that is this node's to do.
    fn written(&self) -> Result<Arc<dyn Records>> {
        self.cluster.records_for(Chore::Notices)
    }

    /// Instances whose chats an earlier process told something.
    async fn told_earlier(&self) -> Vec<InstanceId> {
        let noticed = self.ports.records.noticed().await;
        noticed
            .inspect_err(|error| tracing::warn!(%error, "earlier notices are not known"))
            .unwrap_or_default()
    }

    fn look_every(&self) -> Duration {
        LOOK_EVERY.min(self.notices.away_after)
    }
}

struct Watch<'a> {
    notifier: &'a Notifier,
    /// Up to where each inbox was looked at: a message is looked at once.
    seen: HashMap<InstanceId, Seq>,
    /// Instances with chats that were told, and the first message that was told of.
    told: HashMap<InstanceId, Seq>,
    /// Since when agents of other nodes are seen to be gone.
    absent: HashMap<InstanceId, Mono>,
}

impl<'a> Watch<'a> {
    async fn begin(notifier: &'a Notifier) -> Self {
        // Of which message is not known any more: all that waits may be older.
        let told = notifier.told_earlier().await.into_iter().map(|instance| (instance, Seq(i64::MAX)));
        Self { notifier, seen: HashMap::new(), told: told.collect(), absent: HashMap::new() }
    }

    async fn look(&mut self) -> Result<()> {
        let Notifier { ports, presence, .. } = self.notifier;
        let waiting: BTreeSet<InstanceId> = ports.log.waiting().await?.into_iter().collect();
        self.seen.retain(|instance, _| waiting.contains(instance));
        for (instance, of) in self.told.clone() {
            if !waiting.contains(&instance) || self.was_here_since(instance, of).await? {
                self.notifier.written()?.end_notices(instance).await?;
                self.told.remove(&instance);
            }
        }
        let there = presence.of(&waiting.iter().copied().collect::<Vec<_>>()).await?;
        self.absent.retain(|instance, _| waiting.contains(instance) && !there.contains(instance));
        for instance in waiting {
            if !there.contains(&instance) && self.is_away(instance) {
                self.look_at(instance).await?;
            }
        }
        Ok(())
    }

    /// Whether its agent is gone for so long that people are told: a line may have waited for
    /// the end of a turn before.
    fn is_away(&mut self, instance: InstanceId) -> bool {
        let now = clock::mono();
        let left_at = if self.notifier.cluster.is_shared() {
            // It may just be on its way from one node to another.
            Some(*self.absent.entry(instance).or_insert(now))
        } else {
            self.notifier.sessions.standing(instance).left_at
        };
        left_at.is_none_or(|at| now.since(at) >= self.notifier.notices.away_after)
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
            let seq = overdue.seq;
            self.tell(instance, overdue).await?;
            self.seen.insert(instance, seq);
        }
        Ok(())
    }

    async fn tell(&mut self, instance: InstanceId, overdue: Overdue) -> Result<()> {
        let Notifier { bots, notices, .. } = self.notifier;
        let Overdue { seq, bot, chat_id, thread_id, message_id, kind } = overdue;
        // Whoever may come back soon is not announced to everybody; what was never there is.
        let awaits_first = self.notifier.identities.now().awaits_first(instance);
        let wanted = awaits_first || notices.away == Away::All || kind == Some(ChatKind::Dm);
        let at = bots.position_of_others(&bot).filter(|_| wanted);
        let (platform, bot) = (bot.platform.to_string(), bot.bot.to_string());
        let of = Untold { instance, platform, bot, chat_id, thread_id, message_id };
        let words = if awaits_first { OwnWords::NoAgentYet } else { OwnWords::Away };
        if self.notifier.tell_once(NoticeKind::Away, at, &of, words).await? {
            self.told.entry(instance).or_insert(seq);
        }
        Ok(())
    }
}
