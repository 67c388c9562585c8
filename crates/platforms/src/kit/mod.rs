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
pub(crate) mod directory;
pub(crate) mod health;
mod http;
pub(crate) mod inbound;
mod lenient;
pub(crate) mod minted;
mod parts;
mod position;
mod posted;
mod recent;
mod replies;
mod sighting;
mod watch;
pub(crate) mod webhook;

pub(crate) use access_token::{AccessToken, TokenSource};
pub(crate) use account::Account;
pub(crate) use api_error::{ApiError, ErrorKind};
pub(crate) use http::{Answer, Client, Provider};
pub(crate) use lenient::{Lenient, List};
pub(crate) use parts::{TextInParts, refused};
pub(crate) use position::Position;
pub(crate) use recent::{Recent, SentMessages};
pub(crate) use sighting::Sighting;
pub(crate) use watch::Watch;
