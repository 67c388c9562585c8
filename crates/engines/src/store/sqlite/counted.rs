//! What is counted in memory beside the tables, by the one thread that writes. It is read
//! from them at every start, and anew after every transaction that failed.

use super::connection::Plain;
use super::tenant_bytes::{Owners, TenantBytes};
use crate::store::db::{Ask, Db, Failure, Sql, values};
use crate::store::inbox;
use angelia_core::inbox::{Held, InstanceId, Mark, Usage};
use angelia_core::rooms::RoomSize;
use rusqlite::Connection;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The counts.
pub(super) struct Counted {
    /// What waits for each instance, chat by chat.
    pub(super) held: HashMap<InstanceId, Held>,
    /// Where the logs are of those that were written to.
    pub(super) marks: HashMap<InstanceId, Mark>,
    /// What is kept of each tenant.
    pub(super) stored: TenantBytes,
    /// What rooms of the web chat hold, never less than they really do.
    pub(super) rooms: HashMap<String, RoomSize>,
}

/// What could not be done, and why.
type Failed = (&'static str, Failure);

impl Counted {
    /// Counts everything.
    pub(super) fn read(db: &Connection, owners: &Arc<Owners>) -> Result<Self, Failed> {
        Ok(Self {
            held: held(db).map_err(|e| ("read the inboxes", e))?,
            marks: HashMap::new(),
            stored: TenantBytes::read(db, owners.clone()).map_err(|e| ("count what is kept", e))?,
            rooms: rooms(db).map_err(|e| ("look at the rooms", e))?,
        })
    }

    /// Brings what the rows of instances say in line with what was counted, should
    /// somebody have changed the tables by hand.
    pub(super) fn set_right(&self, db: &Connection) -> Sql<()> {
        let said: HashMap<InstanceId, Usage> = inbox::usages(&mut Plain(db))?.into_iter().collect();
        let all: HashSet<InstanceId> = said.keys().chain(self.held.keys()).copied().collect();
        for instance in all {
            let counted = self.held.get(&instance).map(Held::all).unwrap_or_default();
            if said.get(&instance).copied().unwrap_or_default() != counted {
                Plain(db).execute(
                    "UPDATE instances SET waiting = $1, bytes = $2 WHERE instance = $3",
                    values![counted.entries, counted.bytes, instance],
                )?;
            }
        }
        Ok(())
    }

    /// What was counted has to be what the tables hold, or this panics.
    pub(super) fn check(&self, db: &Connection, owners: &Arc<Owners>) {
        let removing = "SELECT EXISTS (SELECT 1 FROM removals)";
        // What a removed tenant left is counted when it is gone.
        if db.query_row(removing, [], |row| row.get(0)).unwrap_or(true) {
            return;
        }
        let stored = self.stored.counts();
        // A disk that cannot be read any more tells nothing.
        let Ok(anew) = Self::read(db, owners) else { return };
        let waiting = anew.waiting();
        assert_eq!(self.waiting(), waiting, "what is counted is not what waits");
        let rows = inbox::usages(&mut Plain(db)).unwrap_or_default();
        assert_eq!(rows, waiting, "what the rows of instances say is not what waits");
        assert_eq!(stored, anew.stored.counts(), "what is counted is not what is kept");
    }

    /// What waits, for each instance for which something does.
    fn waiting(&self) -> Vec<(InstanceId, Usage)> {
        let all = self.held.iter().map(|(id, held)| (*id, held.all()));
        let mut waiting: Vec<_> = all.filter(|(_, usage)| usage.entries > 0).collect();
        waiting.sort_by_key(|(id, _)| *id);
        waiting
    }
}

fn held(db: &Connection) -> Sql<HashMap<InstanceId, Held>> {
    let mut held = HashMap::<InstanceId, Held>::new();
    let waiting = "SELECT instance, chat_id, count(*), sum(length(body)) FROM inbox WHERE dead_at IS NULL
         GROUP BY instance, chat_id";
    Plain(db).each(waiting, &[], &mut |row| {
        let of_chat = Usage { entries: row.get(2)?, bytes: row.get(3)? };
        held.entry(InstanceId(row.get(0)?)).or_default().put(row.get(1)?, of_chat);
        Ok(true)
    })?;
    Ok(held)
}

fn rooms(db: &Connection) -> Sql<HashMap<String, RoomSize>> {
    let sizes =
        "SELECT room, count(*), coalesce(sum(octet_length(text)), 0) FROM webchat_lines GROUP BY room";
    let rooms = Plain(db)
        .all(sizes, &[], |row| Ok((row.get(0)?, RoomSize { lines: row.get(1)?, bytes: row.get(2)? })))?;
    Ok(rooms.into_iter().collect())
}
