//! From what a provider shows to what it is to show.

use super::{Command, LeftOut, Listed, Rules, Wanted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A command that a provider shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// What it says, as far as it is one that people type.
    pub command: Option<Command>,
    /// As the provider tells it, to be given back as it is.
    pub raw: Value,
}

/// What becomes of commands that came neither from the operator nor from a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// They stay.
    Stay,
    /// They go: the operator said so.
    Go,
}

/// How a command differs from what is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is shown so.
    #[default]
    Same,
    /// It is not shown.
    Added,
    /// It is shown otherwise.
    Changed,
}

/// A command that is to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Planned {
    /// The command, and who wants it.
    #[serde(flatten)]
    pub listed: Listed,
    /// How it differs from what is shown.
    pub change: Change,
}

/// What has to change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What is to be shown.
    pub commands: Vec<Planned>,
    /// What was registered here before and is to go, or came from elsewhere and goes with it.
    pub removed: Vec<String>,
    /// What came from elsewhere and stays.
    pub elsewhere: Vec<String>,
    /// What cannot be shown.
    pub left_out: Vec<LeftOut>,
    /// What stays as it is, to be given back to the provider.
    pub kept: Vec<Value>,
}

impl Plan {
    /// Whether the provider has to be told anything.
    pub fn is_needed(&self) -> bool {
        !self.removed.is_empty() || self.commands.iter().any(|it| it.change != Change::Same)
    }

    /// How many commands are new to the provider.
    pub fn added(&self) -> usize {
        self.commands.iter().filter(|it| it.change == Change::Added).count()
    }

    /// What is to be shown.
    pub fn wanted(&self) -> Vec<Command> {
        self.commands.iter().map(|it| it.listed.command.clone()).collect()
    }
}

/// What has to change at a provider that shows `shown`, of which `ours` were registered here.
pub fn plan(wanted: Wanted, shown: &[Shown], ours: &[String], others: Elsewhere, rules: &Rules) -> Plan {
    let Wanted { mut commands, left_out } = wanted;
    let mut plan = Plan { left_out, ..Plan::default() };
    let is_wanted = |name: &str| commands.iter().any(|it| it.command.name == name);
    for one in shown {
        match &one.command {
            // What is not typed is none of this.
            None => plan.kept.push(one.raw.clone()),
            Some(command) if is_wanted(&command.name) => {}
            Some(command) if others == Elsewhere::Stay && !ours.contains(&command.name) => {
                plan.elsewhere.push(command.name.clone());
                plan.kept.push(one.raw.clone());
            }
            Some(command) => plan.removed.push(command.name.clone()),
        }
    }
    let room = rules.most.saturating_sub(plan.elsewhere.len());
    let own = commands.iter().filter(|it| it.own).count();
    for one in commands.drain(room.max(own).min(commands.len())..) {
        let why =
            format!("there is room for {}, and some of it is taken by commands from elsewhere", rules.most);
        plan.left_out.push(LeftOut { name: one.command.name, why });
    }
    plan.commands = commands.into_iter().map(|listed| planned(listed, shown)).collect();
    plan
}

fn planned(listed: Listed, shown: &[Shown]) -> Planned {
    let name = &listed.command.name;
    let change = match shown.iter().filter_map(|it| it.command.as_ref()).find(|it| it.name == *name) {
        None => Change::Added,
        Some(there) if *there == listed.command => Change::Same,
        Some(_) => Change::Changed,
    };
    Planned { listed, change }
}
