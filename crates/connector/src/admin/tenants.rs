//! Tenants, as an operator makes, links and removes them.

use super::Admin;
use super::types::Nothing;
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Result};
use angelia_core::identity::{MAX_NAME, check_name};
use angelia_core::store::{AccessStore, IdentityStore, TenantBelongings, TenantIdentity};
use angelia_platforms::webchat;
use std::sync::Arc;
use std::time::Duration;

asked! {
    /// A tenant to be made, and as whom an issuer knows it.
    pub struct CreateTenant {
        /// Its name.
        pub tenant: String,
        /// Whose claim proves it.
        pub issuer: Option<String>,
        /// What the issuer calls it.
        pub claim: Option<String>,
    }

    /// As whom an issuer knows a tenant.
    pub struct Link {
        /// The issuer, as its tokens name it.
        pub issuer: String,
        /// What it calls the tenant.
        pub claim: String,
    }

    /// Its name once more, so that a slip takes nothing.
    pub struct RemoveTenant {
        /// The tenant's name.
        pub confirm: String,
    }
}

answered! {
    /// A tenant that was made.
    pub struct CreatedTenant {
        /// Its name.
        pub tenant: String,
        /// As whom issuers know it.
        pub identities: Vec<TenantIdentity>,
    }

    /// Every tenant.
    pub struct Tenants {
        /// Their names.
        pub tenants: Vec<String>,
        /// As whom issuers know them.
        pub identities: Vec<TenantIdentity>,
    }

    /// What belongs to a tenant, in numbers.
    pub struct TenantCounts {
        /// Its name.
        pub tenant: String,
        /// What belongs to it.
        #[serde(flatten)]
        pub has: TenantBelongings,
    }

    /// What proves a tenant from now on.
    pub struct Linked {
        /// As whom the issuer knows it.
        pub linked: TenantIdentity,
    }

    /// What does not prove a tenant any more.
    pub struct Unlinked {
        /// As whom the issuer knew it.
        pub unlinked: TenantIdentity,
    }

    /// A tenant that is gone, and what went with it.
    pub struct RemovedTenant {
        /// Its name.
        pub removed: String,
        /// What went with it.
        #[serde(flatten)]
        pub has: TenantBelongings,
        /// Whether the disk has its space back; else it is still being deleted.
        pub deleted: bool,
    }
}

/// Longest issuer URL kept.
const MAX_ISSUER: usize = 512;

/// How long whoever removes a tenant waits until its data is deleted; the command gives up after 30 s.
const DELETED_WITHIN: Duration = Duration::from_secs(20);

pub(super) async fn create(admin: Arc<Admin>, body: CreateTenant) -> Result<CreatedTenant> {
    check_name("tenant", &body.tenant)?;
    let identity = first_identity(&admin, &body)?;
    admin.ports.records.create_tenant(&body.tenant, identity.clone(), &Actor::operator()).await?;
    let identities: Vec<TenantIdentity> = identity.into_iter().collect();
    Ok(CreatedTenant { tenant: body.tenant, identities })
}

/// Where one external issuer is configured, a tenant is known to it by its
/// own name unless the operator says otherwise.
fn first_identity(admin: &Admin, body: &CreateTenant) -> Result<Option<TenantIdentity>> {
    let only = || match admin.bearers.issuers().as_slice() {
        [only] => Some((*only).to_owned()),
        _ => None,
    };
    let Some(issuer) = body.issuer.clone().or_else(only) else {
        return match &body.claim {
            None => Ok(None),
            Some(_) => Err(Error::invalid("say whose claim it is: --issuer URL")),
        };
    };
    let claim = body.claim.clone().unwrap_or_else(|| body.tenant.clone());
    identity(body.tenant.clone(), issuer, claim).map(Some)
}

fn identity(tenant: String, issuer: String, claim: String) -> Result<TenantIdentity> {
    let printable = |text: &str| !text.is_empty() && !text.chars().any(|c| c.is_control());
    if !printable(&issuer) || issuer.len() > MAX_ISSUER || issuer.contains(char::is_whitespace) {
        return Err(Error::invalid(format!(
            "{issuer:?} cannot be an issuer; give its URL as its tokens name it"
        )));
    }
    if !printable(&claim) || claim.len() > MAX_NAME {
        return Err(Error::invalid(format!("the claim must have 1 to {MAX_NAME} bytes")));
    }
    Ok(TenantIdentity { tenant, issuer, claim })
}

pub(super) async fn list(admin: Arc<Admin>, _: Nothing) -> Result<Tenants> {
    let tenants = admin.ports.records.tenants().await?;
    let identities = admin.ports.records.tenant_identities().await?;
    Ok(Tenants { tenants, identities })
}

pub(super) async fn show(admin: Arc<Admin>, tenant: String, _: Nothing) -> Result<TenantCounts> {
    if !admin.ports.records.tenants().await?.contains(&tenant) {
        return Err(Error::not_found(format!("there is no tenant {tenant:?}")));
    }
    let known = admin.identities.snapshot();
    let clients = admin.ports.records.clients().await?;
    let inboxes = admin.ports.inboxes.inboxes().await?;
    let has = TenantBelongings {
        gateways: known.of_tenant(&tenant).len() as u64,
        routes: known.routes().iter().filter(|route| route.tenant == tenant).count() as u64,
        clients: clients.iter().filter(|client| client.tenant == tenant).count() as u64,
        waiting: inboxes.iter().filter(|inbox| inbox.tenant == tenant).map(|inbox| inbox.waiting).sum(),
    };
    Ok(TenantCounts { tenant, has })
}

pub(super) async fn link(admin: Arc<Admin>, tenant: String, body: Link) -> Result<Linked> {
    let identity = identity(tenant, body.issuer, body.claim)?;
    admin.ports.records.link_tenant(identity.clone(), &Actor::operator()).await?;
    Ok(Linked { linked: identity })
}

pub(super) async fn unlink(admin: Arc<Admin>, tenant: String, body: Link) -> Result<Unlinked> {
    let identity = identity(tenant, body.issuer, body.claim)?;
    if !admin.ports.records.unlink_tenant(identity.clone(), &Actor::operator()).await? {
        return Err(Error::not_found(format!(
            "tenant {:?} is not known to {} as {:?}",
            identity.tenant, identity.issuer, identity.claim
        )));
    }
    Ok(Unlinked { unlinked: identity })
}

pub(super) async fn remove(admin: Arc<Admin>, tenant: String, body: RemoveTenant) -> Result<RemovedTenant> {
    let removed = admin.identities.change(take_away(admin.clone(), tenant, body)).await?;
    Ok(RemovedTenant { deleted: delete_the_rest(&admin).await, ..removed })
}

async fn take_away(admin: Arc<Admin>, tenant: String, body: RemoveTenant) -> Result<RemovedTenant> {
    if body.confirm != tenant {
        return Err(Error::invalid(format!("to remove tenant {tenant:?}, confirm with its name")));
    }
    let rooms = rooms_of(&admin, &tenant).await?;
    // The routes go first: nothing new may be admitted while the rows go.
    let gone = admin.identities.now().of_tenant(&tenant);
    let operator = Actor::operator();
    let removal = admin.ports.records.remove_tenant(&tenant, rooms.clone(), &operator);
    let has = admin.identities.close_to(&tenant, removal).await?;
    for record in gone {
        admin.sessions.forget(record.instance);
    }
    admin.hub.close(&rooms);
    tracing::info!(%tenant, "a tenant was removed");
    Ok(RemovedTenant { removed: tenant, has, deleted: false })
}

/// Deletes what a removed tenant left, so that the disk has it back. What takes
/// longer, or fails, goes on in the upkeep.
async fn delete_the_rest(admin: &Admin) -> bool {
    match tokio::time::timeout(DELETED_WITHIN, admin.ports.upkeep.tend()).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, "what a removed tenant left could not all be deleted yet");
            false
        }
        Err(_) => false,
    }
}

/// The web-chat rooms that belong to a tenant now, by their routes.
async fn rooms_of(admin: &Admin, tenant: &str) -> Result<Vec<String>> {
    let known = admin.identities.snapshot();
    let routes = known.routes();
    let belongs = |room: &String| {
        let owner = routes.resolve(webchat::NAME, webchat::BOT, &[room.as_str(), "*"]);
        owner.is_some_and(|route| route.tenant == tenant)
    };
    Ok(admin.ports.lines.rooms().await?.into_iter().filter(belongs).collect())
}
