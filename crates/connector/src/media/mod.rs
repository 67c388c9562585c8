//! Files between gateways and the connector: `POST /relay/media` and `GET /relay/media/{id}`.
//!
//! A gateway uploads what its agent sends, and fetches what people sent. Both ask with the token
//! they dial with, and a file is there only for the instance it was meant for: of everything else
//! everybody hears the same 404. What people send is brought here from the provider that has it
//! (`bring.rs`), and gateways that fetch nothing get a link (`link.rs`). People in the web chat send and
//! get files here themselves (`of_rooms.rs`).

mod bring;
mod download;
mod keep;
mod link;
mod of_rooms;
mod outgoing;
mod sweep;
mod upload;

pub(crate) use bring::FILES_OF_EVENT;
pub(crate) use outgoing::{Wanted, why};

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
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

angelia_contract::limits! {
    /// Each holds a quarter of a megabyte at the most. Further ones wait, and are told to come back.
    const TRANSFERS: usize = 256, count "files on their way at a time";
    /// One tenant leaves room for the others.
    const TRANSFERS_OF_TENANT: usize = 64, count "files of one tenant on their way at a time";
}
/// How long a transfer waits for its turn.
const PATIENCE: Duration = Duration::from_secs(20);

/// Keeps files, and hands them out.
pub(crate) struct Media {
    ports: Ports,
    blobs: Arc<dyn Blobs>,
    keys: Arc<Keyring>,
    identities: Arc<Identities>,
    sessions: Arc<Sessions>,
    turns: Turns,
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

/// Whose turn it is to send or get a file.
struct Turns {
    all: Arc<Semaphore>,
    of_tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A turn, for as long as this is kept.
struct Turn {
    _of_all: OwnedSemaphorePermit,
    _of_tenant: OwnedSemaphorePermit,
}

impl Default for Turns {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(TRANSFERS)), of_tenants: Mutex::default() }
    }
}

impl Turns {
    fn of(&self, tenant: &str) -> Arc<Semaphore> {
        let mut of_tenants = self.of_tenants.lock();
        if let Some(known) = of_tenants.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        of_tenants.retain(|_, turns| turns.strong_count() > 0);
        let new = Arc::new(Semaphore::new(TRANSFERS_OF_TENANT));
        of_tenants.insert(tenant.to_owned(), Arc::downgrade(&new));
        new
    }

    /// Waits for a turn: within the tenant first, so that none of it stands in others' way.
    async fn take(&self, tenant: &str) -> Result<Turn> {
        let (of_tenant, of_all) = (self.of(tenant), self.all.clone());
        let both = async {
            let of_tenant = of_tenant.acquire_owned().await.ok()?;
            let of_all = of_all.acquire_owned().await.ok()?;
            Some(Turn { _of_all: of_all, _of_tenant: of_tenant })
        };
        let turn = tokio::time::timeout(PATIENCE, both).await.ok().flatten();
        turn.ok_or_else(|| {
            Error::unavailable("too many files are on their way; try again").retry_in(PATIENCE)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tenant_with_many_transfers_leaves_room_for_others() {
        let turns = Turns::default();
        let mut taken = Vec::new();
        for _ in 0..TRANSFERS_OF_TENANT {
            taken.push(turns.take("acme").await.unwrap());
        }
        assert_eq!(turns.take("acme").await.err().map(|error| error.kind()), Some(Kind::Unavailable));
        let other = turns.take("bolt").await.unwrap();
        assert_eq!(turns.of_tenants.lock().len(), 2);
        drop((taken, other));
        drop(turns.take("crane").await.unwrap());
        assert_eq!(turns.of_tenants.lock().len(), 1, "of tenants at rest nothing is kept");
    }
}
