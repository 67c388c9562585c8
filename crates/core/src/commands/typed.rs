//! A command that somebody typed or chose, and the gateway that gets it.
//!
//! Gateways say "unknown command" to what they do not know, and an operator's own commands are
//! such. So what an operator configured and the gateway did not declare goes as words.

use super::{Command, without_hyphens};

/// The connector's own way to talk: what is asked is said as if it were written. No gateway
/// knows such a command.
pub const ASK: &str = "ask";

/// What the connector itself acts on, whoever declares it.
const CONNECTORS: [&str; 3] = ["stop", "link", "start"];

/// What a gateway gets in the place of a text that is a command; `None` if it gets the text.
///
/// `manifest` is what it declared; without any nobody knows what it knows, and only [`ASK`] is
/// known to be no command of its. `own` are those that the operator configured for the bot.
pub fn reworded(text: &str, manifest: &[Command], own: &[Command]) -> Option<String> {
    let (name, rest) = command_in(text)?;
    if is_declared(name, manifest) {
        return None;
    }
    if let Some(meant) = manifest.iter().find(|it| without_hyphens(&it.name) == name) {
        // Some providers know no hyphens, and showed it with underscores.
        return Some(if rest.is_empty() {
            format!("/{}", meant.name)
        } else {
            format!("/{} {rest}", meant.name)
        });
    }
    if !is_only_own(name, manifest, own) {
        return None;
    }
    Some(match (name, rest) {
        (ASK, "") => return None,
        (ASK, rest) => rest.to_owned(),
        (name, "") => name.to_owned(),
        (name, rest) => format!("{name} {rest}"),
    })
}

/// Whether a command is one of the operator's that the gateway did not declare.
pub fn is_only_own(name: &str, manifest: &[Command], own: &[Command]) -> bool {
    let is_own = own.iter().any(|it| it.name == name || without_hyphens(&it.name) == name);
    let says_nothing = manifest.is_empty();
    is_own && !CONNECTORS.contains(&name) && !is_declared(name, manifest) && (name == ASK || !says_nothing)
}

fn is_declared(name: &str, manifest: &[Command]) -> bool {
    manifest.iter().any(|it| it.name == name)
}

/// The name of the command that a text begins with, and what follows it.
fn command_in(text: &str) -> Option<(&str, &str)> {
    let typed = text.strip_prefix('/')?;
    let (name, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    Some((name, rest.trim())).filter(|(name, _)| !name.is_empty())
}
