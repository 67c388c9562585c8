//! What agents have written of their next lines, for whoever reads now. It is written nowhere: the
//! line itself takes its place, or it is forgotten.

use super::render::to_html;
use angelia_core::clock::Mono;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

angelia_contract::limits! {
    /// As on other platforms. What is not written on for so long was given up.
    const DRAFT_FOR: Duration = Duration::from_secs(30), time "for which a draft is shown in the web chat";
    /// One for the room and some for its threads. Further ones are not shown before they are said.
    const MAX_DRAFTS_OF_ROOM: usize = 8, count "drafts in a room of the web chat";
    /// With how they look: a short text can be a large table. Further ones are not shown before they are said.
    const MAX_DRAFT_BYTES_OF_ROOM: usize = 256 * 1024, bytes "of drafts in a room of the web chat";
    /// Hundreds of long ones. Further ones are not shown before they are said.
    const MAX_DRAFT_BYTES: usize = 4 * 1024 * 1024, bytes "of drafts in the web chat on one node";
}

/// What an agent has written so far.
#[derive(Debug)]
pub(super) struct Draft {
    /// No other draft of this node has it.
    pub(super) number: u64,
    /// The thread of the room it is written in.
    pub(super) thread: Option<String>,
    /// What is written.
    pub(super) text: String,
    /// Its Markdown as HTML; made once, however many read it.
    pub(super) html: String,
}

impl Draft {
    fn bytes(&self) -> usize {
        self.text.len() + self.html.len()
    }
}

/// The drafts of all rooms.
#[derive(Default)]
pub(super) struct AllDrafts(Mutex<State>);

#[derive(Default)]
struct State {
    shown: u64,
    bytes: usize,
    rooms: HashMap<String, Vec<(Arc<Draft>, Mono)>>,
}

impl AllDrafts {
    /// Shows a draft in the place of the one before; an empty one takes that away. Answers
    /// whether there is something else to be seen.
    pub(super) fn show(&self, room: &str, thread: Option<String>, text: String, now: Mono) -> bool {
        if text.is_empty() {
            return self.over(room, thread.as_deref());
        }
        let html = to_html(&text);
        let mut state = self.0.lock();
        let was_there = state.take(room, thread.as_deref());
        state.shown += 1;
        let draft = Draft { number: state.shown, thread, text, html };
        if !state.has_room(room, draft.bytes()) {
            state.prune(now);
        }
        if !state.has_room(room, draft.bytes()) {
            return was_there;
        }
        state.bytes += draft.bytes();
        state.rooms.entry(room.to_owned()).or_default().push((Arc::new(draft), now));
        true
    }

    /// Nothing more is to be shown in a room or a thread; answers whether there was something.
    pub(super) fn over(&self, room: &str, thread: Option<&str>) -> bool {
        self.0.lock().take(room, thread)
    }

    /// A room is gone.
    pub(super) fn forget(&self, room: &str) {
        let mut state = self.0.lock();
        let gone: usize = state.rooms.remove(room).iter().flatten().map(|(draft, _)| draft.bytes()).sum();
        state.bytes -= gone;
    }

    /// The drafts of a room.
    pub(super) fn of(&self, room: &str, now: Mono) -> Vec<Arc<Draft>> {
        let state = self.0.lock();
        let drafts = state.rooms.get(room).into_iter().flatten();
        drafts.filter(|(_, at)| now.since(*at) < DRAFT_FOR).map(|(draft, _)| draft.clone()).collect()
    }
}

impl State {
    fn has_room(&self, room: &str, more: usize) -> bool {
        let of_room = self.rooms.get(room).map_or(&[][..], Vec::as_slice);
        let bytes: usize = of_room.iter().map(|(draft, _)| draft.bytes()).sum();
        of_room.len() < MAX_DRAFTS_OF_ROOM
            && bytes + more <= MAX_DRAFT_BYTES_OF_ROOM
            && self.bytes + more <= MAX_DRAFT_BYTES
    }

    fn take(&mut self, room: &str, thread: Option<&str>) -> bool {
        let Some(drafts) = self.rooms.get_mut(room) else { return false };
        let Some(at) = drafts.iter().position(|(draft, _)| draft.thread.as_deref() == thread) else {
            return false;
        };
        let (gone, _) = drafts.remove(at);
        self.bytes -= gone.bytes();
        if drafts.is_empty() {
            self.rooms.remove(room);
        }
        true
    }

    /// Forgets what nobody wrote on.
    fn prune(&mut self, now: Mono) {
        let mut left = 0;
        self.rooms.retain(|_, drafts| {
            drafts.retain(|(_, at)| now.since(*at) < DRAFT_FOR);
            left += drafts.iter().map(|(draft, _)| draft.bytes()).sum::<usize>();
            !drafts.is_empty()
        });
        self.bytes = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn a_draft_takes_the_place_of_the_one_before_and_ends_by_itself() {
        let drafts = AllDrafts::default();
        let texts =
            |now| -> Vec<String> { drafts.of("lab", at(now)).iter().map(|it| it.text.clone()).collect() };
        assert!(
            drafts.show("lab", None, "H".into(), at(0)) && drafts.show("lab", None, "**Hi**".into(), at(5))
        );
        assert_eq!(texts(34), ["**Hi**"]);
        assert_eq!(drafts.of("lab", at(5))[0].html, "<p><strong>Hi</strong></p>\n");
        assert!(texts(35).is_empty(), "nobody wrote on");
        assert!(drafts.show("lab", None, String::new(), at(6)) && texts(6).is_empty());
        assert!(!drafts.show("lab", None, String::new(), at(6)), "there was none");
        assert_eq!(drafts.0.lock().bytes, 0);
    }

    #[test]
    fn a_room_and_a_node_have_so_much_of_drafts() {
        let drafts = AllDrafts::default();
        for number in 0..20 {
            drafts.show("lab", Some(format!("wa{number}")), "x".into(), at(0));
        }
        assert_eq!(drafts.of("lab", at(1)).len(), MAX_DRAFTS_OF_ROOM);
        assert!(drafts.show("lab", Some("wa99".into()), "x".into(), at(40)), "the others were given up");
        assert_eq!(drafts.of("lab", at(40)).len(), 1);
        let long = "x".repeat(MAX_DRAFT_BYTES_OF_ROOM / 3);
        assert!(drafts.show("lab", Some("wa1".into()), long.clone(), at(41)));
        assert!(!drafts.show("lab", Some("wa2".into()), long.clone(), at(41)), "with how it looks, too much");
        for number in 0..40 {
            drafts.show(&format!("room-{number}"), None, long.clone(), at(42));
        }
        let bytes = drafts.0.lock().bytes;
        assert!(bytes <= MAX_DRAFT_BYTES && bytes > MAX_DRAFT_BYTES / 2, "{bytes}");
        let rooms: Vec<String> = drafts.0.lock().rooms.keys().cloned().collect();
        for room in rooms {
            drafts.forget(&room);
        }
        let state = drafts.0.lock();
        assert_eq!((state.bytes, state.rooms.len()), (0, 0));
    }
}
