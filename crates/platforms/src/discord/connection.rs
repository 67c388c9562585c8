//! What a shard's connection goes through: closes, lost sessions, outages, the end.

use super::cursor::{self, Position};
use super::fatal;
use super::message::Reader;
use super::shard::{Halted, Line, Shard};
use crate::ingress::Stop;
use angelia_core::limit::doubled;
use angelia_core::store::Intake;
use futures_util::StreamExt;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use twilight_gateway::error::{ReceiveMessageError, ReceiveMessageErrorType};
use twilight_gateway::{CloseFrame, ConfigBuilder, Intents, Message, Session, Shard as Socket, ShardState};

/// What has to be heard: guilds and channels, messages everywhere, their text.
const INTENTS: Intents = Intents::GUILDS
    .union(Intents::GUILD_MESSAGES)
    .union(Intents::DIRECT_MESSAGES)
    .union(Intents::MESSAGE_CONTENT);

/// Resumes that may fail in a row before the session is given up.
const MAX_RESUMES: u32 = 3;
/// How long Discord gets to confirm a close.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// First and longest pause between two connections that came to nothing.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The same where each costs one of the day's thousand identifies.
const LONGEST_PAUSE_TO_IDENTIFY: Duration = Duration::from_secs(120);
/// How long Discord gets to greet, with the socket's own pauses before it connects.
const GREETED_WITHIN: Duration = Duration::from_secs(30);
/// Times the socket may be woken without a connection. Making one takes a few;
/// one that makes several, because each ends without a word, takes more.
const MAX_WAKES: u32 = 32;
/// Attempts to connect after which the socket would pause for about as long itself, and
/// soon for much longer.
const MAX_ATTEMPTS: u8 = 5;

/// What came of waiting for a socket.
pub(super) enum Next {
    Came(Result<Message, ReceiveMessageError>),
    /// The connection ended without a word, or nobody greeted.
    Lost,
    /// There is nothing more to come.
    Over,
}

/// What a shard remembers of its connections.
#[derive(Default)]
pub(super) struct ConnectionState {
    /// Resumes in a row that brought nothing.
    failed_resumes: u32,
    /// Connections in a row that did not live.
    restless: u32,
    /// Connections in a row on which nobody greeted.
    ungreeted: u32,
    pub(super) close_code: Option<u16>,
    /// Whether this connection was given up here, so that its close is still to come.
    given_up: bool,
    /// Whether Discord greeted on this connection.
    greeted: bool,
    /// Whether this connection brought events.
    brought: bool,
}

impl ConnectionState {
    /// Discord greets: a connection begins.
    pub(super) fn greeted(&mut self) {
        (self.greeted, self.given_up, self.brought) = (true, false, false);
        self.ungreeted = 0;
    }

    /// A connection is over.
    fn ended(&mut self) {
        if !std::mem::take(&mut self.greeted) {
            self.ungreeted += 1;
        }
    }

    /// An event was taken in: however the connection ends, it was good for something.
    pub(super) fn brought(&mut self) {
        (self.brought, self.failed_resumes) = (true, 0);
    }

    /// A heartbeat was acknowledged: the connection lives. Neither READY nor
    /// RESUMED says that much, and what ends right after them must not be tried
    /// again without a pause.
    pub(super) fn lives(&mut self) {
        self.restless = 0;
    }
}

impl Shard {
    /// What the socket has next. It connects by itself, also again and again
    /// where connections end without a word: that is noticed here.
    pub(super) async fn next(&mut self) -> Next {
        let (socket, mut wakes) = (&mut self.socket, 0);
        let next = poll_fn(|context| {
            let was_up = is_up(socket);
            match socket.poll_next_unpin(context) {
                Poll::Ready(Some(item)) => Poll::Ready(Next::Came(item)),
                Poll::Ready(None) => Poll::Ready(Next::Over),
                Poll::Pending if is_up(socket) => Poll::Pending,
                Poll::Pending => {
                    wakes += 1;
                    if was_up || wakes > MAX_WAKES { Poll::Ready(Next::Lost) } else { Poll::Pending }
                }
            }
        });
        match self.connection_state.greeted {
            true => next.await,
            false => timeout(GREETED_WITHIN, next).await.unwrap_or(Next::Lost),
        }
    }

    /// Discord closed the connection, or it broke.
    pub(super) async fn closed(&mut self, code: Option<u16>, before: ShardState) -> Result<(), Halted> {
        self.connection_state.close_code = code;
        if fatal::ends_session(code) {
            self.connection_state.failed_resumes = MAX_RESUMES;
        }
        let why = code.map_or("Discord closed the connection".to_owned(), |code| {
            format!("Discord closed the connection ({code})")
        });
        match self.socket.state() {
            ShardState::FatallyClosed => Ok(()),
            _ if std::mem::take(&mut self.connection_state.given_up) => Ok(()),
            _ => self.disconnected(before, &why).await,
        }
    }

    /// Discord wants another connection or another session: the socket gives this one up.
    pub(super) async fn give_up(&mut self, before: ShardState, why: &str) -> Result<(), Halted> {
        if std::mem::replace(&mut self.connection_state.given_up, true) {
            return Ok(());
        }
        self.disconnected(before, why).await
    }

    /// The connection ended without a word, or there was none.
    pub(super) async fn lost(&mut self, before: ShardState) -> Result<(), Halted> {
        self.renew();
        self.disconnected(before, "the connection ended without a word").await
    }

    /// The connection is gone, or will be: the socket makes a new one when it is polled.
    async fn disconnected(&mut self, before: ShardState, why: &str) -> Result<(), Halted> {
        let (number, discord) = (self.number(), self.reader.discord.clone());
        discord.disconnected(number, why);
        discord.health.count("reconnects");
        self.connection_state.ended();
        self.doubt_address();
        if before == ShardState::Resuming && !self.connection_state.brought {
            discord.health.count("resume_failures");
            self.connection_state.failed_resumes += 1;
        }
        if self.connection_state.failed_resumes >= MAX_RESUMES {
            tracing::warn!(bot = discord.own_id(), why, "the session cannot be resumed; a new one begins");
            (self.connection_state.failed_resumes, self.connection_state.given_up) = (0, false);
            self.socket = socket(&self.reader, &self.line, None);
        }
        self.rest().await
    }

    /// Where the session is to be resumed nobody may be left who greets, though
    /// somebody answers there: after a few times it is resumed where all begin.
    fn doubt_address(&mut self) {
        if self.connection_state.ungreeted < MAX_RESUMES {
            return;
        }
        let address = self.processed.as_mut().and_then(|position| position.resume_url.take());
        if address.is_some() {
            let bot = self.reader.discord.own_id();
            tracing::warn!(bot, "nobody greets where the session is to be resumed; another address is tried");
            self.renew();
        }
    }

    /// The socket could not connect, or could not read what came.
    pub(super) async fn failed(
        &mut self,
        error: &ReceiveMessageError,
        before: ShardState,
    ) -> Result<(), Halted> {
        match error.kind() {
            ReceiveMessageErrorType::Deserializing { event } => {
                let (what, why) =
                    ("a gateway message".to_owned(), "the gateway client cannot read it".to_owned());
                let heard = self.reader.quarantined(what, why, event);
                self.commit(heard, None).await?;
                if !self.socket.state().is_identified() {
                    // Without what it said there is no session.
                    self.renew();
                    self.connection_state.greeted = false;
                    self.rest().await?;
                }
                Ok(())
            }
            ReceiveMessageErrorType::Reconnect => {
                let why = "Discord's gateway cannot be reached; it is tried again";
                self.reader.discord.disconnected(self.number(), why);
                if let ShardState::Disconnected { reconnect_attempts: MAX_ATTEMPTS.. } = self.socket.state() {
                    self.renew();
                    self.pause(LONGEST_PAUSE).await?;
                }
                Ok(())
            }
            _ => self.give_up(before, "what Discord sends cannot be unpacked").await,
        }
    }

    /// Another socket for the same session, if there is one.
    fn renew(&mut self) {
        let position = self.processed.as_ref().filter(|_| self.socket.session().is_some());
        self.socket = socket(&self.reader, &self.line, position);
        self.connection_state.given_up = false;
    }

    /// Rests longer with each connection that did not live: the socket itself
    /// only does so if it could not connect at all.
    async fn rest(&mut self) -> Result<(), Halted> {
        self.connection_state.restless += 1;
        let longest = match self.socket.session() {
            Some(_) => LONGEST_PAUSE,
            None => LONGEST_PAUSE_TO_IDENTIFY,
        };
        match self.connection_state.restless {
            1 => Ok(()),
            more => self.pause(doubled(FIRST_PAUSE, longest, more - 2)).await,
        }
    }

    /// Waits, but not longer than until it is time to stop.
    pub(super) async fn pause(&mut self, span: Duration) -> Result<(), Halted> {
        tokio::select! {
            () = self.halt.wait() => Err(Halted),
            () = sleep(span) => Ok(()),
        }
    }

    /// Waits for something, but not longer than until it is time to stop.
    pub(super) async fn unless_halted<T>(
        halt: &Stop,
        something: impl Future<Output = T>,
    ) -> Result<T, Halted> {
        tokio::select! {
            biased;
            () = halt.wait() => Err(Halted),
            done = something => Ok(done),
        }
    }

    /// Closes so that the session can be resumed, after what was read is committed.
    pub(super) async fn leave(&mut self) {
        if let Some(position) = self.processed.clone() {
            let cursor = cursor::cursor(&self.stream, &position);
            let traffic = self.traffic.values().cloned().collect();
            let intake = Intake { traffic, cursor, ..Intake::default() };
            let ingress = &self.reader.ingress;
            if let Err(error) = ingress.take_in(&self.reader.discord.key, vec![intake]).await {
                tracing::warn!(bot = self.reader.discord.own_id(), %error, "a shard's position is not committed");
            }
        }
        if matches!(self.socket.state(), ShardState::Disconnected { .. }) {
            return;
        }
        self.socket.close(CloseFrame::RESUME);
        let closed = async { while let Some(Ok(Message::Text(_))) = self.socket.next().await {} };
        if timeout(CLOSE_WITHIN, closed).await.is_err() {
            tracing::debug!(bot = self.reader.discord.own_id(), "Discord did not confirm the close");
        }
    }
}

/// Whether there is a connection.
fn is_up(socket: &Socket) -> bool {
    !matches!(socket.state(), ShardState::Disconnected { .. } | ShardState::FatallyClosed)
}

/// A socket that goes on at `position`, or begins anew.
pub(super) fn socket(reader: &Reader, line: &Line, position: Option<&Position>) -> Socket {
    let token = reader.discord.config.token.expose().to_owned();
    let mut config = ConfigBuilder::new(token, INTENTS)
        .queue(line.queue.clone())
        .proxy_url(line.gateway_url.trim_end_matches('/').to_owned());
    if let Some(Position { session_id, sequence, resume_url, .. }) = position {
        config = config.session(Session::new(*sequence, session_id.clone()));
        if let Some(url) = resume_url {
            config = config.resume_url(url.clone());
        }
    }
    Socket::with_config(line.id, config.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_brought_events_did_not_fail_and_only_an_acknowledgement_is_life() {
        let mut connection_state =
            ConnectionState { failed_resumes: 2, restless: 4, ..ConnectionState::default() };
        connection_state.greeted();
        assert_eq!(
            (connection_state.failed_resumes, connection_state.restless, connection_state.brought),
            (2, 4, false)
        );
        connection_state.brought();
        assert_eq!(
            (connection_state.failed_resumes, connection_state.restless, connection_state.brought),
            (0, 4, true)
        );
        connection_state.lives();
        assert_eq!(connection_state.restless, 0);
        connection_state.greeted();
        assert!(!connection_state.brought, "the next connection has to bring its own");
    }

    #[test]
    fn connections_without_a_greeting_are_counted_in_a_row() {
        let mut connection_state = ConnectionState::default();
        connection_state.ended();
        connection_state.ended();
        assert_eq!(connection_state.ungreeted, 2);
        connection_state.greeted();
        connection_state.ended();
        assert_eq!(connection_state.ungreeted, 0, "somebody greeted on that one");
        connection_state.ended();
        assert_eq!(connection_state.ungreeted, 1);
    }
}
