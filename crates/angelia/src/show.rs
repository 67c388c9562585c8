//! Answers, as a person reads them.

use angelia_core::error::{Error, Result};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;

/// Writes to standard output; a reader who has seen enough is no error.
pub(crate) fn text(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::internal(error.to_string()))
        }
        _ => Ok(()),
    }
}

pub(crate) fn created_gateway(answer: &Value) -> String {
    let lines: Vec<&str> = rows(answer, "env").iter().filter_map(Value::as_str).collect();
    format!(
        "Gateway {} of tenant {} is ready. Give its agent these lines (the secret is not shown again):\n\n{}\n\n\
         For hermes-agent, put them into ~/.hermes/.env and run: hermes gateway run\n",
        word(answer, "gateway_id"),
        word(answer, "tenant"),
        lines.join("\n")
    )
}

pub(crate) fn created_tenant(answer: &Value) -> String {
    format!("Tenant {} is ready.\n", word(answer, "tenant"))
}

pub(crate) fn tenants(answer: &Value) -> String {
    rows(answer, "tenants").iter().filter_map(Value::as_str).map(|tenant| format!("{tenant}\n")).collect()
}

pub(crate) fn added_route(answer: &Value) -> String {
    format!("{} belongs to tenant {} now.\n", word(answer, "place"), word(answer, "tenant"))
}

pub(crate) fn removed_route(answer: &Value) -> String {
    format!("{} belongs to nobody now.\n", word(answer, "removed"))
}

pub(crate) fn routes(answer: &Value) -> String {
    let cells = rows(answer, "routes").iter().map(|row| {
        let allow: Vec<&str> = rows(row, "allow").iter().filter_map(Value::as_str).collect();
        vec![word(row, "place"), word(row, "tenant"), word(row, "gateway"), allow.join(",")]
    });
    table(&["PLACE", "TENANT", "GATEWAY", "ALLOW"], cells)
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
    let fields = ["tenant", "gateway_id", "instance", "wake_url"].map(|name| (name, word(answer, name)));
    let mut text: String = fields.iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect();
    let _ = writeln!(text, "{:<12} {}", "state", state(answer));
    let _ = writeln!(text, "{:<12} {}", "default", answer["default"]);
    if answer["revoked_at"].is_i64() {
        let _ = writeln!(text, "{:<12} {}", "revoked", moment(&answer["revoked_at"]));
    }
    text
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
    let cells = rows(answer, "gateways").iter().map(|row| {
        let counts = ["waiting", "dead", "lost"].map(|name| word(row, name));
        [vec![word(row, "tenant"), word(row, "gateway_id"), state(row)], counts.to_vec()].concat()
    });
    text.push_str(&table(&["TENANT", "GATEWAY", "STATE", "WAITING", "DEAD", "LOST"], cells));
    text
}

pub(crate) fn inboxes(answer: &Value) -> String {
    let mut text = table(
        &["TENANT", "INSTANCE", "WAITING", "BYTES", "DEAD", "OLDEST"],
        rows(answer, "inboxes").iter().map(|row| {
            let fields = ["tenant", "name", "waiting", "bytes", "dead"].map(|name| word(row, name));
            [fields.to_vec(), vec![moment(&row["oldest_at"])]].concat()
        }),
    );
    for inbox in rows(answer, "inboxes") {
        for gap in rows(inbox, "gaps") {
            let _ = writeln!(
                text,
                "lost to the quota: {} of {} in chat {}, {} to {}",
                gap["lost"],
                word(inbox, "name"),
                word(gap, "chat_id"),
                moment(&gap["first_at"]),
                moment(&gap["last_at"])
            );
        }
    }
    text
}

pub(crate) fn entries(answer: &Value) -> String {
    let rows = rows(answer, "entries");
    if rows.is_empty() {
        return "nothing\n".into();
    }
    let cells = rows.iter().map(|row| {
        let fields = ["kind", "chat_id", "message_id", "bytes", "strikes"].map(|name| word(row, name));
        [vec![format!("b{}", row["seq"])], fields.to_vec(), vec![moment(&row["received_at"])]].concat()
    });
    table(&["ENTRY", "KIND", "CHAT", "MESSAGE", "BYTES", "STRIKES", "RECEIVED"], cells)
}

pub(crate) fn redriven(answer: &Value) -> String {
    format!("{} put back in line\n", answer["redriven"])
}

pub(crate) fn purged(answer: &Value) -> String {
    format!("{} thrown away\n", answer["purged"])
}

pub(crate) fn invitation(answer: &Value) -> String {
    let (url, key) = (word(answer, "url"), word(answer, "key"));
    format!(
        "{user} may write in room {room} with this key (not shown again):\n\n{key}\n\n\
         Post:    curl -H 'Authorization: Bearer {key}' -d '{{\"text\": \"hello\"}}' {url}/messages\n\
         Follow:  curl -N -H 'Authorization: Bearer {key}' {url}/events\n",
        user = word(answer, "user"),
        room = word(answer, "room"),
    )
}

/// The legs of a message, each with the time since it was received.
pub(crate) fn story(answer: &Value) -> String {
    let mut text = String::new();
    for message in rows(answer, "messages") {
        let start = message["received_at"].as_i64().unwrap_or_default();
        let _ = writeln!(
            text,
            "{} {} from {} chat {}, for {} of tenant {} (entry b{})",
            word(message, "kind"),
            word(message, "message_id"),
            word(message, "platform"),
            word(message, "chat_id"),
            word(message, "instance_name"),
            word(message, "tenant"),
            message["seq"]
        );
        leg(&mut text, "received", &message["received_at"], start, "");
        leg(&mut text, "appended", &message["appended_at"], start, "");
        let sockets = format!("on {} socket(s)", message["pushes"].as_u64().unwrap_or_default().max(1));
        leg(&mut text, "pushed", &message["pushed_at"], start, &sockets);
        match word(message, "outcome") {
            outcome if outcome.is_empty() && message["pushed_at"].is_null() => {
                text.push_str("  waits for its gateway\n");
            }
            outcome if outcome.is_empty() => text.push_str("  waits for its acknowledgement\n"),
            outcome => leg(&mut text, "settled", &message["settled_at"], start, &outcome),
        }
        rows(message, "replies").iter().for_each(|reply| action(&mut text, reply, start));
    }
    for reply in rows(answer, "actions") {
        let start = reply["accepted_at"].as_i64().unwrap_or_default();
        let _ = writeln!(text, "written by the agent in chat {}", word(reply, "chat_id"));
        action(&mut text, reply, start);
    }
    text
}

fn action(text: &mut String, reply: &Value, start: i64) {
    let note = [word(reply, "message_id"), word(reply, "error")].join(" ");
    leg(text, &format!("{} accepted", word(reply, "op")), &reply["accepted_at"], start, "");
    leg(
        text,
        &format!("{} {}", word(reply, "op"), word(reply, "state")),
        &reply["finished_at"],
        start,
        note.trim(),
    );
}

fn leg(text: &mut String, name: &str, at: &Value, start: i64, note: &str) {
    if let Some(ms) = at.as_i64() {
        let _ = writeln!(text, "  {name:<16} {}  +{} ms  {note}", moment(at), ms - start);
    }
}

fn rows<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn state(row: &Value) -> String {
    match (row["connected"] == true, row["idle"] == true) {
        (true, _) => "connected".into(),
        (false, true) => "idle".into(),
        (false, false) => "away".into(),
    }
}

/// A stored time as UTC, to the millisecond.
fn moment(at: &Value) -> String {
    let Some(ms) = at.as_i64() else { return String::new() };
    let (days, ms_of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (s, ms) = (ms_of_day / 1000, ms_of_day % 1000);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{ms:03}Z", s / 3600, s / 60 % 60, s % 60)
}

/// Days since 1970 as a date, by the well-known era arithmetic.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for row in &all {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| format!("{cell:<width$}", width = width(column)))
            .collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn moments_are_utc() {
        assert_eq!(moment(&json!(0)), "1970-01-01 00:00:00.000Z");
        assert_eq!(moment(&json!(1_794_736_799_123i64)), "2026-11-15 09:59:59.123Z");
        assert_eq!(moment(&json!(951_782_400_000i64)), "2000-02-29 00:00:00.000Z");
    }

    #[test]
    fn a_story_names_every_leg() {
        let story = story(&json!({ "messages": [{
            "seq": 7, "kind": "message", "platform": "webchat", "chat_id": "web-a", "message_id": "wp1",
            "instance_name": "gw", "tenant": "default", "received_at": 1000, "appended_at": 1002,
            "pushed_at": 1003, "pushes": 1, "settled_at": 1010, "outcome": "acknowledged",
            "replies": [{ "op": "send", "state": "sent", "accepted_at": 1020, "finished_at": 1025, "message_id": "wa1" }],
        }]}));
        for leg in
            ["received", "appended", "pushed", "settled", "send accepted", "send sent", "+25 ms", "wa1"]
        {
            assert!(story.contains(leg), "{leg} in {story}");
        }
    }
}
