//! The `Host` names that a server answers to.
//!
//! A page of a stranger can give its own name the address of this server and
//! then reach it from a visitor's browser. Such requests carry the stranger's
//! name, so they are known by it.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// The host of a URL or of a request, without its port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    Ip(IpAddr),
    Name(String),
}

impl Host {
    /// Reads `host`, `host:port` or `[ipv6]:port`; `None` if it is none of them.
    fn read(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (ip, port) = rest.split_once(']')?;
            let ip: std::net::Ipv6Addr = ip.parse().ok()?;
            let plain = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            return plain.then(|| Self::Ip(IpAddr::V6(ip).to_canonical()));
        }
        let (name, port) = text.split_once(':').unwrap_or((text, ""));
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if name.is_empty() || !is_port(port) || !name.bytes().all(good) {
            return None;
        }
        Some(name.parse().map_or(Self::Name(name), Self::Ip))
    }

    fn is_loopback(&self) -> bool {
        match self {
            Self::Ip(ip) => ip.is_loopback(),
            Self::Name(name) => name == "localhost",
        }
    }
}

fn is_port(text: &str) -> bool {
    text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a setting can be the name of a host: without a port.
pub fn is_host(text: &str) -> bool {
    let with_port = text.rsplit_once(':').is_some_and(|(_, rest)| !rest.ends_with(']'));
    !with_port && Host::read(text).is_some()
}

/// The names a listener goes by. Loopback names are always among them.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    names: BTreeSet<Host>,
    own_address: bool,
}

impl Hosts {
    /// Loopback names alone.
    pub fn loopback() -> Self {
        Self::default()
    }

    /// These names, and the address a connection came to.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { names: names.into_iter().filter_map(Host::read).collect(), own_address: true }
    }

    /// Whether a request is meant for this server: `given` is every name it gives
    /// (the host of its URL, its Host headers), `here` the address it came to.
    /// One that gives none, or Host twice, is not.
    pub fn admit<'a>(
        &self,
        url: Option<&str>,
        headers: impl IntoIterator<Item = &'a [u8]>,
        here: IpAddr,
    ) -> bool {
        let mut headers = headers.into_iter();
        let (header, second) = (headers.next(), headers.next());
        let good = |text: &str| self.goes_by(text, here);
        let header = header.map(|bytes| std::str::from_utf8(bytes).is_ok_and(good));
        match (url.map(good), header) {
            _ if second.is_some() => false,
            (None, None) => false,
            (url, header) => url.unwrap_or(true) && header.unwrap_or(true),
        }
    }

    fn goes_by(&self, text: &str, here: IpAddr) -> bool {
        Host::read(text).is_some_and(|host| {
            host.is_loopback()
                || self.names.contains(&host)
                || (self.own_address && host == Host::Ip(here.to_canonical()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "192.0.2.1";

    fn admits(hosts: &Hosts, host: &str) -> bool {
        hosts.admit(None, [host.as_bytes()], HERE.parse().unwrap())
    }

    fn public() -> Hosts {
        Hosts::named(["relay.example.org", "[2001:db8::1]", "198.51.100.7", "Angelia.Local"])
    }

    #[test]
    fn its_names_are_taken_however_they_are_written() {
        for host in [
            "relay.example.org",
            "RELAY.Example.ORG",
            "relay.example.org.",
            "relay.example.org:8787",
            "relay.example.org:",
            "relay.example.org.:443",
            "angelia.local",
            "198.51.100.7:1",
            "[2001:db8::1]",
            "[2001:DB8:0:0::1]:8787",
            "192.0.2.1:8787",
            "[::ffff:192.0.2.1]",
            "localhost",
            "LOCALHOST.:99",
            "127.0.0.1:8787",
            "127.8.9.1",
            "[::1]:8787",
        ] {
            assert!(admits(&public(), host), "{host}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for host in [
            "",
            ".",
            ":8787",
            "evil.example",
            "relay.example.org.evil.example",
            "evil.relay.example.org",
            "relay.example.org..",
            "relay.example.org:80:80",
            "relay.example.org:http",
            "relay.example.org:123456",
            "user@relay.example.org",
            "relay.example.org/",
            "relay.example.org localhost",
            "relay.example.org,localhost",
            "2001:db8::1",
            "::1",
            "[::1",
            "[::1]x",
            "[relay.example.org]",
            "192.0.2.2",
            "0.0.0.0",
            "[::]",
            "0x7f.1",
            "2130706433",
            "localhost.evil.example",
            "rélay.example.org",
        ] {
            assert!(!admits(&public(), host), "{host}");
        }
    }

    #[test]
    fn every_name_a_request_gives_must_be_one_of_them() {
        let here: IpAddr = HERE.parse().unwrap();
        let (hosts, ours, theirs) = (public(), "relay.example.org", "evil.example");
        let admit = |url: Option<&str>, headers: &[&str]| {
            hosts.admit(url, headers.iter().map(|text| text.as_bytes()), here)
        };
        assert!(!admit(None, &[]), "HTTP/1.0 without a name");
        assert!(!admit(None, &[ours, ours]));
        assert!(!admit(None, &[ours, theirs]));
        assert!(admit(Some(ours), &[]));
        assert!(admit(Some(ours), &["localhost"]));
        assert!(!admit(Some(theirs), &[ours]));
        assert!(!admit(Some(ours), &[theirs]));
        assert!(!hosts.admit(None, [b"\xff".as_slice()], here));
    }

    #[test]
    fn the_admin_listener_takes_loopback_names_only() {
        let admin = Hosts::loopback();
        assert!(admits(&admin, "127.0.0.1:8788") && admits(&admin, "localhost:8788"));
        assert!(!admits(&admin, HERE) && !admits(&admin, "relay.example.org"));
    }

    #[test]
    fn a_setting_is_a_host_without_a_port() {
        for host in ["relay.example.org", "angelia", "192.0.2.1", "[2001:db8::1]"] {
            assert!(is_host(host), "{host}");
        }
        for host in ["", "relay.example.org:8787", "[::1]:80", "https://x", "*.example.org", "a b", "::1"] {
            assert!(!is_host(host), "{host}");
        }
    }
}
