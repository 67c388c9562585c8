//! HTTP calls to a provider's API: bounded in time and size, and never led elsewhere.
//!
//! An address may contain a token, so no error of the HTTP client leaves this file as it is.

use super::{ApiError, ErrorKind};
use crate::platform::{FetchedFile, Reach};
use angelia_core::error::{Error, Result};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, redirect};
use serde::de::DeserializeOwned;
use std::sync::OnceLock;
use std::time::Duration;
use url::Url;

/// How long a connection may take to be made. Only until then is it certain
/// that nothing was done.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Who is called, and within which bounds.
pub(crate) struct Provider {
    /// What people call it.
    pub(crate) name: &'static str,
    /// Where its API is: scheme and host.
    pub(crate) url: &'static str,
    /// What another address looks like.
    pub(crate) example: &'static str,
    /// How it is told who calls.
    pub(crate) user_agent: &'static str,
    /// Whether a proxy of the surroundings is used on the way to its own address. To an
    /// address that an operator names there is none in between.
    pub(crate) proxied: bool,
    /// How long most calls may take.
    pub(crate) call_within: Duration,
    /// Largest answer that is read.
    pub(crate) max_answer: usize,
    /// The pause when it says "too many" and not how long.
    pub(crate) default_pause: Duration,
    /// Longest pause believed.
    pub(crate) longest_pause: Duration,
}

impl Provider {
    /// What fits most providers.
    pub(crate) const USUAL: Self = Self {
        name: "",
        url: "",
        example: "http://127.0.0.1:8081",
        user_agent: concat!("angelia/", env!("CARGO_PKG_VERSION")),
        proxied: false,
        // Shorter than a gateway waits.
        call_within: Duration::from_secs(20),
        max_answer: 4 * 1024 * 1024,
        default_pause: Duration::from_secs(5),
        longest_pause: Duration::from_secs(3600),
    };

    /// What it means that there is no answer, or no end of it.
    fn unanswered(&self, error: &reqwest::Error) -> ApiError {
        let Self { name, url, .. } = self;
        if error.is_connect() || error.is_builder() {
            let host = url.split_once("://").map_or(*url, |(_, host)| host);
            ApiError::unavailable(format!(
                "{name} cannot be reached: see that this server's network lets it out to {host}, and that \
                 `api_url`, if it is set, is right"
            ))
        } else if error.is_timeout() {
            ApiError::unknown(format!("{name} did not answer in time"))
        } else {
            ApiError::unknown(format!("the connection to {name} broke"))
        }
    }

    /// What it means to be called too often, with the pause that was named, if one was.
    pub(crate) fn limited(&self, seconds: Option<u64>) -> ApiError {
        let pause = seconds.map_or(self.default_pause, Duration::from_secs);
        self.limited_for(pause.min(self.longest_pause))
    }

    /// The same with the pause that is known to help.
    pub(crate) fn limited_for(&self, after: Duration) -> ApiError {
        let why = format!("{} wants a pause of {} s", self.name, after.as_secs());
        ApiError::new(ErrorKind::Limited { after, reach: Reach::Bot }, why)
    }

    /// What an answer comes to that does not look like the provider's.
    pub(crate) fn stranger(&self, status: u16, seconds: Option<u64>) -> ApiError {
        match status {
            429 => self.limited(seconds),
            400..=499 => self.in_between(status),
            _ => ApiError::unknown(format!("HTTP status {status} and no answer of {}'s", self.name)),
        }
    }

    /// What it means that somebody on the way answered: they passed nothing on.
    pub(crate) fn in_between(&self, status: u16) -> ApiError {
        ApiError::unavailable(format!(
            "something that is not {} answered with HTTP status {status}: see that `api_url`, if it is set, is \
             right, and which proxy stands in between",
            self.name
        ))
    }
}

/// One bot's line to its provider.
pub(crate) struct Client {
    provider: &'static Provider,
    root: String,
    /// Made for the first call: a bot that only has to be known makes none.
    client: OnceLock<reqwest::Client>,
}

/// What a provider answered, whatever it is.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// An answer whose body was not read yet.
pub(crate) struct Opened {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: BoxStream<'static, Result<Bytes>>,
}

impl Opened {
    /// The file that it is, unless the provider says no. Whether that is for good its status tells.
    pub(crate) fn file(self, provider: &Provider) -> Result<FetchedFile> {
        let Self { status, headers, bytes } = self;
        let name = provider.name;
        match status {
            200 => {
                let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
                let media_type = text(CONTENT_TYPE).map(str::to_owned);
                Ok(FetchedFile { name: text(CONTENT_DISPOSITION).and_then(file_name), media_type, bytes })
            }
            403 | 404 | 410 => Err(Error::not_found(format!("{name} does not have it any more"))),
            _ => Err(Error::unavailable(format!("{name} answered with HTTP status {status}"))),
        }
    }
}

/// The name in a `Content-Disposition`. It is shown to people, and made safe where that happens.
fn file_name(disposition: &str) -> Option<String> {
    let (_, rest) = disposition.split_once("filename=")?;
    let name = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split(';').next()?.trim(),
    };
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

impl Answer {
    /// How many seconds its header asks to wait.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()
    }
}

impl Client {
    /// A line to the provider, or to whoever answers at `api_url` instead.
    pub(crate) fn new(provider: &'static Provider, api_url: Option<&str>) -> Result<Self> {
        let root = api_url.unwrap_or(provider.url).trim_end_matches('/').to_owned();
        if Url::parse(&root).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            return Ok(Self { provider, root, client: OnceLock::new() });
        }
        let Provider { name, example, .. } = provider;
        Err(Error::invalid(format!("api_url must be like {example}; leave it out for {name}'s own")))
    }

    /// Whether it is the provider itself that is called.
    pub(crate) fn is_own(&self) -> bool {
        self.root == self.provider.url
    }

    /// A request for a path below the API's address.
    pub(crate) fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ApiError> {
        let url = format!("{}{path}", self.root);
        Ok(self.client()?.request(method, url).timeout(self.provider.call_within))
    }

    /// A request for a file that the provider says is there. It carries no credential.
    pub(crate) fn elsewhere(&self, url: &Url) -> Result<RequestBuilder, ApiError> {
        Ok(self.client()?.get(url.clone()).timeout(self.provider.call_within))
    }

    /// Whether a URL leads to the provider: over TLS to one of these hosts, or to whoever is called
    /// in its place.
    pub(crate) fn leads_there(&self, url: &Url, hosts: &[&str]) -> bool {
        if self.is_own() {
            return url.scheme() == "https"
                && url.port().is_none()
                && url.host_str().is_some_and(|host| hosts.contains(&host));
        }
        Url::parse(&self.root).is_ok_and(|root| root.host_str() == url.host_str())
    }

    /// The address that is called: scheme and host.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    fn client(&self) -> Result<&reqwest::Client, ApiError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let mut client = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .redirect(redirect::Policy::none())
            .user_agent(self.provider.user_agent);
        if !(self.provider.proxied && self.is_own()) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| {
            ApiError::unavailable(format!("the HTTP client could not be made: {}", error.without_url()))
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Makes a call; answers whatever comes back.
    pub(crate) async fn call(&self, request: RequestBuilder) -> Result<Answer, ApiError> {
        let mut answer = request.send().await.map_err(|error| self.provider.unanswered(&error))?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.provider.unanswered(&error))? {
            if body.len() + chunk.len() > self.provider.max_answer {
                return Err(ApiError::unknown(format!("{}'s answer is too large", self.provider.name)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, headers, body })
    }

    /// Makes a call that answers with a file, and begins to read that. The time of the request is
    /// that of the whole transfer.
    pub(crate) async fn open(&self, request: RequestBuilder) -> Result<Opened, ApiError> {
        let answer = request.send().await.map_err(|error| self.provider.unanswered(&error))?;
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        let name = self.provider.name;
        let bytes = answer.bytes_stream().map_err(move |_| Error::unavailable(format!("{name} broke off")));
        Ok(Opened { status, headers, bytes: bytes.boxed() })
    }

    /// Reads an answer that says yes.
    pub(crate) fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ApiError> {
        serde_json::from_slice(body)
            .map_err(|_| ApiError::unknown(format!("{}'s answer cannot be read", self.provider.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PROVIDER: Provider = Provider { name: "Acme", url: "https://api.acme.test", ..Provider::USUAL };

    fn client(api_url: Option<&str>) -> Result<Client> {
        Client::new(&PROVIDER, api_url)
    }

    #[test]
    fn another_address_is_one_or_is_told() {
        assert!(client(None).unwrap().is_own());
        assert!(!client(Some("http://10.0.0.1:4000/")).unwrap().is_own());
        for odd in ["", "acme", "ftp://x", "file:///etc/passwd"] {
            let told = client(Some(odd)).err().unwrap().to_string();
            assert!(told.contains("api_url must be like http://127.0.0.1:8081"), "{told}");
        }
    }

    #[test]
    fn what_is_not_the_provider_is_told_apart() {
        let kind = |status, pause| PROVIDER.stranger(status, pause).kind;
        for status in [400, 401, 403, 404, 407, 409] {
            assert_eq!(kind(status, None), ErrorKind::Unavailable, "{status}");
        }
        for status in [200, 302, 500, 502, 504] {
            assert_eq!(kind(status, None), ErrorKind::Unknown, "{status}");
        }
        let limited = |after| ErrorKind::Limited { after, reach: Reach::Bot };
        assert_eq!(kind(429, Some(7)), limited(Duration::from_secs(7)));
        assert_eq!(kind(429, None), limited(PROVIDER.default_pause));
        assert_eq!(kind(429, Some(u64::MAX)), limited(PROVIDER.longest_pause));
    }

    #[test]
    fn a_file_is_fetched_from_the_provider_and_nobody_else() {
        let own = client(None).unwrap();
        let leads =
            |client: &Client, url: &str| client.leads_there(&Url::parse(url).unwrap(), &["cdn.acme.test"]);
        assert!(leads(&own, "https://cdn.acme.test/a?b=c"));
        for odd in [
            "http://cdn.acme.test/a",
            "https://acme.test/a",
            "https://cdn.acme.test:444/a",
            "https://cdn.acme.test.evil/a",
        ] {
            assert!(!leads(&own, odd), "{odd}");
        }
        let other = client(Some("http://10.0.0.1:4000")).unwrap();
        assert!(leads(&other, "http://10.0.0.1:4001/a") && !leads(&other, "https://cdn.acme.test/a"));
    }

    #[test]
    fn a_name_is_read_from_the_header() {
        for (disposition, name) in [
            ("attachment; filename=\"a b.pdf\"", Some("a b.pdf")),
            ("attachment; filename=a.pdf; size=3", Some("a.pdf")),
            ("attachment; filename=\"\"", None),
            ("inline", None),
        ] {
            assert_eq!(file_name(disposition).as_deref(), name, "{disposition}");
        }
    }

    #[test]
    fn a_pause_in_the_header_is_read_if_it_is_one() {
        let asks = |value: &str| {
            let headers = [(RETRY_AFTER, value.parse().unwrap())].into_iter().collect();
            Answer { status: 429, headers, body: Vec::new() }.retry_after()
        };
        assert_eq!(asks("7"), Some(7));
        for odd in ["", "-5", "1.5", "soon", "99999999999999999999999"] {
            assert_eq!(asks(odd), None, "{odd}");
        }
    }
}
