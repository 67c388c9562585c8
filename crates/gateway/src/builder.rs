//! How a gateway is put together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use angelia_contract::source::RELAY;
use angelia_contract::{Hello, KeyOptions};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::dial;
use crate::dial_url::DialUrl;
use crate::error::BuildError;
use crate::reconnect::Gateway;
use crate::shared::Shared;

/// When an event that carries a `bufferId` is acknowledged.
///
/// What is acknowledged the connector forgets, and what is not it delivers
/// again on the next connection. Whenever it is, acknowledgements leave in the
/// order in which the events came, across all conversations: connectors take
/// one for all events before it. So with `Taken` and `Handled` one slow
/// conversation holds back the acknowledgement of everything behind it; and as
/// connectors stop delivering when eight events are unacknowledged, or one for
/// five seconds, with it the delivery to all other conversations.
///
/// Forwarded requests, Discord interactions among them, are acknowledged as
/// with `Queued` in any case: connectors do not wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckWhen {
    /// As soon as it stands in the queue of its conversation.
    ///
    /// No conversation waits for another. Whatever is queued or running when
    /// the process dies is lost; [`shutdown`](crate::GatewayHandle::shutdown)
    /// lets it end first. This is what hermes-agent does.
    #[default]
    Queued,
    /// When the agent takes it: right before its future is first polled.
    ///
    /// Queued events survive the death of the process, a running turn does not.
    Taken,
    /// When the agent's future has returned, panicked or was interrupted.
    ///
    /// Running turns survive the death of the process too, and are then run
    /// again from their start: handling is at-least-once. A connector that
    /// has never had an acknowledgement from this gateway takes it for one
    /// that sends none after some time (about 45 s), and then relies on the
    /// connection alone: let the first turns be short.
    Handled,
}

/// Everything a running gateway was told at the start.
pub(crate) struct Settings {
    pub(crate) target: DialUrl,
    pub(crate) id: String,
    pub(crate) secret: Zeroizing<String>,
    pub(crate) hellos: Vec<Hello>,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    pub(crate) keys: KeyOptions,
    pub(crate) ack_when: AckWhen,
    pub(crate) cooperative: bool,
    pub(crate) max_turns: usize,
    pub(crate) max_backlog: usize,
    pub(crate) call_timeout: Duration,
    pub(crate) connect_wait: Duration,
    pub(crate) grace: Duration,
    pub(crate) edit_interval: Duration,
}

/// Puts a [`Gateway`] together; see [`Gateway::builder`].
pub struct GatewayBuilder {
    url: String,
    id: String,
    secret: Zeroizing<String>,
    identities: Vec<(String, String)>,
    manifest: Option<Vec<Value>>,
    roots: Vec<Vec<u8>>,
    keys: KeyOptions,
    ack_when: AckWhen,
    cooperative: bool,
    max_turns: usize,
    max_backlog: usize,
    call_timeout: Duration,
    connect_wait: Duration,
    grace: Duration,
    edit_interval: Duration,
}

// The secret stays out.
impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder")
            .field("url", &self.url)
            .field("id", &self.id)
            .field("identities", &self.identities)
            .field("ack_when", &self.ack_when)
            .finish_non_exhaustive()
    }
}

impl GatewayBuilder {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            id: String::new(),
            secret: Zeroizing::default(),
            identities: Vec::new(),
            manifest: None,
            roots: Vec::new(),
            keys: KeyOptions::default(),
            ack_when: AckWhen::default(),
            cooperative: false,
            max_turns: 64,
            max_backlog: 1024,
            call_timeout: Duration::from_secs(30),
            connect_wait: Duration::from_secs(10),
            grace: Duration::from_secs(10),
            edit_interval: Duration::from_millis(700),
        }
    }

    /// The gateway id the connector knows.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// The secret the connector issued; used as text, whatever it looks like.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Zeroizing::new(secret.into());
        self
    }

    /// An identity to speak for; may be called several times.
    ///
    /// The first is the default one. Without any, the gateway takes whatever
    /// the connector has for it.
    pub fn identity(mut self, platform: impl Into<String>, bot_id: impl Into<String>) -> Self {
        let identity = (platform.into(), bot_id.into());
        if !self.identities.contains(&identity) {
            self.identities.push(identity);
        }
        self
    }

    /// The slash commands it knows: `{name, description, options?}`. They are told with the Discord
    /// identity, or with the first where there is none.
    pub fn command_manifest(mut self, commands: Vec<Value>) -> Self {
        self.manifest = Some(commands);
        self
    }

    /// One more certificate authority to trust, in DER, for `wss` connectors.
    pub fn trust_root(mut self, der: Vec<u8>) -> Self {
        self.roots.push(der);
        self
    }

    /// What makes two events one conversation.
    pub fn sessions(mut self, options: KeyOptions) -> Self {
        self.keys = options;
        self
    }

    /// When events are acknowledged; as soon as they are queued unless told.
    pub fn ack(mut self, when: AckWhen) -> Self {
        self.ack_when = when;
        self
    }

    /// Short for `ack(AckWhen::Handled)`.
    pub fn ack_after_handled(self) -> Self {
        self.ack(AckWhen::Handled)
    }

    /// Interrupts only raise the signal of the [`Conversation`], the agent's
    /// future keeps running and has to look.
    ///
    /// [`Conversation`]: crate::Conversation::cancelled
    pub fn cooperative_interrupts(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// How many conversations may run at once; 64 unless told.
    pub fn max_turns(mut self, turns: usize) -> Self {
        self.max_turns = turns.clamp(1, tokio::sync::Semaphore::MAX_PERMITS);
        self
    }

    /// How many events may wait in all; 1024 unless told.
    ///
    /// An event beyond that is queued, but not acknowledged before there is
    /// room, so that the connector holds back the rest by itself; answers to
    /// calls and interrupts are not affected. A connector that does not wait
    /// for acknowledgements loses the connection 64 events later (or with 1024
    /// unacknowledged ones), and delivers the rest on the next one; an event
    /// without a `bufferId` is dropped there.
    pub fn max_backlog(mut self, events: usize) -> Self {
        self.max_backlog = events.max(1);
        self
    }

    /// How long a call waits for its answer; 30 s unless told.
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = limit;
        self
    }

    /// How long a call waits for a connection; 10 s unless told.
    pub fn connect_wait(mut self, limit: Duration) -> Self {
        self.connect_wait = limit;
        self
    }

    /// How long acknowledged events, waiting and running, may take to end on
    /// shutdown; 10 s unless told. What has not ended by then is lost.
    pub fn shutdown_grace(mut self, limit: Duration) -> Self {
        self.grace = limit;
        self
    }

    /// The shortest time between two edits of a stream; 700 ms unless told.
    pub fn edit_interval(mut self, interval: Duration) -> Self {
        self.edit_interval = interval;
        self
    }

    /// Checks the settings; nothing is dialed yet.
    pub fn build(self) -> Result<Gateway, BuildError> {
        let target = DialUrl::parse(&self.url).ok_or(BuildError::BadUrl)?;
        if self.id.is_empty() {
            return Err(BuildError::NoId);
        }
        if self.secret.is_empty() {
            return Err(BuildError::NoSecret);
        }
        let tls = Arc::new(dial::tls_config(&self.roots)?);
        Ok(Gateway::new(Shared::new(Settings {
            target,
            hellos: hellos(self.identities, self.manifest),
            id: self.id,
            secret: self.secret,
            tls,
            keys: self.keys,
            ack_when: self.ack_when,
            cooperative: self.cooperative,
            max_turns: self.max_turns,
            max_backlog: self.max_backlog,
            call_timeout: self.call_timeout,
            connect_wait: self.connect_wait,
            grace: self.grace,
            edit_interval: self.edit_interval,
        })))
    }
}

fn hellos(identities: Vec<(String, String)>, manifest: Option<Vec<Value>>) -> Vec<Hello> {
    if identities.is_empty() {
        let platform = RELAY.to_owned();
        return vec![Hello { platform, command_manifest: manifest, ..Hello::default() }];
    }
    let mut hellos: Vec<Hello> = identities
        .into_iter()
        .map(|(platform, bot_id)| Hello { platform, bot_id, ..Hello::default() })
        .collect();
    // Gateways tell them with the Discord hello; a connector reads them for every platform.
    let teller = hellos.iter().position(|hello| hello.platform == "discord").unwrap_or_default();
    hellos[teller].command_manifest = manifest;
    hellos
}
