//! Where a PostgreSQL database is: the URL that an operator writes, and how it may be shown.
//!
//! Nothing of what was written is repeated when something is wrong with it: whoever forgets to
//! escape a character of the password has a piece of it anywhere in the URL.

#[cfg(test)]
mod tests;

use angelia_core::secret::Secret;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// What may follow the question mark besides `sslmode` and `sslrootcert`.
const OPTIONS: [&str; 18] = [
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];
const PASSWORD: &str = "password";
/// The word for the certificates that the system trusts.
const SYSTEM: &str = "system";

/// The address of a database, with what is needed to get in. Neither its `Display` nor its
/// `Debug` shows a password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    config: Config,
    tls: Tls,
    roots: Option<PathBuf>,
    given: Vec<String>,
    shown: String,
}

/// Whether the connection is encrypted. If it is, the certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    /// It is not.
    Off,
    /// If the server can.
    Offered,
    /// Or there is none.
    Required,
}

/// What is wrong with a URL. The sentence continues the name of the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError(String);

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UrlError {}

fn wrong(why: impl fmt::Display) -> UrlError {
    UrlError(format!(
        "is not a URL of PostgreSQL ({why}); write something like postgres://angelia@db.example.org/angelia"
    ))
}

impl DatabaseUrl {
    /// Whether it looks like one at all.
    pub fn is_meant(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// Whether it holds a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// The same with a password that is kept elsewhere.
    pub fn with_password(mut self, password: &Secret) -> Self {
        self.config.password(password.expose());
        self
    }

    /// Where it is, for sentences: the hosts with their ports, and the database.
    pub fn place(&self) -> String {
        let addresses = self.config.get_hostaddrs().iter().map(ToString::to_string);
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> =
            if self.config.get_hosts().is_empty() { addresses.collect() } else { hosts.collect() };
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let hosts: Vec<String> =
            hosts.iter().enumerate().map(|(at, host)| format!("{host}:{}", port(at))).collect();
        hosts.join(",")
    }

    /// The name of the database.
    pub fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or_default()
    }

    /// Who it is that comes.
    pub fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn tls(&self) -> Tls {
        self.tls
    }

    /// The file with the certificates that are trusted; `None` for those of the system.
    pub(super) fn roots(&self) -> Option<&Path> {
        self.roots.as_deref()
    }

    /// Whether an option was given, so that it needs no default.
    pub(super) fn says(&self, option: &str) -> bool {
        self.given.iter().any(|given| given == option)
    }

    /// How many servers it names.
    pub(super) fn hosts(&self) -> usize {
        self.config.get_hosts().len().max(self.config.get_hostaddrs().len())
    }
}

impl fmt::Display for DatabaseUrl {
    /// As it was written, without its password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({})", self.shown)
    }
}

impl FromStr for DatabaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let parts = Parts::of(text)?;
        let plain = parts.plain();
        let config: Config = plain.parse().map_err(|error| wrong(unreadable(&error)))?;
        if config.get_user().is_none_or(str::is_empty) {
            return Err(wrong("it names no user"));
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host"));
        }
        let tls = tls(&config, parts.mode, parts.roots.is_some());
        let given = parts.options.iter().map(|(name, _)| name.clone()).collect();
        Ok(Self { config, tls, given, shown: parts.shown(text), roots: parts.roots.and_then(Roots::file) })
    }
}

/// Which part of it the library could not read. It names options by what they are called and
/// tells nothing of their values.
fn unreadable(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| "it cannot be read".into(), ToString::to_string)
}

/// Whether the connection is encrypted: as the URL says, and if it says nothing, wherever the
/// network begins.
fn tls(config: &Config, said: Option<Tls>, has_roots: bool) -> Tls {
    let is_socket = |host: &Host| !matches!(host, Host::Tcp(_));
    if !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_socket) {
        return Tls::Off;
    }
    let is_here = |host: &Host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(is_loopback),
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    // An address says where a name is, whatever the name.
    let addresses = config.get_hostaddrs();
    let here = if addresses.is_empty() {
        config.get_hosts().iter().all(is_here)
    } else {
        addresses.iter().copied().all(is_loopback)
    };
    said.unwrap_or(if here && !has_roots { Tls::Off } else { Tls::Required })
}

fn is_loopback(address: std::net::IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whom to trust.
enum Roots {
    System,
    File(PathBuf),
}

impl Roots {
    fn file(self) -> Option<PathBuf> {
        match self {
            Self::System => None,
            Self::File(path) => Some(path),
        }
    }
}

/// A URL in its parts, before they are read.
struct Parts<'a> {
    scheme: &'static str,
    /// User and password, as they were written.
    who: Option<&'a str>,
    /// Hosts and the database.
    place: &'a str,
    /// What follows the question mark, decoded names and values as they were written, without
    /// what is ours to know.
    options: Vec<(String, &'a str)>,
    mode: Option<Tls>,
    roots: Option<Roots>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, UrlError> {
        let scheme = SCHEMES.into_iter().find(|scheme| text.starts_with(scheme));
        let scheme = scheme.ok_or_else(|| wrong("it must begin with postgres:// or postgresql://"))?;
        let rest = &text[scheme.len()..];
        let (who, rest) = match rest.split_once('@') {
            Some((who, rest)) => (Some(who), rest),
            None => (None, rest),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let odd = |text: &str| text.contains(['/', '?', '#', '@']);
        if who.is_some_and(odd) || place.contains(['@', '#']) || query.contains(['@', '#', '?']) {
            return Err(wrong(
                "it has a @, /, ? or # too many: in a user name, a password or an option they are written \
                 %40, %2F, %3F and %23",
            ));
        }
        let mut parts = Self { scheme, who, place, options: Vec::new(), mode: None, roots: None };
        for option in query.split('&').filter(|option| !option.is_empty()) {
            parts.take(option)?;
        }
        Ok(parts)
    }

    fn take(&mut self, option: &'a str) -> Result<(), UrlError> {
        let (name, value) = option.split_once('=').ok_or_else(|| wrong("an option has no value"))?;
        let decoded = |text: &'a str| {
            percent_decode_str(text).decode_utf8().map_err(|_| wrong("what is escaped in it is not UTF-8"))
        };
        let name = decoded(name)?.into_owned();
        match name.as_str() {
            "sslmode" => self.mode = Some(mode(&decoded(value)?)?),
            "sslrootcert" => {
                let file = decoded(value)?.into_owned();
                self.roots =
                    Some(if file == SYSTEM { Roots::System } else { Roots::File(PathBuf::from(file)) });
            }
            "channel_binding" if value == "require" => {
                return Err(wrong(
                    "channel_binding=require is not known here; the certificate is verified instead",
                ));
            }
            known if OPTIONS.contains(&known) => self.options.push((name, value)),
            _ => {
                let known = OPTIONS.join(", ");
                return Err(wrong(format!(
                    "it has an option that is not known; there are sslmode, sslrootcert, {known}"
                )));
            }
        }
        Ok(())
    }

    /// What the library understands.
    fn plain(&self) -> String {
        let who = self.who.map(|who| format!("{who}@")).unwrap_or_default();
        format!("{}{who}{}{}", self.scheme, self.place, joined(self.options.iter()))
    }

    /// What may be shown.
    fn shown(&self, text: &str) -> String {
        let user = self.who.map(|who| who.split_once(':').map_or(who, |(user, _)| user));
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let query = text.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let is_open = |option: &&str| {
            let name = option.split('=').next().unwrap_or_default();
            percent_decode_str(name).decode_utf8().is_ok_and(|name| name != PASSWORD)
        };
        let open: Vec<&str> = query.split('&').filter(|it| !it.is_empty()).filter(is_open).collect();
        let query = if open.is_empty() { String::new() } else { format!("?{}", open.join("&")) };
        format!("{}{user}{}{query}", self.scheme, self.place)
    }
}

fn joined<'a>(options: impl Iterator<Item = &'a (String, &'a str)>) -> String {
    let all: Vec<String> = options.map(|(name, value)| format!("{name}={value}")).collect();
    if all.is_empty() { String::new() } else { format!("?{}", all.join("&")) }
}

fn mode(word: &str) -> Result<Tls, UrlError> {
    match word {
        "disable" => Ok(Tls::Off),
        "prefer" => Ok(Tls::Offered),
        "require" | "verify-full" => Ok(Tls::Required),
        _ => Err(wrong(
            "sslmode is one of disable, prefer, require and verify-full; with the last three the certificate and \
             its name are verified",
        )),
    }
}
