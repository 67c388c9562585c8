//! Inboxes and their entries.

use super::{harmless, moment, table};
use angelia_connector::admin::types::{Entries, Inboxes, Purged, Redriven};
use std::fmt::Write as _;

pub(crate) fn inboxes(answer: &Inboxes) -> String {
    let cells = answer.inboxes.iter().map(|inbox| {
        let counts = [inbox.waiting, inbox.bytes, inbox.dead].map(|count| count.to_string());
        let names = vec![harmless(&inbox.tenant), harmless(&inbox.name)];
        [names, counts.to_vec(), vec![moment(inbox.oldest_at)]].concat()
    });
    let mut text = table(&["TENANT", "INSTANCE", "WAITING", "BYTES", "DEAD", "OLDEST"], cells);
    for inbox in &answer.inboxes {
        for gap in &inbox.gaps {
            let _ = writeln!(
                text,
                "lost to the quota: {} of {} in chat {}, {} to {}",
                gap.lost,
                harmless(&inbox.name),
                harmless(&gap.chat_id),
                moment(gap.first_at),
                moment(gap.last_at)
            );
        }
    }
    text
}

pub(crate) fn entries(answer: &Entries) -> String {
    if answer.entries.is_empty() {
        return "nothing\n".into();
    }
    let cells = answer.entries.iter().map(|entry| {
        let words = [&entry.tenant, &entry.name, &entry.kind, &entry.chat_id, &entry.message_id];
        let counts = vec![entry.bytes.to_string(), entry.strikes.to_string(), moment(entry.received_at)];
        [vec![entry.seq.buffer_id()], words.map(|word| harmless(word)).to_vec(), counts].concat()
    });
    table(&["ENTRY", "TENANT", "INSTANCE", "KIND", "CHAT", "MESSAGE", "BYTES", "STRIKES", "RECEIVED"], cells)
}

pub(crate) fn redriven(answer: &Redriven) -> String {
    format!("{} put back in line\n", answer.redriven)
}

pub(crate) fn purged(answer: &Purged) -> String {
    format!("{} thrown away\n", answer.purged)
}
