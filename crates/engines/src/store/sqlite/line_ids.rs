//! The ids of lines and edits. Every line takes one, so the last is kept in memory by the one
//! thread that writes. On the disk stands how far ids may have been given: a page that every
//! commit would write is written once for each block. A start goes on behind it; ids rise, and
//! that they leave nothing out was never said.

use rusqlite::{Connection, OptionalExtension};

/// How many ids are set aside at a time.
const BLOCK: i64 = 256;

/// The ids that were given.
#[derive(Debug, Default)]
pub(super) struct LineIds {
    /// The last one, and how far the disk says they may go; unknown until one is asked for.
    given: Option<Given>,
}

#[derive(Clone, Copy, Debug)]
struct Given {
    last: i64,
    noted: i64,
}

impl LineIds {
    /// The next one.
    pub(super) fn next(&mut self, db: &Connection) -> rusqlite::Result<i64> {
        let given = match self.given {
            Some(given) => given,
            None => {
                let noted = "SELECT value FROM notes WHERE name = 'webchat_id'";
                let noted = db.query_row(noted, [], |row| row.get(0)).optional()?.unwrap_or_default();
                Given { last: noted, noted }
            }
        };
        let last = given.last + 1;
        self.given = Some(Given { last, ..given });
        Ok(last)
    }

    /// Sets ids aside in the open transaction, if it gave one that was not.
    pub(super) fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let Some(Given { last, noted }) = self.given else { return Ok(()) };
        if last <= noted {
            return Ok(());
        }
        let noted = last + BLOCK;
        db.prepare_cached(
            "INSERT INTO notes VALUES ('webchat_id', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?
        .execute([noted])?;
        self.given = Some(Given { last, noted });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE notes (name TEXT PRIMARY KEY, value)").unwrap();
        db
    }

    #[test]
    fn ids_rise_over_a_restart() {
        let db = database();
        let mut before = LineIds::default();
        let given: Vec<i64> = (0..3 * BLOCK)
            .map(|_| {
                let id = before.next(&db).unwrap();
                before.write(&db).unwrap();
                id
            })
            .collect();
        assert_eq!(given, (1..=3 * BLOCK).collect::<Vec<_>>());
        let after = LineIds::default().next(&db).unwrap();
        assert!(given.iter().all(|id| *id < after), "{after} was given before");
        assert!(after <= 4 * BLOCK + 2, "a restart leaves out a block at most, not up to {after}");
    }

    #[test]
    fn ids_of_a_transaction_that_was_rolled_back_are_set_aside_again() {
        let db = database();
        let mut ids = LineIds::default();
        db.execute_batch("BEGIN").unwrap();
        ids.next(&db).unwrap();
        ids.write(&db).unwrap();
        db.execute_batch("ROLLBACK").unwrap();
        // As the writer does after every failure.
        ids = LineIds::default();
        let next = ids.next(&db).unwrap();
        ids.write(&db).unwrap();
        assert!(LineIds::default().next(&db).unwrap() > next);
    }
}
