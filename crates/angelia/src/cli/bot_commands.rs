//! `angelia bot commands`: the difference between what a provider shows and what it should.

use super::bot::{chosen, named, patiently, scratch_store};
use super::request::Answer;
use crate::config::{Bot, Config};
use crate::files::Scratch;
use crate::remote::Remote;
use crate::show::{self, BotCommands, Commands};
use angelia_connector::admin::api;
use angelia_connector::admin::types::{CommandsOf, DeclaredCommands, RegisteredCommands};
use angelia_core::commands::{Elsewhere, Plan, form_of, plan, wanted};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::ports::Ports;
use angelia_platforms::{FromGateways, Platform};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum CommandsCommand {
    /// Registers what should be there, and takes everything else away.
    ///
    /// Those of the configuration, and those that gateways declare. It shows
    /// what it changes. Commands that came from elsewhere, which the server
    /// itself leaves alone, go too. People see them when they type a slash; an
    /// open Discord window may have to be reloaded first.
    #[command(after_help = "Examples:\n  angelia bot commands push\n  angelia bot commands push main")]
    Push {
        /// One bot: its name, platform:name, or its id; without it every bot that has commands.
        name: Option<String>,
    },
    /// Shows the commands, and what would be added, changed and removed.
    ///
    /// A plus marks what is not registered yet, a tilde what is registered
    /// otherwise, a minus what is registered and not wanted any more. Behind
    /// each stands who wants it.
    #[command(visible_alias = "diff")]
    #[command(after_help = "Examples:\n  angelia bot commands show\n  angelia bot commands show main --json")]
    Show {
        /// One bot: its name, platform:name, or its id; without it every bot that has commands.
        name: Option<String>,
    },
}

/// What a bot has, and should have.
struct Found {
    plan: Plan,
    /// What tells what is wanted from other lists.
    form: String,
}

/// Shows what differs, and registers it if that is wanted.
pub(super) async fn commands(config: &Config, command: Option<CommandsCommand>, as_json: bool) -> Result<()> {
    let (name, push) = match &command {
        Some(CommandsCommand::Push { name }) => (name.as_deref(), true),
        Some(CommandsCommand::Show { name }) => (name.as_deref(), false),
        None => (None, false),
    };
    let bots = with_commands(config, name)?;
    let remote = server(config).await?;
    let scratch = Scratch::new("commands");
    let ports = scratch_store(&scratch)?;
    let mut rows = Vec::new();
    for bot in bots {
        let found = compare(bot, remote.as_ref(), &ports, push, as_json).await.map_err(|error| {
            let message = format!("the commands of the bot {}: {error}", bot.name());
            Error::new(error.kind(), message).caused_by(error)
        })?;
        if push && let Some(remote) = &remote {
            let names = found.plan.wanted().into_iter().map(|it| it.name).collect();
            let done = RegisteredCommands { bot: key(bot), names, form: found.form };
            remote.call(api::NOTE_COMMANDS.ask(&done)?).await?.read?;
        }
        let Plan { commands, removed, elsewhere, left_out, .. } = found.plan;
        rows.push(BotCommands { bot: named(bot), commands, removed, elsewhere, left_out });
    }
    Answer::own(&Commands { pushed: push, bots: rows }, show::commands)?.show(as_json)
}

/// Who knows what gateways declare; nobody where no server ever ran.
async fn server(config: &Config) -> Result<Option<Remote>> {
    match Remote::open(config, false).await {
        Ok(remote) => Ok(Some(remote)),
        Err(error) if error.kind() == Kind::Unavailable && !config.store.is_shared() => Ok(None),
        Err(error) => Err(error),
    }
}

fn key(bot: &Bot) -> String {
    format!("{}:{}", bot.platform(), bot.id)
}

async fn compare(
    bot: &Bot,
    remote: Option<&Remote>,
    ports: &Ports,
    push: bool,
    as_json: bool,
) -> Result<Found> {
    let DeclaredCommands { declared, registered } = match remote {
        Some(remote) => remote.call(api::COMMANDS.ask(&CommandsOf { bot: key(bot) })?).await?.read?,
        None => DeclaredCommands::default(),
    };
    patiently(bot, ports, as_json, async |platform: &dyn Platform| {
        let of_bot = platform.commands().ok_or_else(|| Error::invalid("this bot has no commands"))?;
        let declared = if of_bot.from_gateways == FromGateways::Ignore { &[] } else { &declared[..] };
        let wanted = wanted(&of_bot.own, declared, &of_bot.rules);
        let form = form_of(wanted.commands.iter().map(|it| &it.command));
        let shown = platform.shown_commands().await?;
        let others = if push { Elsewhere::Go } else { Elsewhere::Stay };
        let plan = plan(wanted, &shown, &registered, others, &of_bot.rules);
        if push && plan.is_needed() {
            platform.register_commands(&plan).await?;
        }
        Ok(Found { plan, form })
    })
    .await
}

/// The bots that are meant.
fn with_commands<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a Bot>> {
    let meant = chosen(config, name)?;
    let bots: Vec<&Bot> = meant.into_iter().filter(|bot| bot.block.has_commands).collect();
    if bots.is_empty() {
        return Err(Error::invalid(
            "only Discord and Telegram bots have commands, and none is meant here; see: angelia bot list",
        ));
    }
    Ok(bots)
}
