//! Connections to PostgreSQL: a few, opened when they are needed and used again.

use super::connect::{Connector, Options};
use angelia_core::error::{Error, Result};
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Client;

/// The connections.
pub(super) struct Pool {
    connector: Arc<Connector>,
    idle: Mutex<Vec<Client>>,
    turns: Arc<Semaphore>,
}

impl Pool {
    /// At most so many at a time.
    pub(super) fn new(connector: Arc<Connector>, most: usize) -> Arc<Self> {
        Arc::new(Self { connector, idle: Mutex::default(), turns: Arc::new(Semaphore::new(most)) })
    }

    /// One that nobody else uses meanwhile.
    pub(super) async fn get(self: &Arc<Self>) -> Result<Pooled> {
        let closed = |_| Error::unavailable("the store is shutting down");
        let turn = self.turns.clone().acquire_owned().await.map_err(closed)?;
        let known = loop {
            match self.idle.lock().pop() {
                Some(client) if client.is_closed() => {}
                other => break other,
            }
        };
        let client = match known {
            Some(client) => client,
            None => self.connector.connect().await?,
        };
        Ok(Pooled { client, pool: self.clone(), turn })
    }

    /// How the database is used.
    pub(super) fn options(&self) -> &Options {
        &self.connector.options
    }
}

/// A connection in use. It is closed when it goes, and the server undoes what it was at: unless
/// somebody says that [nothing is open](Pooled::give_back) on it.
pub(super) struct Pooled {
    client: Client,
    pool: Arc<Pool>,
    turn: OwnedSemaphorePermit,
}

impl Pooled {
    /// No transaction is open: it may be used again.
    pub(super) fn give_back(self) {
        let Self { client, pool, turn } = self;
        if !client.is_closed() {
            pool.idle.lock().push(client);
        }
        drop(turn);
    }
}

impl Deref for Pooled {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
