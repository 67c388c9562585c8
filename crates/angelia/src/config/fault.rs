//! What can be wrong with a configuration, and how it is told.

use angelia_platforms::settings::BadValue;
use std::fmt;
use std::path::PathBuf;

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A configuration file, with the line if it is known.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: Option<usize>,
    },
    /// An environment variable.
    Env {
        /// Its name.
        name: String,
    },
    /// The configuration as a whole: settings that do not go together.
    Whole,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}: ", path.display()),
            Self::File { path, line: None } => write!(f, "{}: ", path.display()),
            Self::Env { name } => write!(f, "environment variable {name}: "),
            Self::Whole => Ok(()),
        }
    }
}

/// What is wrong. The value of a secret never appears in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error("the file cannot be read: {0}; check the path and its permissions")]
    Unreadable(#[source] std::io::Error),
    /// The file is not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// There is no such section.
    #[error("there is no section `{name}`{}", did_you_mean(.suggestion))]
    UnknownSection {
        /// As it was written.
        name: String,
        /// The known name closest to it.
        suggestion: Option<String>,
    },
    /// There is no such key.
    #[error("there is no setting `{name}`{}", did_you_mean(.suggestion))]
    UnknownKey {
        /// As it was written, section included.
        name: String,
        /// The known name closest to it.
        suggestion: Option<String>,
    },
    /// The value is not a good one.
    #[error(transparent)]
    BadValue(#[from] BadValue),
    /// The server would be reachable by others without protection.
    #[error("{0}")]
    Exposed(String),
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    match suggestion {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; `angelia config print` lists them all".into(),
    }
}

/// One thing that is wrong, and where.
#[derive(Debug)]
pub struct Fault {
    /// Where it stands.
    pub origin: Origin,
    /// What it is.
    pub problem: Problem,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.problem)
    }
}

/// Everything that is wrong with a configuration, at once.
#[derive(Debug)]
pub struct ConfigErrors {
    faults: Vec<Fault>,
}

impl ConfigErrors {
    /// Fails if there is any fault.
    pub(super) fn check(faults: Vec<Fault>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self { faults }) }
    }

    /// The faults, in the order in which the sources are read.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.as_slice() {
            [fault] => write!(f, "the configuration is not good: {fault}"),
            faults => {
                write!(f, "the configuration has {} faults:", faults.len())?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
        }
    }
}

impl std::error::Error for ConfigErrors {}
