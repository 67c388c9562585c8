//! Bots: how they are, what they can do, what they could not read.

use super::{count, harmless, moment, rows, table, word};
use serde_json::Value;
use std::fmt::Write as _;

/// Stretches that could not be read, shown per bot; `--json` has more of them.
const MISSED: usize = 3;

const NO_BOT: &str = "No bot is configured. Add a [[bots]] block to angelia.toml for each; \
    angelia config print --default shows how.\n";

pub(crate) fn bots(answer: &Value) -> String {
    let bots = rows(answer, "bots");
    let running = answer["running"] == true;
    if bots.is_empty() {
        return NO_BOT.into();
    }
    let cells = bots.iter().map(|bot| {
        let health = &bot["health"];
        let names = ["name", "platform", "id"].map(|name| word(bot, name));
        let times = ["since", "heard_at"].map(|name| moment(&health[name]));
        [names.to_vec(), vec![state(bot, running)], times.to_vec()].concat()
    });
    let mut text = table(&["NAME", "PLATFORM", "ID", "STATE", "SINCE", "LAST HEARD"], cells);
    bots.iter().for_each(|bot| remarks(&mut text, bot, running));
    if !running {
        text.push_str(
            "\nThe server is not running, so this is what is configured. Start it with: angelia serve\n",
        );
    }
    text
}

fn state(bot: &Value, running: bool) -> String {
    match (word(&bot["health"], "state"), bot["served"] == false) {
        (_, true) if running => "not served".into(),
        (_, true) => "not running".into(),
        (state, _) if state.is_empty() => "built in".into(),
        (state, _) => state,
    }
}

/// What an operator should know of a bot beside its line in the table, with the next step.
fn remarks(text: &mut String, bot: &Value, running: bool) {
    let who = format!("{}:{}", word(bot, "platform"), word(bot, "name"));
    let mut say = |what: String| {
        let _ = writeln!(text, "{who}: {what}");
    };
    if bot["health"]["why"].is_string() {
        say(word(&bot["health"], "why"));
    }
    if running && bot["served"] == false {
        say("is configured since the server was started; restart it to take it up".into());
    }
    if bot["quarantined"].as_u64().unwrap_or_default() > 0 {
        let id = format!("{}:{}", word(bot, "platform"), word(bot, "id"));
        say(format!(
            "{} could not be read; see: angelia bot quarantine list --bot {id}",
            count(bot, "quarantined", "update")
        ));
    }
    let missed = rows(bot, "missed");
    for stretch in missed.iter().take(MISSED) {
        let place = match word(stretch, "chat_id") {
            chat if chat.is_empty() => "somewhere".to_owned(),
            chat => format!("in chat {chat}"),
        };
        let (since, until) = (moment(&stretch["since"]), moment(&stretch["until"]));
        say(format!("may have missed messages {place}, {since} to {until}: {}", word(stretch, "why")));
    }
    match missed.len().saturating_sub(MISSED) {
        0 => {}
        1 => say("and 1 more stretch; see it with --json".into()),
        more => say(format!("and {more} more stretches; see them with --json")),
    }
    if bot["health"].is_object() && bot["routes"] == 0 {
        say("no route leads here, so nobody is answered; see: angelia route add --help".into());
    }
}

pub(crate) fn checkups(answer: &Value) -> String {
    let bots = rows(answer, "bots");
    if bots.is_empty() {
        return NO_BOT.into();
    }
    let mut text = String::new();
    for bot in bots {
        let identity = match word(bot, "identity") {
            unknown if unknown.is_empty() => String::new(),
            identity => format!(", {identity}"),
        };
        let _ = writeln!(
            text,
            "{} bot {} ({}){identity}",
            word(bot, "platform"),
            word(bot, "name"),
            word(bot, "id")
        );
        for finding in rows(bot, "findings") {
            let mark = match finding["verdict"].as_str() {
                Some("good") => '✓',
                Some("limited") => '!',
                _ => '✗',
            };
            let _ = writeln!(text, "  {mark} {}", word(finding, "what"));
            if !finding["next"].is_null() {
                let _ = writeln!(text, "    next: {}", word(finding, "next"));
            }
        }
    }
    text
}

/// The commands that people see, and how they differ from the configured ones.
pub(crate) fn commands(answer: &Value) -> String {
    let mut text = String::new();
    for bot in rows(answer, "bots") {
        let _ = writeln!(text, "{} bot {}", word(bot, "platform"), word(bot, "name"));
        for command in rows(bot, "commands") {
            let options = rows(command, "options").iter().map(|option| match option["required"] == true {
                true => format!(" <{}>", word(option, "name")),
                false => format!(" [{}]", word(option, "name")),
            });
            let options: String = options.collect();
            let _ = writeln!(text, "  /{}{options}  {}", word(command, "name"), word(command, "description"));
        }
        if rows(bot, "commands").is_empty() {
            text.push_str("  none\n");
        }
        let names = |key: &str| {
            let names = bot[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(|name| format!("/{}", harmless(name))).collect::<Vec<_>>().join(", ")
        };
        let missing = names("missing");
        if !missing.is_empty() {
            let _ = writeln!(text, "  not registered: {missing}; next: angelia bot commands push");
        }
        let foreign = names("foreign");
        if !foreign.is_empty() {
            let _ = writeln!(text, "  not configured: {foreign}; angelia bot commands push takes them away");
        }
    }
    if answer["pushed"] == true {
        text.push_str("\nRegistered. An open Discord window may have to be reloaded to show them.\n");
    }
    text
}

pub(crate) fn quarantine(answer: &Value) -> String {
    let rows = rows(answer, "quarantine");
    if rows.is_empty() {
        return "Nothing is in quarantine: every update could be read.\n".into();
    }
    let cells = rows.iter().map(|row| {
        let bot = format!("{}:{}", word(row, "platform"), word(row, "bot"));
        vec![word(row, "id"), bot, moment(&row["at"]), word(row, "what"), word(row, "why")]
    });
    table(&["NUMBER", "BOT", "CAME", "UPDATE", "WHY"], cells)
}

pub(crate) fn quarantined(answer: &Value) -> String {
    let bot = format!("{}:{}", word(answer, "platform"), word(answer, "bot"));
    let (at, what, why) = (moment(&answer["at"]), word(answer, "what"), word(answer, "why"));
    let raw: Vec<String> = answer["raw"].as_str().unwrap_or_default().lines().map(harmless).collect();
    format!("{what} for {bot}, {at}\ncould not be read: {why}\n\n{}\n", raw.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bot_is_shown_with_what_is_wrong_and_what_to_do() {
        let mut answer = json!({ "running": true, "bots": [
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
            { "platform": "telegram", "id": "76", "name": "telegram", "health": null, "served": false },
        ]});
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
            "telegram:telegram: is configured since the server was started; restart",
        ] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
        assert!(!text.contains("webchat:webchat:") && !text.contains("not running"), "{text}");
        answer["running"] = false.into();
        let text = bots(&answer);
        assert!(text.contains("76       not running\n") && text.contains("angelia serve"), "{text}");
        assert!(bots(&json!({ "running": true, "bots": [] })).contains("[[bots]]"));
    }

    #[test]
    fn findings_have_marks_and_next_steps() {
        let text = checkups(&json!({ "bots": [{
            "platform": "discord", "id": "12", "name": "main", "identity": "Angel#1",
            "findings": [
                { "verdict": "good", "what": "the token is good", "next": null },
                { "verdict": "limited", "what": "no message text", "next": "turn it on" },
                { "verdict": "bad", "what": "no server", "next": "invite it" },
            ],
        }]}));
        let expected = "discord bot main (12), Angel#1\n  ✓ the token is good\n  ! no message text\n    \
                        next: turn it on\n  ✗ no server\n    next: invite it\n";
        assert_eq!(text, expected);
        assert!(checkups(&json!({ "bots": [] })).starts_with("No bot is configured."));
    }

    #[test]
    fn commands_are_shown_with_what_differs() {
        let text = commands(&json!({ "pushed": false, "bots": [{
            "platform": "discord", "name": "main", "missing": ["new"], "foreign": ["old"],
            "commands": [
                { "name": "ask", "description": "Ask", "options": [{ "name": "question", "required": true }] },
                { "name": "old", "description": "Gone", "options": [] },
            ],
        }]}));
        let expected = "discord bot main\n  /ask <question>  Ask\n  /old  Gone\n  not registered: /new; next: \
                        angelia bot commands push\n  not configured: /old; angelia bot commands push takes them away\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_could_not_be_read_is_shown_as_it_came_but_harmless() {
        let row = json!({
            "id": 17, "platform": "telegram", "bot": "76", "what": "update 5", "why": "no chat", "at": 0,
            "raw": "{\n\"a\": \"\u{1b}[2J\"}",
        });
        let text = quarantined(&row);
        assert!(text.starts_with("update 5 for telegram:76, 1970-01-01"), "{text}");
        assert!(text.ends_with("\n\n{\n\"a\": \"\\u{1b}[2J\"}\n"), "{text}");
        let text = quarantine(&json!({ "quarantine": [row] }));
        assert!(
            text.contains("17      telegram:76  1970-01-01 00:00:00.000Z  update 5  no chat\n"),
            "{text}"
        );
        assert!(quarantine(&json!({ "quarantine": [] })).starts_with("Nothing"));
    }
}
