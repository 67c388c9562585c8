//! The built-in platform: rooms on the connector itself, no account needed.

mod address;
mod descriptor;
mod follow;
mod hub;
mod ingest;
mod normalize;
mod room;
mod send;
mod speak;
mod verify;

pub use descriptor::descriptor;
pub use hub::Hub;
pub use ingest::{MAX_POST_CHARS, routes};
pub use normalize::{BOT, NAME, chat_id, room_of};
pub use room::{check_invitation, person_of, place, private_room};
pub use send::Webchat;
