//! Tenants, gateways, routes, conversations.

use super::Sqlite;
use super::writer::{Txn, now};
use angelia_core::admission::{Allow, Place, Route};
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{AckHabit, InstanceId};
use angelia_core::interrupt::Conversation;
use angelia_core::store::{IdentityStore, Later, NewGateway, StoredGateway, StoredInstance, StoredSecret};
use rusqlite::{Connection, OptionalExtension, Row, params};

impl IdentityStore for Sqlite {
    fn note(&self, name: &'static str) -> Later<'_, Option<Vec<u8>>> {
        self.readers.read("read a note", move |db| {
            db.query_row("SELECT value FROM notes WHERE name = ?", [name], |row| row.get(0)).optional()
        })
    }

    fn set_note(&self, name: &'static str, value: Vec<u8>) -> Later<'_, ()> {
        self.writer.write("keep a note", move |txn| {
            txn.execute(
                "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                params![name, value],
            )?;
            Ok(())
        })
    }

    fn create_tenant(&self, tenant: &str) -> Later<'_, ()> {
        let tenant = tenant.to_owned();
        self.writer.try_write("create a tenant", move |txn| {
            let made = txn.execute(
                "INSERT INTO tenants (tenant, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                params![tenant, now()],
            )?;
            Ok(match made {
                0 => Err(Error::conflict(format!("there is a tenant {tenant:?} already"))),
                _ => Ok(()),
            })
        })
    }

    fn tenants(&self) -> Later<'_, Vec<String>> {
        self.readers.read("read the tenants", |db| {
            db.prepare("SELECT tenant FROM tenants ORDER BY tenant")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }

    fn create_gateway(&self, gateway: NewGateway) -> Later<'_, StoredGateway> {
        self.writer.try_write("create a gateway", move |txn| create_gateway(txn, gateway))
    }

    fn gateways(&self) -> Later<'_, Vec<StoredGateway>> {
        self.readers.read("read the gateways", gateways)
    }

    fn instances(&self) -> Later<'_, Vec<StoredInstance>> {
        self.readers.read("read the instances", |db| {
            db.prepare(
                "SELECT instance, tenant, coalesce(default_instance = instance, 0), idle, ack_habit
                 FROM instances LEFT JOIN tenants USING (tenant) ORDER BY instance",
            )?
            .query_map([], |row| {
                Ok(StoredInstance {
                    instance: InstanceId(row.get(0)?),
                    tenant: row.get(1)?,
                    is_default: row.get(2)?,
                    idle: row.get(3)?,
                    habit: AckHabit::parse(&row.get::<_, String>(4)?),
                })
            })?
            .collect()
        })
    }

    fn add_route(&self, route: Route) -> Later<'_, ()> {
        self.writer.try_write("add a route", move |txn| add_route(txn, &route))
    }

    fn remove_route(&self, place: &Place, bot: Option<&str>) -> Later<'_, bool> {
        let (place, bot) = (place.to_string(), bot.unwrap_or_default().to_owned());
        self.writer.write("remove a route", move |txn| {
            Ok(txn.execute("DELETE FROM routes WHERE place = ? AND bot = ?", [place, bot])? > 0)
        })
    }

    fn routes(&self) -> Later<'_, Vec<Route>> {
        self.readers.read("read the routes", |db| {
            db.prepare("SELECT place, bot, tenant, instance, allow, free FROM routes ORDER BY place, bot")?
                .query_map([], route)?
                .collect()
        })
    }

    fn conversation(&self, tenant: &str, session_key: &str) -> Later<'_, Option<Conversation>> {
        let (tenant, session_key) = (tenant.to_owned(), session_key.to_owned());
        self.readers.read("find a conversation", move |db| {
            db.prepare_cached(
                "SELECT session_key, instance, chat_id FROM conversations WHERE tenant = ? AND session_key = ?",
            )?
            .query_row([tenant, session_key], conversation)
            .optional()
        })
    }

    fn recent_conversations(&self, tenant: &str, limit: usize) -> Later<'_, Vec<Conversation>> {
        let tenant = tenant.to_owned();
        self.readers.read("find conversations", move |db| {
            db.prepare_cached(
                "SELECT session_key, instance, chat_id FROM conversations WHERE tenant = ?
                 ORDER BY last_at DESC LIMIT ?",
            )?
            .query_map(params![tenant, limit as i64], conversation)?
            .collect()
        })
    }
}

fn create_gateway(txn: &mut Txn<'_>, new: NewGateway) -> rusqlite::Result<Result<StoredGateway>> {
    let taken: bool = txn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM gateways WHERE tenant = ? AND gateway_id = ?)")?
        .query_row([&new.tenant, &new.gateway_id], |row| row.get(0))?;
    if taken {
        return Ok(Err(Error::conflict(format!(
            "tenant {:?} already has a gateway {:?}; choose another id",
            new.tenant, new.gateway_id
        ))));
    }
    let at = now();
    txn.execute(
        "INSERT INTO tenants (tenant, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
        params![new.tenant, at],
    )?;
    let instance: i64 = txn.query_row(
        "INSERT INTO instances (tenant, name) VALUES (?, ?)
         ON CONFLICT (tenant, name) DO UPDATE SET name = excluded.name RETURNING instance",
        [&new.tenant, &new.gateway_id],
        |row| row.get(0),
    )?;
    txn.execute(
        "UPDATE tenants SET default_instance = ? WHERE tenant = ? AND default_instance IS NULL",
        params![instance, new.tenant],
    )?;
    txn.execute(
        "INSERT INTO gateways (tenant, gateway_id, instance, wake_url, created_at) VALUES (?, ?, ?, ?, ?)",
        params![new.tenant, new.gateway_id, instance, new.wake_url, at],
    )?;
    txn.execute(
        "INSERT INTO gateway_secrets (tenant, gateway_id, sealed) VALUES (?, ?, ?)",
        params![new.tenant, new.gateway_id, new.sealed_secret],
    )?;
    Ok(Ok(StoredGateway {
        instance: InstanceId(instance),
        instance_name: new.gateway_id.clone(),
        secrets: vec![StoredSecret { sealed: new.sealed_secret, valid_until: None }],
        created_at: UnixMillis(at),
        revoked_at: None,
        wake_url: new.wake_url,
        tenant: new.tenant,
        gateway_id: new.gateway_id,
    }))
}

fn gateways(db: &Connection) -> rusqlite::Result<Vec<StoredGateway>> {
    let mut gateways: Vec<StoredGateway> = db
        .prepare(
            "SELECT g.tenant, g.gateway_id, g.instance, i.name, g.wake_url, g.created_at, g.revoked_at
             FROM gateways g JOIN instances i USING (instance) ORDER BY g.rowid",
        )?
        .query_map([], |row| {
            Ok(StoredGateway {
                tenant: row.get(0)?,
                gateway_id: row.get(1)?,
                instance: InstanceId(row.get(2)?),
                instance_name: row.get(3)?,
                wake_url: row.get(4)?,
                created_at: UnixMillis(row.get(5)?),
                revoked_at: row.get::<_, Option<i64>>(6)?.map(UnixMillis),
                secrets: Vec::new(),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut secrets = db.prepare(
        "SELECT sealed, valid_until FROM gateway_secrets WHERE tenant = ? AND gateway_id = ? ORDER BY id DESC",
    )?;
    for gateway in &mut gateways {
        gateway.secrets = secrets
            .query_map([&gateway.tenant, &gateway.gateway_id], |row| {
                Ok(StoredSecret {
                    sealed: row.get(0)?,
                    valid_until: row.get::<_, Option<i64>>(1)?.map(UnixMillis),
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
    }
    Ok(gateways)
}

fn add_route(txn: &mut Txn<'_>, route: &Route) -> rusqlite::Result<Result<()>> {
    let place = route.place.to_string();
    let bot = route.bot.as_deref().unwrap_or_default();
    let taken: bool = txn.query_row(
        "SELECT EXISTS (SELECT 1 FROM routes WHERE place = ? AND bot = ?)",
        [place.as_str(), bot],
        |row| row.get(0),
    )?;
    if taken {
        return Ok(Err(Error::conflict(format!("{place} already has a route; remove it first"))));
    }
    let allow = match &route.allow {
        Allow::Any => None,
        Allow::People(people) => Some(serde_json::json!(people).to_string()),
    };
    txn.execute(
        "INSERT INTO tenants (tenant, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
        params![route.tenant, now()],
    )?;
    txn.execute(
        "INSERT INTO routes (place, bot, tenant, instance, allow, free) VALUES (?, ?, ?, ?, ?, ?)",
        params![place, bot, route.tenant, route.instance.map(|i| i.0), allow, route.free],
    )?;
    Ok(Ok(()))
}

fn route(row: &Row<'_>) -> rusqlite::Result<Route> {
    let unreadable = |column, error: &dyn std::fmt::Display| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            error.to_string().into(),
        )
    };
    let place: String = row.get(0)?;
    let bot: String = row.get(1)?;
    let allow: Option<String> = row.get(4)?;
    let allow = match allow {
        None => Allow::Any,
        Some(list) => Allow::People(serde_json::from_str(&list).map_err(|e| unreadable(4, &e))?),
    };
    Ok(Route {
        place: place.parse().map_err(|e| unreadable(0, &e))?,
        bot: (!bot.is_empty()).then_some(bot),
        tenant: row.get(2)?,
        instance: row.get::<_, Option<i64>>(3)?.map(InstanceId),
        allow,
        free: row.get(5)?,
    })
}

fn conversation(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation { session_key: row.get(0)?, instance: InstanceId(row.get(1)?), chat_id: row.get(2)? })
}
