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

    fn rotate_gateway(
        &self,
        tenant: &str,
        gateway_id: &str,
        sealed_secret: Vec<u8>,
        old_until: UnixMillis,
    ) -> Later<'_, StoredGateway> {
        self.change_gateway(tenant, gateway_id, move |txn, tenant, id| {
            txn.execute(
                "DELETE FROM gateway_secrets WHERE tenant = ? AND gateway_id = ? AND valid_until < ?",
                params![tenant, id, now()],
            )?;
            txn.execute(
                "UPDATE gateway_secrets SET valid_until = ? WHERE tenant = ? AND gateway_id = ? AND valid_until IS NULL",
                params![old_until.0, tenant, id],
            )?;
            txn.execute(
                "INSERT INTO gateway_secrets (tenant, gateway_id, sealed) VALUES (?, ?, ?)",
                params![tenant, id, sealed_secret],
            )
        })
    }

    fn revoke_gateway(&self, tenant: &str, gateway_id: &str) -> Later<'_, StoredGateway> {
        self.change_gateway(tenant, gateway_id, |txn, tenant, id| {
            txn.execute(
                "UPDATE gateways SET revoked_at = coalesce(revoked_at, ?) WHERE tenant = ? AND gateway_id = ?",
                params![now(), tenant, id],
            )
        })
    }

    fn set_wake_url(&self, tenant: &str, gateway_id: &str, url: Option<String>) -> Later<'_, StoredGateway> {
        self.change_gateway(tenant, gateway_id, move |txn, tenant, id| {
            txn.execute(
                "UPDATE gateways SET wake_url = ? WHERE tenant = ? AND gateway_id = ?",
                params![url, tenant, id],
            )
        })
    }

    fn set_default_instance(&self, tenant: &str, instance: InstanceId) -> Later<'_, ()> {
        let tenant = tenant.to_owned();
        self.writer.write("set a default", move |txn| {
            txn.execute(
                "UPDATE tenants SET default_instance = ? WHERE tenant = ?",
                params![instance.0, tenant],
            )?;
            Ok(())
        })
    }

    fn gateways(&self) -> Later<'_, Vec<StoredGateway>> {
        self.readers.read("read the gateways", |db| gateways(db, None))
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

impl Sqlite {
    /// Changes one gateway and answers what it is then; not found if there is none.
    fn change_gateway(
        &self,
        tenant: &str,
        gateway_id: &str,
        change: impl FnOnce(&Txn<'_>, &str, &str) -> rusqlite::Result<usize> + Send + 'static,
    ) -> Later<'_, StoredGateway> {
        let (tenant, gateway_id) = (tenant.to_owned(), gateway_id.to_owned());
        self.writer.try_write("change a gateway", move |txn| {
            let named = Some((tenant.as_str(), gateway_id.as_str()));
            if gateways(txn, named)?.is_empty() {
                return Ok(Err(Error::not_found(format!("tenant {tenant:?} has no gateway {gateway_id:?}"))));
            }
            change(txn, &tenant, &gateway_id)?;
            let changed = gateways(txn, named)?.pop();
            Ok(changed.ok_or_else(|| Error::internal("the gateway is gone")))
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

/// All gateways, or the one with this tenant and id.
fn gateways(db: &Connection, named: Option<(&str, &str)>) -> rusqlite::Result<Vec<StoredGateway>> {
    let (tenant, gateway_id) = named.unzip();
    let mut gateways: Vec<StoredGateway> = db
        .prepare_cached(
            "SELECT g.tenant, g.gateway_id, g.instance, i.name, g.wake_url, g.created_at, g.revoked_at
             FROM gateways g JOIN instances i USING (instance)
             WHERE ?1 IS NULL OR (g.tenant = ?1 AND g.gateway_id = ?2) ORDER BY g.rowid",
        )?
        .query_map([tenant, gateway_id], |row| {
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
    let mut secrets = db.prepare_cached(
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
