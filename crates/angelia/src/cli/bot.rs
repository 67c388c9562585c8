//! `angelia bot`: the identities on chat platforms, how they are and what they can do.

use super::bot_commands::CommandsCommand;
use super::request::Answer;
use crate::bots;
use crate::config::{Bot, Config};
use crate::files::Scratch;
use crate::remote::Remote;
use crate::show::{self, BotList, CheckedBot, Checkups, ListedBot, NamedBot};
use angelia_connector::admin::api;
use angelia_connector::admin::types::{Nothing, OfBot};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::ports::Ports;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use angelia_platforms::{Checkup, Platform};
use clap::Subcommand;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// A check that takes longer than this is told of while it lasts.
const QUIET_FOR: Duration = Duration::from_secs(2);
/// A check that takes longer than this has failed: a provider answers within
/// seconds, and a rate limit that lasts is worth knowing too.
const CHECK_WITHIN: Duration = Duration::from_secs(90);

#[derive(Debug, Subcommand)]
pub(super) enum BotCommand {
    /// Lists the bots, and how they are.
    ///
    /// A bot is "up" if its platform said something not long ago: a message, or
    /// the answer to a heartbeat. "down" tries again by itself, "stopped" waits
    /// for you; what is wrong and what to do stands below the table. Stretches
    /// that could not be read, and updates in quarantine, are listed there too.
    #[command(after_help = "Examples:\n  angelia bot list\n  angelia bot list --json")]
    List,
    /// Finds out what the configured bots can do, and what is missing.
    ///
    /// Asks the providers with the tokens of the configuration: whose they are,
    /// what the bots may see (Discord's intents and permissions, Telegram's
    /// privacy mode) and what to change for more. It reads no messages, writes
    /// none and takes none from a server that runs. Run it where the server's
    /// secrets are: with the same environment, as the same user.
    ///
    /// Exit code 1 if a bot cannot work; what works with less than it could is no failure.
    #[command(after_help = "Examples:\n  angelia bot check\n  angelia bot check main\n  \
        angelia bot check telegram:main")]
    Check {
        /// One bot: its name, platform:name, or its id; without it all of them.
        name: Option<String>,
    },
    /// Slash commands: what people see, what they should, and why.
    ///
    /// They are those of the bot's `commands` in the configuration, by default
    /// /ask, /new, /stop, /status and /help, and those that the gateways behind
    /// the bot declare. The server registers them when they change, unless
    /// `gateway_commands` says otherwise. Without a subcommand: show.
    #[command(after_help = "Examples:\n  angelia bot commands\n  angelia bot commands push main")]
    Commands {
        #[command(subcommand)]
        command: Option<CommandsCommand>,
    },
    /// Updates of providers that could not be read, kept sealed for a month.
    ///
    /// One that cannot be read stops nobody: it is put aside, and what comes
    /// after it is delivered. A few are a provider's novelty; many are a reason
    /// to look for a newer release, or to report what "show" prints.
    #[command(after_help = "Examples:\n  angelia bot quarantine list\n  angelia bot quarantine show 17")]
    Quarantine {
        #[command(subcommand)]
        command: Option<QuarantineCommand>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum QuarantineCommand {
    /// Lists them, without what is in them.
    #[command(after_help = "Examples:\n  angelia bot quarantine list\n  \
        angelia bot quarantine list --bot main")]
    List {
        /// Only of this bot: its name, its id, or platform:id.
        #[arg(long, value_name = "NAME")]
        bot: Option<String>,
    },
    /// Opens one and shows it as the provider sent it.
    ///
    /// It may hold what people wrote, so it is written down that it was looked
    /// at: angelia audit list.
    #[command(after_help = "Example:\n  angelia bot quarantine show 17")]
    Show {
        /// Its number.
        id: String,
    },
    /// Throws one away for good, or all of them.
    #[command(after_help = "Example:\n  angelia bot quarantine purge 17")]
    Purge {
        /// Its number; without it all.
        id: Option<String>,
    },
}

pub(super) async fn quarantine(remote: &Remote, command: Option<QuarantineCommand>) -> Result<Answer> {
    match command.unwrap_or(QuarantineCommand::List { bot: None }) {
        QuarantineCommand::List { bot } => {
            Answer::of(remote, api::QUARANTINE.ask(&OfBot { bot }), show::quarantine).await
        }
        QuarantineCommand::Show { id } => {
            Answer::of(remote, api::QUARANTINED.ask(&id, &Nothing {}), show::quarantined).await
        }
        QuarantineCommand::Purge { id: Some(id) } => {
            Answer::of(remote, api::PURGE_QUARANTINED.ask(&id, &Nothing {}), show::purged).await
        }
        QuarantineCommand::Purge { id: None } => {
            Answer::of(remote, api::PURGE_QUARANTINE.ask(&Nothing {}), show::purged).await
        }
    }
}

/// Lists the bots of the running server, and those it does not have yet; with
/// no server running, those that are configured.
pub(super) async fn list(config: &Config, running: Option<Remote>, as_json: bool) -> Result<()> {
    let (served, not_asked) = match &running {
        Some(remote) => {
            let told = remote.call(api::BOTS.ask(&Nothing {})?).await?.read?;
            (told.bots, told.not_asked)
        }
        None => Default::default(),
    };
    let is_served =
        |bot: &&Bot| served.iter().any(|known| known.platform == bot.platform() && known.id == *bot.id);
    let unserved = config.bots.iter().filter(|bot| !is_served(bot));
    let unserved: Vec<ListedBot> =
        unserved.map(|bot| ListedBot::Unserved { bot: named(bot), health: (), served: false }).collect();
    let bots = served.into_iter().map(ListedBot::Served).chain(unserved).collect();
    Answer::own(&BotList { bots, running: running.is_some(), not_asked }, show::bots)?.show(as_json)
}

pub(super) fn named(bot: &Bot) -> NamedBot {
    NamedBot { platform: bot.platform().into(), id: bot.id.to_string(), name: bot.name().into() }
}

/// Checks one bot, or all of them.
pub(super) async fn check(config: &Config, name: Option<&str>, as_json: bool) -> Result<()> {
    let bots = chosen(config, name)?;
    let public_url = config.server.public_url(config.server.listen);
    tokio::select! {
        rows = check_all(&bots, &public_url, as_json) => report(rows?, as_json),
        _ = tokio::signal::ctrl_c() => Err(Error::internal("the check was broken off")),
    }
}

pub(super) fn chosen<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a Bot>> {
    let Some(name) = name else { return Ok(config.bots.iter().collect()) };
    let is_meant = |bot: &&Bot| {
        let full = name.split_once(':');
        full == Some((bot.platform(), bot.name())) || name == bot.name() || name == bot.id
    };
    let bots: Vec<&Bot> = config.bots.iter().filter(is_meant).collect();
    if bots.is_empty() {
        let known: Vec<&str> = config.bots.iter().map(Bot::name).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        return Err(Error::not_found(format!("no bot {name:?} is configured; there is: {known}")));
    }
    Ok(bots)
}

/// A store to be thrown away. What is learnt is for nobody but whoever asked, and
/// a running server holds the data directory.
pub(super) fn scratch_store(scratch: &Scratch) -> Result<Ports> {
    let bus = Arc::new(LocalBus::default());
    Ok(Ports::of(&Arc::new(Sqlite::open(scratch.path(), Default::default(), bus)?)))
}

async fn check_all(bots: &[&Bot], public_url: &str, as_json: bool) -> Result<Vec<CheckedBot>> {
    let scratch = Scratch::new("check");
    let ports = scratch_store(&scratch)?;
    let mut rows = Vec::new();
    for bot in bots {
        let mut checkup = Checkup::default();
        let check = async |platform: &dyn Platform| platform.check(public_url).await;
        match patiently(bot, &ports, as_json, check).await {
            Ok(found) => checkup = found,
            Err(error) => checkup.bad(error.to_string(), next_step(bot, &error)),
        }
        rows.push(CheckedBot { bot: named(bot), usable: checkup.is_usable(), checkup });
    }
    Ok(rows)
}

/// What to do about a check that could not even be made.
fn next_step(bot: &Bot, error: &Error) -> String {
    match (error.kind(), &bot.api_url) {
        (Kind::Unavailable, Some(url)) => format!("see that {url} answers this machine, and check again"),
        (Kind::Unavailable, None) => {
            let platform = bot.platform();
            format!("see that this machine reaches {platform} over https, and check again")
        }
        _ => "correct that and check again".into(),
    }
}

/// Has a bot asked something, and says what is waited for if it takes long.
pub(super) async fn patiently<T>(
    bot: &Bot,
    ports: &Ports,
    as_json: bool,
    ask: impl AsyncFnOnce(&dyn Platform) -> Result<T>,
) -> Result<T> {
    let platform = bots::platform(bot, ports)?;
    let mut check = std::pin::pin!(tokio::time::timeout(CHECK_WITHIN, ask(&*platform)));
    let found = tokio::select! {
        found = &mut check => found,
        () = tokio::time::sleep(QUIET_FOR) => {
            if !as_json {
                let (platform, name) = (bot.platform(), bot.name());
                // What goes wrong with the telling is no reason to stop.
                let _ = writeln!(std::io::stderr(), "asking {platform} about {name} …");
            }
            check.await
        }
    };
    let slow = || Error::unavailable(format!("there was no answer within {} s", CHECK_WITHIN.as_secs()));
    found.unwrap_or_else(|_| Err(slow()))
}

/// Shows what was found; fails if a bot cannot work.
fn report(bots: Vec<CheckedBot>, as_json: bool) -> Result<()> {
    let unusable = bots.iter().filter(|bot| !bot.usable).count();
    let count = bots.len();
    Answer::own(&Checkups { bots }, show::checkups)?.show(as_json)?;
    match unusable {
        0 => Ok(()),
        _ => Err(Error::internal(format!(
            "{unusable} of {count} bots cannot work; what to do stands below each"
        ))),
    }
}
