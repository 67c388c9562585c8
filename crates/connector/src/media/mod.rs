//! Files between gateways and the connector: `POST /relay/media` and `GET /relay/media/{id}`.
//!
//! A gateway uploads what its agent sends, and fetches what people sent. Both ask with the token
//! they dial with, and a file is there only for the instance it was meant for: of everything else
//! everybody hears the same 404. What people send is brought here from the provider that has it
//! (`bring.rs`), and gateways that fetch nothing get a link (`link.rs`). People in the web chat send and
//! get files here themselves (`of_rooms.rs`). All of them take turns (`turns.rs`).

mod bring;
mod download;
mod keep;
mod link;
mod of_rooms;
mod outgoing;
mod sweep;
mod turns;
mod upload;
mod work;

pub(crate) use bring::FILES_OF_EVENT;
pub(crate) use outgoing::{Wanted, why};
pub(crate) use turns::LIMITS;

use crate::identities::Identities;
use crate::keyring::Keyring;
use crate::relay::{Caller, Sessions, identify};
use crate::server::{Options, Parts};
use crate::ssrf_guard::{Guard, no_client};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::GatewayRecord;
use angelia_core::ports::{Blobs, Ports};
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use std::sync::Arc;
use turns::Turns;
use work::Work;

/// Keeps files, and hands them out.
pub(crate) struct Media {
    ports: Ports,
    blobs: Arc<dyn Blobs>,
    keys: Arc<Keyring>,
    identities: Arc<Identities>,
    sessions: Arc<Sessions>,
    turns: Turns,
    work: Work,
    tenant_bytes: u64,
    /// For what is behind other people's URLs.
    guard: Guard,
    /// Where people reach this server.
    public_url: String,
}

impl Media {
    pub(crate) fn new(parts: &Parts, blobs: Arc<dyn Blobs>, options: &Options) -> Result<Arc<Self>> {
        let sources = options.file_sources.clone();
        Ok(Arc::new(Self {
            ports: parts.ports.clone(),
            blobs,
            keys: parts.keys.clone(),
            identities: parts.identities.clone(),
            sessions: parts.sessions.clone(),
            turns: Turns::default(),
            work: Work::default(),
            tenant_bytes: options.tenant_file_bytes,
            guard: Guard::new(false, sources).map_err(|error| no_client(&error))?,
            public_url: options.public_url.trim_end_matches('/').to_owned(),
        }))
    }

    /// Where gateways ask.
    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/relay/media", post(upload::upload))
            .route("/relay/media/{id}", get(download::download))
            .route("/media/{link}", get(link::follow))
            .with_state(self)
    }

    /// The gateway whose secret signed the request's token.
    fn gateway(&self, headers: &HeaderMap) -> Result<Arc<GatewayRecord>> {
        match identify(&self.identities.now(), headers) {
            Caller::Gateway(record) => {
                // Whoever asks here is of a generation that does.
                self.sessions.update(record.instance, |standing| standing.fetches = true);
                Ok(record)
            }
            Caller::Revoked(_) | Caller::Unknown(_) => Err(Error::new(
                Kind::Unauthorized,
                "files are for gateways: send the token you dial with as Authorization: Bearer …",
            )),
        }
    }
}

/// What everybody hears of a file that is not for them, that is gone, or never was.
fn no_such_file() -> Error {
    Error::not_found("there is no such file; files go a day after their last use")
}
