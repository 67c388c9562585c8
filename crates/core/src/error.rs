//! What can go wrong, in kinds that the outer shells map to HTTP and exit codes.

use std::fmt;
use std::sync::Arc;
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
    /// The caller tried too often, or has as much as they may.
    TooMany,
    /// What the caller sends is larger than anything that is taken.
    TooLarge,
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
            Self::TooLarge => 413,
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
            Self::TooLarge,
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
            Self::Unauthorized | Self::Forbidden | Self::TooLarge | Self::TooMany | Self::Internal => 1,
        }
    }
}

/// A failure with its kind and one sentence for the person who sees it.
///
/// The sentence is whole: where something else caused the failure, it says so in its
/// place. The cause itself goes along for whoever looks closer, and nobody prints it again.
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    retry_after: Option<Duration>,
    // Shared: what one commit could not do is told to all who waited for it.
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A failure of `kind`; the message says what happened and what to do next.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, cause: None }
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

    /// Shorthand for [`Kind::Forbidden`].
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, message)
    }

    /// Shorthand for [`Kind::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, message)
    }

    /// Shorthand for [`Kind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// A defect of ours that is told in the words of what caused it.
    pub fn defect(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::internal(cause.to_string()).caused_by(cause)
    }

    /// The same, with what caused it.
    pub fn caused_by(self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { cause: Some(Arc::new(cause)), ..self }
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

/// The result of most things here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;
    use std::io;

    #[test]
    fn a_cause_goes_along_and_is_told_once() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::unavailable(format!("cannot write x: {}", full())).caused_by(full());
        assert_eq!(error.to_string(), format!("cannot write x: {}", full()));
        // Also for whoever was told the same.
        let told = error.clone().retry_in(Duration::from_secs(1));
        let cause = told.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
        assert_eq!(Error::defect(full()).to_string(), full().to_string());
        assert!(Error::invalid("x").source().is_none());
    }
}
