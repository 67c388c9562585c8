//! Which addresses Telegram takes as a link.

use url::{Host, Url};

/// The longest address that is linked; longer ones are written out.
///
/// Browsers and servers agree on about this much, and four of them still fit
/// into what a message's entities may take.
const MAX_ADDRESS: usize = 2048;

/// The address to link to, if Telegram takes it.
///
/// A message with a link to anything but a web page or a place in Telegram is
/// refused; so is a host without a dot, such as `localhost`. A link to a person
/// would be a mention, and what an agent writes notifies nobody.
pub(super) fn linkable(dest: &str) -> Option<String> {
    let url = Url::parse(dest).ok()?;
    let taken = match url.scheme() {
        "http" | "https" => url.port() != Some(0) && url.host().is_some_and(is_public),
        "tg" => is_place(&url),
        _ => false,
    };
    (taken && url.as_str().len() <= MAX_ADDRESS).then(|| url.into())
}

fn is_public(host: Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            name.chars().all(word) && name.split('.').filter(|label| !label.is_empty()).count() > 1
        }
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    }
}

fn is_place(url: &Url) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    url.host_str().is_some_and(|host| !host.is_empty() && host != "user" && host.chars().all(word))
        && url.port().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

/// An address as people read it: Telegram finds mail addresses and telephone
/// numbers by itself, but not behind their schemes.
pub(super) fn readable(dest: &str) -> &str {
    dest.strip_prefix("mailto:").or_else(|| dest.strip_prefix("tel:")).unwrap_or(dest)
}
