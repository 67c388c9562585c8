//! Tenants, gateways and routes as the store sees them.

use super::Later;
use crate::admission::{Place, Route};
use crate::clock::UnixMillis;
use crate::inbox::{AckHabit, InstanceId};
use crate::interrupt::Conversation;

/// A gateway to be enrolled.
#[derive(Clone, Debug)]
pub struct NewGateway {
    /// Its tenant; made if it does not exist.
    pub tenant: String,
    /// Its id.
    pub gateway_id: String,
    /// Its secret, sealed.
    pub sealed_secret: Vec<u8>,
    /// Where to poke it when it sleeps.
    pub wake_url: Option<String>,
}

/// One sealed secret of a stored gateway.
#[derive(Clone, Debug)]
pub struct StoredSecret {
    /// The sealed bytes.
    pub sealed: Vec<u8>,
    /// Until when it is good; `None` for the current one.
    pub valid_until: Option<UnixMillis>,
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
    pub secrets: Vec<StoredSecret>,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
    /// Where to poke it.
    pub wake_url: Option<String>,
}

/// An instance as it rests.
#[derive(Clone, Debug)]
pub struct StoredInstance {
    /// Its number.
    pub instance: InstanceId,
    /// Its tenant.
    pub tenant: String,
    /// Whether its tenant's unassigned messages go to it.
    pub is_default: bool,
    /// Whether its gateway said it goes idle.
    pub idle: bool,
    /// What is known of its gateway's habit of acknowledging.
    pub habit: AckHabit,
}

/// Who is known here.
pub trait IdentityStore: Send + Sync {
    /// The value kept under `name` in the store's own notes.
    fn note(&self, name: &'static str) -> Later<'_, Option<Vec<u8>>>;

    /// Keeps a value under `name`.
    fn set_note(&self, name: &'static str, value: Vec<u8>) -> Later<'_, ()>;

    /// Makes a tenant; a conflict if it exists.
    fn create_tenant(&self, tenant: &str) -> Later<'_, ()>;

    /// Every tenant.
    fn tenants(&self) -> Later<'_, Vec<String>>;

    /// Enrols a gateway; a conflict if the tenant has that id.
    fn create_gateway(&self, gateway: NewGateway) -> Later<'_, StoredGateway>;

    /// Gives a gateway a new secret; those it has are good until `old_until`.
    fn rotate_gateway(
        &self,
        tenant: &str,
        gateway_id: &str,
        sealed_secret: Vec<u8>,
        old_until: UnixMillis,
    ) -> Later<'_, StoredGateway>;

    /// Marks a gateway as revoked.
    fn revoke_gateway(&self, tenant: &str, gateway_id: &str) -> Later<'_, StoredGateway>;

    /// Sets where a gateway is poked.
    fn set_wake_url(&self, tenant: &str, gateway_id: &str, url: Option<String>) -> Later<'_, StoredGateway>;

    /// Makes an instance the one that receives what no route of its tenant assigns.
    fn set_default_instance(&self, tenant: &str, instance: InstanceId) -> Later<'_, ()>;

    /// Every gateway, in the order they were made.
    fn gateways(&self) -> Later<'_, Vec<StoredGateway>>;

    /// Every instance.
    fn instances(&self) -> Later<'_, Vec<StoredInstance>>;

    /// Adds a route; a conflict if the place is taken.
    fn add_route(&self, route: Route) -> Later<'_, ()>;

    /// Removes a route; `false` if the place has none.
    fn remove_route(&self, place: &Place, bot: Option<&str>) -> Later<'_, bool>;

    /// Every route.
    fn routes(&self) -> Later<'_, Vec<Route>>;

    /// The conversation a tenant's key was last delivered to.
    fn conversation(&self, tenant: &str, session_key: &str) -> Later<'_, Option<Conversation>>;

    /// A tenant's most recent conversations, newest first.
    fn recent_conversations(&self, tenant: &str, limit: usize) -> Later<'_, Vec<Conversation>>;
}
