//! Inboxes and their entries.

use super::{moment, rows, table, word};
use serde_json::Value;
use std::fmt::Write as _;

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
        let fields = ["tenant", "name", "kind", "chat_id", "message_id", "bytes", "strikes"];
        let fields = fields.map(|name| word(row, name));
        [vec![format!("b{}", row["seq"])], fields.to_vec(), vec![moment(&row["received_at"])]].concat()
    });
    table(&["ENTRY", "TENANT", "INSTANCE", "KIND", "CHAT", "MESSAGE", "BYTES", "STRIKES", "RECEIVED"], cells)
}

pub(crate) fn redriven(answer: &Value) -> String {
    format!("{} put back in line\n", answer["redriven"])
}

pub(crate) fn purged(answer: &Value) -> String {
    format!("{} thrown away\n", answer["purged"])
}
