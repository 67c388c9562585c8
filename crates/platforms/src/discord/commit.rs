//! What a shard took in, committed together with where its stream is.

use super::cursor::{self, Position};
use super::message::Heard;
use super::shard::{Halted, STORE_AGAIN, Shard};
use angelia_core::clock;
use angelia_core::store::{Intake, Taken, Traffic};
use std::collections::HashMap;
use std::time::Duration;
use twilight_gateway::ShardState;

/// Chats whose newest message waits to be noted; more are noted at once.
const MAX_TRAFFIC: usize = 500;
/// How old what is kept of when Discord was last heard may become on a quiet shard.
const HEARD_EVERY: Duration = Duration::from_secs(10 * 60);

impl Shard {
    /// Commits what has to be; the rest waits for company.
    pub(super) async fn take(&mut self, heard: Heard, position: Option<Position>) -> Result<(), Halted> {
        if heard.at_once || self.traffic.len() >= MAX_TRAFFIC {
            return self.commit(heard, position).await;
        }
        self.remember(heard.intake.traffic);
        self.processed = position.or(self.processed.take());
        Ok(())
    }

    /// Commits something together with where the stream is with it, however long that takes.
    pub(super) async fn commit(&mut self, heard: Heard, position: Option<Position>) -> Result<(), Halted> {
        self.commit_for(heard, position).await.map(drop)
    }

    /// The same, and answers what became of it. Of what nobody wants any more
    /// only where the stream is with it is committed.
    pub(super) async fn commit_for(
        &mut self,
        heard: Heard,
        position: Option<Position>,
    ) -> Result<Taken, Halted> {
        let mut intake = heard.intake.clone();
        // What is not committed must not count as seen: it would never be read back.
        let mut traffic = self.traffic.clone();
        newest(&mut traffic, std::mem::take(&mut intake.traffic));
        intake.traffic = traffic.into_values().collect();
        intake.cursor = position.as_ref().and_then(|position| cursor::cursor(&self.stream, position));
        let (ingress, bot) = (self.reader.ingress.clone(), self.reader.discord.key.clone());
        let mut given_up = false;
        let taken = loop {
            match ingress.take_in(&bot, vec![intake.clone()]).await {
                Ok(taken) => {
                    let taken = taken.first().copied().unwrap_or_default();
                    if !taken.given_up {
                        break Taken { given_up, ..taken };
                    }
                    let Intake { traffic, cursor, .. } = intake;
                    (intake, given_up) = (Intake { traffic, cursor, ..Intake::default() }, true);
                }
                Err(error) => {
                    tracing::warn!(bot = &*bot.bot, %error, "what Discord sent is not committed; it is tried again");
                    self.reader
                        .discord
                        .disconnected(self.number(), "the store does not commit what Discord sends");
                    let chats = &intake.chats;
                    self.pause(STORE_AGAIN).await.inspect_err(|_| self.reader.discord.unlearn(chats))?;
                }
            }
        };
        self.traffic.clear();
        if let Some(position) = position {
            self.committed = position.heard_at.map(|heard_at| (position.sequence, heard_at));
            self.processed = Some(position);
        }
        self.reader.committed(heard, taken);
        Ok(taken)
    }

    /// Commits how far the stream was read, if it moved, and now and then that it is heard.
    pub(super) async fn flush(&mut self) -> Result<(), Halted> {
        let Some(position) = self.processed.as_mut() else { return Ok(()) };
        let now = clock::wall();
        if self.socket.state() == ShardState::Active {
            // Else it is another session that is heard, which is not ready yet.
            position.heard_at = Some(now);
        }
        let is_kept = self.committed.is_some_and(|(sequence, heard_at)| {
            let newest = position.heard_at.unwrap_or(heard_at);
            sequence == position.sequence && heard_at >= newest.before(HEARD_EVERY)
        });
        if is_kept && self.traffic.is_empty() {
            return Ok(());
        }
        let position = position.clone();
        self.commit(Heard::default(), Some(position)).await
    }

    /// Keeps what was seen for the next commit.
    pub(super) fn remember(&mut self, traffic: Vec<Traffic>) {
        newest(&mut self.traffic, traffic);
    }

    /// Where the stream is with the event at hand.
    pub(super) fn position(&self, sequence: Option<u64>) -> Option<Position> {
        let session_id = self.socket.session()?.id().to_owned();
        // The socket forgets the address when it cannot be reached; it may be again.
        let earlier = self.processed.as_ref().filter(|earlier| earlier.session_id == session_id);
        let resume_url = self.socket.resume_url().map(str::to_owned);
        let resume_url = resume_url.or_else(|| earlier?.resume_url.clone());
        let (heard_at, owed_since) = (Some(clock::wall()), self.owed_since);
        Some(Position { session_id, sequence: sequence?, resume_url, heard_at, owed_since })
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
