//! Every sealed value there is. A new kind is one more line of [`SEALS`]; one
//! that is missing there would be lost with the next change of the master key.

use super::Sqlite;
use super::records::audit;
use super::txn::Txn;
use angelia_core::audit::{Actor, Deed};
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::InstanceId;
use angelia_core::seal::{self, FORMER_KEY, Head, KEY_CHECK};
use angelia_core::store::{
    Filling, KeyChange, Later, Page, PageSize, Resealed, Retired, SealStore, SealedValue,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where one kind of sealed value rests.
struct Seal {
    kind: &'static str,
    /// Gives the row as text, the sealed bytes, and what the binding is made of, of the
    /// rows after `?1`; every row is after the empty text.
    list: &'static str,
    /// Takes the new bytes, the row and the old bytes.
    replace: &'static str,
    /// Gives how the least and the greatest of them begin: if they begin alike, so do all.
    heads: &'static str,
    bound_to: fn(&Row<'_>) -> rusqlite::Result<String>,
}

const SEALS: [Seal; 6] = [
    Seal {
        kind: "key check",
        list: "SELECT name, value FROM notes WHERE name = 'key_check' AND name > ?1",
        replace: "UPDATE notes SET value = ? WHERE name = ? AND value = ?",
        heads: "SELECT substr(value, 1, 9) FROM notes WHERE name = 'key_check'",
        bound_to: |_| Ok(seal::KEY_CHECK.to_owned()),
    },
    Seal {
        kind: "key of the token endpoint",
        list: "SELECT name, value FROM notes WHERE name = 'oauth_key' AND name > ?1",
        replace: "UPDATE notes SET value = ? WHERE name = ? AND value = ?",
        heads: "SELECT substr(value, 1, 9) FROM notes WHERE name = 'oauth_key'",
        bound_to: |_| Ok(seal::OAUTH_KEY.to_owned()),
    },
    Seal {
        kind: "delivery key of a tenant",
        list: "SELECT tenant, delivery_key FROM tenants
               WHERE delivery_key IS NOT NULL AND tenant > ?1 ORDER BY tenant",
        replace: "UPDATE tenants SET delivery_key = ? WHERE tenant = ? AND delivery_key = ?",
        heads: "SELECT min(substr(delivery_key, 1, 9)) FROM tenants UNION ALL SELECT max(substr(delivery_key, 1, 9)) FROM tenants",
        bound_to: |row| Ok(seal::delivery_key(&row.get::<_, String>(0)?)),
    },
    Seal {
        kind: "secret of a gateway",
        list: "SELECT CAST(id AS TEXT), sealed, tenant, gateway_id FROM gateway_secrets
               WHERE id > CAST(?1 AS INTEGER) ORDER BY id",
        replace: "UPDATE gateway_secrets SET sealed = ? WHERE id = CAST(? AS INTEGER) AND sealed = ?",
        heads: "SELECT min(substr(sealed, 1, 9)) FROM gateway_secrets UNION ALL SELECT max(substr(sealed, 1, 9)) FROM gateway_secrets",
        bound_to: |row| Ok(seal::gateway_secret(&row.get::<_, String>(2)?, &row.get::<_, String>(3)?)),
    },
    Seal {
        kind: "unreadable update",
        list: "SELECT CAST(id AS TEXT), sealed, platform, bot FROM quarantine
               WHERE id > CAST(?1 AS INTEGER) ORDER BY id",
        replace: "UPDATE quarantine SET sealed = ? WHERE id = CAST(? AS INTEGER) AND sealed = ?",
        heads: "SELECT min(substr(sealed, 1, 9)) FROM quarantine UNION ALL SELECT max(substr(sealed, 1, 9)) FROM quarantine",
        bound_to: |row| Ok(seal::quarantine(&row.get::<_, String>(2)?, &row.get::<_, String>(3)?)),
    },
    Seal {
        kind: "capability",
        list: "SELECT CAST(id AS TEXT), sealed, tenant, instance, platform, bot, chat_id, user_id, interaction_id
               FROM capabilities WHERE id > CAST(?1 AS INTEGER) ORDER BY id",
        replace: "UPDATE capabilities SET sealed = ? WHERE id = CAST(? AS INTEGER) AND sealed = ?",
        heads: "SELECT min(substr(sealed, 1, 9)) FROM capabilities UNION ALL SELECT max(substr(sealed, 1, 9)) FROM capabilities",
        bound_to: |row| {
            let text = |column| row.get::<_, String>(column);
            let bot = BotKey { platform: row.get(4)?, bot: row.get(5)? };
            let whom = [&*text(6)?, &*text(7)?, &*text(8)?];
            Ok(seal::capability(&text(2)?, InstanceId(row.get(3)?), &bot, whom))
        },
    },
];

impl SealStore for Sqlite {
    fn sealed_values(&self, after: Option<&SealedValue>, size: PageSize) -> Later<'_, Page<SealedValue>> {
        let after = after.map(|value| (value.kind, value.row.clone()));
        self.readers.read("read what is sealed", move |db| list(db, after, size))
    }

    fn begin_key_change(&self, change: KeyChange, by: &Actor) -> Later<'_, ()> {
        let deed = Deed::done(by, "key.rotate", "", &change.to.to_string());
        let deed = deed.with(format!("from {}", change.from));
        self.writer.try_write("begin a change of keys", move |txn| begin(txn, &change, &deed))
    }

    fn reseal(&self, values: Vec<Resealed>) -> Later<'_, usize> {
        self.writer.write("seal some values anew", move |txn| replace(txn, &values))
    }

    fn retire_key(&self, current: Head) -> Later<'_, Retired> {
        let emptied = Arc::new(AtomicBool::new(false));
        let told = emptied.clone();
        Box::pin(async move {
            let change = move |txn: &mut Txn<'_>| retire(txn, &current, told);
            if self.writer.write("forget a key", change).await? {
                return Ok(Retired::Gone { erased: emptied.load(Ordering::Acquire) });
            }
            Ok(Retired::Needed)
        })
    }
}

fn list(
    db: &Connection,
    after: Option<(&'static str, String)>,
    size: PageSize,
) -> rusqlite::Result<Page<SealedValue>> {
    let (kind, mut after) = after.unzip();
    let kinds = SEALS.iter().skip_while(|seal| kind.is_some_and(|kind| seal.kind != kind));
    let (mut filling, mut page) = (Filling::new(size), Page::default());
    for seal in kinds {
        let mut statement = db.prepare_cached(seal.list)?;
        let mut rows = statement.query([after.take().unwrap_or_default()])?;
        while let Some(row) = rows.next()? {
            if !filling.takes(row.get_ref(1)?.as_blob().map_or(0, <[u8]>::len)) {
                page.more = true;
                return Ok(page);
            }
            page.items.push(SealedValue {
                kind: seal.kind,
                row: row.get(0)?,
                sealed: row.get(1)?,
                bound_to: (seal.bound_to)(row)?,
            });
        }
    }
    Ok(page)
}

fn begin(txn: &mut Txn<'_>, change: &KeyChange, deed: &Deed) -> rusqlite::Result<Result<()>> {
    let note = |name: &str| -> rusqlite::Result<Option<Vec<u8>>> {
        txn.query_row("SELECT value FROM notes WHERE name = ?", [name], |row| row.get(0)).optional()
    };
    if note(FORMER_KEY)?.is_some() {
        return Ok(Err(Error::conflict("a change of keys before this one is not finished")));
    }
    if note(KEY_CHECK)?.as_ref() != Some(&change.old_check) {
        return Ok(Err(Error::conflict("the master key was changed meanwhile; nothing was changed")));
    }
    txn.execute("UPDATE notes SET value = ? WHERE name = ?", params![change.check, KEY_CHECK])?;
    txn.execute("INSERT INTO notes (name, value) VALUES (?, ?)", params![FORMER_KEY, change.former])?;
    audit(txn, deed)?;
    Ok(Ok(()))
}

fn replace(txn: &mut Txn<'_>, values: &[Resealed]) -> rusqlite::Result<usize> {
    let mut replaced = 0;
    for Resealed { old, sealed } in values {
        let Some(seal) = SEALS.iter().find(|seal| seal.kind == old.kind) else { continue };
        let mut statement = txn.prepare_cached(seal.replace)?;
        replaced += statement.execute(params![sealed, old.row, old.sealed])?;
    }
    Ok(replaced)
}

fn retire(txn: &mut Txn<'_>, current: &Head, emptied: Arc<AtomicBool>) -> rusqlite::Result<bool> {
    let mut heads: Vec<Option<Vec<u8>>> = Vec::new();
    for seal in &SEALS {
        let mut statement = txn.prepare_cached(seal.heads)?;
        let found = statement.query_map([], |row| row.get(0))?;
        heads.extend(found.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    if !seal::may_retire(current, heads.iter().flatten().map(Vec::as_slice)) {
        return Ok(false);
    }
    txn.execute("DELETE FROM notes WHERE name = ?", [FORMER_KEY])?;
    txn.then_empty_log(emptied);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of bytes that nothing is sealed in.
    const OPEN: [&str; 6] = [
        "clients.secret_fingerprint",
        "enroll_tokens.fingerprint",
        "link_codes.fingerprint",
        "webchat_people.key_fingerprint",
        "inbox.body",
        "actions.body",
    ];
    /// Columns of bytes that [`SEALS`] names.
    const SEALED: [&str; 5] = [
        "notes.value",
        "tenants.delivery_key",
        "gateway_secrets.sealed",
        "quarantine.sealed",
        "capabilities.sealed",
    ];

    #[test]
    fn every_column_of_bytes_is_known_as_sealed_or_open() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("schema.sql")).unwrap();
        let mut statement = db
            .prepare(
                "SELECT t.name || '.' || c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
                 WHERE t.type = 'table' AND c.type = 'BLOB'",
            )
            .unwrap();
        let columns: Vec<String> =
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        for column in &columns {
            assert!(
                OPEN.contains(&column.as_str()) || SEALED.contains(&column.as_str()),
                "say in seals.rs whether {column} holds sealed values"
            );
        }
        for column in SEALED {
            assert!(columns.iter().any(|known| known == column), "{column} is gone");
        }
        assert!(list(&db, None, PageSize::of(1)).unwrap().is_empty());
    }

    #[test]
    fn whether_a_key_is_needed_is_read_from_an_index() {
        assert_eq!(seal::HEAD_BYTES, 9, "as the statements and indices say");
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("schema.sql")).unwrap();
        for seal in SEALS.iter().filter(|seal| seal.heads.contains("UNION")) {
            let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {}", seal.heads)).unwrap();
            let steps = plan.query_map([], |row| row.get::<_, String>("detail")).unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            let looks = steps.iter().filter(|step| step.starts_with("SEARCH") && step.contains("_by_head"));
            assert_eq!(looks.count(), 2, "{}: {steps:?}", seal.kind);
        }
    }
}
