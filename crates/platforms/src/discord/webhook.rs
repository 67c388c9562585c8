//! The endpoint that Discord posts interactions to: verified, committed, and answered (mostly:
//! deferred) within its three seconds.

use super::interaction::language;
use super::take::{Heard, Reader};
use super::take_interaction::{Considered, KEPT_WITHIN, Reply};
use super::verify::{PublicKey, SIGNATURE, TIMESTAMP};
use super::{Discord, NAME};
use crate::ingress::Ingress;
use crate::kit::webhook::{Hook, Posted, only, path, refuse};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::Result;
use angelia_core::inbox::CancellableWrite;
use angelia_core::own_words::OwnWords;
use angelia_core::store::Taken;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Largest interaction: a form with forty fields of four thousand characters,
/// each written as an escape, stays below.
const MAX_BODY: usize = 1024 * 1024;

/// Interactions are taken wherever they are posted: each comes once, nothing is remembered of
/// them, and there is no time to ask another node.
struct Receiver {
    reader: Reader,
    key: PublicKey,
    hook: Hook,
}

/// What a bot is posted to; without a key nobody could be told from strangers.
pub(super) fn routes(discord: Arc<Discord>, ingress: Ingress) -> Router {
    let Some(key) = discord.public_key.clone() else { return Router::new() };
    let path = path(NAME, &discord.config.name);
    let receiver =
        Receiver { reader: Reader { discord, ingress }, key, hook: Hook::new(MAX_BODY, KEPT_WITHIN) };
    Router::new().route(&path, post(receive)).with_state(Arc::new(receiver))
}

async fn receive(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    let (due, came) = (Instant::now() + KEPT_WITHIN, clock::wall());
    let posted = match receiver.hook.read(request).await {
        Ok(posted) => posted,
        Err(status) => return status.into_response(),
    };
    let header = |name: &str| only(&posted.parts.headers, name).map(str::as_bytes);
    let signed_at = header(SIGNATURE)
        .zip(header(TIMESTAMP))
        .and_then(|(signature, time)| receiver.key.signed_at(signature, time, &posted.body, clock::wall()));
    let Some(signed_at) = signed_at else { return refuse(&receiver.reader.discord.account) };
    // The earlier of the two clocks: the other may be ahead.
    let body: Option<Value> = serde_json::from_slice(&posted.body).ok();
    let language = language(body.as_ref());
    let reply = receiver.reader.posted(posted, body, signed_at.min(came), due).await;
    Json(reply.body(language)).into_response()
}

impl Reader {
    /// What an authentic request is answered with.
    async fn posted(&self, posted: Posted, body: Option<Value>, from: UnixMillis, due: Instant) -> Reply {
        let raw = String::from_utf8_lossy(&posted.body);
        let considered = self.consider(&raw, body.as_ref(), from, due).await;
        let patience = considered.patience();
        let Considered { heard, reply } = considered;
        let Some(heard) = heard else { return reply };
        // On its own: whoever hangs up does not stop a commit half way, and frees no place before.
        let reader = self.clone();
        let mut kept = tokio::spawn(async move {
            let kept = reader.keep(heard).await;
            drop(posted);
            kept
        });
        let Ok(kept) = timeout_at(due, &mut kept).await else {
            if patience.as_ref().is_some_and(CancellableWrite::give_up) {
                // Nothing of it is written any more: nobody has to wait for that.
                kept.abort();
                self.discord.account.health.count("given_up");
            }
            return reply.late(patience.as_ref());
        };
        match kept {
            Ok(Ok(taken)) => reply.after(taken),
            Ok(Err(_)) | Err(_) => Reply::Words(OwnWords::TryAgain),
        }
    }

    async fn keep(self, heard: Heard) -> Result<Taken> {
        let taken = self.discord.account.commit(&self.ingress, heard.intake.clone()).await;
        let taken = taken.inspect_err(
            |error| tracing::error!(bot = self.bot(), %error, "an interaction was not committed"),
        )?;
        self.committed(heard, taken);
        Ok(taken)
    }
}
