//! Who is posting: the holder of a personal key, never a name in a body.

use super::routes::{Api, Refusal, language, peer};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::limit_per_address::Address;
use angelia_core::own_words::Language;
use angelia_core::secret::{Secret, fingerprint, random_hex};
use angelia_core::store::{Guest, Lines};
use axum::extract::{FromRequestParts, Path};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;

/// Longest key looked at; ours are far shorter.
const MAX_KEY: usize = 256;

/// A new key: 128 random bits, which nobody guesses, and short enough for a link
/// that fits on a line.
pub fn mint_key() -> Secret {
    Secret::new(random_hex::<16>())
}

/// What recognises a key.
pub(super) type Fingerprint = [u8; 32];

/// The person behind a request for a room, by their key. It comes first: for strangers
/// nothing is held, however much they send and however slowly.
pub(super) struct Caller {
    pub(super) guest: Guest,
    pub(super) key: Fingerprint,
    pub(super) from: Address,
    /// In which language they are told something.
    pub(super) language: Language,
}

/// What the path of such a request has.
#[derive(Deserialize)]
struct InRoom {
    room: String,
}

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Response> {
        let room = Path::from_request_parts(parts, api).await;
        let Path(InRoom { room }) = room.map_err(IntoResponse::into_response)?;
        let caller = async {
            let key = key(&parts.headers)?;
            let guest = holder(&*api.ports.lines, key, &room).await?;
            let (from, language) = (peer(&parts.extensions), language(&parts.headers));
            Ok(Self { guest, key, from, language })
        };
        caller.await.map_err(|unknown: Error| Refusal::from(unknown).into_response())
    }
}

/// The key of a request.
pub(super) fn key(headers: &HeaderMap) -> Result<Fingerprint> {
    headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::trim)
        .filter(|key| !key.is_empty() && key.len() <= MAX_KEY)
        .map(fingerprint)
        .ok_or_else(unknown)
}

/// The person who holds a key of `room` now. A key of another room and a key of nobody
/// get the same answer.
pub(super) async fn holder(lines: &dyn Lines, key: Fingerprint, room: &str) -> Result<Guest> {
    let guest = someone(lines, key).await?;
    if guest.person.room == room { Ok(guest) } else { Err(unknown()) }
}

/// The person who holds a key now, whatever room it opens.
pub(super) async fn someone(lines: &dyn Lines, key: Fingerprint) -> Result<Guest> {
    lines.person(key).await?.ok_or_else(unknown)
}

fn unknown() -> Error {
    Error::new(
        Kind::Unauthorized,
        "this key does not open this room; ask the operator for an invitation (angelia webchat invite)",
    )
}
