//! Tenants, gateways and routes as the store sees them.
//!
//! Every change takes the [`Actor`] that makes it and writes its line into the
//! audit log in the same commit.

use super::BoxFuture;
use crate::admission::{Place, Route};
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::identity::{Subject, gateways, instances, routes, tenants};
use crate::inbox::{AckHabit, InstanceId};
use crate::records::rows::{InstanceRow, NoteRow, RouteRow, SecretRow, TenantRow};
use crate::records::{Change, Records, change, look};
use crate::space::Class;
use crate::turns::WhileBusy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The note that holds the database's own name: random, and the same in its backups.
pub const DATABASE_ID: &str = "database_id";

/// As whom an issuer of identity tokens knows a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TenantIdentity {
    /// The tenant here.
    pub tenant: String,
    /// The issuer.
    pub issuer: String,
    /// The tenant there.
    pub claim: String,
}

/// A gateway to be enrolled.
#[derive(Clone, Debug)]
pub struct NewGateway {
    /// Its tenant, which must exist.
    pub tenant: String,
    /// Its id.
    pub gateway_id: String,
    /// The instance it serves, made if the tenant has none of that name; the gateway id if not
    /// given. Of a tenant's first gateway, what the instance that waits for it is called.
    pub instance: Option<String>,
    /// Its secret, sealed.
    pub sealed_secret: Vec<u8>,
    /// Where to poke it when it sleeps.
    pub wake_url: Option<String>,
    /// What people see it called.
    pub display_name: Option<String>,
    /// What becomes of messages while it is busy, where their route says nothing.
    pub while_busy: Option<WhileBusy>,
    /// Whether it is set to share sessions in groups: all people of a group are one
    /// conversation with it.
    pub shared_groups: bool,
    /// Who enrols it; `None` for the operator.
    pub subject: Option<Subject>,
    /// Most living gateways its tenant may have for it to be made.
    pub most: u64,
}

/// What is to change of a gateway; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct GatewayChange {
    /// Where to poke it; an inner `None` takes it away.
    pub wake_url: Option<Option<String>>,
    /// What people see it called; an inner `None` takes it away.
    pub display_name: Option<Option<String>>,
    /// The instance it serves, made if the tenant has none of that name. A
    /// conflict if messages wait in the one it serves now and nobody else does.
    pub instance: Option<String>,
    /// What becomes of messages while it is busy.
    pub while_busy: Option<WhileBusy>,
    /// Whether all people of a group are one conversation with it.
    pub shared_groups: Option<bool>,
    /// Who asks; `None` for the operator. Others may not join an instance that is not theirs.
    pub subject: Option<Subject>,
}

/// A gateway as it rests.
#[derive(Clone, Debug)]
pub struct StoredGateway {
    /// Its tenant.
    pub tenant: String,
    /// Its id.
    pub gateway_id: String,
    /// The instance it serves.
    pub instance: InstanceId,
    /// That instance's name.
    pub instance_name: String,
    /// Its sealed secrets, newest first.
    pub secrets: Vec<SecretRow>,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
    /// Where to poke it.
    pub wake_url: Option<String>,
    /// What people see it called.
    pub display_name: Option<String>,
    /// What becomes of messages while it is busy, where their route says nothing.
    pub while_busy: Option<WhileBusy>,
    /// Whether it is set to share sessions in groups: all people of a group are one
    /// conversation with it.
    pub shared_groups: bool,
    /// Who enrolled it; `None` for the operator.
    pub subject: Option<Subject>,
}

/// An instance as it rests.
#[derive(Clone, Debug)]
pub struct StoredInstance {
    /// Its number.
    pub instance: InstanceId,
    /// Its tenant.
    pub tenant: String,
    /// Its name within the tenant; empty while it waits for the tenant's first gateway.
    pub name: String,
    /// Whether its tenant's unassigned messages go to it.
    pub is_default: bool,
    /// Whether its gateway said it goes idle.
    pub idle: bool,
    /// What is known of its gateway's habit of acknowledging.
    pub habit: AckHabit,
    /// Who made it; `None` for the operator.
    pub subject: Option<Subject>,
}

/// What belongs to a tenant, in numbers, and goes with it when it is removed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TenantBelongings {
    /// Its gateways.
    pub gateways: u64,
    /// Its routes.
    pub routes: u64,
    /// Its OAuth clients.
    pub clients: u64,
    /// Messages that wait for it.
    pub waiting: u64,
}

/// Who is known here: the rules of [`crate::identity`], asked of any records.
pub trait IdentityStore: Records {
    /// The value kept under `name` in the store's own notes.
    fn note(&self, name: &'static str) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        look(self, "read a note", move |view| Ok(view.get::<NoteRow>((name,))?.map(|note| note.value)))
    }

    /// Keeps a value under `name`.
    fn set_note(&self, name: &'static str, value: Vec<u8>) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("keep a note"), move |view| {
            view.put(&NoteRow { name: name.to_owned(), value: value.clone() });
            Ok(())
        })
    }

    /// Keeps a value under `name` unless there is one; answers the one that counts. Of several
    /// nodes that make one at the same time all get the same.
    fn note_once(&self, name: &'static str, value: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>>> {
        change(self, Change::to("keep a note"), move |view| {
            if let Some(kept) = view.get::<NoteRow>((name,))? {
                return Ok(kept.value);
            }
            view.put(&NoteRow { name: name.to_owned(), value: value.clone() });
            Ok(value.clone())
        })
    }

    /// Keeps a value under `name` if `old` is there still; answers whether it was.
    fn replace_note(&self, name: &'static str, old: Vec<u8>, value: Vec<u8>) -> BoxFuture<'_, Result<bool>> {
        change(self, Change::to("replace a note"), move |view| {
            let is_there = view.get::<NoteRow>((name,))?.is_some_and(|note| note.value == old);
            if is_there {
                view.put(&NoteRow { name: name.to_owned(), value: value.clone() });
            }
            Ok(is_there)
        })
    }

    /// Makes a tenant; a conflict if it, or its identity, exists. Answers the instance in
    /// which messages wait for its first gateway.
    fn create_tenant(
        &self,
        tenant: &str,
        identity: Option<TenantIdentity>,
        by: &Actor,
    ) -> BoxFuture<'_, Result<InstanceId>> {
        let (tenant, by) = (tenant.to_owned(), by.clone());
        change(self, Change::to("create a tenant"), move |view| {
            tenants::create(view, &tenant, identity.as_ref(), &by)
        })
    }

    /// Lets an issuer's claim prove a tenant; not found without the tenant, a
    /// conflict if the claim proves another.
    fn link_tenant(&self, identity: TenantIdentity, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("link a tenant"), move |view| tenants::link(view, &identity, &by))
    }

    /// Takes that back; `false` if it was not so.
    fn unlink_tenant(&self, identity: TenantIdentity, by: &Actor) -> BoxFuture<'_, Result<bool>> {
        let by = by.clone();
        change(self, Change::to("unlink a tenant"), move |view| tenants::unlink(view, &identity, &by))
    }

    /// Every identity of every tenant.
    fn tenant_identities(&self) -> BoxFuture<'_, Result<Vec<TenantIdentity>>> {
        look(self, "read the tenants", |view| {
            let mut found = view.all::<TenantIdentity>()?;
            found.sort_by(|one, other| one.tenant.cmp(&other.tenant));
            Ok(found)
        })
    }

    /// The tenant that an issuer's claim proves.
    fn tenant_of(&self, issuer: &str, claim: &str) -> BoxFuture<'_, Result<Option<String>>> {
        let (issuer, claim) = (issuer.to_owned(), claim.to_owned());
        look(self, "find a tenant", move |view| tenants::proven_by(view, &issuer, &claim))
    }

    /// Every tenant.
    fn tenants(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        look(self, "read the tenants", |view| {
            Ok(view.all::<TenantRow>()?.into_iter().map(|row| row.tenant).collect())
        })
    }

    /// Takes a tenant, its gateways and routes, and the keys of the named web-chat
    /// rooms: from this commit on it is gone. What it wrote and what waited for it
    /// goes with [`Upkeep::finish_removals`](super::Upkeep::finish_removals). Not found if there is none.
    fn remove_tenant(
        &self,
        tenant: &str,
        rooms: Vec<String>,
        by: &Actor,
    ) -> BoxFuture<'_, Result<TenantBelongings>> {
        let (tenant, by) = (tenant.to_owned(), by.clone());
        change(self, Change::to("remove a tenant").class(Class::of(&by)), move |view| {
            tenants::remove(view, &tenant, &rooms, &by)
        })
    }

    /// The tenant's sealed delivery key.
    fn delivery_key(&self, tenant: &str) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        let tenant = tenant.to_owned();
        look(self, "read a delivery key", move |view| {
            Ok(view.get::<TenantRow>((&tenant,))?.and_then(|row| row.delivery_key))
        })
    }

    /// Keeps `sealed` as the tenant's delivery key unless it has one; answers the one it has.
    fn keep_delivery_key(&self, tenant: &str, sealed: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>>> {
        let tenant = tenant.to_owned();
        change(self, Change::to("keep a delivery key"), move |view| {
            tenants::keep_delivery_key(view, &tenant, sealed.clone())
        })
    }

    /// Enrols a gateway; a conflict if the tenant has that id or too many, forbidden if its
    /// subject may not join the instance it names. The tenant's first one takes over the
    /// instance that waits for it.
    fn create_gateway(&self, gateway: NewGateway, by: &Actor) -> BoxFuture<'_, Result<StoredGateway>> {
        let by = by.clone();
        change(self, Change::to("create a gateway"), move |view| {
            gateways::create(view, &gateway, "gateway.create", &by)
        })
    }

    /// Gives a gateway a new secret. The one before is good until `old_until`, or
    /// void at once; older ones are void in any case.
    fn rotate_gateway(
        &self,
        tenant: &str,
        gateway_id: &str,
        sealed_secret: Vec<u8>,
        old_until: Option<UnixMillis>,
        by: &Actor,
    ) -> BoxFuture<'_, Result<StoredGateway>> {
        let (tenant, id, by) = (tenant.to_owned(), gateway_id.to_owned(), by.clone());
        change(self, Change::to("rotate a gateway").class(Class::of(&by)), move |view| {
            gateways::rotate(view, &tenant, &id, &sealed_secret, old_until, &by)
        })
    }

    /// Marks a gateway as revoked.
    fn revoke_gateway(
        &self,
        tenant: &str,
        gateway_id: &str,
        by: &Actor,
    ) -> BoxFuture<'_, Result<StoredGateway>> {
        let (tenant, id, by) = (tenant.to_owned(), gateway_id.to_owned(), by.clone());
        change(self, Change::to("revoke a gateway").class(Class::of(&by)), move |view| {
            gateways::revoke(view, &tenant, &id, &by)
        })
    }

    /// Changes what a gateway cannot tell itself.
    fn change_gateway(
        &self,
        tenant: &str,
        gateway_id: &str,
        to: GatewayChange,
        by: &Actor,
    ) -> BoxFuture<'_, Result<StoredGateway>> {
        let (tenant, id, by) = (tenant.to_owned(), gateway_id.to_owned(), by.clone());
        change(self, Change::to("change a gateway"), move |view| {
            gateways::change(view, &tenant, &id, &to, &by)
        })
    }

    /// Makes an instance the one that receives what no route of its tenant assigns.
    fn set_default_instance(
        &self,
        tenant: &str,
        instance: InstanceId,
        by: &Actor,
    ) -> BoxFuture<'_, Result<()>> {
        let (tenant, by) = (tenant.to_owned(), by.clone());
        change(self, Change::to("set a default"), move |view| {
            instances::set_default(view, &tenant, instance, &by)
        })
    }

    /// The instance that receives what no route of its tenant assigns. Changes that
    /// leave it without a gateway choose another where there is only one.
    fn default_instance(&self, tenant: &str) -> BoxFuture<'_, Result<Option<InstanceId>>> {
        let tenant = tenant.to_owned();
        look(self, "read a default", move |view| {
            Ok(view.get::<TenantRow>((&tenant,))?.and_then(|row| row.default_instance))
        })
    }

    /// Every gateway, in the order they were made.
    fn gateways(&self) -> BoxFuture<'_, Result<Vec<StoredGateway>>> {
        look(self, "read the gateways", gateways::all)
    }

    /// Every instance.
    fn instances(&self) -> BoxFuture<'_, Result<Vec<StoredInstance>>> {
        look(self, "read the instances", |view| {
            let tenants = view.all::<TenantRow>()?.into_iter();
            let defaults: HashMap<_, _> = tenants.map(|row| (row.tenant, row.default_instance)).collect();
            let stored = |row: InstanceRow| StoredInstance {
                is_default: defaults.get(&row.tenant) == Some(&Some(row.instance)),
                instance: row.instance,
                tenant: row.tenant,
                name: row.name,
                idle: row.idle,
                habit: row.ack_habit,
                subject: row.subject,
            };
            Ok(view.all::<InstanceRow>()?.into_iter().map(stored).collect())
        })
    }

    /// Adds a route; not found without its tenant, a conflict if the place is taken.
    fn add_route(&self, route: Route, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("add a route"), move |view| routes::add(view, &route, "route.add", &by))
    }

    /// Adds a route, in the place of the one there is.
    fn replace_route(&self, route: Route, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("replace a route"), move |view| routes::replace(view, &route, &by))
    }

    /// Removes a route; `false` if the place has none.
    fn remove_route(&self, place: &Place, bot: Option<&str>, by: &Actor) -> BoxFuture<'_, Result<bool>> {
        let (place, bot, by) = (place.clone(), bot.map(str::to_owned), by.clone());
        change(self, Change::to("remove a route").class(Class::of(&by)), move |view| {
            routes::remove(view, &place, bot.as_deref(), &by)
        })
    }

    /// Every route.
    fn routes(&self) -> BoxFuture<'_, Result<Vec<Route>>> {
        look(self, "read the routes", |view| {
            Ok(view.all::<RouteRow>()?.into_iter().map(Route::from).collect())
        })
    }
}

impl<R: Records + ?Sized> IdentityStore for R {}
