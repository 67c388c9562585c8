//! The list of commands that Telegram shows for the bot: to everybody, in every chat. Lists for
//! some chats or languages, which an operator can make with @BotFather, stay as they are.

use super::Telegram;
use angelia_core::commands::{Command, Plan, Rules, Shown};
use angelia_core::error::Result;
use serde_json::{Value, json};

/// What Telegram takes. `/link` and `/start` are for the server.
pub(super) const RULES: Rules = Rules {
    most: 100,
    description: 256,
    total: Some(MAX_TOTAL),
    options: None,
    hyphens: false,
    reserved: &["link", "start"],
};

/// Bytes of names and descriptions in all. Telegram does not say where it ends: 4 KB were taken,
/// and 7.8 KB refused (`BOT_COMMANDS_TOO_MUCH`), the whole list at once.
const MAX_TOTAL: usize = 3_500;

impl Telegram {
    /// The commands that Telegram shows.
    pub(super) async fn listed_commands(&self) -> Result<Vec<Shown>> {
        let all: Vec<Value> = self.api.call("getMyCommands", &json!({})).await?;
        Ok(all.into_iter().map(shown).collect())
    }

    /// Has Telegram show what a plan says.
    pub(super) async fn list_commands(&self, plan: &Plan) -> Result<()> {
        let wanted = plan.commands.iter().map(|it| body(&it.listed.command));
        let all: Vec<Value> = wanted.chain(plan.kept.iter().cloned()).collect();
        self.api.call::<bool>("setMyCommands", &json!({ "commands": all })).await?;
        Ok(())
    }
}

fn body(command: &Command) -> Value {
    json!({ "command": command.name, "description": command.description })
}

fn shown(raw: Value) -> Shown {
    let text = |key: &str| raw[key].as_str().unwrap_or_default().to_owned();
    let command = Command { name: text("command"), description: text("description"), options: Vec::new() };
    Shown { command: Some(command), raw }
}
