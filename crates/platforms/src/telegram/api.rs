//! Calls to the Bot API, and what their failures mean.
//!
//! The address of every call contains the token: the kit's client lets out no error
//! that quotes it.

use crate::arrival_window::ArrivalWindow;
use crate::kit::{ApiError, Client, ErrorKind, Lenient, Provider};
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::time::Duration;

static TELEGRAM: Provider = Provider {
    name: "Telegram",
    url: "https://api.telegram.org",
    // A hundred updates, each with a long message and the one it answers, are far below.
    max_answer: 16 * 1024 * 1024,
    // Floods have been punished with hours.
    longest_pause: Duration::from_secs(6 * 3600),
    ..Provider::USUAL
};

/// How long most calls may take.
pub(super) const CALL_WITHIN: Duration = Provider::USUAL.call_within;
/// Messages that can arrive within a second; Telegram refuses from some 30 on.
const MESSAGES_PER_SECOND: usize = 29;
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

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        match error.kind {
            ErrorKind::Limited { after, .. } => Self::RetryAfter(after),
            ErrorKind::Unknown => Self::Unknown(error.why),
            _ => Self::Unavailable(error.why),
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
    client: Client,
    /// What every path begins with, token and all.
    base: Secret,
    arrivals: ArrivalWindow,
}

/// What every answer looks like.
#[derive(Deserialize)]
struct Answer<'a> {
    ok: bool,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error_code: Lenient<u16>,
    description: Lenient<String>,
    parameters: Lenient<Parameters>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Lenient<u64>,
    migrate_to_chat_id: Lenient<i64>,
}

impl Api {
    /// The line of the bot that `token` belongs to.
    pub(super) fn new(api_url: Option<&str>, token: &Secret) -> Result<Self> {
        let client = Client::new(&TELEGRAM, api_url)?;
        let base = Secret::new(format!("/bot{}/", token.expose()));
        Ok(Self { client, base, arrivals: ArrivalWindow::of(MESSAGES_PER_SECOND) })
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
        let path = format!("{}{method}", self.base.expose());
        let request = self.client.request(Method::POST, &path)?.timeout(within).json(body);
        let answer = self.client.call(request).await?;
        let (status, pause) = (answer.status, answer.retry_after());
        match serde_json::from_slice::<Answer<'_>>(&answer.body) {
            Ok(Answer { ok: true, result: Some(result), .. }) => serde_json::from_str(result.get())
                .map_err(|_| Failure::Unknown(format!("Telegram's answer to {method} cannot be read"))),
            Ok(answer) if !answer.ok => Err(refusal(status, answer, pause)),
            Ok(_) | Err(_) => Err(TELEGRAM.stranger(status, pause).into()),
        }
    }
}

/// What a call comes to that Telegram answered with "no".
fn refusal(status: u16, answer: Answer<'_>, pause: Option<u64>) -> Failure {
    let parameters = answer.parameters.0.unwrap_or_default();
    if let Some(to) = parameters.migrate_to_chat_id.0 {
        return Failure::Migrated(to.to_string());
    }
    let description = || {
        let text = answer.description.0.unwrap_or_else(|| format!("HTTP status {status}"));
        text.chars().take(MAX_DESCRIPTION).collect()
    };
    match answer.error_code.0 {
        // Nobody else says that of a token: a bot stops for it.
        Some(401 | 404) => return Failure::Unauthorized,
        None if matches!(status, 401 | 404) => return TELEGRAM.stranger(status, pause).into(),
        _ => {}
    }
    match answer.error_code.unwrap_or(status) {
        409 => Failure::Conflict(description()),
        429 => TELEGRAM.limited(parameters.retry_after.or(pause)).into(),
        400..=499 => Failure::Refused(description()),
        // A server that failed may have failed after it did its work.
        _ => Failure::Unknown(format!("Telegram answered with HTTP status {status}")),
    }
}

/// Whether a refusal is about the text and its styles: then the text goes out
/// as it was typed.
pub(super) fn is_about_text(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    ["entit", "parse", "message text", "text is too long", "message is too long", "message_too_long", "url"]
        .iter()
        .any(|word| why.contains(word))
}

/// Whether a refusal says that the message to be changed is not there any more.
pub(super) fn is_gone(why: &str) -> bool {
    why.to_ascii_lowercase().contains("message to edit not found")
}

/// A refusal with what can be done about it.
pub(super) fn explained(why: &str) -> String {
    let lower = why.to_ascii_lowercase();
    let next = [
        ("blocked by the user", "the person has blocked the bot and would have to unblock it"),
        ("user is deactivated", "the person's account is gone"),
        ("thread not found", "the topic is gone; write to the chat itself or to another topic"),
        ("topic_deleted", "the topic is gone; write to the chat itself or to another topic"),
        ("topic_closed", "the topic is closed; an administrator can open it again"),
        (
            "chat not found",
            "the bot is not in this chat, or it is gone: add the bot, or have the person write to it",
        ),
        ("kicked", "the bot was removed from the chat: an administrator can add it again"),
        ("not a member", "the bot is not in the chat: an administrator can add it"),
        ("rights to send", "the bot may not write there: an administrator can allow it"),
        ("message to edit not found", "the message is gone; send a new one"),
        ("can't be edited", "the message cannot be changed any more; send a new one"),
    ]
    .iter()
    .find(|(word, _)| lower.contains(word));
    match next {
        Some((_, next)) => format!("Telegram refused ({why}): {next}"),
        None => format!("Telegram refused: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT_PAUSE: Duration = Provider::USUAL.default_pause;
    const LONGEST_PAUSE: Duration = TELEGRAM.longest_pause;

    fn not_telegram(status: u16, pause: Option<u64>) -> Failure {
        TELEGRAM.stranger(status, pause).into()
    }

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

    #[test]
    fn what_is_about_the_text_is_told_from_what_is_about_the_place() {
        for text in [
            "Bad Request: can't parse entities: Unsupported start tag",
            "Bad Request: ENTITY_BOUNDS_INVALID",
            "Bad Request: ENTITIES_TOO_LONG",
            "Bad Request: message is too long",
            "Bad Request: wrong HTTP URL specified",
            "Bad Request: entity beginning at UTF-16 offset 5 ends after the end of the text",
        ] {
            assert!(is_about_text(text), "{text}");
        }
        for place in [
            "Bad Request: chat not found",
            "Bad Request: message thread not found",
            "Bad Request: message to edit not found",
            "Bad Request: message can't be edited",
            "Forbidden: bot was blocked by the user",
            "Forbidden: bot was kicked from the supergroup chat",
            "Bad Request: not enough rights to send text messages to the chat",
        ] {
            assert!(!is_about_text(place), "{place}");
            assert!(explained(place).contains("): "), "{place} has a next step");
        }
        assert!(is_gone(&explained("Bad Request: message to edit not found")));
        assert!(!is_gone(&explained("Forbidden: bot was kicked from the supergroup chat")));
        assert!(!is_gone(&explained("Bad Request: message can't be edited")));
        assert_eq!(explained("Bad Request: novelty"), "Telegram refused: Bad Request: novelty");
    }
}
