//! The commands that the agent of a room knows, for whoever types a slash there.

use super::ingest::{new_line, observe};
use super::routes::{Answer, Answered, Api};
use super::verify::Caller;
use angelia_core::commands::{BELOW, Command, CommandOption, GROUP};
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

/// Tells them. They are as many as one manifest holds, which is bounded where it is read.
pub(super) async fn list(State(api): State<Arc<Api>>, caller: Caller) -> Answered {
    let line = new_line(caller.guest.person, String::new());
    let commands = observe(&line, true, |observed| api.admission.commands(observed));
    let shown: Vec<Value> = commands.iter().map(shown).collect();
    Ok(Answer(StatusCode::OK, json!({ "commands": shown })))
}

fn shown(command: &Command) -> Value {
    json!({ "name": command.name, "description": command.description, "usage": usage(&command.options) })
}

/// What may follow a command, as manuals write it.
fn usage(options: &[CommandOption]) -> String {
    if options.iter().any(|it| matches!(it.kind, BELOW | GROUP)) {
        let names: Vec<&str> = options.iter().map(|it| it.name.as_str()).collect();
        return names.join("|");
    }
    let one =
        |it: &CommandOption| if it.required { format!("<{}>", it.name) } else { format!("[{}]", it.name) };
    options.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_command_is_written_as_in_a_manual() {
        let option = |kind, name: &str, required| CommandOption {
            kind,
            name: name.into(),
            required,
            ..CommandOption::default()
        };
        assert_eq!(usage(&[option(3, "name", true), option(4, "size", false)]), "<name> [size]");
        assert_eq!(usage(&[option(BELOW, "on", false), option(BELOW, "off", false)]), "on|off");
        assert_eq!(usage(&[]), "");
    }
}
