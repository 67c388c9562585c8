//! One shard: read, processed, committed, and only then read on. The heartbeat
//! tells Discord what was read, so nothing may be read that is not committed.

use super::address::shard_of;
use super::connection::{ConnectionState, Next, socket};
use super::cursor::{self, Position};
use super::fatal;
use super::learn::{self, Gone};
use super::locate::IngestError;
use super::message::{Heard, Reader};
use super::outage::Outage;
use super::parse::{Envelope, Ready};
use crate::ingress::Stop;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::Chat;
use angelia_core::error::Result;
use angelia_core::store::{Intake, Traffic};
use std::collections::HashMap;
use std::time::Duration;
use twilight_gateway::queue::InMemoryQueue;
use twilight_gateway::{Message, Shard as Socket, ShardId, ShardState};

/// How soon a store that does not commit is tried again.
pub(super) const STORE_AGAIN: Duration = Duration::from_secs(1);

const DISPATCH: u8 = 0;
const RECONNECT: u8 = 7;
const INVALID_SESSION: u8 = 9;
const HELLO: u8 = 10;
const HEARTBEAT_ACK: u8 = 11;

/// What a shard needs to connect.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) id: ShardId,
    pub(super) gateway_url: String,
    pub(super) queue: InMemoryQueue,
}

/// What the store knows of all shards together.
#[derive(Clone, Copy)]
pub(super) struct Past {
    /// Whether one was ever read.
    pub(super) is_any: bool,
    /// When one was last heard.
    pub(super) last_heard: Option<UnixMillis>,
}

/// It is time to stop: what is at hand stays uncommitted and comes again.
pub(super) struct Halted;

/// One shard.
pub(super) struct Shard {
    pub(super) reader: Reader,
    pub(super) halt: Stop,
    pub(super) line: Line,
    pub(super) stream: String,
    pub(super) socket: Socket,
    /// The session, and the last event of it that was processed.
    pub(super) processed: Option<Position>,
    /// What of that is committed.
    pub(super) committed: Option<(u64, UnixMillis)>,
    /// The newest messages that wait for a commit.
    pub(super) traffic: HashMap<String, Traffic>,
    /// Whether the bot has heard anything before: then an identify leaves a gap.
    has_past: bool,
    /// When any shard was last heard before this one began, if that is known.
    pub(super) last_heard: Option<UnixMillis>,
    /// What is still to be found out after such a gap.
    pub(super) outage: Option<Outage>,
    /// Since when there is something of it to find out. A restart knows no more than this.
    pub(super) owed_since: Option<UnixMillis>,
    pub(super) connection_state: ConnectionState,
}

impl Shard {
    /// A shard that goes on at `position`.
    pub(super) fn new(
        reader: Reader,
        halt: Stop,
        line: Line,
        position: Option<Position>,
        past: Past,
    ) -> Self {
        let socket = socket(&reader, &line, position.as_ref());
        let stream = cursor::stream(line.id.number(), line.id.total());
        let committed = position.as_ref().and_then(|position| Some((position.sequence, position.heard_at?)));
        let owed_since = position.as_ref().and_then(|position| position.owed_since);
        let (traffic, outage, connection_state) = Default::default();
        Self {
            reader,
            halt,
            line,
            stream,
            socket,
            processed: position,
            committed,
            traffic,
            has_past: past.is_any,
            last_heard: past.last_heard,
            outage,
            owed_since,
            connection_state,
        }
    }

    /// Reads until it is time to stop. `Some` is why Discord must not be called again.
    pub(super) async fn run(mut self) -> Option<String> {
        loop {
            let before = self.socket.state();
            let halt = self.halt.clone();
            let next = tokio::select! {
                biased;
                () = halt.wait() => break,
                next = self.next() => next,
            };
            let went_on = match next {
                Next::Over => return Some(fatal::fatal(self.connection_state.close_code)),
                Next::Lost => self.lost(before).await,
                Next::Came(Ok(Message::Text(text))) => self.text(&text, before).await,
                Next::Came(Ok(Message::Close(frame))) => {
                    self.closed(frame.map(|frame| frame.code), before).await
                }
                Next::Came(Err(error)) => self.failed(&error, before).await,
            };
            if went_on.is_err() {
                break;
            }
        }
        self.leave().await;
        None
    }

    async fn text(&mut self, text: &str, before: ShardState) -> Result<(), Halted> {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text) else {
            let heard = self.reader.quarantined("a gateway message".into(), "it cannot be read".into(), text);
            return self.commit(heard, None).await;
        };
        if matches!(envelope.op, DISPATCH | HEARTBEAT_ACK) {
            // A greeting is none of these: a connection that only greets is not alive.
            self.reader.discord.heard(self.number());
        }
        match envelope.op {
            DISPATCH => self.dispatch(&envelope, text).await,
            HEARTBEAT_ACK => {
                self.connection_state.lives();
                self.flush().await
            }
            RECONNECT => self.give_up(before, "Discord asked for a new connection").await,
            INVALID_SESSION => self.give_up(before, "Discord ended the session").await,
            HELLO => {
                self.connection_state.greeted();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn dispatch(&mut self, envelope: &Envelope<'_>, text: &str) -> Result<(), Halted> {
        let Envelope { s, t, d, .. } = envelope;
        let event = t.as_deref().unwrap_or_default();
        if event != "READY" {
            self.give_up_owed().await?;
        }
        let position = self.position(*s);
        let data = d.map(|data| data.get()).unwrap_or("null");
        let heard = match event {
            "READY" => {
                self.identified(data, position).await?;
                self.connection_state.brought();
                return Ok(());
            }
            "RESUMED" => {
                self.reader.discord.health.count("resumes");
                Heard::default()
            }
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" => {
                let what = format!("{event} {}", s.unwrap_or_default());
                self.message(event == "MESSAGE_CREATE", data, text, what).await?
            }
            "INTERACTION_CREATE" => {
                self.interaction(data, position).await?;
                self.connection_state.brought();
                return Ok(());
            }
            event if learn::teaches(event) => match d {
                Some(data) => self.lesson(event, data, text, *s).await?,
                None => Heard::default(),
            },
            _ => Heard::default(),
        };
        let position = position.map(|position| Position { owed_since: self.owed_since, ..position });
        self.take(heard, position).await?;
        self.connection_state.brought();
        Ok(())
    }

    /// A message or its update, however often it has to be tried.
    pub(super) async fn message(
        &mut self,
        is_new: bool,
        data: &str,
        raw: &str,
        what: String,
    ) -> Result<Heard, Halted> {
        let mut held_up = false;
        loop {
            let reading = async {
                match is_new {
                    true => self.reader.message(data).await,
                    false => self.reader.update(data).await,
                }
            };
            let heard = Self::unless_halted(&self.halt, reading).await?;
            if held_up && !matches!(heard, Err(IngestError::NotNow { .. })) {
                self.reader.discord.heard(self.number());
            }
            match heard {
                Ok(heard) => return Ok(heard),
                Err(IngestError::Unreadable(why)) => return Ok(self.reader.quarantined(what, why, raw)),
                Err(IngestError::NotNow { pause, why }) => {
                    let bot = self.reader.discord.own_id();
                    // Nobody is heard meanwhile, and an operator should know why.
                    let placed = format!("a message cannot be placed yet: {why}");
                    self.reader.discord.held_up(self.number(), &placed);
                    held_up = true;
                    tracing::warn!(
                        bot,
                        what,
                        why,
                        "a message cannot be placed yet; nothing is read until it can"
                    );
                    self.pause(pause).await?;
                }
            }
        }
    }

    async fn lesson(
        &mut self,
        event: &str,
        data: &serde_json::value::RawValue,
        text: &str,
        sequence: Option<u64>,
    ) -> Result<Heard, Halted> {
        loop {
            let lesson = match learn::lesson(event, data, self.reader.discord.own_id()) {
                Ok(lesson) => lesson,
                Err(why) => {
                    let what = format!("{event} {}", sequence.unwrap_or_default());
                    return Ok(self.reader.quarantined(what, why, text));
                }
            };
            if let Some(Gone::Guild(left)) = &lesson.gone {
                self.owes_nothing(left);
            }
            let chats = match self.reader.discord.take_note(lesson).await {
                Ok(chats) => chats,
                Err(_) => {
                    self.pause(STORE_AGAIN).await?;
                    continue;
                }
            };
            let heard = match chats.is_empty() {
                true => Heard::default(),
                false => Heard::at_once(Intake { chats, ..Intake::default() }),
            };
            return match event {
                "GUILD_CREATE" => self.catch_up(data, heard).await,
                _ => Ok(heard),
            };
        }
    }

    /// A new session: what happened since the old one is read back before
    /// anything of this one is, and before the old one is forgotten.
    async fn identified(&mut self, data: &str, position: Option<Position>) -> Result<(), Halted> {
        self.reader.discord.health.count("identifies");
        if self.has_past {
            let ready: Ready = serde_json::from_str(data).unwrap_or_default();
            self.read_back(ready.guilds).await?;
        }
        self.has_past = true;
        let position = position.map(|position| Position { owed_since: self.owed_since, ..position });
        self.commit(Heard::default(), position).await
    }

    /// Whether this shard hears of a chat.
    pub(super) fn hears(&self, chat: &Chat) -> bool {
        shard_of(chat.scope.as_deref(), self.line.id.total()) == self.number()
    }

    pub(super) fn number(&self) -> u32 {
        self.line.id.number()
    }
}
