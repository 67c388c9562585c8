//! Tenants, gateways, routes, conversations.

mod gateways;
mod removal;
mod routes;
mod tenants;

pub(super) use gateways::{create_gateway, find as find_gateway, renew_secret, settle_default};
pub(super) use removal::is_being_emptied;
pub(super) use routes::{add_route, parse_allow};
pub(super) use tenants::{exists as tenant_exists, forget_instance, no_tenant};

use super::Sqlite;
use super::audit::write as audit;
use super::txn::now;
use angelia_core::admission::{Place, Route};
use angelia_core::audit::{Actor, Deed};
use angelia_core::clock::UnixMillis;
use angelia_core::identity::Subject;
use angelia_core::inbox::{AckHabit, InstanceId};
use angelia_core::interrupt::Conversation;
use angelia_core::space::Class;
use angelia_core::store::{
    GatewayChange, IdentityStore, Later, NewGateway, RemovedTenant, StoredGateway, StoredInstance,
    TenantIdentity,
};
use rusqlite::{OptionalExtension, Row, params};

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

    fn create_tenant(&self, tenant: &str, identity: Option<TenantIdentity>, by: &Actor) -> Later<'_, ()> {
        let (tenant, by) = (tenant.to_owned(), by.clone());
        self.writer
            .try_write("create a tenant", move |txn| tenants::create(txn, &tenant, identity.as_ref(), &by))
    }

    fn link_tenant(&self, identity: TenantIdentity, by: &Actor) -> Later<'_, ()> {
        let by = by.clone();
        self.writer.try_write("link a tenant", move |txn| tenants::link(txn, &identity, &by))
    }

    fn unlink_tenant(&self, identity: TenantIdentity, by: &Actor) -> Later<'_, bool> {
        let by = by.clone();
        self.writer.write("unlink a tenant", move |txn| {
            let TenantIdentity { tenant, issuer, claim } = &identity;
            let gone = txn.execute(
                "DELETE FROM tenant_identities WHERE issuer = ? AND claim = ? AND tenant = ?",
                [issuer, claim, tenant],
            )?;
            if gone > 0 {
                let deed = Deed::done(&by, "tenant.unlink", tenant, tenant).with(format!("{issuer} {claim}"));
                audit(txn, &deed)?;
            }
            Ok(gone > 0)
        })
    }

    fn tenant_identities(&self) -> Later<'_, Vec<TenantIdentity>> {
        self.readers.read("read the tenants", |db| {
            db.prepare("SELECT tenant, issuer, claim FROM tenant_identities ORDER BY tenant, issuer, claim")?
                .query_map([], |row| {
                    Ok(TenantIdentity { tenant: row.get(0)?, issuer: row.get(1)?, claim: row.get(2)? })
                })?
                .collect()
        })
    }

    fn tenant_of(&self, issuer: &str, claim: &str) -> Later<'_, Option<String>> {
        let pair = [issuer.to_owned(), claim.to_owned()];
        self.readers.read("find a tenant", move |db| {
            db.prepare_cached("SELECT tenant FROM tenant_identities WHERE issuer = ? AND claim = ?")?
                .query_row(pair, |row| row.get(0))
                .optional()
        })
    }

    fn tenants(&self) -> Later<'_, Vec<String>> {
        self.readers.read("read the tenants", |db| {
            db.prepare("SELECT tenant FROM tenants ORDER BY tenant")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }

    fn remove_tenant(&self, tenant: &str, rooms: Vec<String>, by: &Actor) -> Later<'_, RemovedTenant> {
        let (tenant, by) = (tenant.to_owned(), by.clone());
        self.writer
            .write_as(Class::of(&by), "remove a tenant", move |txn| removal::begin(txn, &tenant, &rooms, &by))
    }

    fn finish_removals(&self) -> Later<'_, ()> {
        Box::pin(removal::finish(self))
    }

    fn delivery_key(&self, tenant: &str) -> Later<'_, Option<Vec<u8>>> {
        let tenant = tenant.to_owned();
        self.readers.read("read a delivery key", move |db| tenants::delivery_key(db, &tenant))
    }

    fn keep_delivery_key(&self, tenant: &str, sealed: Vec<u8>) -> Later<'_, Vec<u8>> {
        let tenant = tenant.to_owned();
        self.writer.write("keep a delivery key", move |txn| {
            txn.execute(
                "UPDATE tenants SET delivery_key = coalesce(delivery_key, ?) WHERE tenant = ?",
                params![sealed, tenant],
            )?;
            Ok(tenants::delivery_key(txn, &tenant)?.unwrap_or(sealed))
        })
    }

    fn create_gateway(&self, gateway: NewGateway, by: &Actor) -> Later<'_, StoredGateway> {
        let by = by.clone();
        self.writer
            .try_write("create a gateway", move |txn| create_gateway(txn, gateway, "gateway.create", &by))
    }

    fn rotate_gateway(
        &self,
        tenant: &str,
        gateway_id: &str,
        sealed_secret: Vec<u8>,
        old_until: Option<UnixMillis>,
        by: &Actor,
    ) -> Later<'_, StoredGateway> {
        let by = by.clone();
        self.change(Class::of(&by), tenant, gateway_id, move |txn, tenant, id| {
            renew_secret(txn, tenant, id, &sealed_secret, old_until)?;
            let deed = Deed::done(&by, "gateway.rotate", tenant, id);
            audit(txn, &if old_until.is_none() { deed.with("now: every old secret is void") } else { deed })?;
            Ok(Ok(()))
        })
    }

    fn revoke_gateway(&self, tenant: &str, gateway_id: &str, by: &Actor) -> Later<'_, StoredGateway> {
        let by = by.clone();
        self.change(Class::of(&by), tenant, gateway_id, move |txn, tenant, id| {
            txn.execute(
                "UPDATE gateways SET revoked_at = coalesce(revoked_at, ?) WHERE tenant = ? AND gateway_id = ?",
                params![now(), tenant, id],
            )?;
            audit(txn, &Deed::done(&by, "gateway.revoke", tenant, id))?;
            settle_default(txn, tenant)?;
            Ok(Ok(()))
        })
    }

    fn change_gateway(
        &self,
        tenant: &str,
        gateway_id: &str,
        change: GatewayChange,
        by: &Actor,
    ) -> Later<'_, StoredGateway> {
        let by = by.clone();
        self.change(Class::Ordinary, tenant, gateway_id, move |txn, tenant, id| {
            gateways::change(txn, tenant, id, &change, &by)
        })
    }

    fn set_default_instance(&self, tenant: &str, instance: InstanceId, by: &Actor) -> Later<'_, ()> {
        let (tenant, by) = (tenant.to_owned(), by.clone());
        self.writer.write("set a default", move |txn| {
            txn.execute(
                "UPDATE tenants SET default_instance = ? WHERE tenant = ?",
                params![instance.0, tenant],
            )?;
            let name: String = txn.query_row(
                "SELECT coalesce(max(name), '') FROM instances WHERE instance = ?",
                [instance.0],
                |row| row.get(0),
            )?;
            audit(txn, &Deed::done(&by, "gateway.default", &tenant, &name))
        })
    }

    fn default_instance(&self, tenant: &str) -> Later<'_, Option<InstanceId>> {
        let tenant = tenant.to_owned();
        self.readers
            .read("read a default", move |db| Ok(gateways::default_instance(db, &tenant)?.map(InstanceId)))
    }

    fn gateways(&self) -> Later<'_, Vec<StoredGateway>> {
        self.readers.read("read the gateways", |db| gateways::list(db, None))
    }

    fn instances(&self) -> Later<'_, Vec<StoredInstance>> {
        self.readers.read("read the instances", |db| {
            db.prepare(
                "SELECT instance, tenant, name, coalesce(default_instance = instance, 0), idle, ack_habit, subject
                 FROM instances LEFT JOIN tenants USING (tenant) ORDER BY instance",
            )?
            .query_map([], |row| {
                Ok(StoredInstance {
                    instance: InstanceId(row.get(0)?),
                    tenant: row.get(1)?,
                    name: row.get(2)?,
                    is_default: row.get(3)?,
                    idle: row.get(4)?,
                    habit: AckHabit::parse(&row.get::<_, String>(5)?),
                    subject: row.get::<_, Option<String>>(6)?.map(Subject::stored),
                })
            })?
            .collect()
        })
    }

    fn add_route(&self, route: Route, by: &Actor) -> Later<'_, ()> {
        let by = by.clone();
        self.writer.try_write("add a route", move |txn| add_route(txn, &route, "route.add", &by))
    }

    fn remove_route(&self, place: &Place, bot: Option<&str>, by: &Actor) -> Later<'_, bool> {
        let (place, bot, by) = (place.to_string(), bot.unwrap_or_default().to_owned(), by.clone());
        self.writer.write_as(Class::of(&by), "remove a route", move |txn| {
            routes::remove(txn, &place, &bot, &by).map(Ok)
        })
    }

    fn routes(&self) -> Later<'_, Vec<Route>> {
        self.readers.read("read the routes", routes::list)
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

fn conversation(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation { session_key: row.get(0)?, instance: InstanceId(row.get(1)?), chat_id: row.get(2)? })
}
