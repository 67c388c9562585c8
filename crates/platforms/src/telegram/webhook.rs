//! Updates that Telegram posts, and keeping it at that.

use super::api;
use super::ingest::{KINDS, Listener, backoff};
use super::parse::Raw;
use super::{NAME, verify};
use crate::ingress::{Halted, Ingress};
use crate::kit::webhook::{Hook, Posted, Receiver, path, receive};
use crate::kit::{Account, ApiError, ErrorKind};
use angelia_core::clock;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Largest update: a long message and the one it answers take a tenth of it.
const MAX_UPDATE: usize = 1024 * 1024;
/// How long an update may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(10);
/// How often Telegram is asked how its posts fare.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// The longest pause while Telegram does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Connections Telegram posts on. With one, updates come in their order.
const CONNECTIONS: u32 = 1;

/// What Telegram says of a webhook.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WebhookInfo {
    /// Where it posts; empty if it does not.
    pub(super) url: String,
    /// Updates that wait.
    pub(super) pending_update_count: u64,
    /// When a post last failed, in seconds since 1970.
    pub(super) last_error_date: Option<i64>,
    /// Why.
    pub(super) last_error_message: Option<String>,
}

/// What a bot is posted to.
pub(super) fn routes(listener: Listener) -> Router {
    let config = &listener.bot.config;
    if config.ingest != super::Ingest::Webhook {
        return Router::new();
    }
    let path = path(NAME, &config.name);
    Router::new().route(&path, receive(Arc::new(listener), Hook::new(MAX_UPDATE, BODY_WITHIN)))
}

impl Receiver for Listener {
    type Message = ();

    const HEADERS: &'static [&'static str] = &[verify::HEADER];

    fn account(&self) -> &Account {
        &self.bot.account
    }

    fn ingress(&self) -> &Ingress {
        &self.ingress
    }

    fn is_plausible(&self, request: &Request) -> bool {
        verify::is_authentic(&self.bot.webhook_secret, request.headers())
    }

    /// The secret was all there is to verify.
    fn verify(&self, _posted: &Posted) -> Option<()> {
        Some(())
    }

    async fn take(self: Arc<Self>, (): (), posted: Posted) -> Response {
        self.take_update(&posted.body).await.into_response()
    }
}

impl Listener {
    /// Takes in one posted update. What cannot be read is kept and counts as
    /// taken: Telegram would post it for ever.
    async fn take_update(&self, body: &[u8]) -> StatusCode {
        let Some(me) = self.bot.me.get() else { return StatusCode::SERVICE_UNAVAILABLE };
        let raw = Raw::new(String::from_utf8_lossy(body));
        let (id, mut last) = (raw.id, self.bot.reading.lock().await);
        if id.is_some() && *last == id {
            return StatusCode::OK;
        }
        if let Err(error) = self.take_in(me, &mut VecDeque::from([raw])).await {
            self.bot.account.not_committed("update", &error);
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        *last = id;
        self.bot.account.health.heard();
        StatusCode::OK
    }

    /// Has Telegram post here, and looks from time to time whether it does.
    pub(super) async fn keep_webhook(&self) -> Result<(), Halted> {
        let url = format!("{}{}", self.ingress.public_url, path(NAME, &self.bot.config.name));
        let asked = json!({
            "url": url,
            "secret_token": self.bot.webhook_secret.expose(),
            "max_connections": CONNECTIONS,
            "allowed_updates": KINDS,
            "drop_pending_updates": false,
        });
        let tell = |error: &ApiError| match api::words(error) {
            Some(why) => format!(
                "Telegram does not take {url} as a webhook ({why}): server.public_url must be an https address \
                 that Telegram reaches, on port 443, 80, 88 or 8443; or set ingest = \"poll\""
            ),
            None => error.to_string(),
        };
        if self.bot.ports.shared {
            // The one that was taken in last may be posted again: who took it did not say so.
            let next = self.position().await?;
            *self.bot.reading.lock().await = next.map(|next| next - 1);
        }
        loop {
            self.until_answered::<Value>("setWebhook", &asked, tell).await?;
            self.bot.account.health.heard();
            self.watch_webhook(&url).await?;
            self.wait(&mut backoff(LONGEST_PAUSE)).await?;
        }
    }

    /// Looks on while the webhook is ours.
    async fn watch_webhook(&self, url: &str) -> Result<(), Halted> {
        loop {
            self.ingress.stop.pause(LOOK_AGAIN).await?;
            match self.bot.api.call::<WebhookInfo>("getWebhookInfo", &json!({})).await {
                Ok(info) if info.url != url => return Ok(()),
                Ok(info) => match fresh_error(&info, clock::wall().seconds()) {
                    // Telegram posts with a secret that is not ours: it is told anew.
                    Some(why) if is_wrong_secret(why) => {
                        self.fell_silent("Telegram posts updates with another secret: the webhook is set again");
                        return Ok(());
                    }
                    Some(why) => self.fell_silent(&format!(
                        "Telegram could not post updates here ({why}): look whether {url} is reachable from outside"
                    )),
                    None => self.bot.account.health.heard(),
                },
                // Whoever sets it again deals with that.
                Err(ApiError { kind: ErrorKind::Setup, .. }) => return Ok(()),
                Err(error) => self.fell_silent(&error.why),
            }
        }
    }
}

/// Whether a post failed because we took its sender for a stranger.
fn is_wrong_secret(why: &str) -> bool {
    why.contains("401")
}

/// What went wrong with Telegram's posts since the last look, while any wait.
fn fresh_error(info: &WebhookInfo, now: u64) -> Option<&str> {
    let failed_at = u64::try_from(info.last_error_date?).ok()?;
    let fresh = now.saturating_sub(failed_at) <= LOOK_AGAIN.as_secs() && info.pending_update_count > 0;
    fresh.then(|| info.last_error_message.as_deref().unwrap_or("no reason given"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_secret_is_told_from_other_errors() {
        assert!(is_wrong_secret("Wrong response from the webhook: 401 Unauthorized"));
        assert!(!is_wrong_secret("Wrong response from the webhook: 503 Service Unavailable"));
        assert!(!is_wrong_secret("Connection refused"));
    }

    #[test]
    fn an_error_counts_while_it_is_fresh_and_something_waits() {
        let info = |at: Option<i64>, waiting: u64| WebhookInfo {
            last_error_date: at,
            pending_update_count: waiting,
            last_error_message: Some("Connection refused".into()),
            ..WebhookInfo::default()
        };
        assert_eq!(fresh_error(&info(Some(1_000), 3), 1_010), Some("Connection refused"));
        assert_eq!(fresh_error(&info(Some(1_000), 3), 2_000), None);
        assert_eq!(fresh_error(&info(Some(1_000), 0), 1_010), None);
        assert_eq!(fresh_error(&info(None, 3), 1_010), None);
    }
}
