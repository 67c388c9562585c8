//! What can go wrong, in kinds that the outer shells map to HTTP and exit codes.

use std::time::Duration;

/// The kind of an [`Error`]; every shell maps kinds, never texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The caller said something that cannot be taken.
    Invalid,
    /// The thing named does not exist.
    NotFound,
    /// It exists already, or belongs to somebody else.
    Conflict,
    /// The caller has not proven who they are.
    Unauthorized,
    /// The caller is known and may not.
    Forbidden,
    /// The caller tried too often.
    TooMany,
    /// The store cannot commit now; nothing was changed.
    Unavailable,
    /// A defect of ours.
    Internal,
}

impl Kind {
    /// The HTTP status that tells it. The only table of its sort.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::TooMany => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }

    /// The kind behind an HTTP status of our own server.
    pub fn from_http_status(status: u16) -> Self {
        [
            Self::Invalid,
            Self::Unauthorized,
            Self::Forbidden,
            Self::NotFound,
            Self::Conflict,
            Self::TooMany,
            Self::Unavailable,
        ]
        .into_iter()
        .find(|kind| kind.http_status() == status)
        .unwrap_or(Self::Internal)
    }

    /// The exit code of a command that ended with it; 5 is an unreachable server.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Invalid => 2,
            Self::NotFound => 3,
            Self::Conflict => 4,
            Self::Unavailable => 5,
            Self::Unauthorized | Self::Forbidden | Self::TooMany | Self::Internal => 1,
        }
    }
}

/// A failure with its kind and one sentence for the person who sees it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: Kind,
    message: String,
    retry_after: Option<Duration>,
}

impl Error {
    /// A failure of `kind`; the message says what happened and what to do next.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// Shorthand for [`Kind::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// Shorthand for [`Kind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// Shorthand for [`Kind::Conflict`].
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, message)
    }

    /// Shorthand for [`Kind::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, message)
    }

    /// Shorthand for [`Kind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// The same, with how long to wait before trying again.
    pub fn retry_in(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// How long to wait before trying again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Which kind of failure this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

/// The result of most things here.
pub type Result<T, E = Error> = std::result::Result<T, E>;
