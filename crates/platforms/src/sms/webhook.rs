//! What Twilio posts: messages, and what became of ours.

use super::parse::Fields;
use super::take::Took;
use super::verify::{Keys, Signed, is_authentic};
use super::{NAME, Sms};
use crate::hook::{Hook, Posted};
use crate::ingress::Ingress;
use angelia_core::admission::link_command;
use angelia_core::error::Result;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use std::sync::Arc;
use std::time::Duration;

/// Largest request: the longest text takes a quarter of it, and ten files the rest.
const MAX_BODY: usize = 64 * 1024;
/// How long it may take to arrive. Twilio waits 15 s for everything.
const BODY_WITHIN: Duration = Duration::from_secs(10);

const SIGNATURE: &str = "x-twilio-signature";
const SETTINGS: &str = "x-twilio-webhooks-signature-settings";

/// Nothing to do for Twilio.
const NOTHING: &str = "<Response/>";

struct Receiver {
    bot: Arc<Sms>,
    ingress: Ingress,
    hook: Hook,
}

/// What a number is posted to.
pub(super) fn routes(bot: Arc<Sms>, ingress: Ingress) -> Router {
    let path = path(&bot.config.name);
    let hook = Hook::new(MAX_BODY, BODY_WITHIN);
    Router::new()
        .route(&path, post(message))
        .route(&status_path(&bot.config.name), post(status))
        .with_state(Arc::new(Receiver { bot, ingress, hook }))
}

/// Where messages are posted to, below the public URL.
pub(super) fn path(name: &str) -> String {
    format!("/webhooks/{NAME}/{name}")
}

/// Where receipts are posted to.
pub(super) fn status_path(name: &str) -> String {
    format!("{}/status", path(name))
}

async fn message(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    let posted = match receiver.read(request).await {
        Ok(posted) => posted,
        Err(status) => return status.into_response(),
    };
    // On its own: whoever hangs up does not stop a commit half way.
    let taken = tokio::spawn(async move { receiver.take(&posted).await });
    match taken.await {
        Ok(Ok(Took::Message | Took::Nothing)) => ([(CONTENT_TYPE, "text/xml")], NOTHING).into_response(),
        // It stays in Twilio's list, and is read back from there when there is room.
        Ok(Ok(Took::Full) | Err(_)) | Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn status(State(receiver): State<Arc<Receiver>>, request: Request) -> StatusCode {
    let posted = match receiver.read(request).await {
        Ok(posted) => posted,
        Err(status) => return status,
    };
    let Some(status) = fields(&posted).status() else {
        receiver.bot.health.count("receipts_unreadable");
        return StatusCode::NO_CONTENT;
    };
    let Receiver { bot, ingress, .. } = &*receiver;
    match bot.receipt(ingress.ports.clone(), status).await {
        Ok(()) => StatusCode::NO_CONTENT,
        Err(error) => {
            tracing::error!(bot = %bot.config.name, %error, "a receipt was not committed");
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

impl Receiver {
    /// Reads a request that Twilio signed; or the status that refuses it.
    async fn read(&self, request: Request) -> Result<Posted, StatusCode> {
        // For strangers nothing is read, however much they send and however slowly.
        if only(request.headers(), SIGNATURE).is_none() {
            return Err(self.refuse());
        }
        let posted = self.hook.read(request).await?;
        let config = &self.bot.config;
        let signing_key = config.signing_key.as_ref().map(|(id, key)| (id.as_str(), key));
        let (parts, body) = (&posted.parts, &posted.body);
        // Only the address that Twilio was given counts, whatever a proxy made of it.
        let asked = parts.uri.path_and_query().map_or("/", |asked| asked.as_str());
        let signed = Signed {
            url: &format!("{}{asked}", self.ingress.public_url),
            signature: only(&parts.headers, SIGNATURE).unwrap_or_default(),
            settings: only(&parts.headers, SETTINGS),
            content_type: only(&parts.headers, CONTENT_TYPE.as_str()),
            body,
        };
        let doubtful = parts.headers.contains_key(SETTINGS) && signed.settings.is_none();
        if doubtful || !is_authentic(Keys { auth_token: &config.auth_token, signing_key }, signed) {
            return Err(self.refuse());
        }
        self.bot.health.heard();
        Ok(posted)
    }

    fn refuse(&self) -> StatusCode {
        self.bot.health.count("refused_signatures");
        StatusCode::UNAUTHORIZED
    }

    /// Takes in one posted message. What cannot be read is kept and counts as taken.
    async fn take(&self, posted: &Posted) -> Result<Took> {
        let (bot, ingress, fields) = (&self.bot, &self.ingress, fields(posted));
        if fields.is_other_channel() {
            bot.health.count("other_channels");
            return Ok(Took::Nothing);
        }
        let taken = match fields.message() {
            Ok(received) => {
                bot.after_first_look().await;
                bot.take(ingress, &received).await
            }
            // A code is kept nowhere.
            Err(why) if fields.body().is_some_and(|body| link_command(body).is_some()) => {
                tracing::warn!(bot = %bot.config.name, why, "a posted message cannot be read");
                bot.health.count("unreadable");
                Ok(Took::Nothing)
            }
            Err(why) => {
                let aside = bot.set_aside(ingress, &String::from_utf8_lossy(&posted.body), why).await;
                aside.map(|()| Took::Nothing)
            }
        };
        taken.inspect_err(|error| {
            tracing::error!(bot = %bot.config.name, %error, "a posted message was not committed");
            bot.health.down(format!("what was received could not be committed: {error}"));
        })
    }
}

fn fields(posted: &Posted) -> Fields {
    Fields::of(only(&posted.parts.headers, CONTENT_TYPE.as_str()), &posted.body)
}

/// A header that is there once: of two, nobody knows which one was meant.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.to_str().ok()).flatten()
}
