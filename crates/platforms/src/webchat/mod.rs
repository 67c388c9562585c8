//! The built-in platform: rooms on the connector itself, no account needed.

mod address;
mod descriptor;
mod follow;
mod guide;
mod hub;
mod ingest;
mod manifest;
mod normalize;
mod page;
mod read;
mod render;
mod room;
mod seats;
mod send;
mod speak;
mod story;
mod verify;
mod visit;

pub use descriptor::descriptor;
pub use guide::Guides;
pub use hub::{Hub, LIMITS as FOLLOW_LIMITS};
pub use ingest::{LIMITS as PACE_LIMITS, MAX_POST_CHARS, Setup, routes};
pub use manifest::{MANIFEST, Settings};
pub use normalize::{BOT, NAME, chat_id, room_of};
pub use read::LIMITS as READ_LIMITS;
pub use room::{check_invitation, person_of, place, private_room};
pub use send::Webchat;
pub use verify::mint_key;
pub use visit::LIMITS as VISIT_LIMITS;
