//! Values of each sort: how they are read, and what is told when they are no good.

use super::LogFormat;
use super::human::{format_duration, format_size, parse_duration, parse_size};
use angelia_core::allowed_hosts::is_host;
use angelia_core::identity::new_gateway_limits::MAX_GATEWAYS_PER_TENANT;
use angelia_platforms::settings::values::{is_this_machine, one_of};
use angelia_platforms::settings::{BadValue, Given, Shown};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// An inbox smaller than this could not hold one message of the largest size.
const MIN_INBOX_BYTES: u64 = 1024 * 1024;
/// Below this not even the largest frame of one gateway would fit.
const MEMORY_FLOOR: u64 = 16 * 1024 * 1024;
/// Longest name of a bot; it is part of webhook addresses and of tables.
const MAX_SLUG: usize = 32;
/// A pace beyond this is none.
const MAX_PACE: u32 = 100_000;
/// Longer than the longest turn nobody has to be waited for, and service managers lose patience.
const LONGEST_DRAIN: Duration = Duration::from_secs(3600);
/// Hardly an agent answers in less: its turn would count as over before it was.
const SHORTEST_TURN: Duration = Duration::from_secs(1);
/// What an agent is still at after a day is not the answer to a message.
const LONGEST_TURN: Duration = Duration::from_secs(24 * 3600);
/// Ten years: longer is a slip, and moments before it stay representable.
const LONGEST: Duration = Duration::from_secs(3650 * 24 * 3600);

pub(super) fn address(given: &Given<'_>) -> Result<SocketAddr, BadValue> {
    let text = given.text()?;
    text.parse().map_err(|_| {
        given.bad(format!(
            "is not an IP address and a port: {text:?}; write something like \"127.0.0.1:8787\" or \"[::1]:8787\""
        ))
    })
}

pub(super) fn loopback(given: &Given<'_>) -> Result<SocketAddr, BadValue> {
    let address = address(given)?;
    if super::is_loopback(address) {
        return Ok(address);
    }
    Err(given.bad(format!(
        "must be a loopback address, not {address}: whoever reaches it can administer the server; use \
         \"127.0.0.1:8788\" and reach it from elsewhere through an SSH tunnel"
    )))
}

pub(super) fn public_url(given: &Given<'_>) -> Result<String, BadValue> {
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

/// Names of this server, without a port.
pub(super) fn hosts(given: &Given<'_>) -> Result<Vec<String>, BadValue> {
    let host = |text: &str| {
        // People write IPv6 addresses without brackets where no port follows.
        let text = text.parse::<Ipv6Addr>().map_or(text.to_owned(), |ip| format!("[{ip}]"));
        is_host(&text).then_some(text).ok_or_else(|| {
            given.bad(
                "holds something else than the name or address of a host; write names such as \
                 \"relay.example.org\", without https:// and without a port, one by one: there are no wildcards",
            )
        })
    };
    given.texts()?.into_iter().map(host).collect()
}

/// A URL that tokens or keys travel over: https, or http on this machine.
pub(super) fn endpoint(given: &Given<'_>) -> Result<String, BadValue> {
    let text = given.text()?;
    // Never repeated: what is wrong with it may be that it holds a password.
    let why = |why: &str| {
        given.bad(format!(
            "is not a URL to rely on ({why}); write something like \"https://id.example.org/…\""
        ))
    };
    let url = url::Url::parse(text).map_err(|error| why(&error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(why("it must not hold a user name or password"));
    }
    if url.fragment().is_some() {
        return Err(why("it must not have a fragment"));
    }
    match url.scheme() {
        "https" => Ok(text.to_owned()),
        "http" if is_this_machine(&url) => Ok(text.to_owned()),
        "http" => Err(why("plain http is good only for this machine: whoever is in between could forge it")),
        _ => Err(why("it must begin with https://")),
    }
}

/// The `iss` of tokens. Kept letter by letter: tokens must name exactly it.
pub(super) fn issuer(given: &Given<'_>) -> Result<String, BadValue> {
    let text = endpoint(given)?;
    if text.contains('?') {
        return Err(given.bad("must not have a query; write the issuer exactly as it stands in its tokens"));
    }
    Ok(text)
}

/// A name that is good in a path: small letters, digits and hyphens.
pub(super) fn slug(given: &Given<'_>) -> Result<String, BadValue> {
    let text = given.text()?;
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=MAX_SLUG).contains(&text.len()) && text.bytes().all(good) {
        return Ok(text.to_owned());
    }
    Err(given.bad(format!(
        "is part of an address: write 1 to {MAX_SLUG} small letters, digits and hyphens, such as \"main\""
    )))
}

pub(super) fn file(given: &Given<'_>) -> Result<PathBuf, BadValue> {
    match given.text()? {
        "" => Err(given.bad("must not be empty; write the path of a file")),
        text => Ok(text.into()),
    }
}

pub(super) fn directory(given: &Given<'_>) -> Result<PathBuf, BadValue> {
    match given.text()? {
        "" => Err(given.bad("must not be empty; write \".\" for the current directory")),
        text => Ok(text.into()),
    }
}

pub(super) fn duration(given: &Given<'_>) -> Result<Duration, BadValue> {
    match time(given, LONGEST)? {
        Duration::ZERO => Err(given.bad("must be longer than nothing")),
        duration => Ok(duration),
    }
}

/// How long a stop may wait; not at all is a choice.
pub(super) fn drain(given: &Given<'_>) -> Result<Duration, BadValue> {
    time(given, LONGEST_DRAIN)
}

pub(super) fn turn_limit(given: &Given<'_>) -> Result<Duration, BadValue> {
    match time(given, LONGEST_TURN)? {
        limit if limit >= SHORTEST_TURN => Ok(limit),
        _ => Err(given.bad(format!("must be at least {}", format_duration(SHORTEST_TURN)))),
    }
}

fn time(given: &Given<'_>, longest: Duration) -> Result<Duration, BadValue> {
    let text = given.text()?;
    match parse_duration(text) {
        Some(time) if time > longest => {
            Err(given.bad(format!("must be at most {}", format_duration(longest))))
        }
        Some(time) => Ok(time),
        None => Err(given.bad(format!(
            "is not a time: {text:?}; write something like \"90s\", \"12h\", \"7d\" or \"1d12h\""
        ))),
    }
}

pub(super) fn at_least_one(given: &Given<'_>) -> Result<u64, BadValue> {
    match given.count()? {
        0 => Err(given.bad("must be at least 1: with 0 every message would be lost")),
        count => Ok(count),
    }
}

/// How many gateways a tenant may make; more than there can be in all is a mistake.
pub(super) fn gateways(given: &Given<'_>) -> Result<u64, BadValue> {
    match given.count()? {
        count if count <= MAX_GATEWAYS_PER_TENANT => Ok(count),
        _ => Err(given.bad(format!("must be at most {MAX_GATEWAYS_PER_TENANT}"))),
    }
}

/// One number of a burst and a rate.
pub(super) fn pace(given: &Given<'_>) -> Result<u32, BadValue> {
    match u32::try_from(given.count()?) {
        Ok(count @ 1..=MAX_PACE) => Ok(count),
        _ => Err(given.bad(format!("must be between 1 and {MAX_PACE}"))),
    }
}

pub(super) fn connections(given: &Given<'_>) -> Result<usize, BadValue> {
    match usize::try_from(given.count()?) {
        Ok(0) => Err(given.bad("must be at least 1: with 0 nobody could connect")),
        Ok(count) => Ok(count),
        Err(_) => Err(given.bad("is more than this machine can count to")),
    }
}

pub(super) fn inbox_bytes(given: &Given<'_>) -> Result<u64, BadValue> {
    size(given, MIN_INBOX_BYTES, "one message can be that large")
}

/// A size that leaves room for what everybody needs.
pub(super) fn memory(given: &Given<'_>) -> Result<u64, BadValue> {
    size(given, MEMORY_FLOOR, "with less, one gateway's own frames would be refused")
}

pub(super) fn size(given: &Given<'_>, least: u64, why: &str) -> Result<u64, BadValue> {
    let text = given.text()?;
    match parse_size(text) {
        Some(bytes) if bytes >= least => Ok(bytes),
        Some(_) => Err(given.bad(format!("must be at least {}: {why}", format_size(least)))),
        None => {
            Err(given.bad(format!("is not a size: {text:?}; write something like \"64MiB\" or \"1GiB\"")))
        }
    }
}

pub(super) fn ranges(given: &Given<'_>) -> Result<Vec<IpNet>, BadValue> {
    given.texts()?.into_iter().map(|text| range(given, text)).collect()
}

fn range(given: &Given<'_>, text: &str) -> Result<IpNet, BadValue> {
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

pub(super) fn log_format(given: &Given<'_>) -> Result<LogFormat, BadValue> {
    one_of(given, &LogFormat::ALL, LogFormat::as_str)
}

pub(super) fn shown_log_format(format: &LogFormat) -> Shown {
    Shown::quoted(format.as_str())
}

pub(super) fn log_level(given: &Given<'_>) -> Result<String, BadValue> {
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
