//! A shard's connection: closes, lost sessions, new sockets, and how long to rest
//! before the next.

use super::cursor::{Position, Progress};
use super::health::ShardStatus;
use crate::discord::api_error::TOKEN_REFUSED;
use crate::discord::identify::Identify;
use angelia_core::limit::doubled;
use angelia_core::secret::Secret;
use futures_util::StreamExt;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;
use twilight_gateway::error::ReceiveMessageError;
use twilight_gateway::{CloseFrame, ConfigBuilder, Intents, Message, Session, ShardId, ShardState};

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

/// A connection of twilight's, which makes another one when it ends.
type Socket = twilight_gateway::Shard<Identify>;

/// What came of waiting for a socket.
pub(super) enum Next {
    Came(Result<Message, ReceiveMessageError>),
    /// The connection ended without a word, or nobody greeted.
    Lost,
    /// There is nothing more to come, for a reason that an operator has to know.
    Over(String),
}

/// What a shard needs to connect.
#[derive(Clone)]
pub(in crate::discord) struct Dial {
    pub(in crate::discord) id: ShardId,
    pub(in crate::discord) token: Secret,
    pub(in crate::discord) gateway_url: String,
    pub(in crate::discord) queue: Identify,
}

impl Dial {
    /// A socket that goes on at `position`, or begins anew.
    fn socket(&self, position: Option<&Position>) -> Socket {
        let mut config = ConfigBuilder::new(self.token.expose().to_owned(), INTENTS)
            .queue(self.queue.clone())
            .proxy_url(self.gateway_url.trim_end_matches('/').to_owned());
        if let Some(Position { session_id, sequence, resume_url, .. }) = position {
            config = config.session(Session::new(*sequence, session_id.clone()));
            if let Some(url) = resume_url {
                config = config.resume_url(url.clone());
            }
        }
        Socket::with_config(self.id, config.build())
    }
}

/// One shard's connection, which is another one after each end.
pub(super) struct Connection {
    dial: Dial,
    socket: Socket,
    /// What the socket was before what it had last.
    before: ShardState,
    pub(super) state: ConnectionState,
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
    close_code: Option<u16>,
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

impl Connection {
    /// One that goes on at `position`.
    pub(super) fn new(dial: Dial, position: Option<&Position>) -> Self {
        let socket = dial.socket(position);
        Self { before: socket.state(), socket, dial, state: ConnectionState::default() }
    }

    /// What the socket has next. It connects by itself, also again and again
    /// where connections end without a word: that is noticed here.
    pub(super) async fn next(&mut self) -> Next {
        self.before = self.socket.state();
        let (socket, close_code, mut wakes) = (&mut self.socket, self.state.close_code, 0);
        let next = poll_fn(|context| {
            let was_up = is_up(socket);
            match socket.poll_next_unpin(context) {
                Poll::Ready(Some(item)) => Poll::Ready(Next::Came(item)),
                Poll::Ready(None) => Poll::Ready(Next::Over(fatal(close_code))),
                Poll::Pending if is_up(socket) => Poll::Pending,
                Poll::Pending => {
                    wakes += 1;
                    if was_up || wakes > MAX_WAKES { Poll::Ready(Next::Lost) } else { Poll::Pending }
                }
            }
        });
        if self.state.greeted {
            next.await
        } else {
            timeout(GREETED_WITHIN, next).await.unwrap_or(Next::Lost)
        }
    }

    /// Whether its session is heard.
    pub(super) fn is_active(&self) -> bool {
        self.socket.state() == ShardState::Active
    }

    /// The session and where to resume it, if there is one.
    pub(super) fn session(&self) -> Option<(String, Option<String>)> {
        let session_id = self.socket.session()?.id().to_owned();
        Some((session_id, self.socket.resume_url().map(str::to_owned)))
    }

    /// Discord closed it, or it broke: why, if that is news and not the last of all.
    pub(super) fn closed(&mut self, code: Option<u16>) -> Option<String> {
        self.state.close_code = code;
        if ends_session(code) {
            self.state.failed_resumes = MAX_RESUMES;
        }
        match self.socket.state() {
            ShardState::FatallyClosed => None,
            _ if std::mem::take(&mut self.state.given_up) => None,
            _ => Some(match code {
                Some(code) => format!("Discord closed the connection ({code})"),
                None => "Discord closed the connection".to_owned(),
            }),
        }
    }

    /// Discord wants another connection or another session: the socket gives this
    /// one up. `false` if it did before.
    pub(super) fn give_up(&mut self) -> bool {
        !std::mem::replace(&mut self.state.given_up, true)
    }

    /// It is gone, or will be: the socket makes a new one when it is polled.
    /// Answers how long to rest before.
    pub(super) fn ended(&mut self, progress: &mut Progress, status: &ShardStatus, why: &str) -> Duration {
        status.disconnected(why);
        status.count("reconnects");
        self.state.ended();
        self.doubt_address(progress, status);
        if self.before == ShardState::Resuming && !self.state.brought {
            status.count("resume_failures");
            self.state.failed_resumes += 1;
        }
        if self.state.failed_resumes >= MAX_RESUMES {
            tracing::warn!(bot = status.bot(), why, "the session cannot be resumed; a new one begins");
            (self.state.failed_resumes, self.state.given_up) = (0, false);
            self.socket = self.dial.socket(None);
        }
        self.rest()
    }

    /// Where the session is to be resumed nobody may be left who greets, though
    /// somebody answers there: after a few times it is resumed where all begin.
    fn doubt_address(&mut self, progress: &mut Progress, status: &ShardStatus) {
        if self.state.ungreeted < MAX_RESUMES {
            return;
        }
        let position = progress.processed.as_mut();
        if position.and_then(|position| position.resume_url.take()).is_some() {
            let bot = status.bot();
            tracing::warn!(bot, "nobody greets where the session is to be resumed; another address is tried");
            self.renew(progress);
        }
    }

    /// What came could not be read. Without it there may be no session: then how
    /// long to rest before the next.
    pub(super) fn unread(&mut self, progress: &Progress) -> Option<Duration> {
        if self.socket.state().is_identified() {
            return None;
        }
        self.renew(progress);
        self.state.greeted = false;
        Some(self.rest())
    }

    /// Nobody is reached: how long to rest, where the socket itself would for much longer.
    pub(super) fn unreached(&mut self, progress: &Progress) -> Option<Duration> {
        let ShardState::Disconnected { reconnect_attempts: MAX_ATTEMPTS.. } = self.socket.state() else {
            return None;
        };
        self.renew(progress);
        Some(LONGEST_PAUSE)
    }

    /// Another socket for the same session, if there is one.
    pub(super) fn renew(&mut self, progress: &Progress) {
        let position = progress.processed.as_ref().filter(|_| self.socket.session().is_some());
        self.socket = self.dial.socket(position);
        self.state.given_up = false;
    }

    /// A rest that grows with each connection that did not live: the socket itself
    /// only does so if it could not connect at all.
    fn rest(&mut self) -> Duration {
        self.state.restless += 1;
        let longest = match self.socket.session() {
            Some(_) => LONGEST_PAUSE,
            None => LONGEST_PAUSE_TO_IDENTIFY,
        };
        match self.state.restless {
            1 => Duration::ZERO,
            more => doubled(FIRST_PAUSE, longest, more - 2),
        }
    }

    /// Closes so that the session can be resumed; `false` if Discord did not confirm it.
    pub(super) async fn close(&mut self) -> bool {
        if matches!(self.socket.state(), ShardState::Disconnected { .. }) {
            return true;
        }
        let socket = &mut self.socket;
        socket.close(CloseFrame::RESUME);
        let mut is_closing = false;
        // A socket that is gone makes another one, which would take the session away from whoever
        // resumed it, and have Discord forget what they have not read. It is left before it speaks.
        let closed = poll_fn(|context| {
            loop {
                let polled = socket.poll_next_unpin(context);
                match (is_up(socket), polled) {
                    (true, _) if is_closing => return Poll::Ready(()),
                    (is_up, Poll::Ready(Some(Ok(Message::Text(_))))) => is_closing |= !is_up,
                    (is_up, Poll::Pending) => {
                        is_closing |= !is_up;
                        return Poll::Pending;
                    }
                    (_, Poll::Ready(_)) => return Poll::Ready(()),
                }
            }
        });
        timeout(CLOSE_WITHIN, closed).await.is_ok()
    }
}

/// Whether there is a connection.
fn is_up(socket: &Socket) -> bool {
    !matches!(socket.state(), ShardState::Disconnected { .. } | ShardState::FatallyClosed)
}

/// What to tell the operator about a close that is final.
fn fatal(code: Option<u16>) -> String {
    let told = match code {
        Some(4004) => TOKEN_REFUSED,
        Some(4010) => "Discord says this shard does not exist (4010). Restart; if it stays, report it",
        Some(4011) => {
            "Discord says the bot is in too many servers for its number of shards (4011). \
             Restart: the number is asked for anew"
        }
        Some(4012) => {
            "Discord does not speak this version of its gateway any more (4012). Update this server"
        }
        Some(4013) => "Discord says an intent does not exist (4013). Update this server",
        Some(4014) => {
            "Discord does not let the bot read messages (4014). Open the developer portal, choose the \
             application, and enable Message Content Intent under Bot, Privileged Gateway Intents; then restart"
        }
        Some(code) => {
            return format!("Discord closed for good ({code}). Look that code up in Discord's documentation");
        }
        None => "Discord closed for good and gave no code. Restart",
    };
    told.to_owned()
}

/// Whether a close ends the session, so that it cannot be resumed.
fn ends_session(code: Option<u16>) -> bool {
    matches!(code, Some(4007 | 4009))
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

    #[test]
    fn every_final_close_says_what_to_do() {
        for (code, next) in [
            (4004, "Reset Token"),
            (4010, "Restart"),
            (4011, "Restart"),
            (4012, "Update"),
            (4013, "Update"),
            (4014, "Message Content Intent"),
        ] {
            assert!(fatal(Some(code)).contains(next), "{code}");
        }
        assert!(fatal(None).contains("no code") && fatal(Some(4999)).contains("4999"));
        assert!(ends_session(Some(4009)) && !ends_session(Some(4000)) && !ends_session(None));
    }
}
