//! Bots: how they are, what they can do, what they could not read.

use super::{harmless, moment, perhaps, plural, table};
use angelia_connector::admin::types::{Bot, OpenedUpdate, Quarantine};
use angelia_core::store::Missed;
use angelia_platforms::{Checkup, Finding, Verdict};
use serde::Serialize;
use std::fmt::Write as _;

/// Stretches that could not be read, shown per bot; `--json` has more of them.
const MISSED: usize = 3;

const NO_BOT: &str = "No bot is configured. Add a [[bots]] block to angelia.toml for each; \
    angelia config print --default shows how.\n";

/// A bot as the configuration names it.
#[derive(Serialize)]
pub(crate) struct NamedBot {
    pub(crate) platform: String,
    pub(crate) id: String,
    pub(crate) name: String,
}

/// The bots of a running server, and those that are only configured.
#[derive(Serialize)]
pub(crate) struct BotList {
    pub(crate) bots: Vec<ListedBot>,
    pub(crate) running: bool,
    /// Nodes that did not tell how those are that they read.
    pub(crate) not_asked: Vec<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ListedBot {
    /// As the server tells of it.
    Served(Bot),
    /// As it is configured.
    Unserved {
        #[serde(flatten)]
        bot: NamedBot,
        health: (),
        served: bool,
    },
}

/// What checks found.
#[derive(Serialize)]
pub(crate) struct Checkups {
    pub(crate) bots: Vec<CheckedBot>,
}

#[derive(Serialize)]
pub(crate) struct CheckedBot {
    #[serde(flatten)]
    pub(crate) bot: NamedBot,
    pub(crate) usable: bool,
    #[serde(flatten)]
    pub(crate) checkup: Checkup,
}

impl ListedBot {
    fn names(&self) -> [String; 3] {
        let (name, platform, id) = match self {
            Self::Served(bot) => (&bot.name, &bot.platform, &bot.id),
            Self::Unserved { bot, .. } => (&bot.name, &bot.platform, &bot.id),
        };
        [name, platform, id].map(|word| harmless(word))
    }

    fn state(&self, running: bool) -> &'static str {
        match self {
            Self::Unserved { .. } if running => "not served",
            Self::Unserved { .. } => "not running",
            Self::Served(bot) => bot.health.as_ref().map_or("built in", |health| health.state.as_str()),
        }
    }
}

pub(crate) fn bots(answer: &BotList) -> String {
    let BotList { bots, running, not_asked } = answer;
    if bots.is_empty() {
        return NO_BOT.into();
    }
    let cells = bots.iter().map(|listed| {
        let health = match listed {
            ListedBot::Served(bot) => bot.health.as_ref(),
            ListedBot::Unserved { .. } => None,
        };
        let since = moment(health.map(|health| health.since));
        let heard = moment(health.and_then(|health| health.heard_at));
        [listed.names().to_vec(), vec![listed.state(*running).into(), since, heard]].concat()
    });
    let mut text = table(&["NAME", "PLATFORM", "ID", "STATE", "SINCE", "LAST HEARD"], cells);
    for bot in bots {
        let [name, platform, _] = bot.names();
        for remark in remarks(bot, *running) {
            let _ = writeln!(text, "{platform}:{name}: {remark}");
        }
    }
    if !not_asked.is_empty() {
        let nodes: Vec<String> = not_asked.iter().map(|node| harmless(node)).collect();
        let nodes = nodes.join(", ");
        let _ =
            writeln!(text, "{nodes} did not answer in time: how the bots are that it reads is not known.");
    }
    if !running {
        text.push_str(
            "\nThe server is not running, so this is what is configured. Start it with: angelia serve\n",
        );
    }
    text
}

/// What an operator should know of a bot beside its line in the table, with the next step.
fn remarks(listed: &ListedBot, running: bool) -> Vec<String> {
    let bot = match listed {
        ListedBot::Served(bot) => bot,
        ListedBot::Unserved { .. } if running => {
            return vec!["is configured since the server was started; restart it to take it up".into()];
        }
        ListedBot::Unserved { .. } => return Vec::new(),
    };
    let why = bot.health.iter().filter_map(|health| health.why.as_deref());
    let mut say: Vec<String> = why.map(harmless).collect();
    if bot.quarantined > 0 {
        let [_, platform, id] = listed.names();
        say.push(format!(
            "{} could not be read; see: angelia bot quarantine list --bot {platform}:{id}",
            plural(bot.quarantined, "update")
        ));
    }
    say.extend(bot.missed.iter().take(MISSED).map(missed));
    match bot.missed.len().saturating_sub(MISSED) {
        0 => {}
        1 => say.push("and 1 more stretch; see it with --json".into()),
        more => say.push(format!("and {more} more stretches; see them with --json")),
    }
    if bot.health.is_some() && bot.routes == 0 {
        say.push("no route leads here, so nobody is answered; see: angelia route add --help".into());
    }
    say
}

fn missed(stretch: &Missed) -> String {
    let place = match perhaps(&stretch.chat_id) {
        chat if chat.is_empty() => "somewhere".to_owned(),
        chat => format!("in chat {chat}"),
    };
    let (since, until) = (moment(stretch.since), moment(stretch.until));
    format!("may have missed messages {place}, {since} to {until}: {}", harmless(&stretch.why))
}

pub(crate) fn checkups(answer: &Checkups) -> String {
    if answer.bots.is_empty() {
        return NO_BOT.into();
    }
    let mut text = String::new();
    for CheckedBot { bot, checkup, .. } in &answer.bots {
        let identity = match perhaps(&checkup.identity) {
            unknown if unknown.is_empty() => String::new(),
            identity => format!(", {identity}"),
        };
        let [platform, name, id] = [&bot.platform, &bot.name, &bot.id].map(|word| harmless(word));
        let _ = writeln!(text, "{platform} bot {name} ({id}){identity}");
        for Finding { verdict, what, next } in &checkup.findings {
            let mark = match verdict {
                Verdict::Good => '✓',
                Verdict::Limited => '!',
                Verdict::Bad => '✗',
            };
            let _ = writeln!(text, "  {mark} {}", harmless(what));
            if let Some(next) = next {
                let _ = writeln!(text, "    next: {}", harmless(next));
            }
        }
    }
    text
}

pub(crate) fn quarantine(answer: &Quarantine) -> String {
    if answer.quarantine.is_empty() {
        return "Nothing is in quarantine: every update could be read.\n".into();
    }
    let cells = answer.quarantine.iter().map(|row| {
        let bot = format!("{}:{}", harmless(&row.platform), harmless(&row.bot));
        vec![row.id.to_string(), bot, moment(row.at), harmless(&row.what), harmless(&row.why)]
    });
    table(&["NUMBER", "BOT", "CAME", "UPDATE", "WHY"], cells)
}

pub(crate) fn quarantined(answer: &OpenedUpdate) -> String {
    let update = &answer.update;
    let bot = format!("{}:{}", harmless(&update.platform), harmless(&update.bot));
    let (at, what, why) = (moment(update.at), harmless(&update.what), harmless(&update.why));
    let raw: Vec<String> = answer.raw.lines().map(harmless).collect();
    format!("{what} for {bot}, {at}\ncould not be read: {why}\n\n{}\n", raw.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use serde_json::{Value, json};

    fn named(platform: &str, id: &str, name: &str) -> NamedBot {
        NamedBot { platform: platform.into(), id: id.into(), name: name.into() }
    }

    #[test]
    fn a_bot_is_shown_with_what_is_wrong_and_what_to_do() {
        let served = json!([
            { "platform": "webchat", "id": "webchat", "name": "webchat", "health": null, "routes": 1 },
            {
                "platform": "discord", "id": "12", "name": "main", "routes": 0, "quarantined": 1,
                "health": { "state": "stopped", "since": 0, "heard_at": 1000, "why": "4014:\u{1b} turn intents on", "counts": {} },
                "missed": [
                    { "chat_id": "c1", "after": null, "since": 0, "until": 1000, "why": "too old" },
                    { "chat_id": null, "after": null, "since": 0, "until": 1000, "why": "too old" },
                    { "chat_id": "c3", "since": 0, "until": 0, "why": "" },
                    { "chat_id": "c4", "since": 0, "until": 0, "why": "" },
                ],
            },
        ]);
        let mut listed: Vec<ListedBot> =
            read::<Vec<Bot>>(served).into_iter().map(ListedBot::Served).collect();
        let telegram = named("telegram", "76", "telegram");
        listed.push(ListedBot::Unserved { bot: telegram, health: (), served: false });
        let mut answer = BotList { running: true, bots: listed, not_asked: vec!["node-2".into()] };
        let text = bots(&answer);
        for line in [
            "webchat   webchat   webchat  built in\n",
            "main      discord   12       stopped     1970-01-01 00:00:00.000Z  1970-01-01 00:00:01.000Z\n",
            "telegram  telegram  76       not served\n",
            "\ndiscord:main: 4014:\\u{1b} turn intents on\n",
            "\ndiscord:main: 1 update could not be read; see: angelia bot quarantine list --bot discord:12\n",
            "discord:main: may have missed messages in chat c1, 1970-01-01 00:00:00.000Z to",
            "discord:main: may have missed messages somewhere, ",
            "discord:main: and 1 more stretch; ",
            "discord:main: no route leads here",
            "\nnode-2 did not answer in time: how the bots are",
            "telegram:telegram: is configured since the server was started; restart",
        ] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
        assert!(!text.contains("webchat:webchat:") && !text.contains("not running"), "{text}");
        answer.running = false;
        let text = bots(&answer);
        assert!(text.contains("76       not running\n") && text.contains("angelia serve"), "{text}");
        assert!(bots(&BotList { running: true, bots: vec![], not_asked: vec![] }).contains("[[bots]]"));
    }

    #[test]
    fn findings_have_marks_and_next_steps() {
        let mut checkup = Checkup { identity: Some("Angel#1".into()), ..Checkup::default() };
        checkup.good("the token is good");
        checkup.limited("no message text", "turn it on");
        checkup.bad("no server", "invite it");
        let bot = CheckedBot { bot: named("discord", "12", "main"), usable: false, checkup };
        let text = checkups(&Checkups { bots: vec![bot] });
        let expected = "discord bot main (12), Angel#1\n  ✓ the token is good\n  ! no message text\n    \
                        next: turn it on\n  ✗ no server\n    next: invite it\n";
        assert_eq!(text, expected);
        assert!(checkups(&Checkups { bots: vec![] }).starts_with("No bot is configured."));
    }

    #[test]
    fn what_could_not_be_read_is_shown_as_it_came_but_harmless() {
        let row: Value = json!({
            "id": 17, "platform": "telegram", "bot": "76", "what": "update 5", "why": "no chat", "at": 0,
            "raw": "{\n\"a\": \"\u{1b}[2J\"}",
        });
        let text = quarantined(&read(row.clone()));
        assert!(text.starts_with("update 5 for telegram:76, 1970-01-01"), "{text}");
        assert!(text.ends_with("\n\n{\n\"a\": \"\\u{1b}[2J\"}\n"), "{text}");
        let text = quarantine(&read(json!({ "quarantine": [row] })));
        assert!(
            text.contains("17      telegram:76  1970-01-01 00:00:00.000Z  update 5  no chat\n"),
            "{text}"
        );
        assert!(quarantine(&read(json!({ "quarantine": [] }))).starts_with("Nothing"));
    }
}
