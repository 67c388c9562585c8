//! Commands that a platform shows to whoever types a slash, as an operator configures them.
//! They are written as people know them from manuals: a name, perhaps the word that follows,
//! `<required>` or `[optional]`, a colon, and what it does.

use crate::settings::values::one_of;
use crate::settings::{BadValue, Bot, Given, Key, Value};
use angelia_core::commands::{ASK, Command, CommandOption, MAX_COMMANDS, Rules, is_name};
use angelia_core::error::Result;

/// Longest description: what every provider shows.
const MAX_DESCRIPTION: usize = 100;

/// What becomes of the commands that gateways declare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FromGateways {
    /// The server registers them, with those of the operator.
    #[default]
    Auto,
    /// They are registered when the operator says so.
    Push,
    /// Nobody sees them.
    Ignore,
}

/// The words for it in the configuration; the first is the usual.
const WORDS: [(&str, FromGateways); 3] =
    [("auto", FromGateways::Auto), ("push", FromGateways::Push), ("ignore", FromGateways::Ignore)];

/// Which commands a bot has.
#[derive(Clone, Debug)]
pub struct BotCommands {
    /// Those that the operator configured.
    pub own: Vec<Command>,
    /// What becomes of those that gateways declare.
    pub from_gateways: FromGateways,
    /// What its provider takes.
    pub rules: Rules,
}

/// The keys of a bot's block that are about commands.
pub(crate) const OWN_KEY: Key = Key::texts("commands", |given| commands(given).map(|it| lines(&it)))
    .default(|| Value::Texts(lines(&default_commands())));
pub(crate) const FROM_GATEWAYS_KEY: Key = Key::text("gateway_commands", |given| {
    one_of(given, &WORDS, |(word, _)| word).map(|(word, _)| word.to_owned())
})
.default(|| Value::Text(WORDS[0].0.to_owned()));

/// The commands of a bot; the lines were read before.
pub(crate) fn configured(bot: &Bot) -> Vec<Command> {
    let read = |lines: &[String]| lines.iter().filter_map(|line| command(line).ok()).collect();
    bot.texts(OWN_KEY.name).map_or_else(default_commands, read)
}

/// What becomes of the commands of its gateways.
pub(crate) fn from_gateways(bot: &Bot) -> FromGateways {
    let word = bot.text(FROM_GATEWAYS_KEY.name);
    WORDS.into_iter().find(|(it, _)| Some(*it) == word).map(|(_, meant)| meant).unwrap_or_default()
}

/// The commands of a bot for which none are configured.
pub fn default_commands() -> Vec<Command> {
    let command = |name: &str, description: &str| Command {
        name: name.into(),
        description: description.into(),
        options: Vec::new(),
    };
    let question = CommandOption {
        name: "question".into(),
        description: "What you would like to know or have done".into(),
        required: true,
        ..CommandOption::default()
    };
    vec![
        Command { options: vec![question], ..command(ASK, "Ask the agent something") },
        command("new", "Begin a new conversation"),
        command("stop", "Stop what the agent is doing"),
        command("status", "See how the agent is"),
        command("help", "See what the agent can do"),
    ]
}

fn lines(commands: &[Command]) -> Vec<String> {
    commands.iter().map(command_line).collect()
}

/// Reads a list of commands.
fn commands(given: &Given<'_>) -> Result<Vec<Command>, BadValue> {
    let mut commands: Vec<Command> = Vec::new();
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
        return Err(given.bad(format!("holds more than {MAX_COMMANDS} commands; no provider shows more")));
    }
    Ok(commands)
}

fn command(line: &str) -> Result<Command, &'static str> {
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
    Ok(Command { name: name.into(), description: description.into(), options: option.into_iter().collect() })
}

/// The word that follows, and whether it has to.
fn option(text: &str) -> Result<CommandOption, &'static str> {
    let within = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let found = within('<', '>').map(|it| (it, true)).or(within('[', ']').map(|it| (it, false)));
    let (name, required) = found
        .filter(|(name, _)| is_name(name))
        .ok_or("in which one word in <> or [] may follow the name, in small letters")?;
    Ok(CommandOption { name: name.into(), description: name.into(), required, ..CommandOption::default() })
}

/// A command as it is written.
fn command_line(command: &Command) -> String {
    let Command { name, description, options } = command;
    match options.first() {
        Some(CommandOption { name: option, required: true, .. }) => {
            format!("{name} <{option}>: {description}")
        }
        Some(CommandOption { name: option, .. }) => format!("{name} [{option}]: {description}"),
        None => format!("{name}: {description}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Raw;

    #[test]
    fn the_usual_commands_are_such_that_they_can_be_configured() {
        let usual = default_commands();
        for one in &usual {
            // What is shown beside its option is not part of the line.
            let read = command(&command_line(one)).unwrap();
            assert_eq!((&read.name, &read.description), (&one.name, &one.description));
        }
        let names: Vec<&str> = usual.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["ask", "new", "stop", "status", "help"]);
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
    fn what_a_provider_would_refuse_is_refused_here() {
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
