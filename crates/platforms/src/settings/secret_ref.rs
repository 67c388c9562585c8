//! Where a secret is kept. The configuration never holds the secret itself.

use super::secret_command;
use angelia_core::secret::Secret;
use std::fmt;
use std::path::PathBuf;

/// A reference to a secret; safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretRef {
    /// An environment variable.
    Env(String),
    /// A file; white space at its end does not count.
    File(PathBuf),
    /// What a command prints; white space at its end does not count. Its words, for no shell.
    Command(Vec<String>),
}

/// Why a secret could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretRefError {
    /// The variable is not there, or not text.
    #[error("the environment variable {0} is not set; set it, or refer to another place")]
    Unset(String),
    /// The file cannot be read.
    #[error("the secret file {} cannot be read: {source}; check the path and its permissions", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The command did not print it.
    #[error("the command {command} {why}")]
    Command {
        /// The command.
        command: SecretRef,
        /// What it did instead.
        why: String,
    },
    /// There is nothing in it.
    #[error("the secret at {0} is empty; write it there, or refer to another place")]
    Empty(SecretRef),
}

impl SecretRef {
    /// The reference that `{ place = text }` is.
    pub fn of(place: &str, text: &str) -> Option<Self> {
        match place {
            _ if text.is_empty() => None,
            "env" => Some(Self::Env(text.to_owned())),
            "file" => Some(Self::File(text.into())),
            _ => None,
        }
    }

    /// Fetches the secret from this process's environment, from disk or from a command.
    pub fn resolve(&self) -> Result<Secret, SecretRefError> {
        self.resolve_with(|name| std::env::var(name).ok())
    }

    /// The same with another environment.
    pub fn resolve_with(&self, env: impl Fn(&str) -> Option<String>) -> Result<Secret, SecretRefError> {
        let text = match self {
            // In custody first, so that the untrimmed copy is wiped as well.
            Self::Env(name) => {
                env(name).map(Secret::new).ok_or_else(|| SecretRefError::Unset(name.clone()))?
            }
            Self::File(path) => std::fs::read_to_string(path)
                .map(Secret::new)
                .map_err(|source| SecretRefError::Unreadable { path: path.clone(), source })?,
            Self::Command(words) => secret_command::run(words)
                .map_err(|why| SecretRefError::Command { command: self.clone(), why })?,
        };
        match text.expose().trim_end() {
            "" => Err(SecretRefError::Empty(self.clone())),
            trimmed => Ok(Secret::new(trimmed)),
        }
    }
}

impl fmt::Display for SecretRef {
    /// The form in which it stands in the configuration file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &str| toml::Value::String(text.to_owned());
        let (place, value) = match self {
            Self::Env(name) => ("env", text(name)),
            Self::File(path) => ("file", text(&path.display().to_string())),
            Self::Command(words) => {
                ("command", toml::Value::Array(words.iter().map(|it| text(it)).collect()))
            }
        };
        write!(f, "{{ {place} = {value} }}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_fetched_without_its_line_end() {
        let env = |name: &str| (name == "KEY").then(|| "hunter2\n".to_owned());
        let secret = SecretRef::Env("KEY".into()).resolve_with(env).unwrap();
        assert!(secret.matches("hunter2"));
        let missing = SecretRef::Env("OTHER".into()).resolve_with(env).unwrap_err();
        assert!(matches!(missing, SecretRefError::Unset(name) if name == "OTHER"));
        let blank = SecretRef::Env("KEY".into()).resolve_with(|_| Some(" \n".into())).unwrap_err();
        assert!(matches!(blank, SecretRefError::Empty(_)));
    }

    #[test]
    fn a_file_is_fetched_and_a_missing_one_is_named() {
        let path = std::env::temp_dir().join(format!("angelia-secret-{}", std::process::id()));
        std::fs::write(&path, "hunter2\r\n").unwrap();
        let secret = SecretRef::File(path.clone()).resolve().unwrap();
        assert!(secret.matches("hunter2"));
        std::fs::remove_file(&path).unwrap();
        let error = SecretRef::File(path.clone()).resolve().unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }

    #[test]
    fn it_prints_as_it_is_written() {
        assert_eq!(SecretRef::Env("KEY".into()).to_string(), r#"{ env = "KEY" }"#);
        assert_eq!(SecretRef::File("/run/key".into()).to_string(), r#"{ file = "/run/key" }"#);
        let command = SecretRef::Command(vec!["vault".into(), "read".into()]);
        assert_eq!(command.to_string(), r#"{ command = ["vault", "read"] }"#);
    }

    #[cfg(unix)]
    #[test]
    fn a_command_is_fetched_without_its_line_end_and_named_when_it_fails() {
        let command = |words: &[&str]| SecretRef::Command(words.iter().map(|it| (*it).to_owned()).collect());
        assert!(command(&["echo", "hunter2"]).resolve().unwrap().matches("hunter2"));
        let error = command(&["false"]).resolve().unwrap_err().to_string();
        assert!(error.starts_with("the command { command = [\"false\"] } failed"), "{error}");
    }
}
