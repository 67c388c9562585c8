//! Discord's HTTP API: one bot's calls, held to Discord's own limits.

use super::api_error::{ApiError, OutageBackoff, read_error, wait_of};
use crate::arrival_window::ArrivalWindow;
use crate::kit::{self, Answer, Client, ErrorKind, Provider, Uploads};
use crate::nodes::Nodes;
use crate::platform::{OutgoingFile, Reach};
use angelia_core::clock;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::limit::{Gcra, Rate};
use angelia_core::secret::Secret;
use parking_lot::Mutex;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::multipart::{Form, Part};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
pub(super) use twilight_http_ratelimiting::Method;
use twilight_http_ratelimiting::{Endpoint, RateLimitHeaders, RateLimiter};

const PAGE: &str = "something on the way to Discord answered in its place";

pub(super) static DISCORD: Provider = Provider {
    name: "Discord",
    url: "https://discord.com",
    // Discord asks bots to say who made them.
    user_agent: concat!("DiscordBot (https://github.com/angelia, ", env!("CARGO_PKG_VERSION"), ")"),
    proxied: true,
    // Discord answers in well under a second, and a gateway waits for 25 s: there has
    // to be time for a second attempt.
    call_within: Duration::from_secs(10),
    // A hundred messages with all their embeds stay below.
    max_answer: 8 * 1024 * 1024,
    ..Provider::USUAL
};
const API: &str = "/api/v10";

/// How long a call waits for its bucket: twice Discord's usual window. Whoever
/// has to wait longer is told so, instead of looking as if it were on its way.
const PERMIT_WITHIN: Duration = Duration::from_secs(10);
const PERMIT_AGAIN: Duration = Duration::from_secs(5);
/// Calls in a second, over all routes. Discord counts fifty; the window here
/// begins with its first call, Discord's need not.
const CALLS_PER_SECOND: u16 = 45;
/// Calls that can arrive within a second, whenever they left.
const ARRIVALS_PER_SECOND: usize = 48;
/// The same of the node that has a bot, where shards on other nodes make calls as well.
const CALLS_BESIDE_OTHERS: u16 = 39;
const ARRIVALS_BESIDE_OTHERS: usize = 40;
/// Calls in a second of all nodes together that do not have the bot: what their shards ask.
const CALLS_OF_OTHERS: u32 = 5;

/// One bot's calls.
pub(super) struct Api {
    client: Client,
    authorization: HeaderValue,
    /// Made with the first call: it runs a task, for which there has to be a runtime.
    limiter: OnceLock<RateLimiter>,
    calls_per_second: u16,
    others: Others,
    arrivals: ArrivalWindow,
    uploads: Uploads,
    backoff: OutageBackoff,
    /// Whether Discord does not take the token any more. No call is made then:
    /// those that are refused count against the address of this server.
    revoked: watch::Sender<bool>,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    method: Method,
    /// Below the API's version, without a leading slash.
    path: String,
    /// What follows in the path where that is a credential, in place of the bot's
    /// own, and what follows it.
    lent: Option<(Secret, &'static str)>,
    body: Option<Value>,
    /// What is sent along.
    file: Option<OutgoingFile>,
}

impl Call {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), lent: None, body: None, file: None }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::Get, path)
    }

    /// With this as its body.
    pub(super) fn json(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// With a file, which its body describes.
    pub(super) fn with_file(self, file: OutgoingFile) -> Self {
        Self { file: Some(file), ..self }
    }

    /// With one more field in its body.
    pub(super) fn with(mut self, field: &str, value: Value) -> Self {
        if let Some(Value::Object(body)) = &mut self.body {
            body.insert(field.to_owned(), value);
        }
        self
    }

    /// One that another credential than the bot's own lets through. It is part of the
    /// path, which therefore nobody prints, and `then` follows it.
    pub(super) fn lent(self, credential: Secret, then: &'static str) -> Self {
        Self { lent: Some((credential, then)), ..self }
    }

    /// Whether making it twice says a thing twice, because it takes no nonce.
    pub(super) fn is_once(&self) -> bool {
        self.lent.is_some() && self.method == Method::Post
    }

    /// Where it is made, below the API's address.
    fn address(&self) -> String {
        match &self.lent {
            Some((credential, then)) => format!("{API}/{}{}{then}", self.path, credential.expose()),
            None => format!("{API}/{}", self.path),
        }
    }

    /// What Discord counts this call with. Messages of one channel share a bucket, and so do
    /// its reactions: ids and emojis are left out, or each would look like a bucket of its own.
    fn endpoint(&self) -> Endpoint {
        let path = self.path.split_once('?').map_or(self.path.as_str(), |(path, _)| path);
        let is_id = |part: &str| part.starts_with('%') || part.bytes().all(|byte| byte.is_ascii_digit());
        let segments = path.split('/').enumerate();
        let shown = segments.map(|(at, segment)| if at > 1 && is_id(segment) { "id" } else { segment });
        Endpoint { method: self.method, path: shown.collect::<Vec<_>>().join("/") }
    }
}

impl Api {
    /// The API at `api_url`, or Discord's own.
    pub(super) fn new(api_url: Option<&str>, token: &Secret, shared: bool) -> Result<Self> {
        let client = Client::new(&DISCORD, api_url)?;
        let mut authorization = HeaderValue::from_str(&format!("Bot {}", token.expose())).map_err(|_| {
            Error::invalid("the Discord token holds characters that no token has: copy it again")
        })?;
        authorization.set_sensitive(true);
        let (limiter, others, backoff) = Default::default();
        let (calls_per_second, arrivals) = if shared {
            (CALLS_BESIDE_OTHERS, ARRIVALS_BESIDE_OTHERS)
        } else {
            (CALLS_PER_SECOND, ARRIVALS_PER_SECOND)
        };
        let (arrivals, revoked) = (ArrivalWindow::of(arrivals), watch::Sender::new(false));
        let uploads = Uploads::default();
        Ok(Self {
            client,
            authorization,
            limiter,
            calls_per_second,
            others,
            arrivals,
            uploads,
            backoff,
            revoked,
        })
    }

    /// Other nodes make calls as this bot, too.
    pub(super) fn among(&self, nodes: Arc<dyn Nodes>, bot: BotKey) {
        let _ = self.others.nodes.set((nodes, bot));
    }

    /// The line that calls are made on.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Makes a call and reads its answer.
    pub(super) async fn read<T: DeserializeOwned>(&self, call: Call) -> Result<T, ApiError> {
        let body = self.call(call).await?;
        serde_json::from_slice(&body).map_err(|_| match serde_json::from_slice::<IgnoredAny>(&body) {
            Ok(_) => ApiError::Unreadable,
            // A page for people, and no word of Discord's.
            Err(_) => ApiError::Unreachable { reach: Reach::Action, why: PAGE.into() },
        })
    }

    /// Makes a call, when Discord's limits let it; answers its body.
    pub(super) async fn call(&self, call: Call) -> Result<Vec<u8>, ApiError> {
        self.call_if(call, || true).await
    }

    /// The same, if it may still be made when Discord's limits let it: that can
    /// take seconds, in which a chat goes to somebody else.
    pub(super) async fn call_if(&self, call: Call, may: impl Fn() -> bool) -> Result<Vec<u8>, ApiError> {
        // A file waits here, where nothing is held that texts need.
        let (_turn, part) = match &call.file {
            Some(file) => (
                Some(self.uploads.turn(file).await.map_err(of_file)?),
                Some(file.part().await.map_err(of_file)?),
            ),
            None => (None, None),
        };
        if call.lent.is_some() {
            // Discord counts these by their credential, and for nobody else.
            return if may() {
                self.make(&call, part).await.1.map_err(ApiError::of_lent)
            } else {
                Err(ApiError::Withdrawn)
            };
        }
        if *self.revoked.borrow() {
            return Err(ApiError::Unauthorized);
        }
        if !self.others.turn().await {
            return Err(ApiError::Limited { after: PERMIT_AGAIN, reach: Reach::Chat });
        }
        let limiter = self.limiter.get_or_init(|| RateLimiter::new(self.calls_per_second));
        let permit = limiter.acquire(call.endpoint());
        let Ok(permit) = timeout(PERMIT_WITHIN, permit).await else {
            return Err(ApiError::Limited { after: PERMIT_AGAIN, reach: Reach::Chat });
        };
        let Some(_inside) = self.arrivals.enter().await else {
            return Err(ApiError::Unreachable { reach: Reach::Bot, why: "Discord does not answer".into() });
        };
        if !may() {
            return Err(ApiError::Withdrawn);
        }
        let (headers, done) = self.make(&call, part).await;
        if let Some(headers) = headers {
            permit.complete(limits(&headers));
        }
        if matches!(done, Err(ApiError::Unauthorized)) {
            self.revoked.send_replace(true);
        }
        done
    }

    /// Makes a call at once; answers the headers, if there was an answer, and its body.
    async fn make(&self, call: &Call, part: Option<Part>) -> (Option<HeaderMap>, Result<Vec<u8>, ApiError>) {
        let Answer { status, headers, body } = match self.send(call, part).await {
            Ok(answer) => answer,
            Err(error) => return (None, Err(error.into())),
        };
        let done = if (200..300).contains(&status) {
            self.backoff.is_over();
            Ok(body)
        } else {
            let changes = !matches!(call.method, Method::Get);
            Err(read_error(status, &headers, &body, changes, &self.backoff))
        };
        (Some(headers), done)
    }

    async fn send(&self, call: &Call, part: Option<Part>) -> Result<Answer, kit::ApiError> {
        let method = reqwest::Method::from_bytes(call.method.name().as_bytes()).unwrap_or_default();
        let mut request = self.client.request(method, &call.address())?;
        if call.lent.is_none() {
            request = request.header(AUTHORIZATION, self.authorization.clone());
        }
        request = match (&call.body, &call.file, part) {
            (Some(body), Some(file), Some(part)) => {
                let form = Form::new().text("payload_json", body.to_string());
                request.timeout(DISCORD.call_within + file.takes()).multipart(form.part("files[0]", part))
            }
            (Some(body), ..) => request.json(body),
            (None, ..) => request,
        };
        self.client.call(request).await
    }

    /// Resolves when Discord does not take the token any more.
    pub(super) async fn revoked(&self) {
        let _ = self.revoked.subscribe().wait_for(|revoked| *revoked).await;
    }
}

/// What it means that a file cannot be sent. Nobody else has to wait for that.
fn of_file(error: kit::ApiError) -> ApiError {
    match error.kind {
        ErrorKind::Refused(_) => ApiError::Refused { status: 0, code: 0, words: error.why },
        _ => ApiError::Unreachable { reach: Reach::Action, why: error.why },
    }
}

/// What a node that does not have the bot may ask for its shards, among others of the sort.
#[derive(Default)]
struct Others {
    nodes: OnceLock<(Arc<dyn Nodes>, BotKey)>,
    pace: Mutex<Gcra>,
}

impl Others {
    /// Waits until a call may be made; `false` if that takes too long.
    async fn turn(&self) -> bool {
        let until = clock::mono() + PERMIT_WITHIN;
        loop {
            let Some((nodes, bot)) = self.nodes.get() else { return true };
            if nodes.has(bot) {
                return true;
            }
            let now = clock::mono();
            let Err(ready) = self.pace.lock().take(rate_of_one(nodes.count()), now) else { return true };
            if ready > until {
                return false;
            }
            sleep(ready.since(now)).await;
        }
    }
}

/// How often each of the nodes may call that do not have the bot.
fn rate_of_one(nodes: usize) -> Rate {
    let others = u32::try_from(nodes.saturating_sub(1)).unwrap_or(u32::MAX).max(1);
    Rate { calls: CALLS_OF_OTHERS, per: Duration::from_secs(1) * others, burst: 1 }
}

/// What an answer says of its bucket.
fn limits(headers: &HeaderMap) -> Option<RateLimitHeaders> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bucket = text(RateLimitHeaders::BUCKET)?.as_bytes().to_vec();
    let limit = text(RateLimitHeaders::LIMIT)?.parse().ok()?;
    let remaining = text(RateLimitHeaders::REMAINING)?.parse().ok()?;
    let reset_after = wait_of(text(RateLimitHeaders::RESET_AFTER)?.parse().ok()?)?;
    let reset_at = (Instant::now() + reset_after).into_std();
    Some(RateLimitHeaders { bucket, limit, remaining, reset_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_together_stay_below_what_discord_counts() {
        for nodes in 2..=9 {
            let rate = rate_of_one(nodes);
            let second = Duration::from_secs(1);
            let of_one = u128::from(rate.burst) + second.as_nanos() / rate.cost(1).as_nanos();
            let of_all = of_one * (nodes as u128 - 1) + ARRIVALS_BESIDE_OTHERS as u128;
            assert!(of_all <= 50, "{nodes} nodes make {of_all} calls");
        }
        assert_eq!(rate_of_one(1), rate_of_one(2), "the others are not seen yet");
    }

    #[test]
    fn messages_of_a_channel_share_a_bucket() {
        let path = |call: Call| call.endpoint().path;
        assert_eq!(path(Call::new(Method::Patch, "channels/1/messages/22")), "channels/1/messages/id");
        assert_eq!(path(Call::get("channels/1/messages?after=5&limit=100")), "channels/1/messages");
        let reaction = Call::new(Method::Put, "channels/1/messages/22/reactions/%E2%9C%85/@me");
        assert_eq!(path(reaction), "channels/1/messages/id/reactions/id/@me");
        assert_eq!(path(Call::get("channels/1")), "channels/1");
        assert_eq!(path(Call::get("guilds/9/members/42")), "guilds/9/members/id");
        assert_eq!(path(Call::get("users/@me")), "users/@me");
    }

    #[test]
    fn a_lent_credential_is_in_the_url_and_nowhere_else() {
        let lent =
            |method, path, credential, then| Call::new(method, path).lent(Secret::new(credential), then);
        let call = lent(Method::Patch, "webhooks/", "77/s3cret", "/messages/@original");
        assert_eq!(call.address(), "/api/v10/webhooks/77/s3cret/messages/@original");
        let shown = format!("{call:?} {}", call.endpoint().path);
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(!call.is_once() && !Call::new(Method::Post, "a").is_once());
        assert!(lent(Method::Post, "", "x", "").is_once());
    }

    #[test]
    fn an_answer_without_limits_says_nothing_of_them() {
        let mut headers = HeaderMap::new();
        assert!(limits(&headers).is_none());
        for (name, value) in [
            (RateLimitHeaders::BUCKET, "b"),
            (RateLimitHeaders::LIMIT, "5"),
            (RateLimitHeaders::REMAINING, "4"),
            (RateLimitHeaders::RESET_AFTER, "4.25"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let read = limits(&headers).unwrap();
        assert_eq!((read.limit, read.remaining), (5, 4));
        headers.insert(RateLimitHeaders::RESET_AFTER, "1e17".parse().unwrap());
        assert!(limits(&headers).is_some(), "no time is too long to be read");
        headers.insert(RateLimitHeaders::RESET_AFTER, "-1".parse().unwrap());
        assert!(limits(&headers).is_none());
    }
}
