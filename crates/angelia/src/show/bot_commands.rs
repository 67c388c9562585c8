//! The commands of bots: what is there, what should be, and who wants it.

use super::bot::NamedBot;
use super::{harmless, plural};
use angelia_core::commands::{Change, LeftOut, Listed, Planned};
use serde::Serialize;
use std::fmt::Write as _;

/// Commands that found no place, shown per bot; `--json` has all of them.
const LEFT_OUT: usize = 10;

/// The commands of bots.
#[derive(Serialize)]
pub(crate) struct Commands {
    pub(crate) pushed: bool,
    pub(crate) bots: Vec<BotCommands>,
}

#[derive(Serialize)]
pub(crate) struct BotCommands {
    #[serde(flatten)]
    pub(crate) bot: NamedBot,
    /// What should be there, and how it differs from what was.
    pub(crate) commands: Vec<Planned>,
    /// There, and not wanted any more.
    pub(crate) removed: Vec<String>,
    /// There, and from neither here nor a gateway.
    pub(crate) elsewhere: Vec<String>,
    /// Wanted, but not to be shown.
    pub(crate) left_out: Vec<LeftOut>,
}

/// The commands that people see, and how they differ from those that are wanted.
pub(crate) fn commands(answer: &Commands) -> String {
    let mut text = String::new();
    for bot in &answer.bots {
        one(bot, answer.pushed, &mut text);
    }
    if answer.pushed {
        text.push_str("\nRegistered. An open Discord window may have to be reloaded to show them.\n");
    }
    text
}

fn one(answer: &BotCommands, pushed: bool, text: &mut String) {
    let BotCommands { bot, commands, removed, elsewhere, left_out } = answer;
    let _ = writeln!(text, "{} bot {}", harmless(&bot.platform), harmless(&bot.name));
    for Planned { listed, change } in commands {
        let mark = match change {
            Change::Same => ' ',
            Change::Added => '+',
            Change::Changed => '~',
        };
        let (name, description) = (harmless(&listed.command.name), harmless(&listed.command.description));
        let options = listed.command.options.iter().map(|option| {
            let name = harmless(&option.name);
            if option.required { format!(" <{name}>") } else { format!(" [{name}]") }
        });
        let _ = writeln!(
            text,
            "{mark} /{name}{}  {description}  ({})",
            options.collect::<String>(),
            whose(listed)
        );
    }
    for name in removed {
        let _ = writeln!(text, "- /{}  (nobody wants it any more)", harmless(name));
    }
    if commands.is_empty() && removed.is_empty() {
        text.push_str("  none\n");
    }
    if !elsewhere.is_empty() {
        let names: Vec<String> = elsewhere.iter().map(|name| format!("/{}", harmless(name))).collect();
        let names = names.join(", ");
        let _ = writeln!(
            text,
            "  from elsewhere: {names}; they stay, and angelia bot commands push takes them away"
        );
    }
    for LeftOut { name, why } in left_out.iter().take(LEFT_OUT) {
        let _ = writeln!(text, "  left out: /{}: {}", harmless(name), harmless(why));
    }
    if left_out.len() > LEFT_OUT {
        let _ = writeln!(text, "  left out: {} more; --json names them", left_out.len() - LEFT_OUT);
    }
    let differs = !removed.is_empty() || commands.iter().any(|it| it.change != Change::Same);
    if differs && !pushed {
        text.push_str("  next: angelia bot commands push, or wait for the server to do it\n");
    }
}

/// Who wants a command.
fn whose(listed: &Listed) -> String {
    let Listed { own, tenants, gateways, by, .. } = listed;
    let mut who: Vec<String> = own.then(|| "configured".to_owned()).into_iter().collect();
    if *gateways > 0 && *gateways <= by.len() as u64 {
        who.push(by.iter().map(|name| harmless(name)).collect::<Vec<_>>().join(", "));
    } else if *gateways > 0 {
        who.push(format!("{} of {}", plural(*gateways, "gateway"), plural(*tenants, "tenant")));
    }
    who.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::commands::{Command, CommandOption};

    fn planned(name: &str, change: Change, own: bool, by: &[&str]) -> Planned {
        let command = Command { name: name.into(), description: "Does it".into(), options: Vec::new() };
        let by: Vec<String> = by.iter().map(|it| (*it).to_owned()).collect();
        let (tenants, gateways) = (by.len() as u64, by.len() as u64);
        Planned { listed: Listed { command, own, tenants, gateways, by }, change }
    }

    #[test]
    fn commands_are_shown_with_what_differs_and_who_wants_them() {
        let mut ask = planned("ask", Change::Same, true, &[]);
        ask.listed.command.options =
            vec![CommandOption { name: "question".into(), required: true, ..CommandOption::default() }];
        let mut many = planned("help", Change::Changed, false, &["a/b"]);
        (many.listed.gateways, many.listed.tenants) = (12, 3);
        let bot = BotCommands {
            bot: NamedBot { platform: "discord".into(), id: "12".into(), name: "main".into() },
            commands: vec![ask, planned("model", Change::Added, false, &["acme/gw", "beta/gw"]), many],
            removed: vec!["old".into()],
            elsewhere: vec!["poll".into()],
            left_out: vec![LeftOut { name: "link".into(), why: "the server answers this one itself".into() }],
        };
        let text = commands(&Commands { pushed: false, bots: vec![bot] });
        let expected = "discord bot main\n  /ask <question>  Does it  (configured)\n\
            + /model  Does it  (acme/gw, beta/gw)\n~ /help  Does it  (12 gateways of 3 tenants)\n\
            - /old  (nobody wants it any more)\n  \
            from elsewhere: /poll; they stay, and angelia bot commands push takes them away\n  \
            left out: /link: the server answers this one itself\n  \
            next: angelia bot commands push, or wait for the server to do it\n";
        assert_eq!(text, expected);
    }
}
