//! Calls to the Bot API, and what their failures mean.
//!
//! The address of every call contains the token, so no error of the HTTP
//! client leaves this file as it is.

use super::parse::soft;
use crate::arrival_window::ArrivalWindow;
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::OnceLock;
use std::time::Duration;

const UNREACHABLE: &str = "Telegram cannot be reached: see that this server's network lets it out to \
                           api.telegram.org, and that `api_url`, if it is set, is right";

const TELEGRAM: &str = "https://api.telegram.org";

/// How long a connection may take to be made. Only until then is it certain
/// that nothing was done.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long most calls may take: shorter than a gateway waits.
pub(super) const CALL_WITHIN: Duration = Duration::from_secs(20);
/// Largest answer: a hundred updates, each with a long message and the one it
/// answers, are far below.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// Messages that can arrive within a second; Telegram refuses from some 30 on.
const MESSAGES_PER_SECOND: usize = 29;
/// The pause when Telegram says "too many" and not how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause believed; floods have been punished with hours.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 3600);
/// Longest description kept of a refusal.
const MAX_DESCRIPTION: usize = 200;

/// Why a call did not give what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Too many calls: not before this much time has passed.
    RetryAfter(Duration),
    /// The group is a supergroup now and has this id.
    Migrated(String),
    /// Whoever wanted it may not do it any more; it was not done.
    Withdrawn,
    /// Somebody else reads this bot's updates, or they go to a webhook.
    Conflict(String),
    /// The token is not one of a bot.
    Unauthorized,
    /// Telegram will not do it, for this reason of its own.
    Refused(String),
    /// It was certainly not done.
    Unavailable(String),
    /// It may have been done.
    Unknown(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RetryAfter(pause) => write!(f, "Telegram wants a pause of {} s", pause.as_secs()),
            Self::Migrated(_) => f.write_str("the group has a new id"),
            Self::Withdrawn => f.write_str("its sender may not write there any more"),
            Self::Unauthorized => f.write_str("Telegram does not know this token"),
            Self::Conflict(why) | Self::Refused(why) => write!(f, "Telegram refused: {why}"),
            Self::Unavailable(why) | Self::Unknown(why) => f.write_str(why),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::RetryAfter(_) | Failure::Unavailable(_) => Self::unavailable(failure.to_string()),
            Failure::Unauthorized | Failure::Conflict(_) => Self::conflict(failure.to_string()),
            _ => Self::invalid(failure.to_string()),
        }
    }
}

/// One bot's line to Telegram.
pub(super) struct Api {
    /// Made for the first call: a bot that only has to be known makes none.
    client: OnceLock<reqwest::Client>,
    /// Everything before the method's name, token and all.
    base: Secret,
    arrivals: ArrivalWindow,
}

/// What every answer looks like.
#[derive(Deserialize)]
struct Answer<'a> {
    ok: bool,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "soft")]
    error_code: Option<u16>,
    #[serde(default, deserialize_with = "soft")]
    description: Option<String>,
    #[serde(default, deserialize_with = "soft")]
    parameters: Option<Parameters>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    #[serde(default, deserialize_with = "soft")]
    retry_after: Option<u64>,
    #[serde(default, deserialize_with = "soft")]
    migrate_to_chat_id: Option<i64>,
}

impl Api {
    /// The line of the bot that `token` belongs to.
    pub(super) fn new(api_url: Option<&str>, token: &Secret) -> Result<Self> {
        let root = api_url.unwrap_or(TELEGRAM).trim_end_matches('/');
        let readable = url::Url::parse(root).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !readable {
            return Err(Error::invalid(
                "api_url must be like http://127.0.0.1:8081; leave it out for Telegram's own",
            ));
        }
        let base = Secret::new(format!("{root}/bot{}/", token.expose()));
        Ok(Self { client: OnceLock::new(), base, arrivals: ArrivalWindow::of(MESSAGES_PER_SECOND) })
    }

    fn client(&self) -> Result<&reqwest::Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(CONNECT_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("angelia/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| {
            Failure::Unavailable(format!("the HTTP client could not be made: {}", error.without_url()))
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Calls a method that Telegram counts as a message, if it may still be
    /// called when there is room for it.
    pub(super) async fn write<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &Value,
        may: impl Fn() -> bool,
    ) -> Result<T, Failure> {
        let Some(_inside) = self.arrivals.enter().await else {
            return Err(Failure::Unavailable("Telegram does not answer".into()));
        };
        if !may() {
            return Err(Failure::Withdrawn);
        }
        self.call(method, body).await
    }

    /// Calls a method and reads its result.
    pub(super) async fn call<T: DeserializeOwned>(&self, method: &str, body: &Value) -> Result<T, Failure> {
        self.call_within(method, body, CALL_WITHIN).await
    }

    /// Calls a method that may take this long.
    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &Value,
        within: Duration,
    ) -> Result<T, Failure> {
        let client = self.client()?;
        let request = client.post(format!("{}{method}", self.base.expose())).timeout(within).json(body);
        let answer = request.send().await.map_err(|error| unsent(&error))?;
        let status = answer.status().as_u16();
        let pause = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let body = capped(answer).await?;
        match serde_json::from_slice::<Answer<'_>>(&body) {
            Ok(Answer { ok: true, result: Some(result), .. }) => serde_json::from_str(result.get())
                .map_err(|_| Failure::Unknown(format!("Telegram's answer to {method} cannot be read"))),
            Ok(answer) if !answer.ok => Err(refusal(status, answer, pause)),
            Ok(_) | Err(_) => Err(not_telegram(status, pause)),
        }
    }
}

/// What it means that there is no answer.
fn unsent(error: &reqwest::Error) -> Failure {
    if error.is_connect() {
        Failure::Unavailable(UNREACHABLE.into())
    } else if error.is_timeout() {
        Failure::Unknown("Telegram did not answer in time".into())
    } else {
        Failure::Unknown("the connection to Telegram broke".into())
    }
}

/// A body up to [`MAX_ANSWER`].
async fn capped(mut answer: reqwest::Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unsent(&error))? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(Failure::Unknown("Telegram's answer is too large".into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What a call comes to that Telegram answered with "no".
fn refusal(status: u16, answer: Answer<'_>, pause: Option<u64>) -> Failure {
    let parameters = answer.parameters.unwrap_or_default();
    if let Some(to) = parameters.migrate_to_chat_id {
        return Failure::Migrated(to.to_string());
    }
    let description = || {
        let text = answer.description.unwrap_or_else(|| format!("HTTP status {status}"));
        text.chars().take(MAX_DESCRIPTION).collect()
    };
    match answer.error_code {
        // Nobody else says that of a token: a bot stops for it.
        Some(401 | 404) => return Failure::Unauthorized,
        None if matches!(status, 401 | 404) => return not_telegram(status, pause),
        _ => {}
    }
    match answer.error_code.unwrap_or(status) {
        409 => Failure::Conflict(description()),
        429 => Failure::RetryAfter(believed(parameters.retry_after.or(pause))),
        400..=499 => Failure::Refused(description()),
        // A server that failed may have failed after it did its work.
        _ => Failure::Unknown(format!("Telegram answered with HTTP status {status}")),
    }
}

/// What an answer comes to that does not look like Telegram's. It tells
/// nothing of the token, the chat or the message.
fn not_telegram(status: u16, pause: Option<u64>) -> Failure {
    match status {
        429 => Failure::RetryAfter(believed(pause)),
        // Whoever answers so on the way has passed nothing on.
        400..=499 => Failure::Unavailable(format!(
            "something that is not Telegram answered with HTTP status {status}: see that `api_url`, if it is \
             set, is right, and which proxy stands in between"
        )),
        _ => Failure::Unknown(format!("HTTP status {status} and no answer of Telegram's")),
    }
}

/// The pause for so many seconds, however absurd.
fn believed(seconds: Option<u64>) -> Duration {
    seconds.map_or(DEFAULT_PAUSE, Duration::from_secs).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Failure {
        refusal(status, serde_json::from_str(body).unwrap(), None)
    }

    #[test]
    fn every_refusal_has_its_meaning() {
        let flood = r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 14","parameters":{"retry_after":14}}"#;
        assert_eq!(read(429, flood), Failure::RetryAfter(Duration::from_secs(14)));
        let moved = r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890}}"#;
        assert_eq!(read(400, moved), Failure::Migrated("-1001234567890".into()));
        let unknown = r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#;
        assert_eq!(read(401, unknown), Failure::Unauthorized);
        let unknown = r#"{"ok":false,"error_code":404,"description":"Not Found"}"#;
        assert_eq!(read(404, unknown), Failure::Unauthorized);
        let gone = Failure::Refused("Bad Request: chat not found".into());
        assert_eq!(read(400, r#"{"ok":false,"description":"Bad Request: chat not found"}"#), gone);
        assert!(matches!(read(502, r#"{"ok":false}"#), Failure::Unknown(_)));
        assert!(matches!(read(409, r#"{"ok":false,"error_code":409}"#), Failure::Conflict(_)));
    }

    #[test]
    fn only_telegram_says_that_a_token_is_void() {
        for status in [400, 401, 403, 404, 407, 409] {
            assert!(matches!(not_telegram(status, None), Failure::Unavailable(_)), "{status}");
        }
        for status in [401, 404] {
            assert!(matches!(read(status, r#"{"ok":false}"#), Failure::Unavailable(_)), "{status}");
            assert!(serde_json::from_str::<Answer<'_>>(r#"{"error":"no such page"}"#).is_err());
        }
        assert!(matches!(not_telegram(502, None), Failure::Unknown(_)));
        assert!(matches!(not_telegram(200, None), Failure::Unknown(_)));
    }

    #[test]
    fn pauses_are_believed_within_reason() {
        assert_eq!(not_telegram(429, Some(7)), Failure::RetryAfter(Duration::from_secs(7)));
        assert_eq!(not_telegram(429, None), Failure::RetryAfter(DEFAULT_PAUSE));
        assert_eq!(not_telegram(429, Some(u64::MAX)), Failure::RetryAfter(LONGEST_PAUSE));
        for (absurd, pause) in [
            ("18446744073709551615", LONGEST_PAUSE),
            ("99999999999999999999999", DEFAULT_PAUSE),
            ("-5", DEFAULT_PAUSE),
            ("1.5", DEFAULT_PAUSE),
            ("\"soon\"", DEFAULT_PAUSE),
        ] {
            let flood = format!(r#"{{"ok":false,"error_code":429,"parameters":{{"retry_after":{absurd}}}}}"#);
            assert_eq!(read(429, &flood), Failure::RetryAfter(pause), "{absurd}");
        }
    }
}
