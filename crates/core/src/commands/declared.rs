//! What is taken of the manifest in a gateway's hello: what every provider would refuse is left
//! out, and it never takes more room than it may.

use super::{BELOW, Choice, Command, CommandOption, GROUP, TEXT, is_name};
use crate::visible::is_hidden;
use serde_json::Value;

angelia_contract::limits! {
    /// No provider shows more. Further ones of a manifest are left out.
    pub const MAX_COMMANDS: usize = 100, count "commands taken of one gateway's manifest";
    /// Some hundred commands with a line each. It is kept in memory for as long as the gateway is known; what comes after it is left out.
    const MAX_BYTES: usize = 24 * 1024, bytes "the manifest of a gateway's commands, as it is kept";
}

/// Longest description that a provider shows, in characters.
const MAX_DESCRIPTION: usize = 256;
/// The same of an option and of what it may be.
const MAX_OPTION_TEXT: usize = 100;
/// Options of one command, and values of one option.
const MAX_OPTIONS: usize = 25;
/// The contract's numbers of what an option can be.
const KINDS: std::ops::RangeInclusive<u64> = 1..=11;
/// A whole number, and any number.
const WHOLE: u8 = 4;
const NUMBER: u8 = 10;
/// Those that may be one of some values: texts and numbers.
const CHOSEN: [u8; 3] = [TEXT, WHOLE, NUMBER];
/// Largest number either way: what a double holds exactly, and providers take.
const MAX_NUMBER: f64 = 9_007_199_254_740_992.0;

/// What is taken of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The commands, as the gateway put them in order.
    pub commands: Vec<Command>,
    /// How many were left out.
    pub dropped: usize,
}

/// Reads a manifest.
pub fn read(manifest: &[Value]) -> Manifest {
    let mut read = Manifest::default();
    let mut bytes = 0;
    for entry in manifest {
        let command = command(entry).filter(|command| {
            let is_new = read.commands.iter().all(|known| known.name != command.name);
            is_new && read.commands.len() < MAX_COMMANDS
        });
        let size = command.as_ref().map(|command| serde_json::json!(command).to_string().len());
        match (command, size) {
            (Some(command), Some(size)) if bytes + size <= MAX_BYTES => {
                bytes += size;
                read.commands.push(command);
            }
            _ => read.dropped += 1,
        }
    }
    read
}

fn command(entry: &Value) -> Option<Command> {
    let name = entry["name"].as_str().filter(|name| is_name(name))?;
    let description = words(&entry["description"], MAX_DESCRIPTION).unwrap_or_else(|| name.to_owned());
    Some(Command { name: name.to_owned(), description, options: options(&entry["options"], 0) })
}

/// How deep stands what is below a group, and what is below a command that is below something.
const IN_GROUP: usize = 1;
const IN_LAST: usize = 2;

/// The options of a command, so deep below it. Those that no provider takes are left out.
fn options(list: &Value, depth: usize) -> Vec<CommandOption> {
    let mut read: Vec<CommandOption> = Vec::new();
    for option in list.as_array().into_iter().flatten().filter_map(|entry| option(entry, depth)) {
        if read.len() < MAX_OPTIONS && read.iter().all(|known| known.name != option.name) {
            read.push(option);
        }
    }
    // A command has either commands below it or options of its own; a group has nothing but commands.
    if depth == IN_GROUP || read.iter().any(is_below) {
        read.retain(is_below);
    }
    read.sort_by_key(|option| !option.required);
    read
}

fn is_below(option: &CommandOption) -> bool {
    matches!(option.kind, BELOW | GROUP)
}

fn option(entry: &Value, depth: usize) -> Option<CommandOption> {
    let name = entry["name"].as_str().filter(|name| is_name(name))?;
    let kind = entry["type"].as_u64().unwrap_or(TEXT.into());
    let kind = u8::try_from(kind).ok().filter(|_| KINDS.contains(&kind))?;
    // Groups stand below a command, commands below it or a group, and that is all. A group of
    // nothing is none.
    let (below, fits) = match kind {
        GROUP if depth == 0 => {
            let below = options(&entry["options"], IN_GROUP);
            let fits = !below.is_empty();
            (below, fits)
        }
        BELOW if depth <= IN_GROUP => (options(&entry["options"], IN_LAST), true),
        GROUP | BELOW => (Vec::new(), false),
        _ => (Vec::new(), true),
    };
    Some(CommandOption {
        kind,
        description: words(&entry["description"], MAX_OPTION_TEXT).unwrap_or_else(|| name.to_owned()),
        name: name.to_owned(),
        required: entry["required"] == true && !matches!(kind, BELOW | GROUP),
        choices: if CHOSEN.contains(&kind) { choices(&entry["choices"], kind) } else { Vec::new() },
        options: below,
    })
    .filter(|_| fits)
}

/// What an option may be, each once; where one value is no good, it may be anything.
fn choices(list: &Value, kind: u8) -> Vec<Choice> {
    let mut read: Vec<Choice> = Vec::new();
    for entry in list.as_array().into_iter().flatten() {
        let Some(choice) = choice(entry, kind) else { return Vec::new() };
        if read.iter().all(|known| known.name != choice.name && !is_same(&known.value, &choice.value)) {
            read.push(choice);
        }
    }
    Some(read).filter(|choices| choices.len() <= MAX_OPTIONS).unwrap_or_default()
}

/// Whether two values are one to a provider, to which 1 and 1.0 are.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|number| Some(number) == other.as_f64())
}

fn choice(entry: &Value, kind: u8) -> Option<Choice> {
    let value = &entry["value"];
    let is_good = match value {
        Value::String(text) => kind == TEXT && (1..=MAX_OPTION_TEXT).contains(&text.chars().count()),
        Value::Number(number) => {
            let is_bounded = number.as_f64().is_some_and(|number| number.abs() <= MAX_NUMBER);
            kind != TEXT && is_bounded && (kind != WHOLE || number.is_i64())
        }
        _ => false,
    };
    let name = words(&entry["name"], MAX_OPTION_TEXT)?;
    is_good.then(|| Choice { name, value: value.clone() })
}

/// A line for people, without what hides in it; `None` if nothing is left.
fn words(text: &Value, most: usize) -> Option<String> {
    let shown: String = text.as_str()?.chars().filter(|c| !is_hidden(*c)).collect();
    let line = shown.split(|c: char| c.is_whitespace() || c.is_control());
    let line = line.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    Some(line.chars().take(most).collect::<String>().trim_end().to_owned()).filter(|line| !line.is_empty())
}
