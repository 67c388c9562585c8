//! The SSRF guard: URLs that others gave us reach only the public internet.
//!
//! A resolver that filters is not enough: literals, odd spellings of literals
//! and redirects never ask it. So the parsed host is looked at, every resolved
//! address is looked at, the connection goes to an address that was looked at,
//! and redirects are not followed.

use angelia_core::error::Error;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::LOCATION;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// Longest time a guarded request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a URL may lead on to another.
const MAX_REDIRECTS: usize = 4;
/// Longest URL looked at.
const MAX_URL: usize = 2_048;

/// Why a URL was not requested.
#[derive(Debug, PartialEq, Eq)]
pub enum GuardError {
    /// It is not a URL that may be requested at all.
    Refused(&'static str),
    /// It may be requested, but nobody answered.
    Unreachable,
}

impl std::fmt::Display for GuardError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Unreachable => write!(f, "no answer"),
        }
    }
}

/// Which addresses may be reached.
#[derive(Clone, Debug, Default)]
struct Rules {
    allow_http: bool,
    allow: Arc<[IpNet]>,
}

impl Rules {
    fn permits(&self, address: IpAddr) -> bool {
        is_public(address) || self.exempts(address)
    }

    fn exempts(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|net| net.contains(&address))
    }

    /// Looks at everything that can be seen without asking DNS.
    fn check(&self, text: &str) -> Result<Url, GuardError> {
        if text.len() > MAX_URL {
            return Err(GuardError::Refused("the URL is too long"));
        }
        let url = Url::parse(text).map_err(|_| GuardError::Refused("it is not a URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::Refused("it carries a credential"));
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) => None,
            None => return Err(GuardError::Refused("it names no host")),
        };
        if url.port() == Some(0) {
            return Err(GuardError::Refused("nobody listens on port 0"));
        }
        if literal.is_some_and(|address| !self.permits(address)) {
            return Err(GuardError::Refused("the address is not public"));
        }
        let plain_ok = self.allow_http || literal.is_some_and(|address| self.exempts(address));
        match url.scheme() {
            "https" => Ok(url),
            "http" if plain_ok => Ok(url),
            "http" => Err(GuardError::Refused("only https is allowed")),
            _ => Err(GuardError::Refused("it is neither http nor https")),
        }
    }
}

impl Rules {
    /// Whether a name means this machine wherever it is asked for (RFC 6761), and that is not exempt.
    fn only_here(&self, url: &Url) -> bool {
        let Some(Host::Domain(name)) = url.host() else { return false };
        let name = name.trim_end_matches('.');
        let here = name == "localhost" || name.ends_with(".localhost");
        here && !self.exempts(Ipv4Addr::LOCALHOST.into()) && !self.exempts(Ipv6Addr::LOCALHOST.into())
    }
}

impl Resolve for Rules {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let checked: Vec<SocketAddr> = found.filter(|address| rules.permits(address.ip())).collect();
            if checked.is_empty() {
                return Err("the name has no public address".into());
            }
            Ok(Box::new(checked.into_iter()) as Addrs)
        })
    }
}

/// A client that only reaches what it may.
pub struct Guard {
    rules: Rules,
    client: reqwest::Client,
}

impl Guard {
    /// A guard with the exceptions an operator configured.
    pub fn new(allow_http: bool, allow: Vec<IpNet>) -> Result<Self, reqwest::Error> {
        install_tls_provider();
        let rules = Rules { allow_http, allow: allow.into() };
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(TIMEOUT)
            .user_agent(concat!("angelia/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(rules.clone()))
            .build()?;
        Ok(Self { rules, client })
    }

    /// Whether a URL could be requested at all, as far as it tells itself: no
    /// name is looked up. Says why not.
    pub fn could_reach(&self, url: &str) -> Result<(), &'static str> {
        let why = match self.rules.check(url) {
            Ok(url) => self.rules.only_here(&url).then_some("this machine is not public"),
            Err(GuardError::Refused(why)) => Some(why),
            Err(GuardError::Unreachable) => None,
        };
        why.map_or(Ok(()), Err)
    }

    /// Begins to read what is behind a URL, within this time. Where it leads on to is looked at as well.
    pub async fn open(&self, url: &str, within: Duration) -> Result<reqwest::Response, GuardError> {
        let mut url = self.rules.check(url)?;
        for _ in 0..MAX_REDIRECTS {
            let asked = self.client.get(url.clone()).timeout(within).send().await;
            let answer = asked.map_err(|_| GuardError::Unreachable)?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| url.join(to).ok()).ok_or(GuardError::Unreachable)?;
            url = self.rules.check(to.as_str())?;
        }
        Err(GuardError::Refused("it leads on and on"))
    }

    /// A body-less GET; the answer is not read.
    pub async fn poke(&self, url: &str) -> Result<(), GuardError> {
        let url = self.rules.check(url)?;
        self.client.get(url).send().await.map(drop).map_err(|_| GuardError::Unreachable)
    }
}

/// Makes ring the process's only TLS provider; later calls find it done.
pub fn install_tls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Why there is no HTTP client: in practice because this machine trusts nobody,
/// as a bare container image does. The library only says "builder error".
pub(crate) fn no_client(error: &reqwest::Error) -> Error {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Error::internal(format!(
        "the HTTP client could not be made: {cause}. Where the system has no certificates of \
         authorities, install them (Debian: apt-get install ca-certificates)"
    ))
}

/// Whether an address belongs to the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let special = v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    let segments = v6.segments();
    // Addresses that carry an IPv4 address go where that one goes.
    if let Some(v4) = v6.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)),
        [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),
        // Teredo, ORCHID, documentation and other protocol ranges.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // Only global unicast is the internet.
        [first, ..] => (first & 0xe000) == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict() -> Rules {
        Rules::default()
    }

    #[test]
    fn nothing_private_slips_through_in_any_spelling() {
        for url in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://0/",
            "https://[::1]/",
            "https://[::]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:a00:1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[2001:0:1::1]/",
            "https://[fe80::1]/",
            "https://[fc00::1]/",
            "https://[::127.0.0.1]/",
            "https://10.0.0.1/",
            "https://172.16.0.1/",
            "https://192.168.1.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/",
            "https://192.0.0.1/",
            "https://198.18.0.1/",
            "https://224.0.0.1/",
            "https://255.255.255.255/",
            "https://192.0.2.1/",
            "https://①②⑦.0.0.1/",
        ] {
            assert_eq!(
                strict().check(url).unwrap_err(),
                GuardError::Refused("the address is not public"),
                "{url}"
            );
        }
    }

    #[test]
    fn only_plain_https_urls_pass() {
        assert!(strict().check("https://wake.example/path?x=1").is_ok());
        assert!(strict().check("https://1.1.1.1/").is_ok());
        assert!(strict().check("https://[2606:4700::1111]/").is_ok());
        for url in
            ["http://wake.example/", "ftp://wake.example/", "file:///etc/passwd", "wake", "", "https://"]
        {
            assert!(strict().check(url).is_err(), "{url}");
        }
        assert!(strict().check("https://user:pw@wake.example/").is_err());
        assert!(strict().check(&format!("https://wake.example/{}", "a".repeat(4_000))).is_err());
    }

    #[test]
    fn what_could_never_be_requested_is_told_when_it_is_given() {
        let reach = |rules: Rules, url: &str| {
            let guard = Guard::new(rules.allow_http, rules.allow.to_vec()).unwrap();
            guard.could_reach(url)
        };
        for url in [
            "https://localhost/x",
            "https://LOCALHOST./",
            "https://a.localhost:8443/",
            "https://wake.example:0/",
            "https://u:p@wake.example/",
            "http://wake.example/",
            "https://[::1]/",
            "wake.example/x",
        ] {
            assert!(reach(strict(), url).is_err(), "{url}");
        }
        assert_eq!(reach(strict(), "https://wake.example/x"), Ok(()), "no name is looked up");
        let at_home = Rules { allow_http: true, allow: vec!["127.0.0.0/8".parse().unwrap()].into() };
        assert_eq!(reach(at_home, "http://localhost:8080/wake"), Ok(()));
    }

    #[test]
    fn exceptions_are_only_what_was_configured() {
        let rules = Rules { allow_http: false, allow: vec!["127.0.0.0/8".parse().unwrap()].into() };
        assert!(rules.check("http://127.0.0.1:9/").is_ok());
        assert!(rules.check("http://[::1]:9/").is_err());
        assert!(rules.check("http://10.0.0.1/").is_err());
        assert!(rules.check("http://wake.example/").is_err(), "a name is not exempt from https");
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_not_reached() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let guard = Guard::new(true, vec![]).unwrap();
        let poked = guard.poke(&format!("http://localhost:{port}/")).await;
        assert_eq!(poked, Err(GuardError::Unreachable));
        let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(accepted.is_err(), "nobody connected");
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let target = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
        let first = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = format!("http://{}/", target.local_addr().unwrap());
        let url = format!("http://{}/", first.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = first.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let answer = format!("HTTP/1.1 307 x\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let guard = Guard::new(false, vec!["127.0.0.0/8".parse().unwrap()]).unwrap();
        assert_eq!(guard.poke(&url).await, Ok(()));
        let followed = tokio::time::timeout(Duration::from_millis(50), target.accept()).await;
        assert!(followed.is_err(), "the redirect was followed");
    }
}
