//! Inboxes and their entries.

use super::{harmless, moment, table};
use angelia_connector::admin::types::{Entries, Inboxes, ListedMessage, Messages, Purged, Redriven};
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

pub(crate) fn messages(answer: &Messages) -> String {
    let mut text = match answer.messages.as_slice() {
        [] => "nothing\n".to_owned(),
        messages => table(&["AT", "STATE", "FROM", "MESSAGE", "FOR", "NOTE"], messages.iter().map(cells)),
    };
    if answer.more {
        text.push_str("There are older ones: --limit shows more, --since and --state fewer.\n");
    }
    text.push_str(&super::explain::not_asked(&answer.not_asked));
    text
}

/// The same, one below the other as they come.
pub(crate) fn message_lines(messages: &[ListedMessage]) -> String {
    messages.iter().map(|message| format!("{}\n", cells(message).join("  ").trim_end())).collect()
}

fn cells(message: &ListedMessage) -> Vec<String> {
    let from = match &message.person {
        Some(person) => format!("{} {} by {person}", message.platform, message.chat_id),
        None => format!("{} {}", message.platform, message.chat_id),
    };
    let receiver = match (message.tenant.as_str(), message.gateway.as_str()) {
        ("", _) => "nobody".to_owned(),
        (tenant, gateway) => format!("{tenant}/{gateway}"),
    };
    let words = [&message.state, &from, &message.message_id, &receiver];
    let note = harmless(message.note.as_deref().unwrap_or_default());
    [vec![moment(message.at)], words.map(|word| harmless(word)).to_vec(), vec![note]].concat()
}

pub(crate) fn redriven(answer: &Redriven) -> String {
    format!("{} put back in line\n", answer.redriven)
}

pub(crate) fn purged(answer: &Purged) -> String {
    format!("{} thrown away\n", answer.purged)
}
