//! From what an operator configures to the URL that is dialed.

use std::fmt;

/// The path every relay socket is opened on.
const RELAY_PATH: &str = "/relay";

/// The URL of a relay socket; never carries a query or user part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DialUrl(String);

impl DialUrl {
    /// Reads a base URL or the full socket URL.
    ///
    /// `http` becomes `ws`, `https` becomes `wss`, trailing slashes go, and
    /// `/relay` is added unless the path ends in it already.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => "ws",
            "https" | "wss" => "wss",
            _ => return None,
        };
        // Queries and fragments mean nothing here, and a user part would leak
        // into logs and error texts.
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let rest = rest.trim_end_matches('/');
        let host = rest.split('/').next().unwrap_or_default();
        if host.is_empty() || host.contains('@') || rest.contains(char::is_whitespace) {
            return None;
        }
        let path = if rest[host.len()..].ends_with(RELAY_PATH) { "" } else { RELAY_PATH };
        Some(Self(format!("{scheme}://{rest}{path}")))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Where files are uploaded, and below it fetched.
    pub(crate) fn media(&self) -> String {
        format!("http{}/media", &self.0["ws".len()..])
    }
}

impl fmt::Display for DialUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_leads_to_the_socket() {
        for (given, dialed) in [
            ("http://host:8080", "ws://host:8080/relay"),
            ("https://host", "wss://host/relay"),
            ("HTTPS://host/", "wss://host/relay"),
            ("ws://host/relay", "ws://host/relay"),
            ("wss://host/x//", "wss://host/x/relay"),
            ("https://host/x/relay/", "wss://host/x/relay"),
            ("https://host/x?y=1#z", "wss://host/x/relay"),
            (" http://[::1]:9 ", "ws://[::1]:9/relay"),
            ("https://relay", "wss://relay/relay"),
        ] {
            assert_eq!(DialUrl::parse(given).unwrap().as_str(), dialed);
        }
        let media = |given| DialUrl::parse(given).unwrap().media();
        assert_eq!(media("http://host:8080"), "http://host:8080/relay/media");
        assert_eq!(media("wss://host/x/relay/"), "https://host/x/relay/media");
        for given in ["", "host", "ftp://host", "https://", "https:///x", "http://a@b", "http://a b"] {
            assert_eq!(DialUrl::parse(given), None, "{given}");
        }
    }
}
