//! Keeps what providers show of a bot's commands true: when what operators and gateways want
//! changes, it is registered, by the node that has the bot (docs/decisions/0050).

mod progress;

use crate::cluster::Cluster;
use crate::identities::{Identities, Snapshot};
use crate::ingress::Bots;
use crate::server::Parts;
use crate::supervise::Lifecycle;
use angelia_core::clock::{self, Mono};
use angelia_core::commands::{
    Change, CommandStore, Declared, Declaring, Elsewhere, Plan, Registered, Shown, form_of, plan, union,
    wanted,
};
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::lease::{Fenced, LeaseToken, Under};
use angelia_core::records::Records;
use angelia_platforms::{BotCommands, FromGateways, Platform};
use progress::Progress;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether something changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// And how often it is counted what all gateways declare, while there is always something new.
const COUNT_EVERY: Duration = Duration::from_secs(5);
/// The pauses after a provider refused, or did not answer.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1800);
/// How long an exhausted share is waited for.
const SHARE_PAUSE: Duration = Duration::from_secs(300);
/// Names of commands that a line of the log holds.
const MAX_TOLD: usize = 20;

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
                (progress.told, progress.told_share) = (false, false);
                progress.not_before = now + COUNT_EVERY;
            }
            // Whoever put it off said until when.
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
        if !progress.is_due(&form, now) {
            return Ok(false);
        }
        let shown = bot.shown_commands().await?;
        let mut plan = plan(wanted, &shown, &before.names, Elsewhere::Stay, &commands.rules);
        let later = plan.add_at_most(progress.room(&shown, now));
        if plan.is_needed() {
            if progress.registrations.take(now).is_err() {
                return Ok(put_off(*bot, progress, now));
            }
            // Kept before it is done: what nobody noted would be taken for another program's.
            self.note(tended, claim(&before, &shown, &plan)).await?;
            plan = register(*bot, progress, plan, &shown, now).await?;
            tell(*bot, &plan);
        }
        if later == 0 {
            self.note(tended, Registered::of(&plan.wanted(), form)).await?;
            return Ok(true);
        }
        if plan.is_needed() {
            self.note(tended, Registered::of(&plan.wanted(), UNSETTLED.into())).await?;
        }
        Ok(put_off(*bot, progress, now))
    }

    async fn note(&self, tended: &Tended<'_>, registered: Registered) -> Result<()> {
        let records = Fenced::new(self.records.clone(), Under::bot(&tended.key, tended.token));
        records.note_registered(&tended.key, registered).await
    }
}

/// What no list is: there is something to do, whatever is wanted.
const UNSETTLED: &str = "";

/// What is the server's while a plan is being registered, of which nobody knows how it ends.
fn claim(before: &Registered, shown: &[Shown], plan: &Plan) -> Registered {
    let planned = plan.wanted();
    let is_there = |name: &String| {
        let mut typed = shown.iter().filter_map(|it| it.command.as_ref());
        typed.any(|it| it.name == *name) && planned.iter().all(|it| it.name != *name)
    };
    let mut names: Vec<String> = before.names.iter().filter(|name| is_there(name)).cloned().collect();
    names.extend(planned.iter().map(|it| it.name.clone()));
    Registered { names, form: UNSETTLED.into() }
}

/// Registers a plan; answers what was registered of it. Where the provider refuses it, nobody's
/// manifest keeps it from showing what the operator wants, and what it showed before.
async fn register(
    bot: &dyn Platform,
    progress: &mut Progress,
    plan: Plan,
    shown: &[Shown],
    now: Mono,
) -> Result<Plan> {
    progress.tries(&plan);
    let Err(error) = bot.register_commands(&plan).await else {
        progress.worked(now);
        return Ok(plan);
    };
    let careful = plan.without_news(shown);
    // Only what is refused for what it says can be better without it.
    if !matches!(error.kind(), Kind::Forbidden | Kind::Invalid) || careful == plan {
        return Err(error);
    }
    let refused: Vec<&str> = news(&plan).take(MAX_TOLD).collect();
    let refused = refused.join(", ");
    if !careful.is_needed() || progress.registrations.take(now).is_err() {
        let message = format!("{error}; what was shown before stays. New of gateways were: {refused}");
        return Err(Error::new(error.kind(), message).caused_by(error));
    }
    progress.tries(&careful);
    bot.register_commands(&careful).await?;
    progress.worked(now);
    let (platform, bot) = (bot.platform(), bot.id());
    tracing::warn!(platform, bot, %error, refused, "the commands of a bot were refused, and registered without what is new of its gateways until they change");
    Ok(careful)
}

/// What gateways want that is not shown so.
fn news(plan: &Plan) -> impl Iterator<Item = &str> {
    let new = plan.commands.iter().filter(|it| !it.listed.own && it.change != Change::Same);
    new.map(|it| it.listed.command.name.as_str())
}

/// A list waits for its share, and is not done.
fn put_off(bot: &dyn Platform, progress: &mut Progress, now: Mono) -> bool {
    progress.not_before = now + SHARE_PAUSE;
    if !std::mem::replace(&mut progress.told_share, true) {
        let (platform, bot) = (bot.platform(), bot.id());
        tracing::warn!(
            platform,
            bot,
            an_hour = REGISTRATIONS,
            new_a_day = ADDED,
            "the commands of a bot change so often that some wait to be registered; angelia bot commands shows them"
        );
    }
    false
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
