//! One bot, many gateways: what they declare together, and what of it a provider can show.
//!
//! Nobody's word is the last one: a command is there for as long as one gateway declares it. What
//! an operator configured comes first and is never changed by a gateway. Of the rest come first
//! those that most tenants have; then those that stand first in what their tenant declares, so that
//! nobody who declares very many, or has very many gateways, takes the places of others.

use super::{Command, CommandOption, TEXT, without_hyphens};
use crate::inbox::InstanceId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Commands that are counted together: a few times what a provider shows, so that an operator
/// sees what did not find room.
const MAX_UNION: usize = 300;
/// To how many characters descriptions are cut, one after the other, where all together are too
/// much for a provider; below the last nobody can tell what they say.
const SHORTER: [usize; 3] = [100, 60, 40];
/// Gateways that are named beside a command.
pub const MAX_NAMED: usize = 5;

/// A gateway that people reach by the bot, and what it declares.
#[derive(Clone, Copy, Debug)]
pub struct Declaring<'a> {
    /// Its tenant.
    pub tenant: &'a str,
    /// Its id.
    pub gateway: &'a str,
    /// The instance it serves.
    pub instance: InstanceId,
    /// Its commands.
    pub commands: &'a [Command],
}

/// A command that gateways declare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Declared {
    /// The command, with what all of them agree on.
    #[serde(flatten)]
    pub command: Command,
    /// How many tenants have it.
    pub tenants: u64,
    /// How many gateways.
    pub gateways: u64,
    /// Some of them, as `tenant/gateway`.
    pub by: Vec<String>,
    /// Whether they disagree on what follows it.
    pub differs: bool,
}

/// What gateways declare together, the most important first.
pub fn union(declaring: &[Declaring<'_>]) -> Vec<Declared> {
    let mut in_order: Vec<&Declaring<'_>> = declaring.iter().collect();
    in_order.sort_by_key(|one| (one.instance, one.tenant, one.gateway));
    let mut found: BTreeMap<&str, Counted<'_>> = BTreeMap::new();
    for one in in_order {
        for command in one.commands {
            found.entry(&command.name).or_insert_with(|| Counted::new(command)).take(one, command);
        }
    }
    for names in by_tenant(declaring) {
        for (place, name) in names.into_iter().enumerate() {
            if let Some(counted) = found.get_mut(name) {
                counted.place = counted.place.min(place);
            }
        }
    }
    let mut all: Vec<(&str, Counted<'_>)> = found.into_iter().collect();
    all.sort_by_key(|(name, counted)| (Reverse(counted.tenants.len()), counted.place, *name));
    all.truncate(MAX_UNION);
    all.into_iter().map(|(_, counted)| counted.into()).collect()
}

/// What each tenant's gateways declare together: first what stands first in one of their manifests.
fn by_tenant<'a>(declaring: &[Declaring<'a>]) -> Vec<Vec<&'a str>> {
    let mut tenants: BTreeMap<&str, BTreeMap<&'a str, usize>> = BTreeMap::new();
    for one in declaring {
        let places = tenants.entry(one.tenant).or_default();
        for (place, command) in one.commands.iter().enumerate() {
            let first = places.entry(&command.name).or_insert(place);
            *first = place.min(*first);
        }
    }
    let in_order = |places: BTreeMap<&'a str, usize>| {
        let mut names: Vec<(usize, &str)> = places.into_iter().map(|(name, place)| (place, name)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    };
    tenants.into_values().map(in_order).collect()
}

/// A command, while it is counted.
struct Counted<'a> {
    /// As the oldest instance declares it.
    command: &'a Command,
    tenants: BTreeSet<&'a str>,
    gateways: u64,
    by: Vec<String>,
    differs: bool,
    /// The first place it has in what a tenant declares.
    place: usize,
}

impl<'a> Counted<'a> {
    fn new(command: &'a Command) -> Self {
        let (tenants, by) = (BTreeSet::new(), Vec::new());
        Self { command, tenants, gateways: 0, by, differs: false, place: usize::MAX }
    }

    fn take(&mut self, by: &Declaring<'a>, command: &Command) {
        self.tenants.insert(by.tenant);
        self.gateways += 1;
        self.differs |= command.options != self.command.options;
        if self.by.len() < MAX_NAMED {
            self.by.push(format!("{}/{}", by.tenant, by.gateway));
        }
    }
}

impl From<Counted<'_>> for Declared {
    fn from(counted: Counted<'_>) -> Self {
        let Counted { command, tenants, gateways, by, differs, .. } = counted;
        let mut command = command.clone();
        if differs {
            command.options = vec![free_text()];
        }
        Self { command, tenants: tenants.len() as u64, gateways, by, differs }
    }
}

/// What follows a command of which nobody can say more: any text, or none. It reaches the agent
/// as it was typed.
fn free_text() -> CommandOption {
    CommandOption {
        kind: TEXT,
        name: "args".into(),
        description: "What follows it".into(),
        ..CommandOption::default()
    }
}

/// What a provider takes.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Most commands of a bot.
    pub most: usize,
    /// Longest description, in characters.
    pub description: usize,
    /// Most bytes of all names and descriptions together, where it counts them.
    pub total: Option<usize>,
    /// Whether it knows what follows a command; then most characters of all that it shows of one.
    pub options: Option<usize>,
    /// Whether names may have hyphens; else they have underscores there.
    pub hyphens: bool,
    /// Names that are the connector's own there.
    pub reserved: &'static [&'static str],
}

/// A command that a provider is to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listed {
    /// The command, as the provider takes it.
    #[serde(flatten)]
    pub command: Command,
    /// Whether the operator configured it.
    pub own: bool,
    /// How many tenants declare it.
    pub tenants: u64,
    /// How many gateways.
    pub gateways: u64,
    /// Some of them, as `tenant/gateway`.
    pub by: Vec<String>,
}

/// A command that a provider cannot show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LeftOut {
    /// The command.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// What a provider is to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What it can show.
    pub commands: Vec<Listed>,
    /// What it cannot.
    pub left_out: Vec<LeftOut>,
}

/// What a provider is to show of an operator's own commands and of those that gateways declare.
pub fn wanted(own: &[Command], declared: &[Declared], rules: &Rules) -> Wanted {
    let mut wanted = Wanted::default();
    let of = |command: &Command| declared.iter().find(|it| it.command.name == command.name);
    for command in own {
        let counted = of(command).cloned().unwrap_or_default();
        wanted.add(command, true, counted, rules);
    }
    for one in declared.iter().filter(|one| own.iter().all(|it| it.name != one.command.name)) {
        wanted.add(&one.command, false, one.clone(), rules);
    }
    wanted.fit(rules, 0);
    wanted
}

impl Wanted {
    fn add(&mut self, command: &Command, own: bool, counted: Declared, rules: &Rules) {
        let fitted = fitted(command, rules);
        let twin = self.commands.iter().find(|it| it.command.name == fitted.name);
        let why = if rules.reserved.contains(&fitted.name.as_str()) {
            "the server answers this one itself".to_owned()
        } else if let Some(twin) = twin {
            format!("it would be the same as /{}", twin.command.name)
        } else if self.commands.len() >= rules.most {
            format!("there is room for {}", rules.most)
        } else {
            let Declared { tenants, gateways, by, .. } = counted;
            self.commands.push(Listed { command: fitted, own, tenants, gateways, by });
            return;
        };
        self.left_out.push(LeftOut { name: command.name.clone(), why });
    }

    /// Makes all together no more than a provider takes, of which so many bytes are taken by others:
    /// descriptions of gateways get shorter, the operator's only where those alone are too much;
    /// then the last are left out.
    pub(super) fn fit(&mut self, rules: &Rules, taken: usize) {
        let Some(total) = rules.total else { return };
        let room = total.saturating_sub(taken);
        for most in SHORTER.into_iter().filter(|most| *most < rules.description) {
            if bytes(&self.commands) <= room {
                return;
            }
            let own = bytes(self.commands.iter().filter(|it| it.own));
            for one in self.commands.iter_mut().filter(|it| !it.own || own > room) {
                one.command.description = cut(&one.command.description, most);
            }
        }
        let mut last = Vec::new();
        while bytes(&self.commands) > room
            && let Some(one) = self.commands.pop()
        {
            let why = format!("there is room for {total} bytes of names and descriptions");
            last.push(LeftOut { name: one.command.name, why });
        }
        self.left_out.extend(last.into_iter().rev());
    }
}

/// The bytes of names and descriptions.
fn bytes<'a>(commands: impl IntoIterator<Item = &'a Listed>) -> usize {
    commands.into_iter().map(|it| size(&it.command)).sum()
}

/// The bytes of a command's name and description.
pub(super) fn size(command: &Command) -> usize {
    command.name.len() + command.description.len()
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect::<String>().trim_end().to_owned()
}

/// A command as a provider takes it.
fn fitted(command: &Command, rules: &Rules) -> Command {
    let name = if rules.hyphens { command.name.clone() } else { without_hyphens(&command.name) };
    let description = cut(&command.description, rules.description);
    let mut fitted = Command { name, description, options: Vec::new() };
    if let Some(most) = rules.options {
        fitted.options = command.options.clone();
        if characters(&fitted) > most {
            fitted.options = vec![free_text()];
        }
    }
    fitted
}

/// How much a provider has to show of a command.
fn characters(command: &Command) -> usize {
    fn of(options: &[CommandOption]) -> usize {
        let of_choices = |option: &CommandOption| -> usize {
            let values = option.choices.iter();
            values
                .map(|it| {
                    it.name.chars().count() + it.value.as_str().map_or(8, |value| value.chars().count())
                })
                .sum()
        };
        let of_one = |option: &CommandOption| {
            let words = option.name.chars().count() + option.description.chars().count();
            words + of_choices(option) + of(&option.options)
        };
        options.iter().map(of_one).sum()
    }
    command.name.chars().count() + command.description.chars().count() + of(&command.options)
}
