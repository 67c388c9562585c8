//! What the web chat says of itself to operators: places, and its section in the
//! configuration.

use super::NAME;
use crate::manifest::{Manifest, Setup};
use crate::settings::{BadValue, Given, SectionKey, Shown};
use angelia_core::admission::{Grammar, direct};
use angelia_core::identity::check_name;
use angelia_core::limit::Rate;

/// See [`Manifest`].
pub const MANIFEST: Manifest = Manifest {
    places: Grammar {
        platform: NAME,
        // A room is there as soon as somebody is invited to it.
        is_path: |_| true,
        private_person: direct,
        help: "write webchat:ROOM, webchat:dm:USER or webchat:*",
        example: "webchat:lobby",
    },
    setup: Setup::Section { keys: KEYS, sample: include_str!("section.toml") },
};

const KEYS: &[SectionKey] = &[
    SectionKey {
        section: NAME,
        name: "enabled",
        read: |all, given| given.flag().map(|it| all.webchat.enabled = it),
        show: |all| Shown::bare(all.webchat.enabled),
    },
    SectionKey {
        section: NAME,
        name: "open_rooms",
        read: |all, given| rooms(given).map(|it| all.webchat.open_rooms = it),
        show: |all| Shown::listed(&all.webchat.open_rooms),
    },
    SectionKey {
        section: NAME,
        name: "posts_burst",
        read: |all, given| some(given).map(|it| all.webchat.pace.burst = it),
        show: |all| Shown::bare(all.webchat.pace.burst),
    },
    SectionKey {
        section: NAME,
        name: "posts_per_minute",
        read: |all, given| some(given).map(|it| all.webchat.pace.calls = it),
        show: |all| Shown::bare(all.webchat.pace.calls),
    },
];

/// The web chat, as an operator configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether it is served.
    pub enabled: bool,
    /// Rooms that anybody may enter, without an invitation.
    pub open_rooms: Vec<String>,
    /// How fast one person may post, edit and stop.
    pub pace: Rate,
}

/// What a fast typist, or a script that pastes a list, does not notice: thirty at
/// once, and then two a second.
const PACE: Rate = Rate::a_minute(120, 30);

impl Default for Settings {
    fn default() -> Self {
        Self { enabled: true, open_rooms: Vec::new(), pace: PACE }
    }
}

/// A number of things of which there has to be one.
fn some(given: &Given<'_>) -> Result<u32, BadValue> {
    match u32::try_from(given.count()?) {
        Ok(0) => Err(given.bad("must be at least 1: with 0 nobody could write")),
        Ok(count) => Ok(count),
        Err(_) => Err(given.bad(format!("must be at most {}", u32::MAX))),
    }
}

/// Rooms that people can share.
fn rooms(given: &Given<'_>) -> Result<Vec<String>, BadValue> {
    let room = |text: &str| {
        let shared = check_name("room", text).is_ok() && !text.starts_with("dm:");
        shared.then(|| text.to_owned()).ok_or_else(|| {
            given.bad(format!(
                "holds {text:?}, which is no room that people can share; write a name such as \"lobby\""
            ))
        })
    };
    given.texts()?.into_iter().map(room).collect()
}
