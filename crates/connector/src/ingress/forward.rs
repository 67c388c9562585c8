//! The other nodes, as bots see them: what is posted here for a bot that another node has is
//! passed on to that one, over the bus, and its answer goes back to the provider.

use crate::cluster::{self, Cluster, Subject};
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::ports::{LeaseToken, Leases as _, Term};
use angelia_platforms::{Carried, Duty, Forwarded, Nodes};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt as _;

/// Largest body that is passed on: as text, with all that goes along, it stays below what the
/// bus carries. Almost everything that providers post is a tenth of it.
const MAX_BODY: usize = 88 * 1024;
/// Largest address with its headers.
const MAX_HEAD: usize = 4 * 1024;
/// Largest answer. Providers are told little.
const MAX_ANSWER: usize = 64 * 1024;

/// A request on its way to another node.
#[derive(Serialize, Deserialize)]
struct Passed {
    method: String,
    uri: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// What that answers.
#[derive(Serialize, Deserialize)]
struct Answered {
    status: u16,
    content_type: Option<String>,
    body: String,
}

/// This node among the others.
pub(super) struct OtherNodes(pub(super) Arc<Cluster>);

impl Nodes for OtherNodes {
    fn has(&self, bot: &BotKey) -> bool {
        self.0.holds_bot(bot).is_some()
    }

    fn count(&self) -> usize {
        self.0.seen().there.len().max(1)
    }

    fn forward<'a>(
        &'a self,
        bot: &'a BotKey,
        posted: Carried<'a>,
        within: Duration,
    ) -> BoxFuture<'a, Option<Response>> {
        Box::pin(async move {
            // Nobody would hear it, and the provider waits.
            if !self.0.bus().is_connected() {
                return None;
            }
            let question = serde_json::to_value(written(&posted)?).ok()?;
            let answer = self.0.calls().ask(bot, Subject::Webhook, question, within).await?;
            read(serde_json::from_value(answer).ok()?)
        })
    }

    fn duty(&self, name: &str) -> Arc<dyn Duty> {
        self.0.duty(name)
    }

    fn no_duty(&self, name: &str) {
        self.0.no_duty(name);
    }

    fn turn<'a>(&'a self, name: &'a str, span: Duration) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            // Not by the node's own name: a turn stays taken when its node leaves, and is
            // nothing that it would give up for others.
            let whose = format!("turn of {}", self.0.node());
            Ok(self.0.records().acquire(name, &whose, Term::For(span)).await?.is_some())
        })
    }
}

impl Duty for cluster::Duty {
    fn ours(&self) -> BoxFuture<'_, LeaseToken> {
        Box::pin(self.ours())
    }

    fn over(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.over())
    }

    fn stopped(&self) {
        self.stopped();
    }
}

/// A request as it is passed on; `None` if it is too large for that.
fn written(posted: &Carried<'_>) -> Option<Passed> {
    let Carried { parts, headers, body } = posted;
    let uri = parts.uri.path_and_query()?.to_string();
    let mut carried = Vec::new();
    for name in *headers {
        for value in parts.headers.get_all(*name) {
            carried.push(((*name).to_owned(), value.to_str().ok()?.to_owned()));
        }
    }
    let head = uri.len() + carried.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    let fits = head <= MAX_HEAD && body.len() <= MAX_BODY;
    fits.then(|| Passed {
        method: parts.method.to_string(),
        uri,
        headers: carried,
        body: BASE64_STANDARD.encode(body),
    })
}

/// What another node answered.
fn read(Answered { status, content_type, body }: Answered) -> Option<Response> {
    let mut answer = Response::builder().status(status);
    if let Some(content_type) = content_type {
        answer = answer.header(CONTENT_TYPE, content_type);
    }
    answer.body(Body::from(BASE64_STANDARD.decode(body).ok()?)).ok()
}

/// Has what other nodes pass on taken by the bots of this one, by the way of what is posted here.
pub(super) fn take_forwarded(cluster: &Cluster, webhooks: Router) {
    let answerer = move |_: BotKey, asked: serde_json::Value| -> BoxFuture<'static, _> {
        let webhooks = webhooks.clone();
        Box::pin(async move {
            let request = request(serde_json::from_value(asked).ok()?)?;
            let Ok(answer) = webhooks.oneshot(request).await;
            let status = answer.status();
            let content_type = answer.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
            let content_type = content_type.map(str::to_owned);
            let body = BASE64_STANDARD.encode(to_bytes(answer.into_body(), MAX_ANSWER).await.ok()?);
            // Whoever asked decides: this node may have lost the bot, or be too busy.
            if status == StatusCode::SERVICE_UNAVAILABLE {
                tracing::debug!("what another node passed on was not taken");
            }
            serde_json::to_value(Answered { status: status.as_u16(), content_type, body }).ok()
        })
    };
    cluster.calls().answer_by(Subject::Webhook, Arc::new(answerer));
}

/// A request as it came, marked as passed on.
fn request(Passed { method, uri, headers, body }: Passed) -> Option<Request<Body>> {
    let mut request = Request::builder().method(method.as_str()).uri(uri);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let body = Body::from(BASE64_STANDARD.decode(body).ok()?);
    request.extension(Forwarded).body(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn carry(uri: &str, body: Vec<u8>) -> Option<Passed> {
        let request = Request::builder().method("POST").uri(uri);
        let request = request.header("x-signature", "a").header("x-signature", "b").header("cookie", "c");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        written(&Carried {
            parts: &parts,
            headers: &["x-signature", "content-type"],
            body: &Bytes::from(body),
        })
    }

    #[tokio::test]
    async fn a_request_arrives_as_it_was_with_the_headers_that_are_read() {
        let bytes = vec![0, 159, 146, 150, b'"'];
        let carried = carry("/webhooks/sms/main?a=%20b", bytes.clone()).unwrap();
        let arrived = request(carried).unwrap();
        assert_eq!(
            (arrived.method().as_str(), arrived.uri().to_string()),
            ("POST", "/webhooks/sms/main?a=%20b".into())
        );
        assert_eq!(arrived.headers().get_all("x-signature").iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(
            arrived.headers().get("cookie").is_none() && arrived.extensions().get::<Forwarded>().is_some()
        );
        assert_eq!(to_bytes(arrived.into_body(), 100).await.unwrap(), bytes);
    }

    #[test]
    fn what_is_too_large_for_the_bus_stays_here() {
        assert!(carry("/a", vec![0; MAX_BODY]).is_some());
        assert!(carry("/a", vec![0; MAX_BODY + 1]).is_none());
        assert!(carry(&format!("/{}", "a".repeat(MAX_HEAD)), Vec::new()).is_none());
        let largest = serde_json::to_value(carry("/a", vec![255; MAX_BODY]).unwrap()).unwrap();
        // The bus writes it as a text within a text, with some words around it.
        assert!(largest.to_string().len() + MAX_HEAD < 128 * 1024 - 1024);
    }

    #[tokio::test]
    async fn an_answer_comes_back_as_it_was_given() {
        let content_type = Some("text/xml".to_owned());
        let body = BASE64_STANDARD.encode("<Response/>");
        let answer = read(Answered { status: 203, content_type, body }).unwrap();
        assert_eq!(answer.status(), 203);
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/xml");
        assert_eq!(to_bytes(answer.into_body(), 100).await.unwrap(), "<Response/>");
    }
}
