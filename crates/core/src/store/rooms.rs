//! Who has keys of the rooms of the web chat.

use super::BoxFuture;
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::ports::{Invited, Person};
use crate::records::{Change, Records, change, look};
use crate::rooms;
use crate::space::Class;

/// Who has keys of rooms: the rules of [`crate::rooms`], asked of any records.
pub trait RoomStore: Records {
    /// Lets in whoever holds the key with this fingerprint.
    fn invite(&self, person: Person, key_fingerprint: [u8; 32], by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("invite a person"), move |view| {
            rooms::invite(view, &person, key_fingerprint, &by)
        })
    }

    /// Lets in somebody whom nobody invited, until then. Conflict if somebody else
    /// has that name in the room, too many if there is no more room for visitors.
    fn visit(
        &self,
        person: Person,
        key_fingerprint: [u8; 32],
        until: UnixMillis,
    ) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("let in a visitor"), move |view| {
            rooms::visit(view, &person, key_fingerprint, until)
        })
    }

    /// Who has keys of this room, or of any.
    fn people(&self, room: Option<&str>) -> BoxFuture<'_, Result<Vec<Invited>>> {
        let room = room.map(str::to_owned);
        look(self, "list people", move |view| rooms::people(view, room.as_deref()))
    }

    /// Makes all keys of a person for a room void. Not found if there are none.
    fn uninvite(&self, person: Person, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("take an invitation back").class(Class::of(&by)), move |view| {
            rooms::uninvite(view, &person, &by)
        })
    }
}

impl<R: Records + ?Sized> RoomStore for R {}
