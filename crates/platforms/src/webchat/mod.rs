//! The built-in platform: rooms on the connector itself, no account needed.

mod address;
mod commands;
mod context;
mod descriptor;
mod drafts;
mod files;
mod follow;
mod guide;
mod held;
mod hub;
mod ingest;
mod manifest;
mod normalize;
mod open_rooms;
mod page;
mod press;
mod read;
mod render;
mod room;
mod routes;
mod seats;
mod send;
mod send_media;
mod story;
mod verify;

pub use descriptor::descriptor;
pub use drafts::LIMITS as DRAFT_LIMITS;
pub use files::LIMITS as FILE_LIMITS;
pub use guide::Guides;
pub use hub::{Hub, LIMITS as FOLLOW_LIMITS};
pub use ingest::MAX_POST_CHARS;
pub use manifest::{MANIFEST, Settings};
pub use open_rooms::LIMITS as VISIT_LIMITS;
pub use read::LIMITS as READ_LIMITS;
pub use room::{chat_id, check_invitation, person_of, place, private_room, room_of};
pub use routes::{LIMITS as PACE_LIMITS, Setup, routes};
pub use send::{LIMITS as SEND_LIMITS, Webchat};
pub use verify::mint_key;

/// The platform's name. Gateways do not know it and file it under `relay`.
pub const NAME: &str = "webchat";
/// The one bot of the platform.
pub const BOT: &str = "webchat";
