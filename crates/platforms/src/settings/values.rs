//! Values that settings of more than one sort have: how they are read, and what is told
//! when they are no good.

use super::{BadValue, Given};

/// A provider's address: scheme, host and port. Tokens travel over it, so the
/// plain scheme is good only on this machine.
pub fn base_url(given: &Given<'_>, secure: &str, plain: &str) -> Result<String, BadValue> {
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

/// Whether a URL leads to this machine.
pub fn is_this_machine(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// A text with something in it.
pub fn word(given: &Given<'_>, example: &str) -> Result<String, BadValue> {
    match given.text()?.trim() {
        "" => Err(given.bad(format!("must not be empty; write something like {example:?}"))),
        text => Ok(text.to_owned()),
    }
}

/// A text for people, not empty and not too long.
pub fn text_within(given: &Given<'_>, most: usize) -> Result<String, BadValue> {
    let text = given.text()?.trim();
    match text.chars().count() {
        0 => Err(given.bad("must not be empty; leave it out for the default")),
        count if count > most => {
            Err(given.bad(format!("must be at most {most} characters long, and has {count}")))
        }
        _ => Ok(text.to_owned()),
    }
}

/// One of a few words.
pub fn one_of<T: Copy>(
    given: &Given<'_>,
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<T, BadValue> {
    let text = given.text()?;
    all.iter().copied().find(|it| word(*it) == text).ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|it| format!("{:?}", word(*it))).collect();
        given.bad(format!("can be {}, not {text:?}", words.join(" or ")))
    })
}
