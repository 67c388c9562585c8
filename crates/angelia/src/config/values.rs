//! Values of each sort: how they are read, and what is told when they are no good.

use super::bots::BotPlatform;
use super::fault::Problem;
use super::human::{format_duration, format_size, parse_duration, parse_size};
use super::raw::Given;
use angelia_core::hosts::is_host;
use angelia_core::identity::check_name;
use angelia_core::identity::making::MAX_GATEWAYS_PER_TENANT;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// An inbox smaller than this could not hold one message of the largest size.
const MIN_INBOX_BYTES: u64 = 1024 * 1024;
/// Longest name of a bot; it is part of webhook addresses and of tables.
const MAX_SLUG: usize = 32;
/// A pace beyond this is none.
const MAX_PACE: u32 = 100_000;
/// Ten years: longer is a slip, and moments before it stay representable.
const LONGEST: Duration = Duration::from_secs(3650 * 24 * 3600);

pub(super) fn address(given: &Given<'_>) -> Result<SocketAddr, Problem> {
    let text = given.text()?;
    text.parse().map_err(|_| {
        given.bad(format!(
            "is not an IP address and a port: {text:?}; write something like \"127.0.0.1:8787\" or \"[::1]:8787\""
        ))
    })
}

pub(super) fn loopback(given: &Given<'_>) -> Result<SocketAddr, Problem> {
    let address = address(given)?;
    if super::is_loopback(address) {
        return Ok(address);
    }
    Err(given.bad(format!(
        "must be a loopback address, not {address}: whoever reaches it can administer the server; use \
         \"127.0.0.1:8788\" and reach it from elsewhere through an SSH tunnel"
    )))
}

pub(super) fn public_url(given: &Given<'_>) -> Result<String, Problem> {
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
pub(super) fn hosts(given: &Given<'_>) -> Result<Vec<String>, Problem> {
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
pub(super) fn endpoint(given: &Given<'_>) -> Result<String, Problem> {
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

/// A provider's address: scheme, host and port. Tokens travel over it, so the
/// plain scheme is good only on this machine.
pub(super) fn base_url(given: &Given<'_>, secure: &str, plain: &str) -> Result<String, Problem> {
    let text = given.text()?;
    // Never repeated: what is wrong with it may be that it holds a password.
    let why = |why: &str| {
        given.bad(format!(
            "is not an address to rely on ({why}); write something like \"{secure}://proxy.example.org\""
        ))
    };
    let url = url::Url::parse(text).map_err(|error| why(&error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(why("it must not hold a user name or password"));
    }
    let scheme = url.scheme();
    if scheme == plain && !is_this_machine(&url) {
        return Err(why(&format!(
            "plain {plain} is good only for this machine: the bot's token travels over it"
        )));
    }
    if scheme != secure && scheme != plain {
        return Err(why(&format!("it must begin with {secure}://")));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(why("it must end after the host and port"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

pub(super) fn is_this_machine(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The `iss` of tokens. Kept letter by letter: tokens must name exactly it.
pub(super) fn issuer(given: &Given<'_>) -> Result<String, Problem> {
    let text = endpoint(given)?;
    if text.contains('?') {
        return Err(given.bad("must not have a query; write the issuer exactly as it stands in its tokens"));
    }
    Ok(text)
}

/// A text with something in it.
pub(super) fn word(given: &Given<'_>, example: &str) -> Result<String, Problem> {
    match given.text()?.trim() {
        "" => Err(given.bad(format!("must not be empty; write something like {example:?}"))),
        text => Ok(text.to_owned()),
    }
}

/// A name that is good in a path: small letters, digits and hyphens.
pub(super) fn slug(given: &Given<'_>) -> Result<String, Problem> {
    let text = given.text()?;
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=MAX_SLUG).contains(&text.len()) && text.bytes().all(good) {
        return Ok(text.to_owned());
    }
    Err(given.bad(format!(
        "is part of an address: write 1 to {MAX_SLUG} small letters, digits and hyphens, such as \"main\""
    )))
}

/// A bot's id in the form of any platform; which one is looked at when that is known.
pub(super) fn bot_id(given: &Given<'_>) -> Result<String, Problem> {
    let text = given.text()?;
    if BotPlatform::ALL.into_iter().any(|platform| platform.takes_id(text)) {
        return Ok(text.to_owned());
    }
    // Not repeated: the token stands beside it at the provider and is easily taken for it.
    Err(given.bad(
        "must be the bot's id: for Discord the application id, for Telegram what stands before the colon of \
         the token, digits only; for SMS the number, such as \"+15550100\"; for WeCom \"COMPANY/APP\"",
    ))
}

/// A public key: 64 hexadecimal digits.
pub(super) fn hex_key(given: &Given<'_>) -> Result<String, Problem> {
    let text = given.text()?.trim();
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_owned());
    }
    Err(given
        .bad("must be the application's public key, 64 hexadecimal digits, as the developer portal shows it"))
}

/// A text for people, not empty and not too long.
pub(super) fn text_within(given: &Given<'_>, most: usize) -> Result<String, Problem> {
    let text = given.text()?.trim();
    match text.chars().count() {
        0 => Err(given.bad("must not be empty; leave it out for the default")),
        count if count > most => {
            Err(given.bad(format!("must be at most {most} characters long, and has {count}")))
        }
        _ => Ok(text.to_owned()),
    }
}

pub(super) fn file(given: &Given<'_>) -> Result<PathBuf, Problem> {
    match given.text()? {
        "" => Err(given.bad("must not be empty; write the path of a file")),
        text => Ok(text.into()),
    }
}

pub(super) fn directory(given: &Given<'_>) -> Result<PathBuf, Problem> {
    match given.text()? {
        "" => Err(given.bad("must not be empty; write \".\" for the current directory")),
        text => Ok(text.into()),
    }
}

pub(super) fn duration(given: &Given<'_>) -> Result<Duration, Problem> {
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

pub(super) fn at_least_one(given: &Given<'_>) -> Result<u64, Problem> {
    match given.count()? {
        0 => Err(given.bad("must be at least 1: with 0 every message would be lost")),
        count => Ok(count),
    }
}

/// How many gateways a tenant may make; more than there can be in all is a mistake.
pub(super) fn gateways(given: &Given<'_>) -> Result<u64, Problem> {
    match given.count()? {
        count if count <= MAX_GATEWAYS_PER_TENANT => Ok(count),
        _ => Err(given.bad(format!("must be at most {MAX_GATEWAYS_PER_TENANT}"))),
    }
}

/// One number of a burst and a rate.
pub(super) fn pace(given: &Given<'_>) -> Result<u32, Problem> {
    match u32::try_from(given.count()?) {
        Ok(count @ 1..=MAX_PACE) => Ok(count),
        _ => Err(given.bad(format!("must be between 1 and {MAX_PACE}"))),
    }
}

pub(super) fn connections(given: &Given<'_>) -> Result<usize, Problem> {
    match usize::try_from(given.count()?) {
        Ok(0) => Err(given.bad("must be at least 1: with 0 nobody could connect")),
        Ok(count) => Ok(count),
        Err(_) => Err(given.bad("is more than this machine can count to")),
    }
}

/// A number of things of which there has to be one.
pub(super) fn some(given: &Given<'_>) -> Result<u32, Problem> {
    match u32::try_from(given.count()?) {
        Ok(0) => Err(given.bad("must be at least 1: with 0 nobody could write")),
        Ok(count) => Ok(count),
        Err(_) => Err(given.bad(format!("must be at most {}", u32::MAX))),
    }
}

pub(super) fn inbox_bytes(given: &Given<'_>) -> Result<u64, Problem> {
    size(given, MIN_INBOX_BYTES, "one message can be that large")
}

/// A size that leaves room for what everybody needs.
pub(super) fn size_at_least(given: &Given<'_>, least: u64) -> Result<u64, Problem> {
    size(given, least, "with less, one gateway's own frames would be refused")
}

fn size(given: &Given<'_>, least: u64, why: &str) -> Result<u64, Problem> {
    let text = given.text()?;
    match parse_size(text) {
        Some(bytes) if bytes >= least => Ok(bytes),
        Some(_) => Err(given.bad(format!("must be at least {}: {why}", format_size(least)))),
        None => {
            Err(given.bad(format!("is not a size: {text:?}; write something like \"64MiB\" or \"1GiB\"")))
        }
    }
}

pub(super) fn ranges(given: &Given<'_>) -> Result<Vec<IpNet>, Problem> {
    given.texts()?.into_iter().map(|text| range(given, text)).collect()
}

/// Rooms that people can share.
pub(super) fn rooms(given: &Given<'_>) -> Result<Vec<String>, Problem> {
    let room = |text: &str| {
        let shared = check_name("room", text).is_ok() && !text.starts_with("dm:");
        shared.then(|| text.to_owned()).ok_or_else(|| {
            given.bad(format!(
                "holds {text:?}, which is no room that people can share; write a name such as \"lobby\""
            ))
        })
    };
    given.texts()?.into_iter().map(room).collect()
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

pub(super) fn only(given: &Given<'_>, word: &str, what: &str) -> Result<(), Problem> {
    match given.text()? {
        text if text == word => Ok(()),
        // Not repeated: a database URL holds its password.
        _ => Err(given.bad(format!("can only be {word:?} in this release, which is {what}"))),
    }
}

pub(super) fn log_level(given: &Given<'_>) -> Result<String, Problem> {
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
