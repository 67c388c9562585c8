//! Live readers of rooms. What they miss they read from the store.

use super::seats::{Seat, Seats};
use angelia_core::connections::{Lasting, MAX_STREAMS, MAX_STREAMS_OF_VISITORS};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::store::{Line, Person};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;

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
    Line(Line),
    /// A line was written or edited that is too long to be told: the store has it.
    LongLine,
    /// The agent is writing.
    Typing,
    /// Other lines are held than before.
    Held,
}

/// Rooms somebody is reading now, and who does.
#[derive(Debug)]
pub struct Hub {
    rooms: Mutex<HashMap<String, broadcast::Sender<Happening>>>,
    /// By room: the messages that wait until the agent has finished. One is there twice while its
    /// agent's new socket holds it and the old one is not gone yet.
    held: Mutex<HashMap<String, Vec<String>>>,
    /// By room and user.
    seats: Arc<Seats<(String, String)>>,
}

impl Default for Hub {
    fn default() -> Self {
        let seats = Seats::new(MAX_STREAMS, MAX_STREAMS_OF_VISITORS);
        Self { rooms: Mutex::default(), held: Mutex::default(), seats }
    }
}

/// One open stream. Its seat is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Stream {
    /// What happens next in the room.
    pub(super) next: broadcast::Receiver<Happening>,
    _seat: Seat<(String, String)>,
}

impl Hub {
    /// Says how many connections may be streams.
    pub fn bound(&self, lasting: &Lasting) {
        self.seats.bound(lasting.streams, lasting.streams_of_visitors);
    }

    /// Tells the readers of a room about a line.
    pub fn line(&self, line: &Line) {
        self.tell(&line.room, || match line.text.len() {
            0..=MAX_LIVE_TEXT => Happening::Line(line.clone()),
            _ => Happening::LongLine,
        });
    }

    /// Ends every stream of these rooms: they are gone, or belong to others now.
    /// Whoever still may read follows anew.
    pub fn close<'a>(&self, rooms: impl IntoIterator<Item = &'a String>) {
        let mut read = self.rooms.lock();
        for room in rooms {
            // Without its sender a stream ends.
            read.remove(room);
        }
    }

    /// Tells the readers of a room that the agent is writing.
    pub(super) fn typing(&self, room: &str) {
        self.tell(room, || Happening::Typing);
    }

    /// A message of a room waits until the agent has finished. Whoever says so says
    /// [`release`](Self::release) as well, or it waits for ever.
    pub fn hold(&self, room: &str, message_id: &str) {
        self.held.lock().entry(room.to_owned()).or_default().push(message_id.to_owned());
        self.tell(room, || Happening::Held);
    }

    /// It waits no more.
    pub fn release(&self, room: &str, message_id: &str) {
        let mut held = self.held.lock();
        let Some(messages) = held.get_mut(room) else { return };
        if let Some(at) = messages.iter().position(|held| held == message_id) {
            messages.remove(at);
        }
        if messages.is_empty() {
            held.remove(room);
        }
        drop(held);
        self.tell(room, || Happening::Held);
    }

    /// The messages of a room that wait until the agent has finished.
    pub(super) fn held(&self, room: &str) -> Vec<String> {
        self.held.lock().get(room).cloned().unwrap_or_default()
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
        let mut rooms = self.rooms.lock();
        // Rooms nobody reads any more go when somebody starts to read.
        rooms.retain(|_, readers| readers.receiver_count() > 0);
        let room = rooms.entry(person.room.clone());
        let next = room.or_insert_with(|| broadcast::Sender::new(BACKLOG)).subscribe();
        Ok(Stream { next, _seat })
    }

    fn tell(&self, room: &str, happening: impl FnOnce() -> Happening) {
        if let Some(readers) = self.rooms.lock().get(room) {
            let _ = readers.send(happening());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(room: &str, user: &str) -> Person {
        Person { room: room.into(), user: user.into() }
    }

    #[test]
    fn one_person_has_so_many_seats_and_gets_them_back() {
        let hub = Arc::new(Hub::default());
        let ann = person("lab", "ann");
        let mut seats: Vec<Stream> = (0..MAX_STREAMS_EACH).map(|_| hub.read(&ann, false).unwrap()).collect();
        assert_eq!(hub.read(&ann, false).unwrap_err().kind(), Kind::TooMany);
        assert!(hub.read(&person("lab", "bob"), false).is_ok(), "another person");
        assert!(hub.read(&person("den", "ann"), false).is_ok(), "another room");
        seats.pop();
        assert!(hub.read(&ann, false).is_ok());
        drop(seats);
        assert!(hub.seats.are_free(), "nothing is kept of who left");
    }

    #[test]
    fn everybody_together_has_so_many_seats() {
        let hub = Arc::new(Hub::default());
        let seats: Vec<Stream> =
            (0..MAX_STREAMS).map(|n| hub.read(&person("lab", &n.to_string()), false).unwrap()).collect();
        let refused = hub.read(&person("lab", "one more"), false).unwrap_err();
        assert_eq!((refused.kind(), refused.retry_after()), (Kind::Unavailable, Some(TRY_AGAIN)));
        drop(seats);
        assert!(hub.read(&person("lab", "one more"), false).is_ok());
    }

    #[test]
    fn visitors_leave_seats_for_those_who_were_invited() {
        let hub = Arc::new(Hub::default());
        let visit = |n: usize| hub.read(&person("lab", &n.to_string()), true);
        let seats: Vec<Stream> = (0..MAX_STREAMS_OF_VISITORS).map(|n| visit(n).unwrap()).collect();
        assert_eq!(visit(MAX_STREAMS).unwrap_err().kind(), Kind::Unavailable);
        assert!(hub.read(&person("lab", "ann"), false).is_ok());
        drop(seats);
        let _two = [visit(0).unwrap(), visit(0).unwrap()];
        assert_eq!(visit(0).unwrap_err().kind(), Kind::TooMany);
    }

    #[test]
    fn there_are_fewer_seats_where_there_are_few_connections() {
        let hub = Arc::new(Hub::default());
        hub.bound(&Lasting::of(22));
        let ann = person("lab", "ann");
        let _visit = hub.read(&person("lab", "eve"), true).unwrap();
        let _another = hub.read(&person("lab", "mallory"), true).unwrap();
        assert!(hub.read(&person("lab", "trudy"), true).is_err(), "half of four");
        let _seats = [hub.read(&ann, false).unwrap(), hub.read(&ann, false).unwrap()];
        assert_eq!(hub.read(&ann, false).unwrap_err().kind(), Kind::Unavailable);
    }

    #[test]
    fn what_is_held_is_of_its_room_and_nothing_is_kept_of_what_went() {
        let hub = Hub::default();
        hub.hold("lab", "wp1");
        hub.hold("lab", "wp2");
        hub.hold("den", "wp3");
        hub.release("lab", "wp1");
        hub.release("lab", "wp9");
        assert_eq!((hub.held("lab"), hub.held("den")), (vec!["wp2".to_owned()], vec!["wp3".to_owned()]));
        hub.release("lab", "wp2");
        hub.release("den", "wp3");
        assert!(hub.held.lock().is_empty());
    }

    #[tokio::test]
    async fn the_streams_of_a_closed_room_end_and_no_others() {
        let hub = Arc::new(Hub::default());
        let (mut lab, mut den) = (
            hub.read(&person("lab", "ann"), false).unwrap(),
            hub.read(&person("den", "ann"), false).unwrap(),
        );
        hub.close([&"lab".to_owned()]);
        // Whoever comes after that is of another room of that name.
        let mut later = hub.read(&person("lab", "eve"), false).unwrap();
        hub.typing("lab");
        hub.typing("den");
        assert_eq!(lab.next.recv().await.unwrap_err(), broadcast::error::RecvError::Closed);
        assert!(matches!(den.next.recv().await, Ok(Happening::Typing)));
        assert!(matches!(later.next.recv().await, Ok(Happening::Typing)));
    }
}
