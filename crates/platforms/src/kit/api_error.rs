//! Why a provider's API did not do what it was asked, and what that means for an action.

use crate::platform::{Outcome, Reach};
use angelia_core::error::Error;
use std::fmt;
use std::time::Duration;

/// How soon something that was certainly not done is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// Why a call did not give what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// What is known of the call.
    pub(crate) kind: ErrorKind,
    /// What happened and what to do about it. It quotes no address: some contain tokens.
    pub(crate) why: String,
}

/// What is known of a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Too many calls: not before this much time has passed.
    Limited {
        /// How long.
        after: Duration,
        /// For whom.
        reach: Reach,
    },
    /// The credential or something else of the setup is wrong: an operator has to act.
    Setup,
    /// The access token is not good, or not any more; it was not done.
    Token,
    /// The provider will not do it; its number for why, or 0.
    Refused(i64),
    /// The chat has this id now; it was not done.
    Moved(i64),
    /// Whoever wanted it may not do it any more; it was not done.
    Withdrawn,
    /// It was certainly not done.
    Unavailable,
    /// It may have been done.
    Unknown,
}

impl ApiError {
    /// An error of this kind.
    pub(crate) fn new(kind: ErrorKind, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }

    /// An operator has to act.
    pub(crate) fn setup(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Setup, why)
    }

    /// The provider will not do it.
    pub(crate) fn refused(code: i64, why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused(code), why)
    }

    /// Whoever wanted it may not do it any more.
    pub(crate) fn withdrawn() -> Self {
        Self::new(ErrorKind::Withdrawn, "its sender may not write there any more")
    }

    /// It was certainly not done.
    pub(crate) fn unavailable(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, why)
    }

    /// It may have been done.
    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unknown, why)
    }

    /// What it means for something that was only to be read: that may be asked again.
    pub(crate) fn of_read(self) -> Error {
        match self.kind {
            ErrorKind::Unknown => Error::unavailable(self.why),
            _ => self.into(),
        }
    }

    /// What it means for an action.
    pub(crate) fn outcome(self) -> Outcome {
        let Self { kind, why } = self;
        match kind {
            ErrorKind::Limited { after, reach } => Outcome::Later { after, reach, why },
            ErrorKind::Token | ErrorKind::Unavailable => {
                Outcome::Later { after: AGAIN, reach: Reach::Action, why }
            }
            ErrorKind::Unknown => Outcome::Unknown { why },
            ErrorKind::Setup | ErrorKind::Refused(_) | ErrorKind::Moved(_) | ErrorKind::Withdrawn => {
                Outcome::Refused { why }
            }
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        match error.kind {
            ErrorKind::Setup => Self::conflict(error.why),
            ErrorKind::Limited { .. } | ErrorKind::Token | ErrorKind::Unavailable => {
                Self::unavailable(error.why)
            }
            ErrorKind::Refused(_) | ErrorKind::Moved(_) | ErrorKind::Withdrawn | ErrorKind::Unknown => {
                Self::invalid(error.why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::error::Kind;

    #[test]
    fn only_what_may_have_been_done_is_unknown() {
        let after = Duration::from_secs(7);
        let limited = ErrorKind::Limited { after, reach: Reach::Bot };
        let outcome = |kind| ApiError::new(kind, "why").outcome();
        assert_eq!(outcome(limited), Outcome::Later { after, reach: Reach::Bot, why: "why".into() });
        for not_done in [ErrorKind::Token, ErrorKind::Unavailable] {
            assert!(matches!(outcome(not_done), Outcome::Later { reach: Reach::Action, .. }), "{not_done:?}");
        }
        for over in [ErrorKind::Setup, ErrorKind::Refused(7), ErrorKind::Moved(7), ErrorKind::Withdrawn] {
            assert_eq!(outcome(over), Outcome::Refused { why: "why".into() }, "{over:?}");
        }
        assert_eq!(outcome(ErrorKind::Unknown), Outcome::Unknown { why: "why".into() });
        let kind = |kind| Error::from(ApiError::new(kind, "why")).kind();
        assert_eq!(kind(limited), Kind::Unavailable);
        assert_eq!(kind(ErrorKind::Setup), Kind::Conflict);
        assert_eq!(kind(ErrorKind::Unknown), Kind::Invalid);
    }
}
