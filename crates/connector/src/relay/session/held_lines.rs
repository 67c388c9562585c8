//! What people of the web chat see of lines that wait for the end of a turn. It is as long-lived
//! as the socket whose turn they wait for: a line that waits without one waits for the agent.

use angelia_contract::event::Event;
use angelia_core::inbox::{Entry, EntryKind, Seq};
use angelia_platforms::webchat::{self, Hub};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lines of one socket that are shown as held; further ones are shown as on the server, which is true too.
const MAX_SHOWN: usize = 512;

/// The lines of one socket that are shown as held, by their places in the log.
pub(super) struct HeldLines {
    hub: Arc<Hub>,
    shown: BTreeMap<Seq, Shown>,
}

struct Shown {
    room: String,
    message_id: String,
}

impl HeldLines {
    pub(super) fn new(hub: Arc<Hub>) -> Self {
        Self { hub, shown: BTreeMap::new() }
    }

    /// Shows that an entry is held, if the web chat has a line for it.
    pub(super) fn hold(&mut self, entry: &Entry) {
        let ours = &*entry.platform == webchat::NAME && entry.kind == EntryKind::Message;
        if !ours || self.shown.len() >= MAX_SHOWN || self.shown.contains_key(&entry.seq) {
            return;
        }
        if let Some(room) = webchat::room_of(&entry.chat_id)
            && let Ok(Event { message_id: Some(message_id), .. }) = serde_json::from_slice(&entry.body)
        {
            self.hub.hold(room, &message_id);
            self.shown.insert(entry.seq, Shown { room: room.to_owned(), message_id });
        }
    }

    /// It goes to the agent, alone or with another one, or is gone.
    pub(super) fn release(&mut self, seq: Seq) {
        if let Some(Shown { room, message_id }) = self.shown.remove(&seq) {
            self.hub.release(&room, &message_id);
        }
    }
}

impl Drop for HeldLines {
    fn drop(&mut self) {
        for Shown { room, message_id } in self.shown.values() {
            self.hub.release(room, message_id);
        }
    }
}
