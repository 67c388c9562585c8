//! Calls to the Bot API, and what their failures mean.
//!
//! The address of every call contains the token: the kit's client lets out no error
//! that quotes it.

use crate::arrival_window::ArrivalWindow;
use crate::kit::{ApiError, Client, ErrorKind, Lenient, Opened, Provider, Uploads};
use crate::platform::OutgoingFile;
use angelia_core::error::Result;
use angelia_core::secret::Secret;
use reqwest::multipart::Form;
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::time::Duration;

pub(super) static TELEGRAM: Provider = Provider {
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

/// What every refusal begins with, before Telegram's own words.
const REFUSED: &str = "Telegram refused: ";
/// Somebody else reads this bot's updates, or they go to a webhook.
pub(super) const CONFLICT: ErrorKind = ErrorKind::Refused(409);

/// One bot's line to Telegram.
pub(super) struct Api {
    client: Client,
    /// What every path begins with, token and all.
    base: Secret,
    /// The same of files.
    files: Secret,
    arrivals: ArrivalWindow,
    uploads: Uploads,
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
        let files = Secret::new(format!("/file/bot{}/", token.expose()));
        let arrivals = ArrivalWindow::of(MESSAGES_PER_SECOND);
        Ok(Self { client, base, files, arrivals, uploads: Uploads::default() })
    }

    /// Calls a method that Telegram counts as a message, if it may still be
    /// called when there is room for it.
    pub(super) async fn write<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &Value,
        may: impl Fn() -> bool,
    ) -> Result<T, ApiError> {
        let Some(_inside) = self.arrivals.enter().await else {
            return Err(ApiError::unavailable("Telegram does not answer"));
        };
        if !may() {
            return Err(ApiError::withdrawn());
        }
        self.call(method, body).await
    }

    /// Begins to read a file.
    pub(super) async fn open(&self, path: &str, within: Duration) -> Result<Opened, ApiError> {
        let path = format!("{}{path}", self.files.expose());
        self.client.open(self.client.request(Method::GET, &path)?.timeout(within)).await
    }

    /// The same with a form, of which a file becomes this field. It takes longer than a call.
    pub(super) async fn upload<T: DeserializeOwned>(
        &self,
        method: &str,
        form: Form,
        (field, file): (&'static str, &OutgoingFile),
        may: impl Fn() -> bool,
    ) -> Result<T, ApiError> {
        let _turn = self.uploads.turn(file).await?;
        let form = form.part(field, file.part().await?);
        let Some(_inside) = self.arrivals.enter().await else {
            return Err(ApiError::unavailable("Telegram does not answer"));
        };
        if !may() {
            return Err(ApiError::withdrawn());
        }
        let path = format!("{}{method}", self.base.expose());
        let request = self.client.request(Method::POST, &path)?.timeout(CALL_WITHIN + file.takes());
        self.ask(method, request.multipart(form)).await
    }

    /// Calls a method and reads its result.
    pub(super) async fn call<T: DeserializeOwned>(&self, method: &str, body: &Value) -> Result<T, ApiError> {
        self.call_within(method, body, CALL_WITHIN).await
    }

    /// Calls a method that may take this long.
    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &Value,
        within: Duration,
    ) -> Result<T, ApiError> {
        let path = format!("{}{method}", self.base.expose());
        let request = self.client.request(Method::POST, &path)?.timeout(within).json(body);
        self.ask(method, request).await
    }

    async fn ask<T: DeserializeOwned>(&self, method: &str, request: RequestBuilder) -> Result<T, ApiError> {
        let answer = self.client.call(request).await?;
        let (status, pause) = (answer.status, answer.retry_after());
        match serde_json::from_slice::<Answer<'_>>(&answer.body) {
            Ok(Answer { ok: true, result: Some(result), .. }) => serde_json::from_str(result.get())
                .map_err(|_| ApiError::unknown(format!("Telegram's answer to {method} cannot be read"))),
            Ok(answer) if !answer.ok => Err(refusal(status, answer, pause)),
            Ok(_) | Err(_) => Err(TELEGRAM.stranger(status, pause)),
        }
    }
}

/// What a call comes to that Telegram answered with "no".
fn refusal(status: u16, answer: Answer<'_>, pause: Option<u64>) -> ApiError {
    let parameters = answer.parameters.0.unwrap_or_default();
    if let Some(to) = parameters.migrate_to_chat_id.0 {
        return ApiError::new(ErrorKind::Moved(to), "the group has a new id");
    }
    let description = || {
        let text = answer.description.0.unwrap_or_else(|| format!("HTTP status {status}"));
        text.chars().take(MAX_DESCRIPTION).collect::<String>()
    };
    match (answer.error_code.0, answer.error_code.unwrap_or(status)) {
        // Nobody else says that of a token: a bot stops for it.
        (Some(401 | 404), _) => ApiError::setup("Telegram does not know this token"),
        (None, 401 | 404) => TELEGRAM.stranger(status, pause),
        (_, 429) => TELEGRAM.limited(parameters.retry_after.or(pause)),
        (_, code @ 400..=499) => ApiError::refused(code.into(), format!("{REFUSED}{}", description())),
        // A server that failed may have failed after it did its work.
        _ => ApiError::unknown(format!("Telegram answered with HTTP status {status}")),
    }
}

/// Telegram's own words for a refusal.
pub(super) fn words(error: &ApiError) -> Option<&str> {
    error.why.strip_prefix(REFUSED)
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

/// Whether a refusal says that the message to be deleted is not there any more.
pub(super) fn was_deleted(why: &str) -> bool {
    why.to_ascii_lowercase().contains("message to delete not found")
}

/// What a call failed for; a refusal with what can be done about it.
pub(super) fn explained(failure: String) -> String {
    let Some(why) = failure.strip_prefix(REFUSED) else { return failure };
    let lower = why.to_ascii_lowercase();
    let next = [
        ("blocked by the user", "the person has blocked the bot and would have to unblock it"),
        ("user is deactivated", "the person's account is gone"),
        ("thread not found", "the topic is gone; write to the chat itself or to another topic"),
        ("topic_deleted", "the topic is gone; write to the chat itself or to another topic"),
        ("not a forum", "the group has no topics: its owner can switch them on in the group's settings"),
        ("rights to create a topic", "an administrator can give the bot Manage Topics"),
        ("rights to manage topics", "an administrator can give the bot Manage Topics"),
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
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Reach;

    const DEFAULT_PAUSE: Duration = Provider::USUAL.default_pause;
    const LONGEST_PAUSE: Duration = TELEGRAM.longest_pause;

    fn not_telegram(status: u16, pause: Option<u64>) -> ErrorKind {
        TELEGRAM.stranger(status, pause).kind
    }

    fn read(status: u16, body: &str) -> ApiError {
        refusal(status, serde_json::from_str(body).unwrap(), None)
    }

    fn limited(after: Duration) -> ErrorKind {
        ErrorKind::Limited { after, reach: Reach::Bot }
    }

    #[test]
    fn every_refusal_has_its_meaning() {
        let flood = r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 14","parameters":{"retry_after":14}}"#;
        assert_eq!(read(429, flood).kind, limited(Duration::from_secs(14)));
        let moved = r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890}}"#;
        assert_eq!(read(400, moved).kind, ErrorKind::Moved(-1001234567890));
        let unknown = r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#;
        assert_eq!(read(401, unknown).kind, ErrorKind::Setup);
        let unknown = r#"{"ok":false,"error_code":404,"description":"Not Found"}"#;
        assert_eq!(read(404, unknown).kind, ErrorKind::Setup);
        let gone = read(400, r#"{"ok":false,"description":"Bad Request: chat not found"}"#);
        assert_eq!(gone.kind, ErrorKind::Refused(400));
        assert_eq!(gone.to_string(), "Telegram refused: Bad Request: chat not found");
        assert_eq!(words(&gone), Some("Bad Request: chat not found"));
        assert_eq!(read(502, r#"{"ok":false}"#).kind, ErrorKind::Unknown);
        assert_eq!(read(409, r#"{"ok":false,"error_code":409}"#).kind, CONFLICT);
    }

    #[test]
    fn only_telegram_says_that_a_token_is_void() {
        for status in [400, 401, 403, 404, 407, 409] {
            assert_eq!(not_telegram(status, None), ErrorKind::Unavailable, "{status}");
        }
        for status in [401, 404] {
            assert_eq!(read(status, r#"{"ok":false}"#).kind, ErrorKind::Unavailable, "{status}");
            assert!(serde_json::from_str::<Answer<'_>>(r#"{"error":"no such page"}"#).is_err());
        }
        assert_eq!(not_telegram(502, None), ErrorKind::Unknown);
        assert_eq!(not_telegram(200, None), ErrorKind::Unknown);
    }

    #[test]
    fn pauses_are_believed_within_reason() {
        assert_eq!(not_telegram(429, Some(7)), limited(Duration::from_secs(7)));
        assert_eq!(not_telegram(429, None), limited(DEFAULT_PAUSE));
        assert_eq!(not_telegram(429, Some(u64::MAX)), limited(LONGEST_PAUSE));
        for (absurd, pause) in [
            ("18446744073709551615", LONGEST_PAUSE),
            ("99999999999999999999999", DEFAULT_PAUSE),
            ("-5", DEFAULT_PAUSE),
            ("1.5", DEFAULT_PAUSE),
            ("\"soon\"", DEFAULT_PAUSE),
        ] {
            let flood = format!(r#"{{"ok":false,"error_code":429,"parameters":{{"retry_after":{absurd}}}}}"#);
            assert_eq!(read(429, &flood).kind, limited(pause), "{absurd}");
        }
    }

    #[test]
    fn what_is_about_the_text_is_told_from_what_is_about_the_place() {
        let next = |why: &str| explained(format!("{REFUSED}{why}"));
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
            assert!(next(place).contains("): "), "{place} has a next step");
        }
        assert!(is_gone(&next("Bad Request: message to edit not found")));
        assert!(!is_gone(&next("Forbidden: bot was kicked from the supergroup chat")));
        assert!(!is_gone(&next("Bad Request: message can't be edited")));
        assert_eq!(next("Bad Request: novelty"), "Telegram refused: Bad Request: novelty");
        assert_eq!(explained("chat not found".into()), "chat not found", "no refusal of Telegram's");
    }
}
