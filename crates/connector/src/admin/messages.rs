//! The last messages: what came, for whom, and how far it got. Never what it says.

use super::Admin;
use super::other_nodes;
use super::types::Dropped;
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::store::{JournalStore, MessageTrace};
use std::sync::Arc;

asked! {
    /// Which messages; all of what is said has to be so.
    pub struct WantedMessages {
        /// Of this chat, or place.
        pub chat: Option<String>,
        /// For this gateway.
        pub gateway: Option<String>,
        /// Of this tenant.
        pub tenant: Option<String>,
        /// From this platform.
        pub platform: Option<String>,
        /// By this person, as far as that is known: of those that reached nobody it is.
        pub person: Option<String>,
        /// `waiting`, `pushed`, `done` or `dropped`.
        pub state: Option<String>,
        /// Not older than this.
        pub since: Option<UnixMillis>,
        /// No more than so many, the newest.
        pub limit: Option<u64>,
    }
}

answered! {
    /// The last messages.
    pub struct Messages {
        /// The oldest first.
        pub messages: Vec<ListedMessage>,
        /// Whether there are more that are older.
        pub more: bool,
        /// Nodes that did not answer in time, and may know of more that reached nobody.
        pub not_asked: Vec<String>,
    }

    /// A message, and how far it got.
    pub struct ListedMessage {
        /// When it reached us.
        pub at: UnixMillis,
        /// `waiting`, `pushed`, `done` or `dropped`.
        pub state: String,
        /// The platform it came from.
        pub platform: String,
        /// Its chat.
        pub chat_id: String,
        /// The provider's id: what `explain` asks for.
        pub message_id: String,
        /// Whose it is; empty if it is nobody's.
        pub tenant: String,
        /// The gateway it is for; empty if it is for none.
        pub gateway: String,
        /// Who wrote it, if that is known.
        pub person: Option<String>,
        /// How it left the inbox, or why it reached nobody.
        pub note: Option<String>,
    }
}

/// Messages that are looked through, the newest of all.
const LOOKED_THROUGH: usize = 5_000;
/// As many are shown if nobody says how many.
const SHOWN: u64 = 50;
/// The most that are shown.
const MOST: u64 = 1_000;
/// The words for how far a message got.
const STATES: [&str; 4] = ["waiting", "pushed", "done", "dropped"];

pub(super) async fn list(admin: Arc<Admin>, wanted: WantedMessages) -> Result<Messages> {
    if let Some(state) = wanted.state.as_deref().filter(|state| !STATES.contains(state)) {
        let words = STATES.join(", ");
        return Err(Error::invalid(format!("{state:?} is no state of a message; there are {words}")));
    }
    let journal = admin.ports.records.recent(LOOKED_THROUGH).await?;
    let (drops, not_asked) = other_nodes::recent_drops(&admin).await;
    let known = admin.identities.now();
    let of_journal = journal.into_iter().map(|trace| {
        let gateway = known.shown(trace.instance, trace.instance_name.clone());
        received(trace, gateway)
    });
    let mut all: Vec<ListedMessage> = of_journal.chain(drops.into_iter().map(dropped)).collect();
    all.retain(|message| is_wanted(&wanted, message));
    all.sort_by_key(|message| std::cmp::Reverse(message.at));
    let limit = usize::try_from(wanted.limit.unwrap_or(SHOWN).clamp(1, MOST)).unwrap_or(usize::MAX);
    let more = all.len() > limit;
    all.truncate(limit);
    all.reverse();
    Ok(Messages { messages: all, more, not_asked })
}

fn received(trace: MessageTrace, gateway: String) -> ListedMessage {
    let state = match (&trace.outcome, trace.pushed_at) {
        (Some(_), _) => "done",
        (None, Some(_)) => "pushed",
        (None, None) => "waiting",
    };
    ListedMessage {
        at: trace.received_at,
        state: state.to_owned(),
        platform: trace.platform,
        chat_id: trace.chat_id,
        message_id: trace.message_id,
        tenant: trace.tenant,
        gateway,
        person: None,
        note: trace.outcome,
    }
}

fn dropped(dropped: Dropped) -> ListedMessage {
    ListedMessage {
        at: dropped.at,
        state: "dropped".to_owned(),
        platform: dropped.platform,
        chat_id: dropped.chat_id,
        message_id: dropped.message_id,
        person: Some(dropped.author),
        note: Some(dropped.reason),
        ..ListedMessage::default()
    }
}

fn is_wanted(wanted: &WantedMessages, message: &ListedMessage) -> bool {
    let is = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
    is(&wanted.gateway, &message.gateway)
        && is(&wanted.tenant, &message.tenant)
        && is(&wanted.platform, &message.platform)
        && is(&wanted.state, &message.state)
        && is(&wanted.person, message.person.as_deref().unwrap_or_default())
        && wanted.since.is_none_or(|since| message.at >= since)
        && wanted.chat.as_deref().is_none_or(|chat| is_of(chat, &message.platform, &message.chat_id))
}

/// Whether somebody who writes `wanted` means this chat: its id, or its place.
fn is_of(wanted: &str, platform: &str, chat_id: &str) -> bool {
    let path = match wanted.split_once(':') {
        Some((of, path)) if of == platform => path,
        _ => wanted,
    };
    let last = path.rsplit('/').next().unwrap_or(path);
    let chat = chat_id.strip_prefix("web-").filter(|_| platform == "webchat").unwrap_or(chat_id);
    wanted == chat_id || path == chat || last == chat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_meant_by_its_id_or_its_place() {
        for (wanted, platform, chat_id) in [
            ("web-lab", "webchat", "web-lab"),
            ("lab", "webchat", "web-lab"),
            ("webchat:lab", "webchat", "web-lab"),
            ("webchat:dm:ann", "webchat", "web-dm:ann"),
            ("-1001", "telegram", "-1001"),
            ("telegram:-1001", "telegram", "-1001"),
            ("discord:4711/4712", "discord", "4712"),
        ] {
            assert!(is_of(wanted, platform, chat_id), "{wanted}");
        }
        for (wanted, platform, chat_id) in
            [("lab", "telegram", "web-lab"), ("telegram:1", "discord", "1"), ("la", "webchat", "web-lab")]
        {
            assert!(!is_of(wanted, platform, chat_id), "{wanted}");
        }
    }

    #[test]
    fn what_is_said_all_has_to_be_so() {
        let message = ListedMessage {
            state: "dropped".into(),
            platform: "webchat".into(),
            person: Some("ann".into()),
            at: UnixMillis(5),
            ..ListedMessage::default()
        };
        let is_so = |wanted: WantedMessages| is_wanted(&wanted, &message);
        let state = |word: &str| Some(word.to_owned());
        assert!(is_so(WantedMessages::default()));
        assert!(is_so(WantedMessages {
            state: state("dropped"),
            person: state("ann"),
            ..Default::default()
        }));
        assert!(!is_so(WantedMessages {
            state: state("dropped"),
            person: state("bob"),
            ..Default::default()
        }));
        assert!(!is_so(WantedMessages { since: Some(UnixMillis(6)), ..Default::default() }));
        assert!(!is_so(WantedMessages { tenant: state("acme"), ..Default::default() }));
    }
}
