//! Files, as a stand-in gets and sends them: over HTTP, with the token that it dials with.
//!
//! What comes with an event is fetched by the reader, before the event is acknowledged; what cannot
//! be had is left out. A file of its own is uploaded first, and then sent with its reference.

use angelia_contract::action::{Action, ActionResult};
use angelia_contract::event::Event;
use angelia_contract::token;
use bytes::Bytes;
use serde_json::Value;

use super::TOKEN_LIFE;
use super::gateway::{Gateway, metadata, send};
use super::turn::Turn;
use crate::connector::Credentials;
use crate::socket::now;

/// What calls itself like this fetches files.
const AGENT: &str = "Python-urllib/3.11";
/// Whatever has this in its path is asked with the token.
const REFERENCE: &str = "/relay/media/";
/// What its agent draws.
pub const DRAWING: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89 drawn";

/// Where it dials, and as whom.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) url: String,
    pub(super) credentials: Credentials,
}

/// A file that the model was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The chat it came from.
    pub chat: String,
    /// What the event says of it.
    pub media_type: String,
    /// What it is called, by its answer's header.
    pub disposition: String,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Home {
    fn request(&self, method: reqwest::Method, url: &str) -> reqwest::RequestBuilder {
        let Credentials { gateway_id, secret } = &self.credentials;
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let bearer = token::mint(gateway_id, secret, now(), TOKEN_LIFE);
        http.request(method, url).header("User-Agent", AGENT).bearer_auth(bearer)
    }
}

/// Fetches what came with an event.
pub(super) async fn fetch(gateway: &Gateway, event: &Event) {
    let Some(home) = gateway.home.get() else { return };
    for url in event.media_urls.iter().filter(|url| url.contains(REFERENCE)) {
        let answer = home.request(reqwest::Method::GET, url).send().await.expect("an answer");
        if !answer.status().is_success() {
            continue;
        }
        let header =
            |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (media_type, disposition) = (header("content-type"), header("content-disposition"));
        gateway.diary.fetched(Fetched {
            chat: event.source.chat_id.clone(),
            media_type: media_type.unwrap_or_default(),
            disposition: disposition.unwrap_or_default(),
            bytes: answer.bytes().await.expect("its bytes"),
        });
    }
}

impl Turn {
    /// Sends a picture; in words where it cannot be.
    pub(super) async fn draw(&self) {
        let sent = match self.upload().await {
            Some(source_url) => self.send_media(source_url).await.success,
            None => false,
        };
        if !sent {
            self.gateway.ask(&self.event, send(&self.event, "I drew something.", None, false)).await;
        }
    }

    async fn upload(&self) -> Option<String> {
        let home = self.gateway.home.get().filter(|_| self.gateway.is_offered("send_media"))?;
        let base = format!("{}/relay/media", home.url);
        let ask = home.request(reqwest::Method::POST, &base).header("Content-Type", "image/png");
        let answer = ask.header("X-Media-Filename", "drawing.png").body(DRAWING).send().await.ok()?;
        let answer: Value = answer.error_for_status().ok()?.json().await.ok()?;
        Some(format!("{base}/{}", answer["id"].as_str()?))
    }

    async fn send_media(&self, source_url: String) -> ActionResult {
        let action = Action::SendMedia {
            chat_id: self.event.source.chat_id.clone(),
            media_kind: "image".to_owned(),
            source_url,
            content: String::new(),
            filename: None,
            reply_to: None,
            metadata: metadata(&self.event),
        };
        self.gateway.ask(&self.event, action).await
    }
}
