//! The slash commands that Discord shows for the bot. Operators write them as people
//! know them from manuals: a name, perhaps the word that follows, `<required>` or
//! `[optional]`, a colon, and what it does.

use super::Discord;
use super::api::{Call, Method};
use super::api_error::ApiError;
use super::interaction::ASK;
use super::parse::Id;
use crate::commands::{SlashCommand, SlashOption};
use crate::kit::Lenient;
use crate::settings::{BadValue, Given};
use angelia_core::error::Result;
use serde::Deserialize;
use serde_json::{Value, json};

/// Most commands an application can have.
const MAX_COMMANDS: usize = 100;
/// Longest name and description Discord takes.
const MAX_NAME: usize = 32;
const MAX_DESCRIPTION: usize = 100;

/// Discord's number of an option that is a text.
const TEXT: u64 = 3;

/// What Discord says of an application.
#[derive(Default, Deserialize)]
pub(super) struct Application {
    pub(super) id: Lenient<Id>,
    #[serde(default)]
    pub(super) flags: u64,
    #[serde(default)]
    pub(super) interactions_endpoint_url: Option<String>,
}

/// The commands of a bot for which none are configured.
pub fn default_commands() -> Vec<SlashCommand> {
    let command = |name: &str, description: &str| SlashCommand {
        name: name.into(),
        description: description.into(),
        options: Vec::new(),
    };
    let question = SlashOption {
        name: "question".into(),
        description: "What you would like to know or have done".into(),
        required: true,
    };
    vec![
        SlashCommand { options: vec![question], ..command(ASK, "Ask the agent something") },
        command("new", "Begin a new conversation"),
        command("stop", "Stop what the agent is doing"),
        command("status", "See how the agent is"),
        command("help", "See what the agent can do"),
    ]
}

/// Reads a list of commands.
pub(super) fn commands(given: &Given<'_>) -> Result<Vec<SlashCommand>, BadValue> {
    let mut commands: Vec<SlashCommand> = Vec::new();
    for line in given.texts()? {
        let command = command(line).map_err(|why| {
            given.bad(format!(
                "holds {line:?}, {why}; write something like \"ask <question>: Ask your agent\""
            ))
        })?;
        if commands.iter().any(|known| known.name == command.name) {
            return Err(given.bad(format!("names the command {:?} twice", command.name)));
        }
        commands.push(command);
    }
    if commands.len() > MAX_COMMANDS {
        return Err(given.bad(format!("holds more than {MAX_COMMANDS} commands; Discord takes no more")));
    }
    Ok(commands)
}

pub(super) fn command(line: &str) -> Result<SlashCommand, &'static str> {
    let (usage, description) = line.split_once(':').ok_or("which has no colon before its description")?;
    let (name, option) = match usage.trim().split_once(char::is_whitespace) {
        Some((name, option)) => (name, Some(self::option(option.trim())?)),
        None => (usage.trim(), None),
    };
    let name = name.strip_prefix('/').unwrap_or(name);
    let description = description.trim();
    if !is_name(name) {
        return Err("whose name is not 1 to 32 small letters, digits, hyphens and underscores");
    }
    if description.is_empty() || description.chars().count() > MAX_DESCRIPTION {
        return Err("whose description is not 1 to 100 characters long");
    }
    Ok(SlashCommand {
        name: name.into(),
        description: description.into(),
        options: option.into_iter().collect(),
    })
}

/// The word that follows, and whether it has to.
fn option(text: &str) -> Result<SlashOption, &'static str> {
    let within = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let found = within('<', '>').map(|it| (it, true)).or(within('[', ']').map(|it| (it, false)));
    let (name, required) = found
        .filter(|(name, _)| is_name(name))
        .ok_or("in which one word in <> or [] may follow the name, in small letters")?;
    Ok(SlashOption { name: name.into(), description: name.into(), required })
}

/// A command as it is written.
pub(super) fn command_line(command: &SlashCommand) -> String {
    let SlashCommand { name, description, options } = command;
    match options.first() {
        Some(SlashOption { name: option, required: true, .. }) => format!("{name} <{option}>: {description}"),
        Some(SlashOption { name: option, .. }) => format!("{name} [{option}]: {description}"),
        None => format!("{name}: {description}"),
    }
}

/// Whether it can be the name of a command, or of what follows one.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_plain)
}

/// A command as Discord reads it.
fn body(command: &SlashCommand) -> Value {
    let SlashCommand { name, description, options } = command;
    let options = options.iter().map(|SlashOption { name, description, required }| {
        json!({ "type": TEXT, "name": name, "description": description, "required": required })
    });
    json!({ "type": 1, "name": name, "description": description, "options": options.collect::<Vec<_>>() })
}

impl Discord {
    /// Has Discord show the configured commands and no others; answers those it shows.
    pub(super) async fn register_commands(&self) -> Result<Vec<SlashCommand>> {
        let body = self.config.commands.iter().map(body).collect();
        let path = self.commands_path().await?;
        Ok(self.api.read(Call::new(Method::Put, path).json(body)).await?)
    }

    /// The commands that Discord shows.
    pub(super) async fn registered_commands(&self) -> Result<Vec<SlashCommand>> {
        let path = self.commands_path().await?;
        Ok(self.api.read(Call::get(path)).await?)
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
    use crate::settings::Raw;

    #[test]
    fn the_usual_commands_are_such_that_discord_takes_them() {
        let usual = default_commands();
        for one in &usual {
            // What is shown beside its option is not part of the line.
            let read = command(&command_line(one)).unwrap();
            assert_eq!((&read.name, &read.description), (&one.name, &one.description));
        }
        let names: Vec<&str> = usual.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["ask", "new", "stop", "status", "help"]);
        let ask = body(&usual[0]);
        assert_eq!((&ask["type"], &ask["options"][0]["type"]), (&json!(1), &json!(3)));
        assert_eq!(ask["options"][0]["required"], true);
        assert_eq!(body(&usual[1])["options"], json!([]));
        let read: SlashCommand = serde_json::from_value(ask).unwrap();
        assert_eq!(read, usual[0]);
    }

    #[test]
    fn commands_are_read_as_they_are_written() {
        for line in ["ask <question>: Ask your agent", "new: Begin anew", "model [name]: Choose: a model"] {
            assert_eq!(command_line(&command(line).unwrap()), line);
        }
        assert_eq!(command("/ask  <question>:Ask").unwrap(), command("ask <question>: Ask").unwrap());
        for line in [
            "ask",
            ": nothing",
            "Ask: capital",
            "ask question: bare",
            "ask <a> <b>: two",
            "ask <A>: capital",
            "ask:",
            &format!("ask: {}", "x".repeat(101)),
            &format!("{}: long", "x".repeat(33)),
        ] {
            assert!(command(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_discord_would_refuse_is_refused_here() {
        for name in ["", "Ask", "a b", "é", &"a".repeat(33)] {
            assert!(command(&format!("{name}: x")).is_err(), "{name}");
            assert!(command(&format!("ask <{name}>: x")).is_err(), "{name}");
        }
        assert!(command("ask <//ask>: x").is_err() && command("ask: ").is_err());
        assert!(command(&format!("ask: {}", "é".repeat(100))).is_ok());
        let is_good = |lines: &[String]| {
            let raw = lines.join(",");
            commands(&Given { key: "commands".into(), raw: Raw::Text(&raw) }).is_ok()
        };
        let line = |name: &str| format!("{name}: x");
        assert!(!is_good(&[line("ask"), line("ask")]));
        let many: Vec<String> = (0..=MAX_COMMANDS).map(|n| line(&format!("c{n}"))).collect();
        assert!(!is_good(&many) && is_good(&many[1..]));
    }
}
