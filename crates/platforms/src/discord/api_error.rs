//! What can become of a call, and what an action has to do about it.

use crate::kit::{self, ErrorKind};
use crate::platform::{Outcome, Reach};
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Kind};
use angelia_core::limit::Backoff;
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;
use std::time::Duration;

/// How soon something is tried again that failed for no fault of ours.
const AGAIN: Duration = Duration::from_secs(2);
/// How soon a bot whose token was refused is tried again: somebody has to act first.
const AGAIN_UNAUTHORIZED: Duration = Duration::from_secs(60);
/// Longest wait that is believed. Whoever names a longer one is mistaken, and
/// sums of times have to stay within what clocks can hold.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// First and longest pause after Cloudflare's own refusals, which name none.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Longest word of Discord's that is repeated.
const MAX_WORDS: usize = 200;

/// Discord's own numbers for what went wrong.
pub(super) mod code {
    pub(in super::super) const UNKNOWN_MESSAGE: u64 = 10_008;
    /// Also what is said of an interaction that nobody has deferred yet.
    pub(in super::super) const UNKNOWN_WEBHOOK: u64 = 10_015;
    pub(super) const UNKNOWN_INTERACTION: u64 = 10_062;
    pub(super) const INVALID_WEBHOOK_TOKEN: u64 = 50_027;
    /// Also what a message is refused with that may not answer the one it names.
    pub(in super::super) const INVALID_FORM: u64 = 50_035;
    /// What is said of a message that has a thread.
    pub(in super::super) const HAS_THREAD: u64 = 160_004;
    pub(in super::super) const CANNOT_READ_ANSWERED: u64 = 160_002;
    /// What is said to an interaction that was answered before.
    pub(in super::super) const ACKNOWLEDGED: u64 = 40_060;
    pub(super) const UNKNOWN_CHANNEL: u64 = 10_003;
    pub(in super::super) const MISSING_ACCESS: u64 = 50_001;
    pub(super) const CANNOT_DM: u64 = 50_007;
    pub(super) const WRONG_CHANNEL: u64 = 50_024;
    pub(super) const THREAD_ARCHIVED: u64 = 50_083;
    pub(super) const TOO_MANY_THREADS: u64 = 160_006;
    pub(in super::super) const MISSING_PERMISSIONS: u64 = 50_013;
}

/// What to tell an operator whose token is refused.
pub(super) const TOKEN_REFUSED: &str = "Discord does not accept the bot's token: it is wrong or was reset. \
     Copy a new one from the developer portal (your application, Bot, Reset Token) and restart";

/// Why a call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ApiError {
    /// Discord will not do it.
    Refused { status: u16, code: u64, words: String },
    /// Whoever wanted it may not do it any more; it was not done.
    Withdrawn,
    /// The token is not good.
    Unauthorized,
    /// Not now.
    Limited { after: Duration, reach: Reach },
    /// Somebody between here and Discord answered with a page of their own: it was not done.
    Page { status: u16, after: Duration },
    /// It was certainly not done.
    Unreachable { reach: Reach, why: String },
    /// It may have been done.
    Unknown { why: String },
    /// It was done, and the answer makes no sense.
    Unreadable,
}

impl ApiError {
    /// Whether Discord refused with this number.
    pub(super) fn is(&self, number: u64) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == number)
    }

    /// What it means where another credential than the bot's own was used.
    pub(super) fn of_lent(self) -> Self {
        match self {
            Self::Unauthorized => Self::Refused { status: 401, code: 0, words: "it is over".into() },
            // Counted by the credential: nobody else in the chat has to wait.
            Self::Limited { after, reach: Reach::Chat } => Self::Limited { after, reach: Reach::Action },
            other => other,
        }
    }

    /// Whether such a credential is of no use any more: nothing was done with it.
    pub(super) fn is_over(&self) -> bool {
        let numbers = [code::UNKNOWN_WEBHOOK, code::UNKNOWN_INTERACTION, code::INVALID_WEBHOOK_TOKEN];
        let by_number = numbers.into_iter().any(|number| self.is(number));
        by_number || matches!(self, Self::Refused { status: 401, .. })
    }

    /// Whether the bot may not see or do it, which Discord does not forgive often.
    pub(super) fn is_forbidden(&self) -> bool {
        let by_number = self.is(code::MISSING_ACCESS) || self.is(code::MISSING_PERMISSIONS);
        by_number || matches!(self, Self::Refused { status: 403, .. })
    }

    /// Whether the bot may not write in a chat, or cannot even see it.
    pub(super) fn is_shut(&self) -> bool {
        self.is_forbidden() || self.is(code::UNKNOWN_CHANNEL)
    }

    /// How long to wait before another attempt that nobody waits for.
    pub(super) fn pause(&self) -> Duration {
        match self {
            Self::Limited { after, .. } | Self::Page { after, .. } => *after,
            Self::Unauthorized => AGAIN_UNAUTHORIZED,
            _ => AGAIN,
        }
    }

    /// What happened, without any text of a message.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Refused { status, code: 0, words } => format!("Discord refused: {words} (HTTP {status})"),
            Self::Refused { code, words, .. } => match next_step(*code) {
                Some(next) => format!("Discord refused: {words} ({code}); {next}"),
                None => format!("Discord refused: {words} ({code})"),
            },
            Self::Withdrawn => "its sender may not write there any more".into(),
            Self::Unauthorized => TOKEN_REFUSED.into(),
            Self::Limited { after, .. } => {
                format!("Discord asks to wait for {:.1} s", after.as_secs_f64())
            }
            Self::Page { status, .. } => {
                format!("something on the way to Discord answered in its place (HTTP {status})")
            }
            Self::Unreachable { why, .. } | Self::Unknown { why } => why.clone(),
            Self::Unreadable => "Discord's answer cannot be read".into(),
        }
    }
}

impl From<ApiError> for Outcome {
    /// What it means for an action.
    fn from(error: ApiError) -> Self {
        let (why, after) = (error.why(), error.pause());
        match error {
            ApiError::Refused { .. } | ApiError::Withdrawn => Self::Refused { why },
            ApiError::Unauthorized | ApiError::Page { .. } => Self::Later { after, reach: Reach::Bot, why },
            ApiError::Limited { reach, .. } | ApiError::Unreachable { reach, .. } => {
                Self::Later { after, reach, why }
            }
            ApiError::Unknown { .. } | ApiError::Unreadable => Self::Unknown { why },
        }
    }
}

impl From<ApiError> for Error {
    /// What it means for whoever asked for something else than an action.
    fn from(error: ApiError) -> Self {
        let kind = match error {
            ApiError::Refused { status: 404, .. } => Kind::NotFound,
            ApiError::Refused { .. } | ApiError::Withdrawn => Kind::Forbidden,
            ApiError::Limited { .. } => Kind::TooMany,
            ApiError::Unreadable => Kind::Internal,
            _ => Kind::Unavailable,
        };
        Self::new(kind, error.why())
    }
}

impl From<kit::ApiError> for ApiError {
    /// What it means that there was no answer.
    fn from(error: kit::ApiError) -> Self {
        match error.kind {
            ErrorKind::Unavailable => Self::Unreachable { reach: Reach::Bot, why: error.why },
            _ => Self::Unknown { why: error.why },
        }
    }
}

/// What whoever runs the bot can do about it.
fn next_step(number: u64) -> Option<&'static str> {
    match number {
        code::MISSING_PERMISSIONS => Some("give the bot Send Messages in this channel"),
        code::MISSING_ACCESS => Some("give the bot View Channel there"),
        code::UNKNOWN_CHANNEL => Some("the channel was deleted, or the bot was removed from it"),
        code::WRONG_CHANNEL => Some("this kind of channel has nothing of the sort"),
        code::THREAD_ARCHIVED => Some("somebody has to write in the thread first"),
        code::TOO_MANY_THREADS => Some("some threads of this server have to be archived first"),
        code::CANNOT_DM => Some("this person does not take direct messages from the bot"),
        _ => None,
    }
}

/// Cloudflare's refusals in a row, which are pages for people and name no time: how the
/// pauses grow, and until when the last one is.
#[derive(Debug)]
pub(super) struct OutageBackoff(Mutex<(Backoff, Mono)>);

impl Default for OutageBackoff {
    fn default() -> Self {
        Self(Mutex::new((Backoff::new(FIRST_PAUSE, LONGEST_PAUSE), Mono::default())))
    }
}

impl OutageBackoff {
    /// How long to wait now. Calls that were on their way together meet the same
    /// gust: only one that comes after its pause is another.
    fn pause(&self, now: Mono) -> Duration {
        let (backoff, until) = &mut *self.0.lock();
        if now >= *until {
            *until = now + backoff.pause();
        }
        until.since(now)
    }

    /// A call succeeded.
    pub(super) fn is_over(&self) {
        *self.0.lock() = Self::default().0.into_inner();
    }
}

/// What Discord writes beside a status.
#[derive(Default, Deserialize)]
struct Words {
    #[serde(default)]
    message: String,
    /// Discord's own number. Whatever comes without one is not Discord's.
    #[serde(default)]
    code: Option<u64>,
    #[serde(default)]
    retry_after: Option<f64>,
    #[serde(default)]
    global: bool,
}

/// What an answer other than success means; `changes` if the call was to change something.
pub(super) fn read_error(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    changes: bool,
    backoff: &OutageBackoff,
) -> ApiError {
    let words: Option<Words> = serde_json::from_slice(body).ok();
    let code = words.as_ref().and_then(|words| words.code);
    match (status, code) {
        (429, _) => limited(headers, words, backoff),
        // Nobody took these in.
        (503 | 521..=523, _) => ApiError::Unreachable { reach: Reach::Action, why: own_trouble(status) },
        // Whoever answered these may have heard all of it, and not the end.
        (500.., _) if changes => ApiError::Unknown { why: own_trouble(status) },
        (500.., _) => ApiError::Unreachable { reach: Reach::Action, why: own_trouble(status) },
        (401, Some(_)) => ApiError::Unauthorized,
        (400..500, Some(code)) => {
            let message = words.unwrap_or_default().message;
            let words = if message.is_empty() { "it gave no reason" } else { &message };
            ApiError::Refused { status, code, words: words.chars().take(MAX_WORDS).collect() }
        }
        _ => ApiError::Page { status, after: backoff.pause(clock::mono()) },
    }
}

fn own_trouble(status: u16) -> String {
    format!("Discord has trouble of its own (HTTP {status})")
}

/// As many seconds as somebody named, if that is a time at all.
pub(super) fn wait_of(seconds: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64())).ok()?;
    Some(wait.min(LONGEST_WAIT))
}

fn limited(headers: &HeaderMap, words: Option<Words>, backoff: &OutageBackoff) -> ApiError {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let from_header = || header(RETRY_AFTER.as_str())?.parse::<f64>().ok();
    let told = words.as_ref().and_then(|words| words.retry_after).or_else(from_header);
    let told = told.and_then(wait_of);
    // A page instead of JSON comes from Cloudflare, which knows no channels.
    let is_global = words.as_ref().is_none_or(|words| words.global)
        || header("x-ratelimit-scope") == Some("global")
        || header("x-ratelimit-global").is_some();
    let reach = if is_global { Reach::Bot } else { Reach::Chat };
    ApiError::Limited { after: told.unwrap_or_else(|| backoff.pause(clock::mono())), reach }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(
        status: u16,
        headers: &[(&'static str, &str)],
        body: &str,
        backoff: &OutageBackoff,
    ) -> ApiError {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        read_error(status, &headers.collect(), body.as_bytes(), true, backoff)
    }

    #[test]
    fn a_refusal_names_its_reason_and_the_next_step() {
        let body = json!({"message": "Missing Permissions", "code": 50013}).to_string();
        let refused = answer(403, &[], &body, &OutageBackoff::default());
        assert_eq!(
            Outcome::from(refused.clone()),
            Outcome::Refused {
                why: "Discord refused: Missing Permissions (50013); \
                      give the bot Send Messages in this channel"
                    .into()
            }
        );
        assert!(refused.is(50013));
        let bare = answer(404, &[], r#"{"code": 0}"#, &OutageBackoff::default());
        assert_eq!(bare.why(), "Discord refused: it gave no reason (HTTP 404)");
        let long = json!({"message": "x".repeat(5000), "code": 1}).to_string();
        assert!(answer(400, &[], &long, &OutageBackoff::default()).why().len() < 300);
    }

    #[test]
    fn a_limit_says_how_long_and_for_whom() {
        let backoff = OutageBackoff::default();
        let limited = |failure: ApiError| match failure {
            ApiError::Limited { after, reach } => (after, reach),
            other => panic!("{other:?}"),
        };
        let seconds = Duration::from_secs_f64;
        let route = json!({"message": "You are being rate limited.", "retry_after": 1.5, "global": false});
        let route = answer(429, &[("x-ratelimit-scope", "user")], &route.to_string(), &backoff);
        assert_eq!(limited(route), (seconds(1.5), Reach::Chat));
        let global = json!({"retry_after": 3, "global": true}).to_string();
        assert_eq!(limited(answer(429, &[], &global, &backoff)), (seconds(3.0), Reach::Bot));
        let html = answer(429, &[("retry-after", "7")], "<html>", &backoff);
        assert_eq!(limited(html), (seconds(7.0), Reach::Bot));
    }

    #[test]
    fn absurd_times_are_not_believed() {
        for seconds in ["1e300", "1e18", "99999999999"] {
            let body = format!(r#"{{"retry_after": {seconds}, "global": false, "code": 0}}"#);
            assert_eq!(answer(429, &[], &body, &OutageBackoff::default()).pause(), LONGEST_WAIT, "{seconds}");
        }
        assert_eq!(wait_of(-1.0), None);
        assert_eq!(wait_of(f64::NAN), Some(LONGEST_WAIT));
    }

    #[test]
    fn a_page_without_a_time_makes_the_pauses_grow() {
        let backoff = OutageBackoff::default();
        let mut now = clock::mono();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let pause = backoff.pause(now);
            let together: Vec<Duration> = (0..5).map(|_| backoff.pause(now)).collect();
            assert!(together.iter().all(|other| *other == pause), "one gust: {together:?}");
            assert!(pause <= LONGEST_PAUSE);
            pauses.push(pause.as_secs());
            now = now + pause;
        }
        assert_eq!(pauses[..3], [5, 10, 20]);
        assert_eq!(pauses[8], LONGEST_PAUSE.as_secs());
        backoff.is_over();
        assert_eq!(backoff.pause(now), FIRST_PAUSE);
    }

    #[test]
    fn only_discord_refuses() {
        let backoff = OutageBackoff::default();
        for (status, body) in [
            (403, "<html>Attention Required!</html>"),
            (404, "<html>"),
            (404, r#"{"error": "no such route"}"#),
            (400, ""),
            (401, "<html>log in to this network</html>"),
            (302, ""),
        ] {
            let failure = answer(status, &[], body, &backoff);
            assert!(
                matches!(failure.clone().into(), Outcome::Later { reach: Reach::Bot, .. }),
                "{status} {failure:?}"
            );
            assert_eq!(Error::from(failure).kind(), Kind::Unavailable);
        }
        let unauthorized = r#"{"message": "401: Unauthorized", "code": 0}"#;
        assert_eq!(answer(401, &[], unauthorized, &backoff), ApiError::Unauthorized);
    }

    #[test]
    fn what_may_have_been_done_is_unknown() {
        let backoff = OutageBackoff::default();
        for status in [503, 521, 522, 523] {
            assert!(matches!(answer(status, &[], "", &backoff).into(), Outcome::Later { .. }), "{status}");
        }
        for status in [500, 502, 504, 520, 524, 530] {
            assert!(matches!(answer(status, &[], "", &backoff).into(), Outcome::Unknown { .. }), "{status}");
            let asked = read_error(status, &HeaderMap::new(), b"", false, &backoff);
            assert!(matches!(asked, ApiError::Unreachable { .. }), "a question changes nothing: {status}");
        }
    }
}
