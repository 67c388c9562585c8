//! Keeps what providers show of a bot's commands true: when what operators and gateways want
//! changes, it is registered, by the node that has the bot (docs/decisions/0050).

use crate::cluster::Cluster;
use crate::identities::{Identities, Snapshot};
use crate::ingress::Bots;
use crate::server::Parts;
use crate::supervise::Lifecycle;
use angelia_core::clock::{self, Mono};
use angelia_core::commands::{
    Change, CommandStore, Declared, Declaring, Elsewhere, Plan, Registered, form_of, plan, union, wanted,
};
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::lease::{Fenced, LeaseToken, Under};
use angelia_core::limit::{Backoff, SlidingWindow};
use angelia_core::records::Records;
use angelia_platforms::{BotCommands, FromGateways, Platform};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether something changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// And how often it is counted what all gateways declare, while there is always something new.
const COUNT_EVERY: Duration = Duration::from_secs(5);
/// A list that stays the same for so long is registered: gateways that restart together are one
/// change.
const QUIET: Duration = Duration::from_secs(3);
/// The pauses after a provider refused, or did not answer.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1800);
/// How long an exhausted share is waited for.
const SHARE_PAUSE: Duration = Duration::from_secs(300);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

angelia_contract::limits! {
    /// Gateways change their commands with a release. One that changes them all the time must not keep the provider busy for the others of its bot; the last list is registered when there is room.
    const REGISTRATIONS: usize = 12, count "registrations of a bot's commands at its provider in an hour";
    /// Discord lets an application make 200 in a day, whoever asks; the rest is for `angelia bot commands push`.
    const ADDED: usize = 150, count "commands newly registered for a bot in a day";
}

/// Registers commands.
pub(crate) struct Registrar {
    bots: Arc<Bots>,
    identities: Arc<Identities>,
    cluster: Arc<Cluster>,
    records: Arc<dyn Records>,
}

/// What gateways declare for a bot, the most important first.
pub(crate) fn declared(known: &Snapshot, bot: &BotKey) -> Vec<Declared> {
    let found = known.declaring(&bot.platform, &bot.bot);
    let declaring = found.iter().map(|(record, commands)| Declaring {
        tenant: &record.tenant,
        gateway: &record.gateway_id,
        instance: record.instance,
        commands,
    });
    union(&declaring.collect::<Vec<_>>())
}

/// How far the commands of one bot are, while it is this node's.
struct Progress {
    /// The line of the change feed up to which it was looked.
    looked_at: i64,
    /// What is wanted and not registered, and since when.
    pending: Option<(String, Mono)>,
    not_before: Mono,
    backoff: Backoff,
    registrations: SlidingWindow,
    added: SlidingWindow,
    /// Whether it was told that it does not work.
    told: bool,
}

impl Progress {
    fn new(now: Mono) -> Self {
        Self {
            looked_at: -1,
            pending: None,
            not_before: now,
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            registrations: SlidingWindow::new(REGISTRATIONS, HOUR),
            added: SlidingWindow::new(ADDED, DAY),
            told: false,
        }
    }

    /// Whether there is room for a registration that adds so many; takes it if there is.
    fn has_room(&mut self, adds: usize, now: Mono) -> bool {
        if self.added.count(now) + adds > ADDED || self.registrations.take(now).is_err() {
            return false;
        }
        for _ in 0..adds {
            let _ = self.added.take(now);
        }
        true
    }
}

/// A bot whose commands the server registers.
struct Tended<'a> {
    key: BotKey,
    bot: &'a dyn Platform,
    commands: &'a BotCommands,
    token: LeaseToken,
}

impl Registrar {
    pub(crate) fn new(parts: &Parts) -> Arc<Self> {
        Arc::new(Self {
            bots: parts.bots.clone(),
            identities: parts.identities.clone(),
            cluster: parts.cluster.clone(),
            records: parts.ports.records.clone(),
        })
    }

    /// Looks after all bots until the server stops.
    pub(crate) async fn keep(self: Arc<Self>, life: Arc<Lifecycle>) {
        let mut all: HashMap<usize, Progress> = HashMap::new();
        while life.pause(LOOK_EVERY).await {
            for (position, bot) in self.bots.all().iter().enumerate() {
                let Some(tended) = self.tended(&**bot) else {
                    all.remove(&position);
                    continue;
                };
                let progress = all.entry(position).or_insert_with(|| Progress::new(clock::mono()));
                if life.unless_stopped(self.look_after(&tended, progress)).await.is_none() {
                    return;
                }
            }
        }
    }

    /// A bot, if its commands are registered by the server and it is this node's.
    fn tended<'a>(&self, bot: &'a dyn Platform) -> Option<Tended<'a>> {
        let commands = bot.commands().filter(|it| it.from_gateways == FromGateways::Auto)?;
        let key = BotKey::new(bot.platform(), bot.id());
        let token = self.cluster.holds_bot(&key).filter(|_| self.cluster.is_current())?;
        Some(Tended { key, bot, commands, token })
    }

    async fn look_after(&self, tended: &Tended<'_>, progress: &mut Progress) {
        let (now, known_to) = (clock::mono(), self.identities.known_to());
        if now < progress.not_before || (progress.looked_at == known_to && progress.pending.is_none()) {
            return;
        }
        match self.settle(tended, progress, now).await {
            Ok(true) => {
                progress.looked_at = known_to;
                progress.pending = None;
                progress.backoff.reset();
                progress.told = false;
                progress.not_before = now + COUNT_EVERY;
            }
            Ok(false) => {}
            Err(error) => {
                progress.not_before = clock::mono() + progress.backoff.pause();
                if !std::mem::replace(&mut progress.told, true) {
                    let (platform, bot) = (tended.bot.platform(), tended.bot.id());
                    tracing::warn!(platform, bot, %error, "the commands of a bot could not be registered; it is tried again");
                }
            }
        }
    }

    /// Registers what is wanted, if it is not what was registered; `false` if that has to wait.
    async fn settle(&self, tended: &Tended<'_>, progress: &mut Progress, now: Mono) -> Result<bool> {
        let Tended { key, bot, commands, .. } = tended;
        let declared = declared(&self.identities.snapshot(), key);
        let before = self.records.registered(key).await?;
        if declared.is_empty() && before.is_none() {
            // What an operator pushed, or made elsewhere, is theirs until a gateway declares something.
            return Ok(true);
        }
        let wanted = wanted(&commands.own, &declared, &commands.rules);
        let form = form_of(wanted.commands.iter().map(|it| &it.command));
        let before = before.unwrap_or_default();
        if before.form == form {
            return Ok(true);
        }
        match &progress.pending {
            Some((pending, since)) if *pending == form && now.since(*since) >= QUIET => {}
            Some((pending, _)) if *pending == form => return Ok(false),
            _ => {
                progress.pending = Some((form, now));
                return Ok(false);
            }
        }
        let shown = bot.shown_commands().await?;
        let plan = plan(wanted, &shown, &before.names, Elsewhere::Stay, &commands.rules);
        if plan.is_needed() {
            if !progress.has_room(plan.added(), now) {
                progress.not_before = now + SHARE_PAUSE;
                return Ok(false);
            }
            bot.register_commands(&plan).await?;
            tell(&**bot, &plan);
        }
        let under = Under::bot(key, tended.token);
        let records = Fenced::new(self.records.clone(), under);
        records.note_registered(key, Registered::of(&plan.wanted(), form)).await?;
        Ok(true)
    }
}

/// What an operator reads of it.
fn tell(bot: &dyn Platform, plan: &Plan) {
    let count = |change| plan.commands.iter().filter(|it| it.change == change).count();
    tracing::info!(
        platform = bot.platform(),
        bot = bot.id(),
        added = count(Change::Added),
        changed = count(Change::Changed),
        removed = plan.removed.len(),
        left_out = plan.left_out.len(),
        "the commands of a bot were registered; angelia bot commands shows them"
    );
}
