//! The slash commands that Discord shows for the bot.

use super::api_error::ApiError;
use super::interaction::ASK;
use super::parse::opt_id;
use super::rest::Call;
use super::{Command, Discord};
use crate::commands::SlashCommand;
use angelia_core::error::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most commands an application can have.
pub(super) const MAX_COMMANDS: usize = 100;
/// Longest name and description Discord takes.
const MAX_NAME: usize = 32;
pub(super) const MAX_DESCRIPTION: usize = 100;

/// Discord's number of an option that is a text.
const TEXT: u64 = 3;

/// What Discord says of an application.
#[derive(Default, Deserialize)]
pub(super) struct Application {
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) flags: u64,
    #[serde(default)]
    pub(super) interactions_endpoint_url: Option<String>,
}

/// The commands of a bot for which none are configured.
pub fn default_commands() -> Vec<Command> {
    let command = |name: &str, description: &str| Command {
        name: name.into(),
        description: description.into(),
        option: None,
    };
    let question = ("question".to_owned(), "What you would like to know or have done".to_owned(), true);
    vec![
        Command { option: Some(question), ..command(ASK, "Ask the agent something") },
        command("new", "Begin a new conversation"),
        command("stop", "Stop what the agent is doing"),
        command("status", "See how the agent is"),
        command("help", "See what the agent can do"),
    ]
}

/// Whether Discord will take the commands an operator configured.
pub(super) fn check(commands: &[Command]) -> Result<()> {
    if commands.len() > MAX_COMMANDS {
        return Err(Error::invalid(format!("Discord takes {MAX_COMMANDS} commands at most")));
    }
    for (at, command) in commands.iter().enumerate() {
        check_words(&command.name, &command.description)?;
        if let Some((name, description, _)) = &command.option {
            check_words(name, description)?;
        }
        if commands[..at].iter().any(|other| other.name == command.name) {
            return Err(Error::invalid(format!("the command {:?} is there twice", command.name)));
        }
    }
    Ok(())
}

/// Whether it can be the name of a command, or of what follows one.
pub(super) fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_plain)
}

fn check_words(name: &str, description: &str) -> Result<()> {
    if !is_name(name) {
        return Err(Error::invalid(format!(
            "{name:?} cannot be the name of a Discord command or of what follows one: write up to {MAX_NAME} of \
             a-z, 0-9, _ and -"
        )));
    }
    if !(1..=MAX_DESCRIPTION).contains(&description.chars().count()) {
        return Err(Error::invalid(format!(
            "the description of {name:?} has to have 1 to {MAX_DESCRIPTION} characters"
        )));
    }
    Ok(())
}

/// A command as Discord reads it.
fn body(command: &Command) -> Value {
    let option = command.option.iter().map(|(name, description, required)| {
        json!({ "type": TEXT, "name": name, "description": description, "required": required })
    });
    json!({
        "type": 1,
        "name": command.name,
        "description": command.description,
        "options": option.collect::<Vec<_>>(),
    })
}

impl Discord {
    /// Has Discord show the configured commands and no others; answers those it shows.
    pub(super) async fn register_commands(&self) -> Result<Vec<SlashCommand>> {
        let body = self.config.commands.iter().map(body).collect();
        let path = self.commands_path().await?;
        Ok(self.rest.read(Call::put(path, body)).await?)
    }

    /// The commands that Discord shows.
    pub(super) async fn registered_commands(&self) -> Result<Vec<SlashCommand>> {
        let path = self.commands_path().await?;
        Ok(self.rest.read(Call::get(path)).await?)
    }

    /// What Discord says of the bot's application.
    pub(super) async fn application(&self) -> Result<Application, ApiError> {
        self.rest.read(Call::get("applications/@me")).await
    }

    async fn commands_path(&self) -> Result<String, ApiError> {
        // Of old applications the bot has another id.
        let id = self.application().await?.id.unwrap_or_else(|| self.own_id().to_owned());
        Ok(format!("applications/{id}/commands"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_commands_are_such_that_discord_takes_them() {
        let usual = default_commands();
        check(&usual).unwrap();
        let names: Vec<&str> = usual.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["ask", "new", "stop", "status", "help"]);
        let ask = body(&usual[0]);
        assert_eq!((&ask["type"], &ask["options"][0]["type"]), (&json!(1), &json!(3)));
        assert_eq!(ask["options"][0]["required"], true);
        assert_eq!(body(&usual[1])["options"], json!([]));
        let read: SlashCommand = serde_json::from_value(ask).unwrap();
        assert!(read.options[0].required);
    }

    #[test]
    fn what_discord_would_refuse_is_refused_here() {
        let command = |name: &str, description: &str| Command {
            name: name.into(),
            description: description.into(),
            option: None,
        };
        let is_bad = |commands: &[Command]| check(commands).is_err();
        for name in ["", "Ask", "a b", "/ask", "é", &"a".repeat(33)] {
            assert!(is_bad(&[command(name, "x")]), "{name}");
            let option = Some((name.to_owned(), "x".to_owned(), false));
            assert!(is_bad(&[Command { option, ..command("ask", "x") }]), "{name}");
        }
        assert!(is_bad(&[command("ask", "")]) && is_bad(&[command("ask", &"x".repeat(101))]));
        assert!(is_bad(&[command("ask", "x"), command("ask", "y")]));
        assert!(!is_bad(&[command("ask", &"é".repeat(100))]));
        let many: Vec<Command> = (0..=MAX_COMMANDS).map(|n| command(&format!("c{n}"), "x")).collect();
        assert!(is_bad(&many) && !is_bad(&many[1..]));
    }
}
