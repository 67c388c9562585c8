//! What Twilio posts: messages, and what became of ours.

use super::parse::Fields;
use super::take::Took;
use super::verify::{Keys, Signed, is_authentic};
use super::{NAME, Sms};
use crate::ingress::Ingress;
use crate::kit::Account;
use crate::kit::webhook::{Hook, Posted, Receiver, only, path, receive};
use angelia_core::admission::link_command;
use angelia_core::error::Result;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
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

/// What is posted to an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Messages,
    Receipts,
}

/// A number at its ingress.
struct Posts {
    bot: Arc<Sms>,
    ingress: Ingress,
    kind: Kind,
}

/// What a number is posted to.
pub(super) fn routes(bot: Arc<Sms>, ingress: Ingress) -> Router {
    let (messages, receipts) = (path(NAME, &bot.config.name), status_path(&bot.config.name));
    let hook = Hook::new(MAX_BODY, BODY_WITHIN);
    let posts = |kind| Arc::new(Posts { bot: bot.clone(), ingress: ingress.clone(), kind });
    Router::new()
        .route(&messages, receive(posts(Kind::Messages), hook.clone()))
        .route(&receipts, receive(posts(Kind::Receipts), hook))
}

/// Where receipts are posted to.
pub(super) fn status_path(name: &str) -> String {
    format!("{}/status", path(NAME, name))
}

impl Receiver for Posts {
    type Message = Fields;

    const HEADERS: &'static [&'static str] = &[SIGNATURE, SETTINGS, "content-type"];

    fn account(&self) -> &Account {
        &self.bot.account
    }

    fn ingress(&self) -> &Ingress {
        &self.ingress
    }

    fn is_plausible(&self, request: &Request) -> bool {
        only(request.headers(), SIGNATURE).is_some()
    }

    fn verify(&self, posted: &Posted) -> Option<Fields> {
        let (config, headers) = (&self.bot.config, &posted.parts.headers);
        let signing_key = config.signing_key.as_ref().map(|(id, key)| (id.as_str(), key));
        // Only the address that Twilio was given counts, whatever a proxy made of it.
        let asked = posted.parts.uri.path_and_query().map_or("/", |asked| asked.as_str());
        let signed = Signed {
            url: &format!("{}{asked}", self.ingress.public_url),
            signature: only(headers, SIGNATURE)?,
            settings: only(headers, SETTINGS),
            content_type: only(headers, CONTENT_TYPE.as_str()),
            body: &posted.body,
        };
        let doubtful = headers.contains_key(SETTINGS) && signed.settings.is_none();
        if doubtful || !is_authentic(Keys { auth_token: &config.auth_token, signing_key }, signed) {
            return None;
        }
        self.bot.account.health.heard();
        Some(Fields::of(signed.content_type, &posted.body))
    }

    /// A message needs to be known by how far messages were read; Twilio's list has it, too. A
    /// receipt comes once, and is nowhere else.
    fn stands_alone(&self, _fields: &Fields) -> bool {
        self.kind == Kind::Receipts
    }

    async fn take(self: Arc<Self>, fields: Fields, posted: Posted) -> Response {
        if self.kind == Kind::Receipts {
            return self.receipt(&fields).await.into_response();
        }
        match self.message(&fields, &posted.body).await {
            Ok(Took::Message | Took::Nothing) => ([(CONTENT_TYPE, "text/xml")], NOTHING).into_response(),
            // It stays in Twilio's list, and is read back from there when there is room.
            Ok(Took::Full) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            Err(error) => {
                self.bot.account.not_committed("posted message", &error);
                StatusCode::SERVICE_UNAVAILABLE.into_response()
            }
        }
    }
}

impl Posts {
    /// Takes in one posted message. What cannot be read is kept and counts as taken.
    async fn message(&self, fields: &Fields, raw: &[u8]) -> Result<Took> {
        let (bot, ingress) = (&self.bot, &self.ingress);
        if fields.is_other_channel() {
            self.bot.account.health.count("other_channels");
            return Ok(Took::Nothing);
        }
        match fields.message() {
            Ok(received) => {
                bot.after_first_look().await;
                bot.take(ingress, &received).await
            }
            // A code is kept nowhere.
            Err(why) if fields.body().is_some_and(|body| link_command(body).is_some()) => {
                tracing::warn!(bot = %bot.config.name, why, "a posted message cannot be read");
                self.bot.account.health.count("unreadable");
                Ok(Took::Nothing)
            }
            Err(why) => {
                let aside = bot.account.set_aside(ingress, "a posted message", raw, why).await;
                aside.map(|()| Took::Nothing)
            }
        }
    }

    async fn receipt(&self, fields: &Fields) -> StatusCode {
        let Some(status) = fields.status() else {
            self.bot.account.health.count("receipts_unreadable");
            return StatusCode::NO_CONTENT;
        };
        match self.bot.receipt(self.ingress.ports.clone(), status).await {
            Ok(()) => StatusCode::NO_CONTENT,
            Err(error) => {
                tracing::error!(bot = %self.bot.config.name, %error, "a receipt was not committed");
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }
}
