//! What WeCom calls back: it tries the address once, and then posts what people write.

use super::take::Took;
use super::verify::Signed;
use super::{NAME, Wecom, xml};
use crate::hook::Hook;
use crate::ingress::Ingress;
use angelia_core::clock;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Largest callback. A text that fills a phone's screen many times is a tenth
/// of it, and files come as ids.
const MAX_BODY: usize = 256 * 1024;
/// How long a callback may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(3);
/// How long WeCom is let wait, with what it takes to arrive. It hangs up after
/// five seconds and posts again, up to three times.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

struct Receiver {
    bot: Arc<Wecom>,
    ingress: Ingress,
    hook: Hook,
}

/// What an app calls back to.
pub(super) fn routes(bot: Arc<Wecom>, ingress: Ingress) -> Router {
    let path = path(&bot.config.name);
    // Whoever asks first says it; it is the same for all.
    let hook = Hook::new(MAX_BODY, BODY_WITHIN);
    Router::new().route(&path, get(echo).post(receive)).with_state(Arc::new(Receiver { bot, ingress, hook }))
}

/// Where an app calls back to, below the public URL.
pub(super) fn path(name: &str) -> String {
    format!("/webhooks/{NAME}/{name}")
}

/// Sends back what WeCom tries the address with, and not a byte more.
async fn echo(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    let told = signed(&request).and_then(|signed| {
        let echo = signed.echo.clone()?;
        receiver.open(&signed, &echo)
    });
    match told {
        Some(told) => {
            receiver.bot.was_told();
            ([(header::CONTENT_TYPE, "text/plain")], told).into_response()
        }
        None => receiver.refuse().into_response(),
    }
}

async fn receive(State(receiver): State<Arc<Receiver>>, request: Request) -> StatusCode {
    let until = clock::mono() + ANSWER_WITHIN;
    // Without a signature nothing is read. With an old one it is, to tell a stranger
    // from a clock that is wrong.
    let Some(signed) = signed(&request) else {
        return receiver.refuse();
    };
    let posted = match receiver.hook.read(request).await {
        Ok(posted) => posted,
        Err(status) => return status,
    };
    // What is signed is inside an envelope. That is read, by a reader that knows
    // no more than it needs to find it, and nothing else before it is verified.
    let envelope = xml::read(&posted.body).ok();
    let encrypted = envelope.as_ref().and_then(|envelope| envelope.get("Encrypt"));
    let Some(plain) = encrypted.and_then(|text| receiver.open(&signed, text)) else {
        return receiver.refuse();
    };
    let work = async move {
        let _held = posted;
        receiver.take(&plain).await
    };
    in_time(until.since(clock::mono()), work).await
}

/// What comes of work, if that is known in time. It is on its own: whoever hangs
/// up does not stop a commit half way. Nor is it given up when time is over:
/// WeCom posts again, but not for long, and what is there twice is known by its id.
async fn in_time(within: Duration, work: impl Future<Output = StatusCode> + Send + 'static) -> StatusCode {
    match timeout(within, tokio::spawn(work)).await {
        Ok(Ok(status)) => status,
        Ok(Err(_)) | Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn signed(request: &Request) -> Option<Signed> {
    Signed::of(request.uri().query().unwrap_or_default())
}

impl Receiver {
    /// The one answer to everything that is not WeCom's.
    fn refuse(&self) -> StatusCode {
        self.bot.health.count("refused_signatures");
        StatusCode::UNAUTHORIZED
    }

    /// What something encrypted says, if it is WeCom's and of now.
    fn open(&self, signed: &Signed, encrypted: &str) -> Option<Vec<u8>> {
        let (bot, now) = (&self.bot, clock::wall());
        let plain = bot.keys.open(signed, encrypted, now);
        if plain.is_none() && bot.keys.is_stale(signed, encrypted, now) {
            bot.health.count("stale_signatures");
            if bot.stale.lock().note(clock::mono()).is_some() {
                tracing::warn!(
                    bot = %bot.config.name,
                    "WeCom's signature is good, but its time is not within five minutes of ours, so nothing is \
                     taken: see this server's clock"
                );
            }
        }
        plain
    }

    async fn take(&self, plain: &[u8]) -> StatusCode {
        let (bot, name) = (&self.bot, &self.bot.config.name);
        match bot.take(&self.ingress, plain).await {
            Ok(Took::It) => {
                bot.health.count("callbacks");
                bot.was_told();
                StatusCode::OK
            }
            Ok(Took::Full) => {
                bot.health.count("refused_full");
                bot.was_told();
                StatusCode::SERVICE_UNAVAILABLE
            }
            Ok(Took::NotOurs) => {
                tracing::warn!(bot = %name, "another app of the company calls back here: give it its own address");
                self.refuse()
            }
            Err(error) => {
                tracing::error!(bot = %name, %error, "a callback was not committed");
                bot.health.down(format!("what was received could not be committed: {error}"));
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn wecom_waits_no_longer_than_it_would_and_the_work_goes_on() {
        assert_eq!(in_time(Duration::from_secs(9), async { StatusCode::OK }).await, StatusCode::OK);
        let failed = in_time(Duration::from_secs(9), async { panic!("on purpose") }).await;
        assert_eq!(failed, StatusCode::SERVICE_UNAVAILABLE);
        let (done, go, over) =
            (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let work = {
            let (done, go, over) = (done.clone(), go.clone(), over.clone());
            async move {
                go.notified().await;
                done.store(true, Ordering::SeqCst);
                over.notify_one();
                StatusCode::OK
            }
        };
        assert_eq!(in_time(Duration::from_millis(20), work).await, StatusCode::SERVICE_UNAVAILABLE);
        assert!(!done.load(Ordering::SeqCst));
        go.notify_one();
        timeout(Duration::from_secs(9), over.notified()).await.expect("it goes on");
        assert!(done.load(Ordering::SeqCst));
        assert!(BODY_WITHIN < ANSWER_WITHIN && ANSWER_WITHIN < Duration::from_secs(5));
    }
}
