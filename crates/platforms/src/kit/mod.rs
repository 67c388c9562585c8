//! What every provider's platform needs and none should write again: HTTP calls and
//! what their failures mean, the edge that providers post to, the way from a sighting to
//! the store, texts in parts, the connector's own replies, how a bot is.
//!
//! A platform brings what only its provider knows
//! (`docs/decisions/0037-a-kit-for-platforms.md`).

mod access_token;
mod account;
mod api_error;
pub(crate) mod arrival_window;
pub(crate) mod attached;
pub(crate) mod context;
pub(crate) mod directory;
pub(crate) mod health;
mod http;
mod id_seed;
mod in_words;
pub(crate) mod inbound;
mod lenient;
mod parts;
mod position;
mod posted;
mod replies;
mod sent_messages;
mod sighting;
pub(crate) mod upload;
mod watch;
pub(crate) mod webhook;

pub(crate) use access_token::{AccessToken, Fetched};
pub use account::Account;
pub(crate) use account::Said;
pub(crate) use api_error::{ApiError, ErrorKind};
pub(crate) use http::{Answer, Client, Opened, Provider};
pub(crate) use id_seed::IdSeed;
pub(crate) use in_words::in_words;
pub(crate) use lenient::{Lenient, List};
pub(crate) use parts::{NO_FILE, TextInParts, cut, refused};
pub(crate) use position::Position;
pub(crate) use sent_messages::SentMessages;
pub(crate) use sighting::{Sighting, places_of};
pub(crate) use upload::Uploads;
pub(crate) use watch::Watch;
