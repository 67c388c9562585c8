//! What can go wrong, told apart by what one can do about it.

use angelia_contract::ActionResult;

/// Why a gateway could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The relay URL has no host or a scheme other than http(s) or ws(s).
    #[error("the relay URL is not an http, https, ws or wss URL with a host")]
    BadUrl,
    /// No gateway id was given.
    #[error("a gateway id is needed")]
    NoId,
    /// No secret was given.
    #[error("a secret is needed")]
    NoSecret,
    /// A certificate given as a trusted root cannot be read.
    #[error("a trusted root certificate cannot be read")]
    BadCertificate,
    /// The TLS library refused its settings.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// Why a gateway stopped running for good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The connector closed with 4401 after it had accepted this gateway
    /// before: the credential was revoked, and dialing again is pointless.
    #[error("the connector revoked this gateway's credential")]
    Revoked,
}

/// Why a call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// It never left this process; another attempt cannot double it.
    #[error("not sent: there is no connection to the connector")]
    NotSent,
    /// It was sent, and the connection was lost before the answer came.
    #[error("the connection was lost before the answer came")]
    Lost,
    /// It was sent, and no answer came in time.
    #[error("timed out: the connector did not answer")]
    TimedOut,
    /// The connector answered that it was not done.
    #[error("refused: {}", .0.error.as_deref().unwrap_or("no reason given"))]
    Refused(Box<ActionResult>),
    /// It is larger than connectors read.
    #[error("{size} bytes are more than a connector reads")]
    TooLarge {
        /// Its size on the wire.
        size: usize,
    },
    /// The gateway has stopped for good.
    #[error("the gateway has stopped")]
    Stopped,
}

impl CallError {
    /// Whether the call may have taken effect all the same.
    ///
    /// Repeating an ambiguous `send` may post the message twice; repeating an
    /// ambiguous `edit` is harmless.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Lost | Self::TimedOut)
    }
}
