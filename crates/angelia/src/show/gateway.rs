//! Gateways, and how they are doing.

use super::clock::leap;
use super::key::size;
use super::{harmless, moment, rows, state, table, word, words};
use serde_json::Value;
use std::fmt::Write as _;

pub(crate) fn created_gateway(answer: &Value) -> String {
    format!(
        "Gateway {} of tenant {} is ready. Give its agent these lines (the secret is not shown again):\n\n{}\n\n\
         For hermes-agent, put them into ~/.hermes/.env and run: hermes gateway run\n",
        word(answer, "gateway_id"),
        word(answer, "tenant"),
        words(answer, "env").join("\n")
    )
}

pub(crate) fn gateways(answer: &Value) -> String {
    let rows = rows(answer, "gateways");
    if rows.is_empty() {
        return "There is no gateway yet. Make one with: angelia gateway create\n".into();
    }
    let cells = rows
        .iter()
        .map(|row| vec![word(row, "tenant"), word(row, "gateway_id"), state(row), word(row, "wake_url")]);
    table(&["TENANT", "GATEWAY", "STATE", "WAKE URL"], cells)
}

pub(crate) fn gateway(answer: &Value) -> String {
    let fronts =
        rows(answer, "fronts").iter().map(|bot| format!("{}:{}", word(bot, "platform"), word(bot, "bot")));
    let fields = [
        ("tenant", word(answer, "tenant")),
        ("gateway_id", word(answer, "gateway_id")),
        ("display_name", word(answer, "display_name")),
        ("instance", word(answer, "instance")),
        ("fronts", fronts.collect::<Vec<_>>().join(", ")),
        ("wake_url", word(answer, "wake_url")),
        ("enrolled by", word(answer, "subject")),
        ("state", state(answer)),
        ("default", word(answer, "default")),
        ("revoked", moment(&answer["revoked_at"])),
    ];
    let shown = fields.iter().filter(|(name, value)| *name != "revoked" || !value.is_empty());
    shown.map(|(name, value)| format!("{name:<13} {value}").trim_end().to_owned() + "\n").collect()
}

pub(crate) fn revoked_gateway(answer: &Value) -> String {
    format!(
        "Gateway {} of tenant {} is revoked. Its connection is closed and its secrets are void.\n",
        word(answer, "gateway_id"),
        word(answer, "tenant")
    )
}

pub(crate) fn status(answer: &Value) -> String {
    let ready = if answer["ready"] == true { "ready" } else { "NOT READY" };
    let mut text = format!(
        "{ready}, {} sockets, {} pushed, {} settled\n",
        answer["sockets"], answer["pushed"], answer["settled"]
    );
    text.push_str(&disk(&answer["disk"]));
    let cells = rows(answer, "gateways").iter().map(|row| {
        let counts = ["waiting", "dead", "lost"].map(|name| word(row, name));
        [vec![word(row, "tenant"), word(row, "gateway_id"), state(row)], counts.to_vec()].concat()
    });
    text.push_str(&table(&["TENANT", "GATEWAY", "STATE", "WAITING", "DEAD", "LOST"], cells));
    for row in rows(answer, "gateways") {
        let missing: Vec<&str> = rows(row, "not_served").iter().filter_map(Value::as_str).collect();
        if !missing.is_empty() {
            let (tenant, id) = (word(row, "tenant"), word(row, "gateway_id"));
            let _ = writeln!(
                text,
                "{tenant}/{id} answers for {}, which this server does not have",
                missing.join(", ")
            );
        }
    }
    for row in rows(answer, "awaiting_first") {
        let (tenant, lost) = (word(row, "tenant"), word(row, "lost"));
        let lost = if lost == "0" { String::new() } else { format!(", {lost} were lost to the quota") };
        let _ = writeln!(
            text,
            "tenant {tenant} has no gateway yet: {} for its first one{lost}; make it with: \
             angelia gateway create --tenant {tenant}",
            waits(row)
        );
    }
    for row in rows(answer, "memory") {
        let bytes = |name: &str| size(row[name].as_u64().unwrap_or_default());
        let tenant = word(row, "tenant");
        let _ = writeln!(
            text,
            "tenant {tenant} holds {} of the {} of memory it may; if that lasts, see whose: angelia gateway list",
            bytes("held"),
            bytes("of")
        );
    }
    text.push_str(&leap(&answer["clock"]).unwrap_or_default());
    if let Some(what) = answer["database_damage"].as_str() {
        let _ = writeln!(
            text,
            "THE DATABASE IS DAMAGED: {}. Stop the server, keep the files, and restore a backup.",
            harmless(what)
        );
    }
    for row in rows(answer, "bots") {
        let (platform, name, state) = (word(row, "platform"), word(row, "name"), word(row, "state"));
        let why = row["why"].as_str().map(|why| format!(": {}", harmless(why))).unwrap_or_default();
        let _ = writeln!(text, "the {platform} bot {name} is {state}{why}; see angelia bot list");
    }
    for row in rows(answer, "damaged") {
        let (kind, tenant, id) = (word(row, "kind"), word(row, "tenant"), word(row, "gateway_id"));
        let _ = writeln!(
            text,
            "DAMAGED: the {kind} {tenant}/{id}: {}; make a new one with: angelia gateway rotate --tenant {tenant} {id}",
            word(row, "error")
        );
    }
    for action in rows(answer, "ambiguous") {
        let (op, chat, why) = (word(action, "op"), word(action, "chat_id"), word(action, "error"));
        let at = moment(&action["accepted_at"]);
        let _ = writeln!(text, "may or may not have been sent: a {op} to chat {chat}, {at}: {why}");
    }
    text
}

/// `1 message waits`, `2 messages wait`.
fn waits(row: &Value) -> String {
    match row["waiting"].as_u64().unwrap_or_default() {
        1 => "1 message waits".into(),
        many => format!("{many} messages wait"),
    }
}

/// What an operator should know of the disk; nothing if all is well.
fn disk(report: &Value) -> String {
    let bytes = |name: &str| report[name].as_u64().unwrap_or_default();
    let (free, reserve, wanted) = (bytes("free"), bytes("reserve"), bytes("reserve_wanted"));
    if report["short"] == true {
        return format!(
            "THE DISK IS FULL: {} free, {} in reserve. Nothing is taken in, and nothing new is pushed.\n\
             next: end whoever fills it (angelia gateway revoke, angelia tenant remove), purge what is not\n\
             needed (angelia inbox purge), or make the disk larger; the server goes on by itself\n",
            size(free),
            size(reserve)
        );
    }
    if wanted > 0 && reserve < wanted {
        return format!(
            "the disk is nearly full: {} free, {} of {} in reserve for the operator\n",
            size(free),
            size(reserve),
            size(wanted)
        );
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_gateway_is_shown_with_what_it_fronts_and_without_control_characters() {
        let text = gateway(&json!({
            "tenant": "acme", "gateway_id": "gw", "display_name": "Gus\u{1b}[2J", "instance": "gw",
            "subject": "https://id/ abc", "connected": true, "default": false, "wake_url": null,
            "fronts": [{ "platform": "webchat", "bot": "webchat" }, { "platform": "sms", "bot": "+1" }],
        }));
        for line in [
            "tenant        acme\n",
            "fronts        webchat:webchat, sms:+1\n",
            "state         connected\n",
            "wake_url\n",
        ] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("revoked"), "{text}");
    }

    #[test]
    fn what_needs_an_eye_is_below_the_table() {
        let text = status(&json!({
            "ready": true, "sockets": 0, "pushed": 0, "settled": 0,
            "gateways": [{ "tenant": "acme", "gateway_id": "gw", "not_served": ["slack"] }],
            "memory": [{ "tenant": "globex", "held": 30 << 20, "of": 40 << 20 }],
            "awaiting_first": [{ "tenant": "new", "waiting": 1, "lost": 0 }, { "tenant": "late", "waiting": 2, "lost": 3 }],
            "clock": { "now": 0, "leap": "402 days ahead" }, "database_damage": "page 7 is lost",
            "bots": [{ "platform": "discord", "name": "main", "state": "down", "why": "no network" }],
            "damaged": [{ "kind": "secret of a gateway", "tenant": "acme", "gateway_id": "old", "error": "moved" }],
            "ambiguous": [{ "op": "send", "chat_id": "c1", "accepted_at": 0, "error": "no answer" }],
        }));
        assert!(
            text.contains("tenant new has no gateway yet: 1 message waits for its first one; make"),
            "{text}"
        );
        assert!(text.contains("2 messages wait for its first one, 3 were lost to the quota; make"), "{text}");
        assert!(text.contains("angelia gateway create --tenant late\n"), "{text}");
        assert!(text.contains("THE CLOCK LEAPT") && text.contains("402 days ahead"), "{text}");
        assert!(text.contains("tenant globex holds 30 MiB of the 40 MiB of memory it may"), "{text}");
        assert!(text.contains("THE DATABASE IS DAMAGED: page 7 is lost. Stop"), "{text}");
        assert!(!text.contains("disk"), "nothing is said of a disk that is well: {text}");
        assert!(text.contains("acme/gw answers for slack, which this server does not have\n"), "{text}");
        assert!(text.contains("the discord bot main is down: no network; see angelia bot list\n"), "{text}");
        assert!(text.contains("DAMAGED: the secret of a gateway acme/old: moved; make a new one"), "{text}");
        assert!(text.contains("a send to chat c1, 1970-01-01 00:00:00.000Z: no answer\n"), "{text}");
    }

    #[test]
    fn a_full_disk_is_told_with_what_to_do() {
        let report = |short: bool, free: u64, reserve: u64| {
            disk(&json!({ "short": short, "free": free, "reserve": reserve, "reserve_wanted": 16 << 20 }))
        };
        assert_eq!(report(false, 1 << 30, 16 << 20), "");
        assert!(report(false, 5 << 20, 0).contains("nearly full: 5 MiB free, 0 KiB of 16 MiB"));
        let full = report(true, 4096, 15 << 20);
        assert!(full.contains("FULL: 4 KiB free, 15 MiB in reserve") && full.contains("next: "), "{full}");
    }
}
