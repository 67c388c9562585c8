//! From what a provider shows to what it is to show.

use super::merge::size;
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

    /// Leaves out the last of those that are new to the provider until so many are left; how many.
    pub fn add_at_most(&mut self, most: usize) -> usize {
        let mut later = self.added().saturating_sub(most);
        let left_out = later;
        for index in (0..self.commands.len()).rev() {
            if later > 0 && self.commands[index].change == Change::Added {
                later -= 1;
                let name = self.commands.remove(index).listed.command.name;
                let why = "so many are new that it has to wait, for a day at most".to_owned();
                self.left_out.push(LeftOut { name, why });
            }
        }
        left_out
    }

    /// The same without anything that is new of gateways, for a provider that refused it: what is shown
    /// of theirs stays as it is shown, and what the operator wants is as they want it.
    pub fn without_news(&self, shown: &[Shown]) -> Self {
        let (mut commands, mut left_out) = (Vec::new(), self.left_out.clone());
        for one in &self.commands {
            if one.listed.own || one.change == Change::Same {
                commands.push(one.clone());
                continue;
            }
            let name = &one.listed.command.name;
            if let Some(there) = find(shown, name) {
                let listed = Listed { command: there.clone(), ..one.listed.clone() };
                commands.push(Planned { listed, change: Change::Same });
            }
            let why = "the provider refused the list with what is new of it".to_owned();
            left_out.push(LeftOut { name: name.clone(), why });
        }
        Self { commands, left_out, ..self.clone() }
    }

    /// What is to be shown.
    pub fn wanted(&self) -> Vec<Command> {
        self.commands.iter().map(|it| it.listed.command.clone()).collect()
    }
}

/// What has to change at a provider that shows `shown`, of which `ours` were registered here.
pub fn plan(mut wanted: Wanted, shown: &[Shown], ours: &[String], others: Elsewhere, rules: &Rules) -> Plan {
    let is_foreign = |name: &str| others == Elsewhere::Stay && ours.iter().all(|it| it != name);
    // What another program made gives way to what the operator wants, and to nothing else.
    let gives_way = |name: &str| wanted.commands.iter().any(|it| it.own && it.command.name == name);
    let typed = || shown.iter().filter_map(|it| it.command.as_ref());
    let (taken, stay): (Vec<&Command>, Vec<&Command>) =
        typed().filter(|it| is_foreign(&it.name)).partition(|it| gives_way(&it.name));
    let has = |all: &[&Command], name: &str| all.iter().any(|it| it.name == name);
    // Who takes a place over needs no other.
    let mut room = rules.most.saturating_sub(stay.len() + taken.len());
    for one in std::mem::take(&mut wanted.commands) {
        let name = &one.command.name;
        let why = if has(&stay, name) {
            "another program made one of this name, which stays".to_owned()
        } else if has(&taken, name) {
            wanted.commands.push(one);
            continue;
        } else if room > 0 {
            room -= 1;
            wanted.commands.push(one);
            continue;
        } else {
            format!("there is room for {}, and some of it is taken by commands from elsewhere", rules.most)
        };
        wanted.left_out.push(LeftOut { name: name.clone(), why });
    }
    wanted.fit(rules, stay.iter().map(|it| size(it)).sum());
    let Wanted { commands, left_out } = wanted;
    let mut plan = Plan { left_out, ..Plan::default() };
    for one in shown {
        match &one.command {
            // What is not typed is none of this.
            None => plan.kept.push(one.raw.clone()),
            Some(command) if commands.iter().any(|it| it.command.name == command.name) => {}
            Some(command) if is_foreign(&command.name) => {
                plan.elsewhere.push(command.name.clone());
                plan.kept.push(one.raw.clone());
            }
            Some(command) => plan.removed.push(command.name.clone()),
        }
    }
    plan.commands = commands.into_iter().map(|listed| planned(listed, shown)).collect();
    plan
}

/// What is shown under a name.
fn find<'a>(shown: &'a [Shown], name: &str) -> Option<&'a Command> {
    shown.iter().filter_map(|it| it.command.as_ref()).find(|it| it.name == name)
}

fn planned(listed: Listed, shown: &[Shown]) -> Planned {
    let change = match find(shown, &listed.command.name) {
        None => Change::Added,
        Some(there) if *there == listed.command => Change::Same,
        Some(_) => Change::Changed,
    };
    Planned { listed, change }
}
