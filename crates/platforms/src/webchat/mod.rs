//! The built-in platform: rooms on the connector itself, no account needed.

mod descriptor;
mod hub;
mod ingest;
mod normalize;
mod send;
mod verify;

pub use descriptor::descriptor;
pub use hub::Hub;
pub use ingest::{MAX_POST_CHARS, routes};
pub use normalize::{BOT, NAME, chat_id, room_of};
pub use send::Webchat;
