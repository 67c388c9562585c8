//! How far a shard was read, so that a restarted connector goes on from there.

use angelia_core::clock::UnixMillis;
use angelia_core::store::Cursor;
use serde::{Deserialize, Serialize};

/// What the streams of shards begin with.
const SHARD: &str = "shard:";

/// The stream whose position is no place in a stream: what this store's nonces begin with.
pub(super) const NONCE: &str = "nonce";

/// A session at Discord, and the last event of it that was processed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) session_id: String,
    pub(super) sequence: u64,
    #[serde(default)]
    pub(super) resume_url: Option<String>,
    /// When Discord was last heard in it.
    #[serde(default)]
    pub(super) heard_at: Option<UnixMillis>,
    /// Since when guilds that have not reported yet were not heard, after an outage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owed_since: Option<UnixMillis>,
}

/// The stream of one shard. Another number of shards makes other streams: a
/// session of theirs would bring other guilds.
pub(super) fn stream(shard: u32, count: u32) -> String {
    format!("{SHARD}{shard}/{count}")
}

/// The row that keeps a position.
pub(super) fn cursor(stream: &str, position: &Position) -> Option<Cursor> {
    let position = serde_json::to_string(position).ok()?;
    Some(Cursor { stream: stream.to_owned(), position })
}

/// Where a stream was left, if it can be taken up again.
pub(super) fn find(cursors: &[Cursor], stream: &str) -> Option<Position> {
    let cursor = cursors.iter().find(|cursor| cursor.stream == stream)?;
    let mut position: Position = serde_json::from_str(&cursor.position).ok()?;
    position.resume_url = position.resume_url.filter(|url| is_address(url));
    Some(position)
}

/// Whether any shard was ever read.
pub(super) fn any(cursors: &[Cursor]) -> bool {
    cursors.iter().any(|cursor| cursor.stream.starts_with(SHARD))
}

/// When any shard was last heard, if one of them says.
pub(super) fn last_heard(cursors: &[Cursor]) -> Option<UnixMillis> {
    let shards = cursors.iter().filter(|cursor| cursor.stream.starts_with(SHARD));
    let positions = shards.filter_map(|cursor| serde_json::from_str::<Position>(&cursor.position).ok());
    positions.filter_map(|position| position.heard_at).max()
}

/// Whether a shard can connect there.
pub(super) fn is_address(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "ws" | "wss") && url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_found_again_by_its_own_shard_only() {
        let position = Position {
            session_id: "s".into(),
            sequence: 41,
            resume_url: Some("wss://gateway-us-east1-b.discord.gg".into()),
            heard_at: Some(UnixMillis(7)),
            owed_since: Some(UnixMillis(5)),
        };
        let cursors = [cursor(&stream(0, 2), &position).unwrap()];
        assert_eq!(cursors[0].stream, "shard:0/2");
        assert_eq!(find(&cursors, &stream(0, 2)), Some(position));
        assert_eq!(find(&cursors, &stream(0, 1)), None);
        assert_eq!(find(&cursors, &stream(1, 2)), None);
        assert_eq!((any(&cursors), last_heard(&cursors)), (true, Some(UnixMillis(7))));
        assert!(!any(&[Cursor { stream: NONCE.into(), position: "x".into() }]));
    }

    #[test]
    fn what_cannot_be_read_is_no_position() {
        let with = |position: &str| {
            find(&[Cursor { stream: stream(0, 1), position: position.into() }], &stream(0, 1))
        };
        assert_eq!(with("{"), None);
        assert_eq!(with(r#"{"sequence": 1}"#), None);
        let odd = with(r#"{"session_id": "s", "sequence": 1, "resume_url": "gopher://x"}"#).unwrap();
        assert_eq!(odd.resume_url, None, "the shard would not survive it");
    }
}
