//! Live readers of rooms. What they miss they read from the store (docs/decisions/0047).

use super::drafts::{AllDrafts, Draft};
use super::held::{AllHeld, HeldHere};
use super::seats::{Seat, Seats};
use angelia_core::clock;
use angelia_core::connections::{Lasting, MAX_STREAMS, MAX_STREAMS_OF_VISITORS};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::ports::{Bus, Following, Hint, Topic};
use angelia_core::store::{Line, Person};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};

/// Events a slow reader may fall behind before it has to read the store again.
const BACKLOG: usize = 64;
/// When whoever found no seat may try again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

angelia_contract::limits! {
    /// A few tabs and devices, so that nobody takes the seats of all others. Further ones get 429.
    const MAX_STREAMS_EACH: usize = 8, count "event streams of one person in a room";
    /// They are strangers. Further ones get 429.
    const MAX_STREAMS_VISITOR: usize = 2, count "event streams of one visitor in a room";
    /// Followers who do not read leave 64 of them lying, a mebibyte in a room. Longer ones
    /// they read from the store.
    const MAX_LIVE_TEXT: usize = 16 * 1024, bytes "of a line that is handed to followers as it is";
}

/// Something that just happened in a room.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    /// A line was written or edited.
    Line(Box<Line>),
    /// The room is there now: the line is too long to be told, or nobody told of it.
    Reached(i64),
    /// The agent is writing, and perhaps says at what; empty words say that it is not any more.
    Typing { thread: Option<String>, words: Option<String> },
    /// There are other drafts than before.
    Drafts,
    /// Other lines are held than before.
    Held,
    /// Somebody's keys are void.
    Keys,
}

/// What nodes tell each other of a room that is written nowhere.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// The agent is writing.
    Typing,
    /// The same in a thread, or with words.
    Works {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
    },
    /// What the agent has written of its next line; nothing if that is not to be shown any more.
    Draft {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<String>,
        text: String,
    },
    /// All that a node holds of the room.
    Held { node: String, change: u64, message_ids: Vec<String> },
    /// Whoever holds something of the room is to say so.
    AskHeld,
}

/// Rooms somebody is reading now, and who does. What the nodes of a cluster have to tell each
/// other of rooms goes through here.
pub struct Hub {
    rooms: Mutex<HashMap<String, broadcast::Sender<Happening>>>,
    held: AllHeld,
    drafts: AllDrafts,
    /// By room and user.
    seats: Arc<Seats<(String, String)>>,
    bus: Option<Arc<dyn Bus>>,
    /// What this node is called, if there are others.
    node: OnceLock<String>,
    /// Rooms of which lines may have been written that nobody told of.
    missed: Mutex<Missed>,
    look: Notify,
}

/// Of which rooms something may have been missed.
#[derive(Default)]
enum Missed {
    #[default]
    None,
    Some(BTreeSet<String>),
    All,
}

impl Default for Hub {
    fn default() -> Self {
        Self::told_on(None)
    }
}

/// One open stream. Its seat is free again when it is dropped.
pub(super) struct Stream {
    /// What happens next in the room.
    pub(super) next: broadcast::Receiver<Happening>,
    _seat: Seat<(String, String)>,
    /// What other nodes say of the room is heard here.
    _following: Option<Following>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl Hub {
    /// One whose rooms are told of on `bus`.
    pub fn on(bus: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self::told_on(Some(bus)))
    }

    fn told_on(bus: Option<Arc<dyn Bus>>) -> Self {
        Self {
            rooms: Mutex::default(),
            held: AllHeld::default(),
            drafts: AllDrafts::default(),
            seats: Seats::new(MAX_STREAMS, MAX_STREAMS_OF_VISITORS),
            bus,
            node: OnceLock::new(),
            missed: Mutex::default(),
            look: Notify::new(),
        }
    }

    /// Says what this node is called among others.
    pub fn is_node(&self, node: &str) {
        let _ = self.node.set(node.to_owned());
    }

    /// Says how many connections may be streams.
    pub fn bound(&self, lasting: &Lasting) {
        self.seats.bound(lasting.streams, lasting.streams_of_visitors);
    }

    /// Tells the readers of a room about a line.
    pub fn line(&self, line: &Line) {
        self.tell(&line.room, || match line.text.len() {
            0..=MAX_LIVE_TEXT => Happening::Line(Box::new(line.clone())),
            _ => Happening::Reached(line.id),
        });
        // Behind it: the line takes the place of what was shown of it.
        let is_new = line.id == line.place && line.is_agents();
        if is_new && self.drafts.over(&line.room, line.thread.as_deref()) {
            self.tell(&line.room, || Happening::Drafts);
        }
    }

    /// Tells the readers of a room how far it is: who has not seen everything reads the store.
    pub fn reached(&self, room: &str, id: i64) {
        self.tell(room, || Happening::Reached(id));
    }

    /// Ends every stream of these rooms on this node: they are gone, or belong to others now.
    /// Whoever still may read follows anew.
    pub fn close<'a>(&self, rooms: impl IntoIterator<Item = &'a String>) {
        let mut read = self.rooms.lock();
        for room in rooms {
            // Without its sender a stream ends.
            read.remove(room);
            self.drafts.forget(room);
        }
    }

    /// Somebody's keys of a room are void: its readers show theirs again.
    pub fn keys_changed(&self, room: &str) {
        self.tell(room, || Happening::Keys);
    }

    /// Nobody knows whose are: all readers show theirs again.
    pub fn all_keys_changed(&self) {
        for readers in self.rooms.lock().values() {
            let _ = readers.send(Happening::Keys);
        }
    }

    /// Tells the readers of a room that the agent is writing.
    pub(super) fn typing(&self, room: &str) {
        self.say(room, &Told::Typing);
    }

    /// The same of a thread, or with words that say what it is at; empty ones that it is not any more.
    pub(super) fn works(&self, room: &str, thread: Option<&str>, words: Option<String>) {
        match (thread, words) {
            // Nodes of the release before know this one.
            (None, None) => self.typing(room),
            (thread, words) => self.say(room, &Told::Works { thread: thread.map(str::to_owned), words }),
        }
    }

    /// Shows the readers of a room what the agent has written of its next line.
    pub(super) fn draft(&self, room: &str, thread: Option<&str>, text: String) {
        self.say(room, &Told::Draft { thread: thread.map(str::to_owned), text });
    }

    /// What agents are writing in a room, as far as it is shown before it is said.
    pub(super) fn drafts(&self, room: &str) -> Vec<Arc<Draft>> {
        self.drafts.of(room, clock::mono())
    }

    /// A message of a room waits until the agent has finished. Whoever says so says
    /// [`release`](Self::release) as well, or it waits for ever.
    pub fn hold(&self, room: &str, message_id: &str) {
        let held = self.held.hold(room, message_id, || self.follow(room));
        self.tell(room, || Happening::Held);
        self.say_held(room, held);
    }

    /// It waits no more.
    pub fn release(&self, room: &str, message_id: &str) {
        if let Some(held) = self.held.release(room, message_id) {
            self.tell(room, || Happening::Held);
            self.say_held(room, held);
        }
    }

    /// The messages of a room that wait until the agent has finished, on whichever node.
    pub(super) fn held(&self, room: &str) -> Vec<String> {
        self.held.of(room)
    }

    /// Starts reading a person's room, if there is a seat left for them.
    pub(super) fn read(&self, person: &Person, visiting: bool) -> Result<Stream> {
        let who = (person.room.clone(), person.user.clone());
        let most = if visiting { MAX_STREAMS_VISITOR } else { MAX_STREAMS_EACH };
        let _seat = self.seats.take(who, visiting, most).map_err(|full| {
            if full.all {
                let why = "too many people are following rooms; try again later, or read without following";
                return Error::unavailable(why).retry_in(TRY_AGAIN);
            }
            let why = format!("you follow this room {most} times already; close one of the streams");
            Error::new(Kind::TooMany, why)
        })?;
        let _following = self.follow(&person.room);
        let mut rooms = self.rooms.lock();
        // Rooms nobody reads any more go when somebody starts to read.
        rooms.retain(|_, readers| readers.receiver_count() > 0);
        let is_first = !rooms.contains_key(&person.room);
        let room = rooms.entry(person.room.clone());
        let next = room.or_insert_with(|| broadcast::Sender::new(BACKLOG)).subscribe();
        drop(rooms);
        if is_first {
            // What became of it while nobody read here is not known.
            self.drafts.forget(&person.room);
            self.ask_held(&person.room);
        }
        Ok(Stream { next, _seat, _following })
    }

    /// Another node, or this one, tells something of a room.
    pub fn hear(&self, room: &str, event: &str) {
        // What a later release says that this one does not know concerns nobody here.
        let Ok(told) = serde_json::from_str(event) else { return };
        match told {
            Told::Typing => self.tell(room, || Happening::Typing { thread: None, words: None }),
            Told::Works { thread, words } => {
                let over = words.as_ref().is_some_and(String::is_empty);
                if over && self.drafts.over(room, thread.as_deref()) {
                    self.tell(room, || Happening::Drafts);
                }
                self.tell(room, || Happening::Typing { thread, words });
            }
            // What nobody reads is kept for nobody.
            Told::Draft { .. } if !self.is_read(room) => self.drafts.forget(room),
            Told::Draft { thread, text } => {
                if self.drafts.show(room, thread, text, clock::mono()) {
                    self.tell(room, || Happening::Drafts);
                }
            }
            Told::Held { node, change, message_ids } => {
                if self.node.get().is_some_and(|ours| *ours != node) && self.is_read(room) {
                    self.held.told(room, &node, HeldHere { change, messages: message_ids });
                    self.tell(room, || Happening::Held);
                }
            }
            Told::AskHeld => {
                if let Some(held) = self.held.here(room) {
                    self.say_held(room, held);
                }
            }
        }
    }

    /// Something of a room, or of all, may have been said and not heard.
    pub fn missed(&self, of: Option<&str>) {
        let rooms = match of {
            Some(room) if self.is_read(room) => vec![room.to_owned()],
            Some(_) => return,
            None => self.read_rooms(),
        };
        let now = clock::mono();
        for room in &rooms {
            self.held.doubt(room, now);
            self.ask_held(room);
        }
        let mut missed = self.missed.lock();
        match (&mut *missed, of) {
            (Missed::All, _) => {}
            (missed, None) => *missed = Missed::All,
            (Missed::Some(some), Some(_)) => some.extend(rooms),
            (none @ Missed::None, Some(_)) => *none = Missed::Some(rooms.into_iter().collect()),
        }
        drop(missed);
        self.look.notify_one();
    }

    /// Resolves when something may have been said and not heard.
    pub async fn may_have_missed(&self) {
        self.look.notified().await;
    }

    /// The rooms that somebody reads and of which it has to be looked how far they are; all if
    /// it is `time` to.
    pub fn to_look_at(&self, time: bool) -> Vec<String> {
        match std::mem::take(&mut *self.missed.lock()) {
            _ if time => self.read_rooms(),
            Missed::All => self.read_rooms(),
            Missed::Some(some) => some.into_iter().filter(|room| self.is_read(room)).collect(),
            Missed::None => Vec::new(),
        }
    }

    /// Forgets what nodes told of rooms that are not there any more.
    pub fn forget_gone(&self, is_there: impl Fn(&str) -> bool) {
        for room in self.held.forget(clock::mono(), is_there, |room| self.is_read(room)) {
            self.tell(&room, || Happening::Held);
        }
    }

    fn follow(&self, room: &str) -> Option<Following> {
        self.bus.as_ref().map(|bus| Following::new(bus, Topic::Room(room.to_owned())))
    }

    fn is_read(&self, room: &str) -> bool {
        self.rooms.lock().get(room).is_some_and(|readers| readers.receiver_count() > 0)
    }

    fn read_rooms(&self) -> Vec<String> {
        let rooms = self.rooms.lock();
        let read = rooms.iter().filter(|(_, readers)| readers.receiver_count() > 0);
        read.map(|(room, _)| room.clone()).collect()
    }

    /// Has those answer who hold something of a room.
    fn ask_held(&self, room: &str) {
        if self.node.get().is_some() {
            self.say(room, &Told::AskHeld);
        }
    }

    /// Tells other nodes what is held here.
    fn say_held(&self, room: &str, held: HeldHere) {
        if let Some(node) = self.node.get().cloned() {
            let HeldHere { change, messages: message_ids } = held;
            self.say(room, &Told::Held { node, change, message_ids });
        }
    }

    /// Tells all nodes, this one among them.
    fn say(&self, room: &str, what: &Told) {
        // Made of texts and numbers: it can be written.
        let event = serde_json::to_string(what).unwrap_or_default();
        match &self.bus {
            Some(bus) => bus.publish(Hint::Room { room: room.to_owned(), event }),
            None => self.hear(room, &event),
        }
    }

    fn tell(&self, room: &str, happening: impl FnOnce() -> Happening) {
        if let Some(readers) = self.rooms.lock().get(room) {
            let _ = readers.send(happening());
        }
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
