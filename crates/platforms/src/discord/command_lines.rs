//! Slash commands, written as people know them from manuals: a name, perhaps the
//! word that follows, `<required>` or `[optional]`, a colon, and what it does.

use super::Command;
use crate::settings::{BadValue, Given};

/// Longest description: Discord's limit.
const MAX_DESCRIPTION: usize = 100;
/// Longest name of a command or an option: Discord's limit.
const MAX_NAME: usize = 32;
/// Most commands: Discord's limit.
const MAX_COMMANDS: usize = 100;

/// Reads a list of commands.
pub(super) fn commands(given: &Given<'_>) -> Result<Vec<Command>, BadValue> {
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
        return Err(given.bad(format!("holds more than {MAX_COMMANDS} commands; Discord takes no more")));
    }
    Ok(commands)
}

pub(super) fn command(line: &str) -> Result<Command, &'static str> {
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
    let option = option.map(|(option, required)| (option.to_owned(), option.to_owned(), required));
    Ok(Command { name: name.to_owned(), description: description.to_owned(), option })
}

/// The word that follows, and whether it has to.
fn option(text: &str) -> Result<(&str, bool), &'static str> {
    let within = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let found = within('<', '>').map(|it| (it, true)).or(within('[', ']').map(|it| (it, false)));
    found
        .filter(|(name, _)| is_name(name))
        .ok_or("in which one word in <> or [] may follow the name, in small letters")
}

fn is_name(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(good)
}

/// A command as it is written.
pub(super) fn command_line(command: &Command) -> String {
    let Command { name, description, option } = command;
    match option {
        Some((option, _, true)) => format!("{name} <{option}>: {description}"),
        Some((option, _, false)) => format!("{name} [{option}]: {description}"),
        None => format!("{name}: {description}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
