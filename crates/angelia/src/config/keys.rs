//! Every setting there is: how it is read, how it is shown.

use super::Config;
use super::fault::Problem;
use super::human::{format_duration, format_size, parse_duration, parse_size};
use super::raw::Given;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// An inbox smaller than this could not hold one message of the largest size.
const MIN_INBOX_BYTES: u64 = 1024 * 1024;
/// Ten years: longer is a slip, and moments before it stay representable.
const LONGEST: Duration = Duration::from_secs(3650 * 24 * 3600);

/// One setting.
pub(super) struct Key {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    /// Reads a value into the configuration.
    pub(super) read: fn(&mut Config, &Given<'_>) -> Result<(), Problem>,
    /// The value in force as TOML, or what holds instead.
    pub(super) show: fn(&Config) -> Shown,
}

/// How a setting appears in `angelia config print`.
pub(super) enum Shown {
    Value(String),
    Unset(&'static str),
}

impl Key {
    /// `section.name`.
    pub(super) fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }
}

/// All settings, in the order in which they are shown.
pub(super) const KEYS: &[Key] = &[
    Key {
        section: "server",
        name: "listen",
        read: |config, given| address(given).map(|it| config.server.listen = it),
        show: |config| quoted(config.server.listen),
    },
    Key {
        section: "server",
        name: "public_url",
        read: |config, given| public_url(given).map(|it| config.server.public_url = Some(it)),
        show: |config| quoted(config.server.public_url(config.server.listen)),
    },
    Key {
        section: "server",
        name: "admin_listen",
        read: |config, given| loopback(given).map(|it| config.server.admin_listen = it),
        show: |config| quoted(config.server.admin_listen),
    },
    Key {
        section: "server",
        name: "data_dir",
        read: |config, given| directory(given).map(|it| config.server.data_dir = it),
        show: |config| quoted(config.server.data_dir.display()),
    },
    Key {
        section: "server",
        name: "behind_proxy",
        read: |config, given| given.flag().map(|it| config.server.behind_proxy = it),
        show: |config| bare(config.server.behind_proxy),
    },
    Key {
        section: "keys",
        name: "master",
        read: |config, given| given.secret().map(|it| config.keys.master = Some(it)),
        show: |config| {
            let unset = Shown::Unset("the key file in data_dir is used");
            config.keys.master.as_ref().map_or(unset, bare)
        },
    },
    Key {
        section: "relay",
        name: "source_flags",
        read: |config, given| given.flag().map(|it| config.relay.source_flags = it),
        show: |config| bare(config.relay.source_flags),
    },
    Key {
        section: "store",
        name: "url",
        read: |_, given| only(given, "sqlite", "a SQLite file in data_dir"),
        show: |_| quoted("sqlite"),
    },
    Key {
        section: "bus",
        name: "url",
        read: |_, given| only(given, "local", "a bus inside one process"),
        show: |_| quoted("local"),
    },
    Key {
        section: "inbox",
        name: "max_age",
        read: |config, given| duration(given).map(|it| config.inbox.max_age = it),
        show: |config| quoted(format_duration(config.inbox.max_age)),
    },
    Key {
        section: "inbox",
        name: "max_entries",
        read: |config, given| at_least_one(given).map(|it| config.inbox.max_entries = it),
        show: |config| bare(config.inbox.max_entries),
    },
    Key {
        section: "inbox",
        name: "max_bytes",
        read: |config, given| inbox_bytes(given).map(|it| config.inbox.max_bytes = it),
        show: |config| quoted(format_size(config.inbox.max_bytes)),
    },
    Key {
        section: "wake",
        name: "allow_http",
        read: |config, given| given.flag().map(|it| config.wake.allow_http = it),
        show: |config| bare(config.wake.allow_http),
    },
    Key {
        section: "wake",
        name: "allow",
        read: |config, given| ranges(given).map(|it| config.wake.allow = it),
        show: |config| {
            let ranges: Vec<_> = config.wake.allow.iter().map(|range| format!("\"{range}\"")).collect();
            bare(format_args!("[{}]", ranges.join(", ")))
        },
    },
    Key {
        section: "webchat",
        name: "enabled",
        read: |config, given| given.flag().map(|it| config.webchat.enabled = it),
        show: |config| bare(config.webchat.enabled),
    },
    Key {
        section: "log",
        name: "level",
        read: |config, given| log_level(given).map(|it| config.log.level = it),
        show: |config| quoted(&config.log.level),
    },
];

fn bare(value: impl ToString) -> Shown {
    Shown::Value(value.to_string())
}

fn quoted(value: impl ToString) -> Shown {
    bare(toml::Value::String(value.to_string()))
}

fn address(given: &Given<'_>) -> Result<SocketAddr, Problem> {
    let text = given.text()?;
    text.parse().map_err(|_| {
        given.bad(format!(
            "is not an IP address and a port: {text:?}; write something like \"127.0.0.1:8787\" or \"[::1]:8787\""
        ))
    })
}

fn loopback(given: &Given<'_>) -> Result<SocketAddr, Problem> {
    let address = address(given)?;
    if super::is_loopback(address) {
        return Ok(address);
    }
    Err(given.bad(format!(
        "must be a loopback address, not {address}: whoever reaches it can administer the server; use \
         \"127.0.0.1:8788\" and reach it from elsewhere through an SSH tunnel"
    )))
}

fn public_url(given: &Given<'_>) -> Result<String, Problem> {
    let text = given.text()?;
    let why = |why: &str| {
        given.bad(format!("is not a base URL ({why}); write something like \"https://relay.example.org\""))
    };
    let url = url::Url::parse(text).map_err(|error| why(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(why("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(why("it must not hold a user name or password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(why("it must not have a query or a fragment"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn directory(given: &Given<'_>) -> Result<PathBuf, Problem> {
    match given.text()? {
        "" => Err(given.bad("must not be empty; write \".\" for the current directory")),
        text => Ok(text.into()),
    }
}

fn duration(given: &Given<'_>) -> Result<Duration, Problem> {
    let text = given.text()?;
    match parse_duration(text) {
        Some(duration) if duration.is_zero() => Err(given.bad("must be longer than nothing")),
        Some(duration) if duration > LONGEST => {
            Err(given.bad(format!("must be at most {}", format_duration(LONGEST))))
        }
        Some(duration) => Ok(duration),
        None => Err(given.bad(format!(
            "is not a time: {text:?}; write something like \"90s\", \"12h\", \"7d\" or \"1d12h\""
        ))),
    }
}

fn at_least_one(given: &Given<'_>) -> Result<u64, Problem> {
    match given.count()? {
        0 => Err(given.bad("must be at least 1: with 0 every message would be lost")),
        count => Ok(count),
    }
}

fn inbox_bytes(given: &Given<'_>) -> Result<u64, Problem> {
    let text = given.text()?;
    match parse_size(text) {
        Some(bytes) if bytes >= MIN_INBOX_BYTES => Ok(bytes),
        Some(_) => Err(given.bad(format!(
            "must be at least {}: one message can be that large",
            format_size(MIN_INBOX_BYTES)
        ))),
        None => {
            Err(given.bad(format!("is not a size: {text:?}; write something like \"64MiB\" or \"1GiB\"")))
        }
    }
}

fn ranges(given: &Given<'_>) -> Result<Vec<IpNet>, Problem> {
    given.texts()?.into_iter().map(|text| range(given, text)).collect()
}

fn range(given: &Given<'_>, text: &str) -> Result<IpNet, Problem> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.into());
    }
    let range: IpNet = text.parse().map_err(|_| {
        given.bad(format!(
            "holds {text:?}, which is not an address range; write something like \"10.1.0.0/16\" or \"fd00:1::/32\""
        ))
    })?;
    // 10.1.2.3/8 was hardly meant to open the whole of 10/8.
    if range.trunc() != range {
        let (all, one) = (range.trunc(), range.addr());
        return Err(given.bad(format!(
            "holds {text:?}, which is unclear: write \"{all}\" for the whole range or \"{one}\" for one address"
        )));
    }
    Ok(range)
}

fn only(given: &Given<'_>, word: &str, what: &str) -> Result<(), Problem> {
    match given.text()? {
        text if text == word => Ok(()),
        // Not repeated: a database URL holds its password.
        _ => Err(given.bad(format!("can only be {word:?} in this release, which is {what}"))),
    }
}

fn log_level(given: &Given<'_>) -> Result<String, Problem> {
    let text = given.text()?;
    let is_level = |word: &str| {
        ["off", "error", "warn", "info", "debug", "trace"]
            .iter()
            .any(|level| level.eq_ignore_ascii_case(word))
    };
    let is_directive = |part: &str| match part.trim().split_once('=') {
        None => is_level(part.trim()),
        Some((target, level)) => !target.is_empty() && is_level(level),
    };
    if text.split(',').all(is_directive) {
        return Ok(text.to_owned());
    }
    Err(given.bad(format!(
        "is not a log level: {text:?}; write error, warn, info, debug or trace, or per part \"info,angelia_core=debug\""
    )))
}
