//! Who has keys of rooms. Some were invited, others let themselves in where the
//! operator opened a room to everybody.

use crate::audit::{Actor, AuditEntry};
use crate::clock::UnixMillis;
use crate::error::{Error, Kind, Result};
use crate::ports::{BoxFuture, Guest, Invited, Person};
use crate::records::rows::{LineRow, PersonRow, RemovalRow};
use crate::records::{Change, Records, View, change, look};
use crate::space::Class;
use crate::store::Fingerprint;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

angelia_contract::limits! {
    /// More than anybody could talk with, few enough for the table. Then whoever has been silent
    /// for ten minutes gives way, or nobody more comes in.
    const VISITORS_PER_ROOM: usize = 500, count "visitors of one open room";
}

/// How long a visitor may be silent while others wait for a seat.
const SILENT_FOR: Duration = Duration::from_secs(600);

/// Somebody whose key was found, and what is known of who else has one of the room.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// Who it is.
    pub person: Person,
    /// Of those who let themselves in, until when.
    pub visits_until: Option<UnixMillis>,
    /// Whether somebody else has a key of the room that is good.
    pub others: bool,
    /// Who was the first to be invited. Where there are visitors only, nobody was.
    pub first_invited: Option<String>,
}

impl Recognised {
    /// How they stand in their room; `None` if their time there is over.
    pub fn guest(self, now: UnixMillis) -> Option<Guest> {
        let visiting = self.visits_until.is_some();
        let first = !visiting && self.first_invited.as_ref() == Some(&self.person.user);
        let guest = Guest { person: self.person, alone: !self.others, first, visiting };
        is_good(self.visits_until, now).then_some(guest)
    }
}

/// Whether a key opens its room still: that of a visitor does for a while.
fn is_good(visits_until: Option<UnixMillis>, now: UnixMillis) -> bool {
    visits_until.is_none_or(|until| until >= now)
}

/// Lets in whoever holds a key.
fn invite(view: &mut View<'_>, person: &Person, key: Fingerprint, by: &Actor) -> Result<()> {
    is_not_being_emptied(view, &person.room)?;
    let known = view.find::<PersonRow>(&["room"], (&person.room,))?;
    // Who was first stays so, whatever the clock says of the second.
    let newest = known.iter().map(|other| other.created_at.0 + 1).max().unwrap_or_default();
    view.add(&PersonRow {
        key_fingerprint: key,
        room: person.room.clone(),
        user: person.user.clone(),
        created_at: UnixMillis(view.now().0.max(newest)),
        visits_until: None,
    })?;
    view.audit(&AuditEntry::done(by, "webchat.invite", "", &person.room).with(&person.user));
    Ok(())
}

/// Lets in somebody whom nobody invited, until then.
fn visit(view: &mut View<'_>, person: &Person, key: Fingerprint, until: UnixMillis) -> Result<()> {
    is_not_being_emptied(view, &person.room)?;
    let known = view.find::<PersonRow>(&["room"], (&person.room,))?;
    let authors = authors(view, &person.room)?;
    let is_called = |name: &String| name.eq_ignore_ascii_case(&person.user);
    if known.iter().map(|other| &other.user).any(is_called) || authors.iter().any(is_called) {
        return Err(Error::conflict(format!("somebody here is called {:?}", person.user)));
    }
    let now = view.now();
    let visitors = known.iter().filter(|other| other.visits_until.is_some_and(|until| until >= now)).count();
    if visitors >= VISITORS_PER_ROOM {
        let Some(silent) = who_makes_way(view, &known, &authors)? else {
            let full = "the room is full; try again later, or ask the operator for an invitation";
            return Err(Error::new(Kind::TooMany, full));
        };
        view.delete(silent);
    }
    // No line in the audit log: it is kept for a year, and strangers may come often.
    view.add(&PersonRow {
        key_fingerprint: key,
        room: person.room.clone(),
        user: person.user.clone(),
        created_at: now,
        visits_until: Some(until),
    })
}

/// The visitor who came longest ago and said nothing; none if all have something to
/// say, or came just now.
fn who_makes_way<'a>(
    view: &mut View<'_>,
    known: &'a [PersonRow],
    authors: &HashSet<String>,
) -> Result<Option<&'a PersonRow>> {
    let Some(old) = view.older_than(SILENT_FOR) else { return Ok(None) };
    let silent = known.iter().filter(|visitor| {
        visitor.visits_until.is_some() && old.is(visitor.created_at.0) && !authors.contains(&visitor.user)
    });
    Ok(silent.min_by_key(|visitor| visitor.created_at))
}

/// Makes all keys of a person for a room void.
fn uninvite(view: &mut View<'_>, person: &Person, by: &Actor) -> Result<()> {
    if view.delete_all::<PersonRow>(&["room", "user"], (&person.room, &person.user))? == 0 {
        return Err(Error::not_found(format!(
            "nobody called {:?} has a key of room {:?}; see angelia webchat list",
            person.user, person.room
        )));
    }
    view.audit(&AuditEntry::done(by, "webchat.revoke", "", &person.room).with(&person.user));
    Ok(())
}

/// Who has keys that are good, of one room or of all: by room, then who came first.
fn people(view: &mut View<'_>, room: Option<&str>) -> Result<Vec<Invited>> {
    let now = view.now();
    let rows = match room {
        Some(room) => view.find::<PersonRow>(&["room"], (room,))?,
        None => view.all::<PersonRow>()?,
    };
    let mut found = BTreeMap::<(String, String), Invited>::new();
    for row in rows.into_iter().filter(|row| is_good(row.visits_until, now)) {
        let person = found.entry((row.room.clone(), row.user.clone())).or_insert_with(|| Invited {
            room: row.room,
            user: row.user,
            keys: 0,
            since: row.created_at,
            until: None,
        });
        person.keys += 1;
        person.since = person.since.min(row.created_at);
        person.until = person.until.max(row.visits_until);
    }
    let mut people: Vec<Invited> = found.into_values().collect();
    people.sort_by(|one, other| (&one.room, one.since).cmp(&(&other.room, other.since)));
    Ok(people)
}

/// Refuses while lines of a removed tenant are still in a room: nobody new may read them.
fn is_not_being_emptied(view: &mut View<'_>, room: &str) -> Result<()> {
    let removals = view.all::<RemovalRow>()?;
    let of_room = removals.iter().filter(|removal| removal.rooms.0.iter().any(|name| name == room));
    let Some(lines_to) = of_room.map(|removal| removal.lines_to).max() else { return Ok(()) };
    if view.find::<LineRow>(&["room"], (room,))?.iter().all(|line| line.id > lines_to) {
        return Ok(());
    }
    Err(Error::conflict(
        "what was said in this room before, by a tenant that was removed, is still being deleted; \
         try again in a minute",
    ))
}

/// Who wrote what can still be read in a room.
fn authors(view: &mut View<'_>, room: &str) -> Result<HashSet<String>> {
    Ok(view.find::<LineRow>(&["room"], (room,))?.into_iter().map(|line| line.author).collect())
}

/// Who has keys of rooms, asked of any records.
pub trait RoomStore: Records {
    /// Lets in whoever holds the key with this fingerprint.
    fn invite(&self, person: Person, key_fingerprint: [u8; 32], by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("invite a person"), move |view| invite(view, &person, key_fingerprint, &by))
    }

    /// Lets in somebody whom nobody invited, until then. Conflict if somebody else
    /// has that name in the room, too many if there is no more room for visitors.
    fn visit(
        &self,
        person: Person,
        key_fingerprint: [u8; 32],
        until: UnixMillis,
    ) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("let in a visitor"), move |view| visit(view, &person, key_fingerprint, until))
    }

    /// Who has keys of this room, or of any.
    fn people(&self, room: Option<&str>) -> BoxFuture<'_, Result<Vec<Invited>>> {
        let room = room.map(str::to_owned);
        look(self, "list people", move |view| people(view, room.as_deref()))
    }

    /// Makes all keys of a person for a room void. Not found if there are none.
    fn uninvite(&self, person: Person, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("take an invitation back").class(Class::of(&by)), move |view| {
            uninvite(view, &person, &by)
        })
    }
}

impl<R: Records + ?Sized> RoomStore for R {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_known_by_their_key_and_by_who_else_is_there() {
        let ann = Person { room: "lab".into(), user: "ann".into() };
        let invited = Recognised {
            person: ann.clone(),
            visits_until: None,
            others: false,
            first_invited: Some("ann".into()),
        };
        let expected = Guest { person: ann, alone: true, first: true, visiting: false };
        assert_eq!(invited.clone().guest(UnixMillis(0)), Some(expected.clone()));
        let second = Recognised { others: true, first_invited: Some("bob".into()), ..invited.clone() };
        let beside = Guest { alone: false, first: false, ..expected.clone() };
        assert_eq!(second.guest(UnixMillis(0)), Some(beside));
        let visitor = Recognised { visits_until: Some(UnixMillis(5)), ..invited };
        let visiting = Guest { first: false, visiting: true, ..expected };
        assert_eq!(
            visitor.clone().guest(UnixMillis(5)),
            Some(visiting),
            "a visitor was never the first invited"
        );
        assert_eq!(visitor.guest(UnixMillis(6)), None, "their time is over");
    }
}
