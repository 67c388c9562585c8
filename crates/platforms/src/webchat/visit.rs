//! Rooms that anybody may enter, because the operator said so (docs/decisions/0020).

use super::room::{self, VISITOR};
use super::speak::Api;
use super::verify::mint_key;
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::secret::{Secret, fingerprint, random_hex};
use angelia_core::store::Person;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long somebody may stay who was not invited; then they come in anew.
const VISIT_FOR: Duration = Duration::from_secs(24 * 3600);
/// Longest name they may choose.
const MAX_NAME: usize = 32;
/// Visitors let in within [`WITHIN`]; each is a commit and a row, and strangers ask for it.
const MOST: usize = 30;
const WITHIN: Duration = Duration::from_secs(60);

/// What a visitor may say within [`WITHIN`], and all visitors of a room together.
const MOST_SAID: usize = 12;
const MOST_SAID_IN_A_ROOM: usize = 60;

/// The rooms, who came lately, and what was said there lately.
#[derive(Debug, Default)]
pub(super) struct OpenDoors {
    rooms: Vec<String>,
    lately: Mutex<VecDeque<Mono>>,
    said: Mutex<HashMap<String, VecDeque<(String, Mono)>>>,
}

impl OpenDoors {
    pub(super) fn new(rooms: Vec<String>) -> Self {
        Self { rooms, ..Self::default() }
    }

    pub(super) fn rooms(&self) -> &[String] {
        &self.rooms
    }

    /// Whether anybody may enter a room.
    pub(super) fn check_open(&self, room: &str) -> Result<()> {
        if self.rooms.iter().any(|open| open == room) {
            return Ok(());
        }
        Err(Error::new(
            Kind::Forbidden,
            "this room is for those who were invited; ask the operator for an invitation \
             (angelia webchat invite)",
        ))
    }

    /// Whether a visitor may say something more in a room. Only open rooms have
    /// visitors, so there are few of them.
    pub(super) fn check_pace(&self, room: &str, visitor: &str, now: Mono) -> Result<()> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = said.entry(room.to_owned()).or_default();
        while said.front().is_some_and(|(_, at)| now.since(*at) >= WITHIN) {
            said.pop_front();
        }
        let own = said.iter().filter(|(who, _)| who == visitor).count();
        if own >= MOST_SAID || said.len() >= MOST_SAID_IN_A_ROOM {
            return Err(Error::new(Kind::TooMany, "visitors say much here just now; try again in a minute"));
        }
        said.push_back((visitor.to_owned(), now));
        Ok(())
    }

    fn check(&self, room: &str, now: Mono) -> Result<()> {
        self.check_open(room)?;
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        while lately.front().is_some_and(|came| now.since(*came) >= WITHIN) {
            lately.pop_front();
        }
        if lately.len() >= MOST {
            return Err(Error::new(
                Kind::TooMany,
                "many people are coming in just now; try again in a minute",
            ));
        }
        lately.push_back(now);
        Ok(())
    }
}

impl Api {
    /// Lets somebody into an open room; answers their key, and who they are there.
    pub(super) async fn enter(&self, room: &str, name: Option<&str>) -> Result<(Secret, Person)> {
        self.doors.check_open(room)?;
        let chosen = name.map(str::trim).filter(|name| !name.is_empty());
        if chosen.is_some_and(|name| name.len() > MAX_NAME) {
            return Err(Error::invalid(format!("a name has up to {MAX_NAME} letters")));
        }
        let user = match chosen {
            Some(name) => format!("{VISITOR}{name}"),
            None => format!("{VISITOR}{}", random_hex::<3>()),
        };
        room::check_person(room, &user)?;
        // A name that cannot be takes nobody's turn; all else is work for the store.
        self.doors.check(room, clock::mono())?;
        let key = mint_key();
        let person = Person { room: room.to_owned(), user };
        let until = UnixMillis(clock::wall().0 + VISIT_FOR.as_millis() as i64);
        self.store.visit(person.clone(), fingerprint(key.expose()), until).await?;
        Ok((key, person))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_rooms_are_open_and_no_others_and_so_many_come_in() {
        let doors = OpenDoors::new(vec!["lobby".into()]);
        let at = |seconds| Mono(Duration::from_secs(seconds));
        assert_eq!(doors.check("lab", at(0)).unwrap_err().kind(), Kind::Forbidden);
        for _ in 0..MOST {
            doors.check("lobby", at(1)).unwrap();
        }
        assert_eq!(doors.check("lobby", at(60)).unwrap_err().kind(), Kind::TooMany);
        assert!(doors.check("lobby", at(61)).is_ok(), "those before are a minute ago");
        assert!(OpenDoors::default().check("lobby", at(0)).is_err(), "none unless configured");
    }

    #[test]
    fn visitors_are_heard_in_measure() {
        let doors = OpenDoors::new(vec!["lobby".into()]);
        let at = |seconds| Mono(Duration::from_secs(seconds));
        for _ in 0..MOST_SAID {
            doors.check_pace("lobby", "guest-a", at(1)).unwrap();
        }
        assert_eq!(doors.check_pace("lobby", "guest-a", at(2)).unwrap_err().kind(), Kind::TooMany);
        for n in MOST_SAID..MOST_SAID_IN_A_ROOM {
            doors.check_pace("lobby", &format!("guest-{n}"), at(2)).unwrap();
        }
        assert_eq!(doors.check_pace("lobby", "guest-b", at(3)).unwrap_err().kind(), Kind::TooMany);
        assert!(doors.check_pace("plaza", "guest-b", at(3)).is_ok(), "another room");
        assert!(doors.check_pace("lobby", "guest-a", at(61)).is_ok(), "a minute later");
    }
}
