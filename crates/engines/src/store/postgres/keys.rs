//! Recognising people by their keys, as every request to the web chat asks: whoever asks while
//! others are looked for is looked for with all who did, in one statement.

use super::Shared;
use super::hot::given::{Given, bytes, number};
use crate::store::db::{Failure, Row, Sql};
use crate::store::webchat::people;
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::ports::Guest;
use angelia_core::rooms::Recognised;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use tokio::sync::{Notify, oneshot};

/// What a key is recognised by.
type Fingerprint = [u8; 32];
/// Keys that are looked for at once.
const AT_ONCE: usize = 512;

/// Whose keys these are.
static RECOGNISE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, p.key_fingerprint FROM webchat_people p WHERE p.key_fingerprint = ANY($2)",
        people::RECOGNISED
    )
});

/// Who waits to be told whose a key is.
#[derive(Default)]
pub(super) struct Keys {
    waiting: Mutex<Vec<Waiting>>,
    came: Notify,
}

struct Waiting {
    key: Fingerprint,
    answer: oneshot::Sender<Result<Option<Guest>>>,
}

impl Keys {
    /// Who holds a key, as the database has it after this was asked.
    pub(super) async fn holder(&self, key: Fingerprint) -> Result<Option<Guest>> {
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().push(Waiting { key, answer });
        self.came.notify_one();
        answered.await.unwrap_or_else(|_| Err(Error::unavailable("the store is shutting down")))
    }

    /// Waits for somebody who asks; takes all of them.
    async fn take(&self) -> Vec<Waiting> {
        loop {
            let came = self.came.notified();
            let taken = {
                let mut waiting = self.waiting.lock();
                // Whoever hung up is not looked for.
                waiting.retain(|it| !it.answer.is_closed());
                let most = waiting.len().min(AT_ONCE);
                let taken: Vec<_> = waiting.drain(..most).collect();
                if !waiting.is_empty() {
                    self.came.notify_one();
                }
                taken
            };
            if !taken.is_empty() {
                return taken;
            }
            came.await;
        }
    }
}

impl Shared {
    /// Recognises people, for ever.
    pub(super) async fn keep_recognising(self: Arc<Self>) {
        loop {
            let asked = self.keys.take().await;
            let now = self.clock.now();
            match self.recognise(&asked, now).await {
                Ok(found) => {
                    for Waiting { key, answer } in asked {
                        let guest = found.get(key.as_slice()).cloned().and_then(|found| found.guest(now));
                        let _ = answer.send(Ok(guest));
                    }
                }
                Err(error) => asked.into_iter().for_each(|it| drop(it.answer.send(Err(error.clone())))),
            }
        }
    }

    async fn recognise(&self, asked: &[Waiting], now: UnixMillis) -> Result<HashMap<Vec<u8>, Recognised>> {
        let client = self.reads.get().await?;
        let keys: Vec<&[u8]> = asked.iter().map(|it| it.key.as_slice()).collect();
        // One statement sees one moment; there is no transaction around it.
        let given: [Given<'_>; 2] = [number(&now.0), bytes(&keys)];
        let rows = client.query_typed(&RECOGNISE, &given).await;
        let rows = rows.map_err(|error| Failure::from(error).told("recognise people"))?;
        client.give_back();
        let read = |row: &tokio_postgres::Row| -> Sql<_> {
            let row = Row::Postgres(row);
            Ok((row.get(people::RECOGNISED_WIDTH)?, people::recognised(row)?))
        };
        rows.iter().map(read).collect::<Sql<_>>().map_err(|failure| failure.told("recognise people"))
    }
}
