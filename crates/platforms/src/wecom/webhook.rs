//! What WeCom calls back: it tries the address once, and then posts what people write.

use super::take::{self, Took};
use super::verify::Signed;
use super::{NAME, Wecom, xml};
use crate::ingress::Ingress;
use crate::kit::Account;
use crate::kit::webhook::{Hook, Posted, Receiver, path, receive, refuse};
use angelia_core::clock;
use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;

/// Largest callback. A text that fills a phone's screen many times is a tenth
/// of it, and files come as ids.
const MAX_BODY: usize = 256 * 1024;
/// How long a callback may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(3);
/// How long WeCom is let wait. It hangs up after five seconds and posts again, up to
/// three times.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);
const _: () = assert!(BODY_WITHIN.as_secs() < ANSWER_WITHIN.as_secs() && ANSWER_WITHIN.as_secs() < 5);

/// An app at its ingress.
struct Callbacks {
    app: Arc<Wecom>,
    ingress: Ingress,
}

/// What an app calls back to.
pub(super) fn routes(app: Arc<Wecom>, ingress: Ingress) -> Router {
    let path = path(NAME, &app.config.name);
    let callbacks = Arc::new(Callbacks { app, ingress });
    let tried = callbacks.clone();
    let echo = move |uri: Uri| async move { tried.echo(&uri) };
    let hook = Hook::new(MAX_BODY, BODY_WITHIN).answering_within(ANSWER_WITHIN);
    Router::new().route(&path, receive(callbacks, hook).get(echo))
}

fn signed(uri: &Uri) -> Option<Signed> {
    Signed::of(uri.query().unwrap_or_default())
}

impl Receiver for Callbacks {
    /// What was decrypted.
    type Message = Vec<u8>;

    const HEADERS: &'static [&'static str] = &[];

    fn account(&self) -> &Account {
        &self.app.account
    }

    fn ingress(&self) -> &Ingress {
        &self.ingress
    }

    /// Without a signature nothing is read. With an old one it is, to tell a stranger
    /// from a clock that is wrong.
    fn is_plausible(&self, request: &Request) -> bool {
        signed(request.uri()).is_some()
    }

    /// What is signed is inside an envelope. That is read, by a reader that knows
    /// no more than it needs to find it, and nothing else before it is verified.
    fn verify(&self, posted: &Posted) -> Option<Vec<u8>> {
        let envelope = xml::read(&posted.body).ok()?;
        self.open(&signed(&posted.parts.uri)?, envelope.get("Encrypt")?)
    }

    /// A code is tried once, and who did so knows that. Everything else is known by its id.
    fn stands_alone(&self, plain: &Vec<u8>) -> bool {
        !take::holds_code(plain)
    }

    async fn take(self: Arc<Self>, plain: Vec<u8>, _posted: Posted) -> Response {
        let Self { app, ingress } = &*self;
        match app.take(ingress, &plain).await {
            Ok(Took::It) => {
                app.account.health.count("callbacks");
                app.account.health.was_told();
                StatusCode::OK.into_response()
            }
            Ok(Took::Full) => {
                app.account.health.was_told();
                StatusCode::SERVICE_UNAVAILABLE.into_response()
            }
            Ok(Took::NotOurs) => {
                tracing::warn!(
                    bot = %app.config.name,
                    "another app of the company calls back here: give it its own address"
                );
                refuse(&self.app.account)
            }
            Err(error) => {
                app.account.not_committed("callback", &error);
                StatusCode::SERVICE_UNAVAILABLE.into_response()
            }
        }
    }
}

impl Callbacks {
    /// Sends back what WeCom tries the address with, and not a byte more.
    fn echo(&self, uri: &Uri) -> Response {
        let told = signed(uri).and_then(|signed| self.open(&signed, signed.echo.as_deref()?));
        match told {
            Some(told) => {
                self.app.account.health.was_told();
                ([(header::CONTENT_TYPE, "text/plain")], told).into_response()
            }
            None => refuse(&self.app.account),
        }
    }

    /// What something encrypted says, if it is WeCom's and of now.
    fn open(&self, signed: &Signed, encrypted: &str) -> Option<Vec<u8>> {
        let (app, now) = (&self.app, clock::wall());
        let plain = app.keys.open(signed, encrypted, now);
        if plain.is_none() && app.keys.is_stale(signed, encrypted, now) {
            app.account.health.count("stale_signatures");
            if app.stale.lock().note(clock::mono()).is_some() {
                tracing::warn!(
                    bot = %app.config.name,
                    "WeCom's signature is good, but its time is not within five minutes of ours, so nothing is \
                     taken: see this server's clock"
                );
            }
        }
        plain
    }
}
