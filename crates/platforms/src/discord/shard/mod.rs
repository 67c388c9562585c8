//! One shard: read, processed, committed, and only then read on. The heartbeat
//! tells Discord what was read, so nothing may be read that is not committed.

mod connection;
mod cursor;
mod health;
mod interaction;
mod outage;
mod read_back;

pub(super) use connection::Dial;
pub(super) use health::ShardHealth;

use super::address::shard_of;
use super::chats::{self, Gone, IngestError};
use super::parse::{Envelope, Ready};
use super::take::{Heard, Reader};
use crate::ingress::{Halted, STORE_AGAIN, Stop};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::Chat;
use angelia_core::error::Result;
use angelia_core::store::{Cursor, Intake};
use connection::{Connection, Next};
use cursor::{Position, Progress};
use health::ShardStatus;
use outage::Outage;
use std::time::Duration;
use twilight_gateway::error::{ReceiveMessageError, ReceiveMessageErrorType};
use twilight_gateway::{Message, ShardId};

const DISPATCH: u8 = 0;
const RECONNECT: u8 = 7;
const INVALID_SESSION: u8 = 9;
const HELLO: u8 = 10;
const HEARTBEAT_ACK: u8 = 11;

/// One shard.
pub(super) struct Shard {
    id: ShardId,
    reader: Reader,
    halt: Stop,
    status: ShardStatus,
    connection: Connection,
    progress: Progress,
    /// Whether the bot has heard anything before: then an identify leaves a gap.
    has_past: bool,
    /// When any shard was last heard before this one began, if that is known.
    last_heard: Option<UnixMillis>,
    /// What is still to be found out after such a gap.
    outage: Option<Outage>,
}

impl Shard {
    /// A shard that goes on where the store says that it was.
    pub(super) fn new(reader: Reader, halt: Stop, dial: Dial, cursors: &[Cursor]) -> Self {
        let id = dial.id;
        let progress = Progress::find(cursors, cursor::stream(id.number(), id.total()));
        Self {
            id,
            status: ShardStatus { shard: id.number(), discord: reader.discord.clone() },
            connection: Connection::new(dial, progress.processed.as_ref()),
            progress,
            has_past: cursor::any(cursors),
            last_heard: cursor::last_heard(cursors),
            outage: None,
            reader,
            halt,
        }
    }

    /// Reads until it is time to stop. `Some` is why Discord must not be called again.
    /// A shard that needs a new session waits for as long as none can be begun.
    pub(super) async fn run(mut self, no_session_for: Option<Duration>) -> Option<String> {
        if let Some(wait) = no_session_for.filter(|_| self.progress.processed.is_none()) {
            let minutes = wait.as_secs().div_ceil(60);
            self.status
                .disconnected(&format!("Discord lets this bot begin no more sessions for {minutes} minutes"));
            self.halt.pause(wait).await.ok()?;
        }
        let halt = self.halt.clone();
        while let Ok(next) = halt.unless_halted(self.connection.next()).await {
            let went_on = match next {
                Next::Over(why) => return Some(why),
                Next::Lost => {
                    self.connection.renew(&self.progress);
                    self.disconnected("the connection ended without a word").await
                }
                Next::Came(Ok(Message::Text(text))) => self.text(&text).await,
                Next::Came(Ok(Message::Close(frame))) => {
                    match self.connection.closed(frame.map(|frame| frame.code)) {
                        Some(why) => self.disconnected(&why).await,
                        None => Ok(()),
                    }
                }
                Next::Came(Err(error)) => self.failed(&error).await,
            };
            if went_on.is_err() {
                break;
            }
        }
        self.leave().await;
        None
    }

    async fn text(&mut self, text: &str) -> Result<(), Halted> {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text) else {
            return self.unreadable("it cannot be read", text).await;
        };
        if matches!(envelope.op, DISPATCH | HEARTBEAT_ACK) {
            // A greeting is none of these: a connection that only greets is not alive.
            self.status.heard();
        }
        match envelope.op {
            DISPATCH => {
                self.dispatch(&envelope, text).await?;
                self.connection.state.brought();
                Ok(())
            }
            HEARTBEAT_ACK => {
                self.connection.state.lives();
                self.flush().await
            }
            RECONNECT => self.give_up("Discord asked for a new connection").await,
            INVALID_SESSION => self.give_up("Discord ended the session").await,
            HELLO => {
                self.connection.state.greeted();
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
        let position = self.position(s.0);
        let data = d.map(|data| data.get()).unwrap_or("null");
        let what = || format!("{event} {}", s.unwrap_or_default());
        let heard = match event {
            "READY" => return self.identified(data, position).await,
            "INTERACTION_CREATE" => return self.interaction(data, position).await,
            "RESUMED" => {
                self.status.count("resumes");
                Heard::default()
            }
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" => {
                self.message(event == "MESSAGE_CREATE", data, text, what()).await?
            }
            "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => {
                let reader = &self.reader;
                reader.deleted(data).unwrap_or_else(|why| reader.quarantined(what(), why, text))
            }
            _ if d.is_none() => Heard::default(),
            _ => self.lesson(event, data, text, what()).await?,
        };
        self.take(heard, position).await
    }

    /// A message or its update, however often it has to be tried.
    async fn message(&mut self, is_new: bool, data: &str, raw: &str, what: String) -> Result<Heard, Halted> {
        let mut held_up = false;
        loop {
            let reading = async {
                if is_new { self.reader.message(data).await } else { self.reader.update(data).await }
            };
            let heard = self.halt.unless_halted(reading).await?;
            if held_up && !matches!(heard, Err(IngestError::NotNow { .. })) {
                self.status.heard();
            }
            match heard {
                Ok(heard) => return Ok(heard),
                Err(IngestError::Unreadable(why)) => return Ok(self.reader.quarantined(what, why, raw)),
                Err(IngestError::NotNow { pause, why }) => {
                    // Nobody is heard meanwhile, and an operator should know why.
                    self.status.held_up(&format!("a message cannot be placed yet: {why}"));
                    held_up = true;
                    let bot = self.reader.bot();
                    tracing::warn!(
                        bot,
                        what,
                        why,
                        "a message cannot be placed yet; nothing is read until it can"
                    );
                    self.halt.pause(pause).await?;
                }
            }
        }
    }

    /// What an event teaches of guilds and channels, if it does.
    async fn lesson(&mut self, event: &str, data: &str, text: &str, what: String) -> Result<Heard, Halted> {
        let discord = &self.reader.discord;
        let lesson = match chats::lesson(event, data, discord.own_id()) {
            Ok(Some(lesson)) => lesson,
            Ok(None) => return Ok(Heard::default()),
            Err(why) => return Ok(self.reader.quarantined(what, why, text)),
        };
        let chats = self.halt.until_stored(|| discord.take_note(lesson.clone())).await?;
        if let Some(Gone::Guild(left)) = &lesson.gone {
            self.owes_nothing(left);
        }
        let heard = if chats.is_empty() {
            Heard::default()
        } else {
            Heard::at_once(Intake { chats, ..Intake::default() })
        };
        match event {
            "GUILD_CREATE" => self.catch_up(data, heard).await,
            _ => Ok(heard),
        }
    }

    /// A new session: what happened since the old one is read back before
    /// anything of this one is, and before the old one is forgotten.
    async fn identified(&mut self, data: &str, position: Option<Position>) -> Result<(), Halted> {
        self.status.count("identifies");
        let owed_before = self.progress.owed_since;
        if self.has_past {
            let ready: Ready = serde_json::from_str(data).unwrap_or_default();
            self.read_back(ready.guilds).await?;
        }
        self.has_past = true;
        let committed = self.commit(Heard::default(), position).await;
        if committed.is_err() {
            // The position that is left behind is that of the session before.
            self.progress.owed_since = owed_before;
        }
        committed.map(drop)
    }

    /// Whether this shard hears of a chat.
    fn hears(&self, chat: &Chat) -> bool {
        shard_of(chat.scope.as_deref(), self.id.total()) == self.id.number()
    }

    /// Keeps a message of the gateway that nobody can read.
    async fn unreadable(&mut self, why: &str, text: &str) -> Result<(), Halted> {
        let heard = self.reader.quarantined("a gateway message".into(), why.into(), text);
        self.commit(heard, None).await.map(drop)
    }

    /// The socket could not connect, or could not read what came.
    async fn failed(&mut self, error: &ReceiveMessageError) -> Result<(), Halted> {
        let rest = match error.kind() {
            ReceiveMessageErrorType::Deserializing { event } => {
                self.unreadable("the gateway client cannot read it", event).await?;
                self.connection.unread(&self.progress)
            }
            ReceiveMessageErrorType::Reconnect => {
                self.status.disconnected("Discord's gateway cannot be reached; it is tried again");
                self.connection.unreached(&self.progress)
            }
            _ => return self.give_up("what Discord sends cannot be unpacked").await,
        };
        self.halt.pause(rest.unwrap_or_default()).await
    }

    /// The connection is of no use any more.
    async fn give_up(&mut self, why: &str) -> Result<(), Halted> {
        if self.connection.give_up() { self.disconnected(why).await } else { Ok(()) }
    }

    async fn disconnected(&mut self, why: &str) -> Result<(), Halted> {
        let rest = self.connection.ended(&mut self.progress, &self.status, why);
        self.halt.pause(rest).await
    }

    /// Closes so that the session can be resumed, after what was read is committed.
    async fn leave(&mut self) {
        let Reader { discord, ingress } = &self.reader;
        let bot = discord.own_id();
        if let Some(intake) = self.progress.last()
            && let Err(error) = discord.account.commit(ingress, intake).await
        {
            tracing::warn!(bot, %error, "a shard's position is not committed");
        }
        if !self.connection.close().await {
            tracing::debug!(bot, "Discord did not confirm the close");
        }
    }
}
