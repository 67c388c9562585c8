//! How far a shard was read, so that a restarted connector goes on from there:
//! committed together with what the shard took in.

use super::{STORE_AGAIN, Shard};
use crate::discord::take::{Heard, Reader};
use crate::ingress::Halted;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::store::{Cursor, Intake, Taken, Traffic};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;

/// What the streams of shards begin with.
const SHARD: &str = "shard:";
/// Chats whose newest message waits to be noted; more are noted at once.
const MAX_TRAFFIC: usize = 500;
/// How old what is kept of when Discord was last heard may become on a quiet shard.
const HEARD_EVERY: Duration = Duration::from_secs(10 * 60);

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
fn cursor(stream: &str, position: &Position) -> Option<Cursor> {
    let position = serde_json::to_string(position).ok()?;
    Some(Cursor { stream: stream.to_owned(), position })
}

/// Where a stream was left, if it can be taken up again.
fn find(cursors: &[Cursor], stream: &str) -> Option<Position> {
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
fn is_address(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "ws" | "wss") && url.has_host())
}

/// How far one shard was read, and what of that is not committed yet.
pub(super) struct Progress {
    stream: String,
    /// The session, and the last event of it that was processed.
    pub(super) processed: Option<Position>,
    /// What of that is committed.
    committed: Option<(u64, UnixMillis)>,
    /// The newest messages that wait for a commit.
    traffic: HashMap<String, Traffic>,
    /// Since when there is something of an outage to find out. A restart knows no more than this.
    pub(super) owed_since: Option<UnixMillis>,
}

impl Progress {
    /// One that goes on where a stream was left.
    pub(super) fn find(cursors: &[Cursor], stream: String) -> Self {
        let processed = find(cursors, &stream);
        let committed = processed.as_ref().and_then(|position| Some((position.sequence, position.heard_at?)));
        let owed_since = processed.as_ref().and_then(|position| position.owed_since);
        Self { stream, processed, committed, traffic: HashMap::new(), owed_since }
    }

    /// What is committed together with an intake: how far the stream was read with
    /// it, and what was seen before.
    fn with(&self, mut intake: Intake, position: Option<&Position>) -> Intake {
        // What is not committed must not count as seen: it would never be read back.
        let mut traffic = self.traffic.clone();
        newest(&mut traffic, std::mem::take(&mut intake.traffic));
        let traffic = traffic.into_values().collect();
        let owing = |position: &Position| Position { owed_since: self.owed_since, ..position.clone() };
        let cursor = position.and_then(|position| cursor(&self.stream, &owing(position)));
        Intake { traffic, cursor, ..intake }
    }

    /// All of it, before the shard ends; `None` if it never began.
    pub(super) fn last(&self) -> Option<Intake> {
        self.processed.as_ref().map(|position| self.with(Intake::default(), Some(position)))
    }

    /// Everything up to `position` is committed.
    fn committed(&mut self, position: Option<Position>) {
        self.traffic.clear();
        if let Some(position) = position {
            self.committed = position.heard_at.map(|heard_at| (position.sequence, heard_at));
            self.processed = Some(position);
        }
    }

    /// Keeps what was seen for the next commit.
    pub(super) fn remember(&mut self, traffic: Vec<Traffic>) {
        newest(&mut self.traffic, traffic);
    }

    /// What has to be committed although nothing happened: that the stream moved,
    /// and now and then that it is heard.
    fn due(&mut self, is_active: bool) -> Option<Position> {
        let position = self.processed.as_mut()?;
        if is_active {
            // Else it is another session that is heard, which is not ready yet.
            position.heard_at = Some(clock::wall());
        }
        let is_kept = self.committed.is_some_and(|(sequence, heard_at)| {
            let newest = position.heard_at.unwrap_or(heard_at);
            sequence == position.sequence && heard_at >= newest.before(HEARD_EVERY)
        });
        (!is_kept || !self.traffic.is_empty()).then(|| position.clone())
    }
}

impl Shard {
    /// Commits what has to be; the rest waits for company.
    pub(super) async fn take(&mut self, heard: Heard, position: Option<Position>) -> Result<(), Halted> {
        if heard.at_once || self.progress.traffic.len() >= MAX_TRAFFIC {
            return self.commit(heard, position).await.map(drop);
        }
        self.progress.remember(heard.intake.traffic);
        self.progress.processed = position.or(self.progress.processed.take());
        Ok(())
    }

    /// Commits something together with where the stream is with it, however long
    /// that takes; answers what became of it. Of what nobody wants any more only
    /// where the stream is with it is committed.
    pub(super) async fn commit(&mut self, heard: Heard, position: Option<Position>) -> Result<Taken, Halted> {
        let mut intake = self.progress.with(heard.intake.clone(), position.as_ref());
        let mut given_up = false;
        let taken = loop {
            let Reader { discord, ingress } = &self.reader;
            let account = &discord.account;
            // What it taught stays at hand while it is tried: nobody would learn it again.
            let taken = ingress.take_in(&account.key, vec![intake.clone()]).await;
            match taken.map(|taken| taken.first().copied().unwrap_or_default()) {
                Ok(taken) if !taken.given_up => break Taken { given_up, ..taken },
                Ok(_) => {
                    let Intake { traffic, cursor, .. } = intake;
                    (intake, given_up) = (Intake { traffic, cursor, ..Intake::default() }, true);
                }
                Err(error) => {
                    let bot = discord.own_id();
                    tracing::warn!(bot, %error, "what Discord sent is not committed; it is tried again");
                    self.status.disconnected("the store does not commit what Discord sends");
                    let paused = self.halt.pause(STORE_AGAIN).await;
                    paused.inspect_err(|_| account.directory.unlearn(&intake.chats))?;
                }
            }
        };
        self.progress.committed(position);
        self.reader.committed(heard, taken);
        Ok(taken)
    }

    /// Commits how far the stream was read, if it moved, and now and then that it is heard.
    pub(super) async fn flush(&mut self) -> Result<(), Halted> {
        match self.progress.due(self.connection.is_active()) {
            Some(position) => self.commit(Heard::default(), Some(position)).await.map(drop),
            None => Ok(()),
        }
    }

    /// Where the stream is with the event at hand.
    pub(super) fn position(&self, sequence: Option<u64>) -> Option<Position> {
        let (session_id, resume_url) = self.connection.session()?;
        // The socket forgets the address when it cannot be reached; it may be again.
        let earlier = self.progress.processed.as_ref().filter(|earlier| earlier.session_id == session_id);
        let resume_url = resume_url.or_else(|| earlier?.resume_url.clone());
        let heard_at = Some(clock::wall());
        Some(Position { session_id, sequence: sequence?, resume_url, heard_at, owed_since: None })
    }
}

/// Notes newest messages; an older one, which was read back, hides none.
fn newest(traffic: &mut HashMap<String, Traffic>, seen: Vec<Traffic>) {
    for seen in seen {
        match traffic.get(&seen.chat_id) {
            Some(newer) if newer.at > seen.at => {}
            _ => {
                traffic.insert(seen.chat_id.clone(), seen);
            }
        }
    }
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
        assert!(!any(&[Cursor { stream: "nonce".into(), position: "x".into() }]));
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
