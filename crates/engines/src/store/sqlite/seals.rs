//! Every sealed value there is. A new kind is one more line of [`SEALS`]; one
//! that is missing there would be lost with the next change of the master key.

use super::writer::Txn;
use super::{Sqlite, audit};
use angelia_core::audit::{Actor, Deed};
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::InstanceId;
use angelia_core::seal;
use angelia_core::store::{Later, Resealed, SealStore, SealedValue};
use rusqlite::{Connection, OptionalExtension, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where one kind of sealed value rests.
struct Seal {
    kind: &'static str,
    /// Gives the row as text, the sealed bytes, and what the binding is made of.
    list: &'static str,
    /// Takes the new bytes and the row.
    replace: &'static str,
    bound_to: fn(&Row<'_>) -> rusqlite::Result<String>,
}

const SEALS: [Seal; 6] = [
    Seal {
        kind: "key check",
        list: "SELECT name, value FROM notes WHERE name = 'key_check'",
        replace: "UPDATE notes SET value = ? WHERE name = ?",
        bound_to: |_| Ok(seal::KEY_CHECK.to_owned()),
    },
    Seal {
        kind: "key of the token endpoint",
        list: "SELECT name, value FROM notes WHERE name = 'oauth_key'",
        replace: "UPDATE notes SET value = ? WHERE name = ?",
        bound_to: |_| Ok(seal::OAUTH_KEY.to_owned()),
    },
    Seal {
        kind: "delivery key of a tenant",
        list: "SELECT tenant, delivery_key FROM tenants WHERE delivery_key IS NOT NULL ORDER BY tenant",
        replace: "UPDATE tenants SET delivery_key = ? WHERE tenant = ?",
        bound_to: |row| Ok(seal::delivery_key(&row.get::<_, String>(0)?)),
    },
    Seal {
        kind: "secret of a gateway",
        list: "SELECT CAST(id AS TEXT), sealed, tenant, gateway_id FROM gateway_secrets ORDER BY id",
        replace: "UPDATE gateway_secrets SET sealed = ? WHERE id = CAST(? AS INTEGER)",
        bound_to: |row| Ok(seal::gateway_secret(&row.get::<_, String>(2)?, &row.get::<_, String>(3)?)),
    },
    Seal {
        kind: "unreadable update",
        list: "SELECT CAST(id AS TEXT), sealed, platform, bot FROM quarantine ORDER BY id",
        replace: "UPDATE quarantine SET sealed = ? WHERE id = CAST(? AS INTEGER)",
        bound_to: |row| Ok(seal::quarantine(&row.get::<_, String>(2)?, &row.get::<_, String>(3)?)),
    },
    Seal {
        kind: "capability",
        list: "SELECT CAST(id AS TEXT), sealed, tenant, instance, platform, bot, chat_id, user_id, interaction_id
               FROM capabilities ORDER BY id",
        replace: "UPDATE capabilities SET sealed = ? WHERE id = CAST(? AS INTEGER)",
        bound_to: |row| {
            let text = |column| row.get::<_, String>(column);
            let bot = BotKey { platform: row.get(4)?, bot: row.get(5)? };
            let whom = [&*text(6)?, &*text(7)?, &*text(8)?];
            Ok(seal::capability(&text(2)?, InstanceId(row.get(3)?), &bot, whom))
        },
    },
];

impl SealStore for Sqlite {
    fn sealed_values(&self) -> Later<'_, Vec<SealedValue>> {
        self.readers.read("read what is sealed", list)
    }

    fn reseal(&self, values: Vec<Resealed>, key_id: &str, by: &Actor) -> Later<'_, bool> {
        let count = values.len();
        let deed = Deed::done(by, "key.rotate", "", key_id).with(format!("{count} values sealed anew"));
        let emptied = Arc::new(AtomicBool::new(false));
        let told = emptied.clone();
        Box::pin(async move {
            let change = move |txn: &mut Txn<'_>| reseal(txn, &values, &deed, told);
            self.writer.try_write("seal everything anew", change).await?;
            Ok(emptied.load(Ordering::Acquire))
        })
    }
}

/// Whether a value was sealed with the key that everything else here is sealed with.
pub(super) fn is_current(txn: &Txn<'_>, sealed: &[u8]) -> rusqlite::Result<bool> {
    let check: Option<Vec<u8>> = txn
        .prepare_cached("SELECT value FROM notes WHERE name = 'key_check'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(check.is_none_or(|check| seal::key_id(&check) == seal::key_id(sealed)))
}

fn list(db: &Connection) -> rusqlite::Result<Vec<SealedValue>> {
    let mut values = Vec::new();
    for seal in &SEALS {
        let mut statement = db.prepare(seal.list)?;
        let rows = statement.query_map([], |row| {
            Ok(SealedValue {
                kind: seal.kind,
                row: row.get(0)?,
                sealed: row.get(1)?,
                bound_to: (seal.bound_to)(row)?,
            })
        })?;
        for value in rows {
            values.push(value?);
        }
    }
    Ok(values)
}

fn reseal(
    txn: &mut Txn<'_>,
    values: &[Resealed],
    deed: &Deed,
    emptied: Arc<AtomicBool>,
) -> rusqlite::Result<Result<()>> {
    // Both lists come in the order of SEALS and of the rows in their tables.
    let current = list(txn)?;
    if !current.iter().eq(values.iter().map(|value| &value.old)) {
        return Ok(Err(Error::conflict("something was sealed meanwhile; nothing was changed, try again")));
    }
    for seal in &SEALS {
        let mut replace = txn.prepare(seal.replace)?;
        for value in values.iter().filter(|value| value.old.kind == seal.kind) {
            replace.execute(rusqlite::params![value.sealed, value.old.row])?;
        }
    }
    audit::write(txn, deed)?;
    txn.then_empty_log(emptied);
    Ok(Ok(()))
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
        assert!(list(&db).unwrap().is_empty());
    }
}
