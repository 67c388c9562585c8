//! Rooms that anybody may enter, because the operator said so (docs/decisions/0020).

use super::room::{VISITOR, check_person};
use super::routes::{Answer, Answered, Api, body, peer};
use super::verify::mint_key;
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use angelia_core::limit_per_address::{Address, LimitPerAddress, Shares};
use angelia_core::secret::{fingerprint, random_hex};
use angelia_core::store::{Person, RoomStore};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long somebody may stay who was not invited; then they come in anew.
const VISIT_FOR: Duration = Duration::from_secs(24 * 3600);
/// Longest name they may choose.
const MAX_NAME: usize = 32;
const WITHIN: Duration = Duration::from_secs(60);

angelia_contract::limits! {
    /// Each is a commit and a row, and strangers ask for it. Beyond it they are
    /// told to come back, with 429.
    pub const MOST_ENTER: usize = 30, count "visitors let into open rooms in a minute";
    /// A family or an office behind one address; one stranger does not use up what is for all.
    pub const MOST_ENTER_EACH: usize = 10, count "visitors let in in a minute from one address";
    /// For addresses from which somebody wrote before this rush.
    pub const KEPT_TO_ENTER: usize = 10, count "of those let in, kept for addresses that were good before";
    /// As fast as people talk. Beyond it they are told to wait, with 429.
    pub const MOST_SAID: usize = 12, count "posts of one visitor in a minute";
    /// What agents of an open room have to read of strangers.
    pub const MOST_SAID_IN_A_ROOM: usize = 60, count "posts of all visitors of a room in a minute";
    /// Two visitors at their fastest; many names of one stranger do not use up what is for all.
    pub const MOST_SAID_EACH: usize = 24, count "posts of visitors of a room in a minute from one address";
    /// For addresses from which somebody wrote before this rush.
    pub const KEPT_TO_SAY: usize = 20, count "of those posts, kept for addresses that were good before";
    /// As many as there may be in a few rooms. Beyond it whoever spoke longest ago is counted anew.
    pub const MAX_HEARD: usize = 4_096, count "visitors whose posts are counted";
}

const ENTRIES: Shares = Shares { all: MOST_ENTER, span: WITHIN, each: MOST_ENTER_EACH, kept: KEPT_TO_ENTER };
const POSTS: Shares =
    Shares { all: MOST_SAID_IN_A_ROOM, span: WITHIN, each: MOST_SAID_EACH, kept: KEPT_TO_SAY };

/// The rooms, who came lately, and what was said there lately.
#[derive(Debug)]
pub(super) struct OpenDoors {
    rooms: Vec<String>,
    entries: Mutex<LimitPerAddress>,
    /// By room: only open ones have visitors, so there are few.
    posts: Mutex<HashMap<String, LimitPerAddress>>,
    /// By room and name.
    by_visitor: Mutex<SlidingWindowOf<(String, String)>>,
}

impl OpenDoors {
    pub(super) fn new(rooms: Vec<String>) -> Self {
        let of_one = SlidingWindow::new(MOST_SAID, WITHIN);
        let by_visitor = SlidingWindowOf::new(MAX_HEARD, WhenCrowded::ForgetOne, of_one);
        let entries = Mutex::new(LimitPerAddress::new(ENTRIES));
        Self { rooms, entries, posts: Mutex::default(), by_visitor: Mutex::new(by_visitor) }
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

    /// Whether a visitor may say something more in a room.
    pub(super) fn check_pace(&self, room: &str, visitor: &str, from: Address, now: Mono) -> Result<()> {
        let mut rooms = self.posts.lock();
        let posts = rooms.entry(room.to_owned()).or_insert_with(|| LimitPerAddress::new(POSTS));
        let visitor = (room.to_owned(), visitor.to_owned());
        let heard = posts.check(from, now);
        let heard = heard.and_then(|()| self.by_visitor.lock().take(&visitor, now));
        let heard = heard.and_then(|()| posts.take(from, now));
        let much = "visitors say much here just now; try again in a minute";
        heard.map_err(|at| Error::new(Kind::TooMany, much).retry_in(at.since(now)))
    }

    /// Somebody there wrote something that was taken: their address comes before
    /// strangers' in the next rush.
    pub(super) fn was_good(&self, room: &str, from: Address, now: Mono) {
        if self.rooms.is_empty() {
            return;
        }
        self.entries.lock().note_good(from, now);
        if let Some(posts) = self.posts.lock().get_mut(room) {
            posts.note_good(from, now);
        }
    }

    /// Whether one more may come in.
    fn check_entry(&self, from: Address, now: Mono) -> Result<()> {
        self.entries.lock().take(from, now).map_err(|at| {
            let many = "many people are coming in just now; try again in a minute";
            Error::new(Kind::TooMany, many).retry_in(at.since(now))
        })
    }
}

/// Somebody who wants to come into an open room.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Enter {
    #[serde(default)]
    name: Option<String>,
}

/// The rooms that anybody may enter.
pub(super) async fn list(State(api): State<Arc<Api>>) -> Answer {
    Answer(StatusCode::OK, json!({ "rooms": api.doors.rooms }))
}

/// Lets somebody into an open room; answers their key, and who they are there.
pub(super) async fn enter(
    State(api): State<Arc<Api>>,
    Path(room): Path<String>,
    request: Request,
) -> Answered {
    // Asked first: for strangers at a closed door nothing is held.
    api.doors.check_open(&room)?;
    let from = peer(request.extensions());
    let Enter { name } = body(request, r#"{"name": "ann"}"#).await?;
    let chosen = name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    if chosen.is_some_and(|name| name.len() > MAX_NAME) {
        return Err(Error::invalid(format!("a name has up to {MAX_NAME} letters")).into());
    }
    let user = format!("{VISITOR}{}", chosen.map_or_else(random_hex::<3>, str::to_owned));
    check_person(&room, &user)?;
    // A name that cannot be takes nobody's turn; all else is work for the store.
    api.doors.check_entry(from, clock::mono())?;
    let key = mint_key();
    let entered = json!({ "key": key.expose(), "room": room, "user": user });
    let until = UnixMillis(clock::wall().0 + VISIT_FOR.as_millis() as i64);
    api.ports.records.visit(Person { room, user }, fingerprint(key.expose()), until).await?;
    Ok(Answer(StatusCode::CREATED, entered))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: Address = Address::Unknown;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn address(n: u8) -> Address {
        Address::of(Some([192, 0, 2, n].into()))
    }

    #[test]
    fn open_rooms_are_open_and_no_others_and_so_many_come_in() {
        let doors = OpenDoors::new(vec!["lobby".into()]);
        assert_eq!(doors.check_open("lab").unwrap_err().kind(), Kind::Forbidden);
        assert!(doors.check_open("lobby").is_ok());
        for _ in 0..MOST_ENTER {
            doors.check_entry(PROXY, at(1)).unwrap();
        }
        let refused = doors.check_entry(PROXY, at(59)).unwrap_err();
        assert_eq!((refused.kind(), refused.retry_after()), (Kind::TooMany, Some(Duration::from_secs(2))));
        assert!(doors.check_entry(PROXY, at(61)).is_ok(), "those before are a minute ago");
        assert!(OpenDoors::new(Vec::new()).check_open("lobby").is_err(), "none unless configured");
    }

    #[test]
    fn one_stranger_does_not_keep_the_others_out() {
        let doors = OpenDoors::new(vec!["lobby".into()]);
        doors.was_good("lobby", address(99), at(0));
        let come_in =
            |n: u8, now| (0..100).take_while(|_| doors.check_entry(address(n), at(now)).is_ok()).count();
        assert_eq!(come_in(1, 100), MOST_ENTER_EACH);
        assert_eq!(come_in(2, 100), MOST_ENTER_EACH, "another address");
        assert_eq!(come_in(3, 100), 0, "the rest is for those who were good before");
        assert_eq!(come_in(99, 100), MOST_ENTER_EACH);
    }

    #[test]
    fn visitors_are_heard_in_measure() {
        let doors = OpenDoors::new(vec!["lobby".into()]);
        let say = |room: &str, who: &str, now| doors.check_pace(room, who, PROXY, at(now));
        for _ in 0..MOST_SAID {
            say("lobby", "guest-a", 1).unwrap();
        }
        assert_eq!(say("lobby", "guest-a", 2).unwrap_err().kind(), Kind::TooMany);
        for n in MOST_SAID..MOST_SAID_IN_A_ROOM {
            say("lobby", &format!("guest-{n}"), 2).unwrap();
        }
        assert_eq!(say("lobby", "guest-b", 3).unwrap_err().kind(), Kind::TooMany);
        assert!(say("plaza", "guest-b", 3).is_ok(), "another room");
        assert!(say("lobby", "guest-a", 61).is_ok(), "a minute later");
    }

    #[test]
    fn many_names_of_one_stranger_do_not_silence_the_others() {
        let doors = OpenDoors::new(vec!["lobby".into()]);
        let said = |n: u8| {
            let say =
                |name: usize| doors.check_pace("lobby", &format!("guest-{n}-{name}"), address(n), at(1));
            (0..100).filter(|name| say(*name).is_ok()).count()
        };
        assert_eq!(said(1), MOST_SAID_EACH);
        assert_eq!(
            said(2),
            MOST_SAID_IN_A_ROOM - KEPT_TO_SAY - MOST_SAID_EACH,
            "what is not kept for others"
        );
        assert_eq!(said(3), 0);
    }
}
