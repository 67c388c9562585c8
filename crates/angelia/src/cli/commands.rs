//! `angelia bot commands`: what a platform shows to whoever types a slash.

use super::answer::Answer;
use super::bot::{chosen, named, patiently, scratch_store};
use crate::config::{Bot, Config};
use crate::files::Scratch;
use crate::show::{self, BotCommands, Commands};
use angelia_core::error::{Error, Result};
use angelia_platforms::{Platform, SlashCommand};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum CommandsCommand {
    /// Registers the configured commands, and takes others away.
    ///
    /// Those of the bot's `commands` in the configuration; by default /ask,
    /// /new, /stop, /status and /help. People see them when they type a slash;
    /// an open Discord window may have to be reloaded first.
    #[command(after_help = "Examples:\n  angelia bot commands push\n  angelia bot commands push main")]
    Push {
        /// One bot: its name, platform:name, or its id; without it every Discord bot.
        name: Option<String>,
    },
    /// Shows the commands that Discord has, and how they differ from the configured ones.
    #[command(after_help = "Examples:\n  angelia bot commands show\n  angelia bot commands show main")]
    Show {
        /// One bot: its name, platform:name, or its id; without it every Discord bot.
        name: Option<String>,
    },
}

/// Registers or shows commands.
pub(super) async fn commands(config: &Config, command: CommandsCommand, as_json: bool) -> Result<()> {
    let (name, push) = match &command {
        CommandsCommand::Push { name } => (name, true),
        CommandsCommand::Show { name } => (name, false),
    };
    let bots = with_commands(config, name.as_deref())?;
    let scratch = Scratch::new("commands");
    let ports = scratch_store(&scratch)?;
    let mut rows = Vec::new();
    for bot in bots {
        let has = patiently(bot, &ports, as_json, async |platform: &dyn Platform| match push {
            true => platform.commands_push().await,
            false => platform.commands_show().await,
        });
        let has = has.await.map_err(|error| {
            let message = format!("the commands of the bot {}: {error}", bot.name());
            Error::new(error.kind(), message).caused_by(error)
        })?;
        rows.push(row(bot, has));
    }
    Answer::own(&Commands { pushed: push, bots: rows }, show::commands)?.show(as_json)
}

/// The bots that are meant; only Discord has commands.
fn with_commands<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a Bot>> {
    let meant = chosen(config, name)?;
    let bots: Vec<&Bot> = meant.into_iter().filter(|bot| bot.block.commands.is_some()).collect();
    if bots.is_empty() {
        return Err(Error::invalid(
            "only Discord bots have commands, and none is meant here; see: angelia bot list",
        ));
    }
    Ok(bots)
}

fn row(bot: &Bot, has: Vec<SlashCommand>) -> BotCommands {
    let configured = bot.block.commands.map_or_else(Vec::new, |names| names(bot));
    let is_there = |name: &&String| has.iter().any(|it| it.name == **name);
    let missing = configured.iter().filter(|name| !is_there(name)).cloned().collect();
    let foreign = has.iter().map(|it| it.name.clone()).filter(|name| !configured.contains(name)).collect();
    BotCommands { bot: named(bot), missing, foreign, commands: has }
}
