//! What can go wrong, told apart by what one can do about it.

use std::sync::Arc;
use std::time::Duration;

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

/// Why a file was not read, or not brought to the connector.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Its reference does not lead to the connector: nobody else is asked, as the token would go there too.
    #[error("the file is not at the connector")]
    Elsewhere,
    /// The connector has no such file for this gateway, or has it no more.
    #[error("the connector has no such file, or takes none")]
    Gone,
    /// It is larger than [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES).
    #[error("the file has more than 25 MiB")]
    TooLarge,
    /// The connector cannot just now.
    #[error("the connector is busy: {}", .error.as_deref().unwrap_or("no reason given"))]
    Busy {
        /// When it asked to be tried again.
        retry_after: Option<Duration>,
        /// What it said.
        error: Option<String>,
    },
    /// The connector refused.
    #[error("refused with status {status}: {}", .error.as_deref().unwrap_or("no reason given"))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        error: Option<String>,
    },
    /// There is no connection to be had.
    #[error("the connector cannot be reached: {0}")]
    Unreachable(#[source] Arc<std::io::Error>),
    /// The connection was lost before its end.
    #[error("the file broke off")]
    BrokeOff(#[source] Arc<hyper::Error>),
    /// Nothing came for too long.
    #[error("timed out: the connector did not answer")]
    TimedOut,
    /// The connector took it, and did not say how to refer to it.
    #[error("the connector gave no reference to the file")]
    NoReference,
    /// A file of this machine could not be read or written.
    #[error("a file of this machine: {0}")]
    Local(#[source] Arc<std::io::Error>),
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        Self::Local(Arc::new(error))
    }
}

impl FileError {
    /// Whether another attempt may go better.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unreachable(_) | Self::BrokeOff(_) | Self::TimedOut)
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Why a file was not sent.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendFileError {
    /// It did not get to the connector: nobody was shown anything.
    #[error(transparent)]
    Upload(#[from] FileError),
    /// The message with it failed; [`CallError::is_ambiguous`] says whether it may have been shown.
    #[error(transparent)]
    Call(#[from] CallError),
}
