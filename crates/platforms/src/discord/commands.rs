//! The slash commands that Discord shows for the bot.

use super::Discord;
use super::api::{Call, Method};
use super::api_error::ApiError;
use super::parse::Id;
use crate::kit::Lenient;
use angelia_core::commands::{Command, CommandOption, Plan, Rules, Shown};
use angelia_core::error::Result;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What Discord takes. `/link` is for the server, and only in writing.
pub(super) const RULES: Rules = Rules {
    most: 100,
    description: 100,
    total: None,
    options: Some(8_000),
    hyphens: true,
    reserved: &["link"],
};

/// Discord's number of a command that is typed; others are in menus.
const TYPED: u64 = 1;
/// What of a command can be written; the rest Discord adds itself, and knows it by its name.
const WRITTEN: [&str; 12] = [
    "type",
    "name",
    "name_localizations",
    "description",
    "description_localizations",
    "options",
    "default_member_permissions",
    "dm_permission",
    "contexts",
    "integration_types",
    "nsfw",
    "handler",
];

/// What Discord says of an application.
#[derive(Default, Deserialize)]
pub(super) struct Application {
    pub(super) id: Lenient<Id>,
    #[serde(default)]
    pub(super) flags: u64,
    #[serde(default)]
    pub(super) interactions_endpoint_url: Option<String>,
}

/// A command as Discord reads it.
fn body(command: &Command) -> Value {
    let Command { name, description, options } = command;
    let options: Vec<Value> = options.iter().map(option_body).collect();
    json!({ "type": TYPED, "name": name, "description": description, "options": options })
}

fn option_body(option: &CommandOption) -> Value {
    // What is left out reads as nothing, and of what has commands below it nothing else may be said.
    json!(option)
}

/// A command that Discord shows.
fn shown(raw: Value) -> Shown {
    let is_typed = raw["type"].as_u64().unwrap_or(TYPED) == TYPED;
    let read = || Command::deserialize(&raw).unwrap_or_else(|_| unread(&raw));
    Shown { command: is_typed.then(read), raw }
}

/// One of which nothing but the name is understood.
fn unread(raw: &Value) -> Command {
    Command { name: raw["name"].as_str().unwrap_or_default().to_owned(), ..Command::default() }
}

/// A command as it was, to be given back.
fn given_back(raw: &Value) -> Value {
    let told = raw.as_object().into_iter().flatten();
    let written = told.filter(|(name, value)| WRITTEN.contains(&name.as_str()) && !value.is_null());
    Value::Object(written.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

impl Discord {
    /// Has Discord show what a plan says.
    pub(super) async fn put_commands(&self, plan: &Plan) -> Result<()> {
        let wanted = plan.commands.iter().map(|it| body(&it.listed.command));
        let all: Vec<Value> = wanted.chain(plan.kept.iter().map(given_back)).collect();
        let path = self.commands_path().await?;
        self.api.call(Call::new(Method::Put, path).json(all.into())).await?;
        Ok(())
    }

    /// The commands that Discord shows.
    pub(super) async fn registered_commands(&self) -> Result<Vec<Shown>> {
        let path = self.commands_path().await?;
        let all: Vec<Value> = self.api.read(Call::get(path)).await?;
        Ok(all.into_iter().map(shown).collect())
    }

    /// What Discord says of the bot's application.
    pub(super) async fn application(&self) -> Result<Application, ApiError> {
        self.api.read(Call::get("applications/@me")).await
    }

    async fn commands_path(&self) -> Result<String, ApiError> {
        // Of old applications the bot has another id.
        let application = self.application().await?;
        let id = application.id.as_deref().unwrap_or(self.own_id());
        Ok(format!("applications/{id}/commands"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::default_commands;

    #[test]
    fn commands_are_written_as_discord_reads_and_tells_them() {
        let usual = default_commands();
        let ask = body(&usual[0]);
        assert_eq!((&ask["type"], &ask["options"][0]["type"]), (&json!(1), &json!(3)));
        assert_eq!(ask["options"][0]["required"], true);
        assert_eq!(body(&usual[1])["options"], json!([]));
        assert_eq!(shown(ask).command.as_ref(), Some(&usual[0]));
    }

    #[test]
    fn what_is_not_ours_is_given_back_as_it_was() {
        let menu = json!({ "id": "5", "application_id": "7", "version": "9", "type": 3, "name": "Report this",
            "description": "", "name_localizations": null, "contexts": [0], "default_permission": true });
        let told = shown(menu);
        assert_eq!(told.command, None, "it is in a menu");
        let again = given_back(&told.raw);
        let expected = json!({ "type": 3, "name": "Report this", "description": "", "contexts": [0] });
        assert_eq!(again, expected);
        let odd = shown(json!({ "name": "odd", "description": 5 }));
        assert_eq!(odd.command.map(|it| it.name), Some("odd".into()));
    }
}
