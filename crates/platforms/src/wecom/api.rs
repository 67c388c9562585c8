//! Calls to WeCom's API, and what its error codes mean.
//!
//! The address of every call contains the app's secret or its access token, so
//! no error of the HTTP client leaves this file as it is.

use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::OnceLock;
use std::time::Duration;
use url::Url;

/// The method that gives an access token.
pub(super) const GET_TOKEN: &str = "gettoken";

const WECOM: &str = "https://qyapi.weixin.qq.com";

const UNREACHABLE: &str = "WeCom cannot be reached: see that this server's network lets it out to \
                           qyapi.weixin.qq.com, and that `api_url`, if it is set, is right";

/// How long a connection may take to be made. Only until then is it certain
/// that nothing was done.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long a call may take: shorter than a gateway waits.
const CALL_WITHIN: Duration = Duration::from_secs(20);
/// Largest answer. An app's description with everybody who may see it is the longest.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// How soon a call is made again that WeCom had no time for.
const BUSY_AGAIN: Duration = Duration::from_secs(2);
/// How soon after too many calls in a minute. WeCom does not say, and counts minutes.
const LIMIT_AGAIN: Duration = Duration::from_secs(60);
/// Longest description kept of a refusal.
const MAX_DESCRIPTION: usize = 120;

/// Why a call did not give what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The access token is not good, or not any more.
    Token,
    /// WeCom had no time for this call; it was not done.
    Busy,
    /// Too many calls of the app: not before this much time has passed.
    Limited(Duration),
    /// Something in the configuration is wrong, or at WeCom: an operator has to act.
    Setup(String),
    /// WeCom will not do it.
    Refused(String),
    /// It was certainly not done.
    Unavailable(String),
    /// It may have been done.
    Unknown(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Token => f.write_str("WeCom does not take the access token it gave"),
            Self::Busy => f.write_str("WeCom is busy"),
            Self::Limited(pause) => write!(f, "WeCom wants a pause of {} s", pause.as_secs()),
            Self::Setup(why) | Self::Refused(why) | Self::Unavailable(why) | Self::Unknown(why) => {
                f.write_str(why)
            }
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Setup(_) => Self::conflict(failure.to_string()),
            Failure::Refused(_) | Failure::Unknown(_) => Self::invalid(failure.to_string()),
            _ => Self::unavailable(failure.to_string()),
        }
    }
}

/// A line to WeCom.
pub(super) struct Api {
    /// Made for the first call: an app that only has to be known makes none.
    client: OnceLock<reqwest::Client>,
    root: String,
}

/// What every answer has.
#[derive(Deserialize)]
struct Answer {
    errcode: i64,
    #[serde(default)]
    errmsg: String,
}

impl Api {
    /// The line to WeCom, or to whoever answers instead.
    pub(super) fn new(api_url: Option<&str>) -> Result<Self> {
        let root = api_url.unwrap_or(WECOM).trim_end_matches('/');
        let readable = Url::parse(root).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        match readable {
            true => Ok(Self { client: OnceLock::new(), root: root.to_owned() }),
            false => Err(Error::invalid(
                "api_url must be like http://127.0.0.1:8081; leave it out for WeCom's own",
            )),
        }
    }

    fn client(&self) -> Result<&reqwest::Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(CONNECT_WITHIN)
            .timeout(CALL_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("angelia/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| {
            Failure::Unavailable(format!("the HTTP client could not be made: {}", error.without_url()))
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Asks for something.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        method: &str,
        query: &[(&str, &Secret)],
    ) -> Result<T, Failure> {
        answer(method, self.client()?.get(self.url(method, query)?)).await
    }

    /// Has something done.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        method: &str,
        query: &[(&str, &Secret)],
        body: &Value,
    ) -> Result<T, Failure> {
        answer(method, self.client()?.post(self.url(method, query)?).json(body)).await
    }

    fn url(&self, method: &str, query: &[(&str, &Secret)]) -> Result<Url, Failure> {
        let url = Url::parse(&format!("{}/cgi-bin/{method}", self.root));
        let mut url = url.map_err(|_| Failure::Unavailable("api_url is not an address".into()))?;
        query.iter().for_each(|(name, value)| {
            url.query_pairs_mut().append_pair(name, value.expose());
        });
        Ok(url)
    }
}

async fn answer<T: DeserializeOwned>(method: &str, request: reqwest::RequestBuilder) -> Result<T, Failure> {
    let answer = request.send().await.map_err(|error| unsent(&error))?;
    let status = answer.status().as_u16();
    let body = capped(answer).await?;
    match serde_json::from_slice::<Answer>(&body) {
        Ok(Answer { errcode: 0, .. }) => serde_json::from_slice(&body)
            .map_err(|_| Failure::Unknown("WeCom's answer cannot be read".into())),
        // Only one method is given the secret; to the others the credential is the token.
        Ok(Answer { errcode: 40001, .. }) if method != GET_TOKEN => Err(Failure::Token),
        Ok(Answer { errcode, errmsg }) => Err(meaning(errcode, &errmsg)),
        Err(_) => Err(not_wecom(status)),
    }
}

/// What it means that there is no answer.
fn unsent(error: &reqwest::Error) -> Failure {
    if error.is_connect() {
        Failure::Unavailable(UNREACHABLE.into())
    } else if error.is_timeout() {
        Failure::Unknown("WeCom did not answer in time".into())
    } else {
        Failure::Unknown("the connection to WeCom broke".into())
    }
}

/// A body up to [`MAX_ANSWER`].
async fn capped(mut answer: reqwest::Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unsent(&error))? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(Failure::Unknown("WeCom's answer is too large".into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What an error code means.
fn meaning(code: i64, message: &str) -> Failure {
    match code {
        -1 => Failure::Busy,
        40014 | 41001 | 42001 => Failure::Token,
        45009 | 45011 => Failure::Limited(LIMIT_AGAIN),
        45033 => Failure::Limited(BUSY_AGAIN),
        40001 | 40091 | 41004 => setup(
            code,
            "does not take the secret",
            "copy it again from the app's page in the admin console (App Management, the app, Secret)",
        ),
        40013 | 41002 => setup(
            code,
            "does not know the company",
            "see that `id` begins with the Company ID of My Company in the admin console",
        ),
        40056 | 41011 | 301002 => setup(
            code,
            "does not know the app, or the secret is another app's",
            "see that `id` ends with the AgentId of the app's page, and that `secret` is from the same page",
        ),
        60020 => setup(
            code,
            "does not let this server's address in",
            "add it to the app's Trusted IPs (企业可信IP) in the admin console",
        ),
        48002 | 48004 | 60011 => {
            setup(code, "does not let the app do this", "look at the app's permissions in the admin console")
        }
        81013 | 40003 | 60111 | 82001 => refused(
            code,
            "the person is not in the app's visible range any more, or has left the company: an administrator can \
             add them",
        ),
        _ => refused(code, description(message)),
    }
}

fn setup(code: i64, what: &str, next: &str) -> Failure {
    Failure::Setup(format!("WeCom {what} (errcode {code}): {next}"))
}

fn refused(code: i64, why: &str) -> Failure {
    Failure::Refused(format!("WeCom refused (errcode {code}): {why}"))
}

/// WeCom's own words, without the hints and addresses that follow them.
fn description(message: &str) -> &str {
    let short = message.split([',', ';']).next().unwrap_or_default().trim();
    let end = short.char_indices().nth(MAX_DESCRIPTION).map_or(short.len(), |(end, _)| end);
    if end == 0 { "it does not say why" } else { &short[..end] }
}

/// What an answer comes to that does not look like WeCom's.
fn not_wecom(status: u16) -> Failure {
    match status {
        429 => Failure::Limited(LIMIT_AGAIN),
        // Whoever answers so on the way has passed nothing on.
        400..=499 => Failure::Unavailable(format!(
            "something that is not WeCom answered with HTTP status {status}: see that `api_url`, if it is set, is \
             right, and which proxy stands in between"
        )),
        _ => Failure::Unknown(format!("HTTP status {status} and no answer of WeCom's")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_meaning() {
        assert_eq!(meaning(-1, "system busy"), Failure::Busy);
        for code in [40014, 42001, 41001] {
            assert_eq!(meaning(code, "invalid access_token"), Failure::Token);
        }
        assert!(matches!(meaning(45009, ""), Failure::Limited(pause) if pause == LIMIT_AGAIN));
        assert!(matches!(meaning(45033, ""), Failure::Limited(pause) if pause == BUSY_AGAIN));
        for code in [40001, 40013, 40056, 60020, 48002] {
            let Failure::Setup(why) = meaning(code, "") else { panic!("{code}") };
            assert!(why.contains(&code.to_string()) && why.contains(": "), "{why}");
        }
        let told = meaning(
            44004,
            "empty content, hint: [1700000000_1_abc], from ip: 10.0.0.1, more info at https://x",
        );
        assert_eq!(told, Failure::Refused("WeCom refused (errcode 44004): empty content".into()));
        assert_eq!(description(""), "it does not say why");
        assert_eq!(description(&"你".repeat(500)).chars().count(), MAX_DESCRIPTION);
    }

    #[test]
    fn what_is_not_wecom_is_told_apart() {
        for status in [400, 401, 403, 404] {
            assert!(matches!(not_wecom(status), Failure::Unavailable(_)), "{status}");
        }
        for status in [200, 302, 500, 502, 504] {
            assert!(matches!(not_wecom(status), Failure::Unknown(_)), "{status}");
        }
        assert_eq!(not_wecom(429), Failure::Limited(LIMIT_AGAIN));
    }
}
