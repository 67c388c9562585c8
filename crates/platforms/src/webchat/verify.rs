//! Who is posting: the holder of a personal key, never a name in a body.

use angelia_core::error::{Error, Kind, Result};
use angelia_core::secret::{Secret, fingerprint, random_hex};
use angelia_core::store::{Guest, Lines};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

/// Longest key looked at; ours are far shorter.
const MAX_KEY: usize = 256;

/// A new key: 128 random bits, which nobody guesses, and short enough for a link
/// that fits on a line.
pub fn mint_key() -> Secret {
    Secret::new(random_hex::<16>())
}

/// What recognises a key.
pub(super) type Fingerprint = [u8; 32];

/// The person behind a request for `room`, by their key.
///
/// A key of another room and a key of nobody get the same answer.
pub(super) async fn guest(lines: &dyn Lines, headers: &HeaderMap, room: &str) -> Result<Guest> {
    holder(lines, key(headers)?, room).await
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

/// The person who holds a key of `room` now.
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
