//! Gateways, from their making to their revocation.

use super::Admin;
use super::standing_elsewhere::Instances;
use super::types::Nothing;
use crate::bootstrap::DEFAULT_TENANT;
use crate::upkeep::Waker;
use angelia_core::audit::Actor;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::identity::new_gateway_limits::MAX_GATEWAYS_PER_TENANT;
use angelia_core::identity::{GatewayRecord, ROTATION_WINDOW, check_name};
use angelia_core::seal;
use angelia_core::secret::{Secret, random_hex};
use angelia_core::store::{GatewayChange, IdentityStore, NewGateway};
use angelia_core::turns::WhileBusy;
use std::sync::Arc;

asked! {
    /// A gateway to be made.
    pub struct CreateGateway {
        /// Whose it is; the default tenant's if not said.
        pub tenant: Option<String>,
        /// Its id; made up if not given.
        pub gateway_id: Option<String>,
        /// Where to poke it when it sleeps and something waits.
        pub wake_url: Option<String>,
        /// What people see it called.
        pub display_name: Option<String>,
        /// What becomes of messages while it is busy, where their route says nothing; `auto` if not said.
        pub while_busy: Option<WhileBusy>,
        /// Whether it is set to share sessions in groups: all people of a group are one conversation with it.
        #[serde(default)]
        pub shared_groups: bool,
    }

    /// Which of several gateways with one id, and what is to become of it.
    pub struct ChangeGateway {
        /// Its tenant, where ids collide.
        pub tenant: Option<String>,
        /// Empty to take it away.
        pub wake_url: Option<String>,
        /// Empty to take it away.
        pub display_name: Option<String>,
        /// The inbox it serves.
        pub instance: Option<String>,
        /// What becomes of messages while it is busy, where their route says nothing.
        pub while_busy: Option<WhileBusy>,
        /// Whether all people of a group are one conversation with it.
        pub shared_groups: Option<bool>,
    }

    /// Which of several gateways with one id, and what becomes of its old secrets.
    pub struct RotateGateway {
        /// Its tenant, where ids collide.
        pub tenant: Option<String>,
        /// Void the old secrets at once and close the sockets that they opened.
        #[serde(default)]
        pub now: bool,
    }
}

answered! {
    /// The one answer that shows a gateway's secret.
    pub struct GatewaySecret {
        /// Its tenant.
        pub tenant: String,
        /// Its id.
        pub gateway_id: String,
        /// The secret; it is not shown again.
        pub secret: String,
        /// The lines an agent needs.
        pub env: Vec<String>,
    }

    /// Every gateway.
    pub struct Gateways {
        /// By tenant and id.
        pub gateways: Vec<Gateway>,
    }

    /// A gateway.
    pub struct Gateway {
        /// Its tenant.
        pub tenant: String,
        /// Its id.
        pub gateway_id: String,
        /// The inbox it serves.
        pub instance: String,
        /// Whether its socket is open.
        pub connected: bool,
        /// Whether it said that it goes idle.
        pub idle: bool,
        /// Whether it receives what no route assigns.
        pub default: bool,
        /// Where it is poked when it sleeps and something waits.
        pub wake_url: Option<String>,
        /// What people see it called.
        pub display_name: Option<String>,
        /// Who enrolled it; `null` for the operator.
        pub subject: Option<String>,
        /// What becomes of messages while it is busy, where their route says nothing.
        pub while_busy: WhileBusy,
        /// Whether all people of a group are one conversation with it.
        pub shared_groups: bool,
        /// How it tells that it has finished with a message, as far as was seen since the server started.
        pub turns: String,
        /// The bots it says it answers for.
        pub fronts: Vec<Front>,
        /// When it was revoked.
        pub revoked_at: Option<UnixMillis>,
    }

    /// A gateway that was revoked.
    pub struct RevokedGateway {
        /// As it is now.
        #[serde(flatten)]
        pub gateway: Gateway,
        /// What becomes of what it received as its tenant's default, and what to do about that.
        pub next: Option<String>,
    }

    /// A bot that a gateway answers for.
    pub struct Front {
        /// Its platform.
        pub platform: String,
        /// Its id there.
        pub bot: String,
    }
}

/// Longest name people see; the contract's own limit.
const MAX_DISPLAY_NAME: usize = 64;

pub(super) async fn create(admin: Arc<Admin>, body: CreateGateway) -> Result<GatewaySecret> {
    let tenant = body.tenant.unwrap_or_else(|| DEFAULT_TENANT.into());
    let gateway_id = body.gateway_id.unwrap_or_else(|| format!("gw-{}", random_hex::<4>()));
    check_name("tenant", &tenant)?;
    check_name("gateway id", &gateway_id)?;
    body.wake_url.as_deref().map_or(Ok(()), |url| check_wake_url(&admin.wake, url))?;
    body.display_name.as_deref().map_or(Ok(()), check_display_name)?;
    let secret = Secret::mint();
    let sealed = admin.keys.seal(&secret, &seal::gateway_secret(&tenant, &gateway_id))?;
    let new = NewGateway {
        tenant,
        gateway_id,
        instance: None,
        sealed_secret: sealed.to_vec(),
        wake_url: body.wake_url,
        display_name: body.display_name,
        while_busy: body.while_busy,
        shared_groups: body.shared_groups,
        subject: None,
        most: MAX_GATEWAYS_PER_TENANT,
    };
    let stored = admin.ports.records.create_gateway(new, &Actor::operator()).await?;
    let record = admin.identities.know(&stored).await?;
    Ok(with_secret(&admin, &record, &secret))
}

/// Refuses a wake URL that could never be called. Where its name leads is seen
/// when it is. The URL may carry a secret, so it is not repeated.
pub(super) fn check_wake_url(wake: &Waker, url: &str) -> Result<()> {
    wake.could_call(url).map_err(|why| {
        Error::invalid(format!(
            "the wake URL could never be called: {why}. Give an https URL with a public address; the operator \
             can allow others with wake.allow and wake.allow_http"
        ))
    })
}

/// Whether people can be shown a name.
pub(super) fn check_display_name(name: &str) -> Result<()> {
    if name.chars().count() > MAX_DISPLAY_NAME || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "a display name has at most {MAX_DISPLAY_NAME} characters, and no control characters"
        )));
    }
    Ok(())
}

/// Refuses to give anything to a gateway that was revoked.
pub(super) fn check_welcome(record: &GatewayRecord) -> Result<()> {
    match record.revoked_at {
        Some(_) => {
            Err(Error::conflict(format!("gateway {:?} is revoked; make a new one", record.gateway_id)))
        }
        None => Ok(()),
    }
}

/// The one gateway with this id, within `tenant` where that is given.
pub(super) fn gateway(admin: &Admin, tenant: Option<&str>, id: &str) -> Result<Arc<GatewayRecord>> {
    let mut records = admin.identities.now().gateways(id);
    records.retain(|record| tenant.is_none_or(|tenant| tenant == record.tenant));
    match records.as_slice() {
        [] => Err(Error::not_found(format!("there is no gateway {id:?}"))),
        [record] => Ok(record.clone()),
        _ => Err(Error::conflict(format!("several tenants have a gateway {id:?}; add --tenant"))),
    }
}

pub(super) async fn list(admin: Arc<Admin>, _: Nothing) -> Result<Gateways> {
    let all = admin.identities.now().all();
    let instances = Instances::of(&admin, &all).await?;
    Ok(Gateways { gateways: all.iter().map(|record| describe_as(&admin, record, &instances)).collect() })
}

impl ChangeGateway {
    fn read(self, admin: &Admin) -> Result<GatewayChange> {
        let Self { tenant: _, wake_url, display_name, instance, while_busy, shared_groups } = self;
        let texts = [&wake_url, &display_name, &instance];
        if texts.iter().all(|text| text.is_none()) && while_busy.is_none() && shared_groups.is_none() {
            return Err(Error::invalid(
                "say what to set: --wake-url URL, --display-name NAME, --instance NAME, --while-busy MODE or \
                 --shared-groups",
            ));
        }
        let wake_url = wake_url.map(|url| Some(url).filter(|url| !url.is_empty()));
        let display_name = display_name.map(|name| Some(name).filter(|name| !name.is_empty()));
        wake_url.iter().flatten().try_for_each(|url| check_wake_url(&admin.wake, url))?;
        display_name.iter().flatten().try_for_each(|name| check_display_name(name))?;
        instance.iter().try_for_each(|name| check_name("instance", name))?;
        Ok(GatewayChange { wake_url, display_name, instance, while_busy, shared_groups, subject: None })
    }
}

pub(super) async fn show(admin: Arc<Admin>, id: String, body: ChangeGateway) -> Result<Gateway> {
    describe(&admin, &gateway(&admin, body.tenant.as_deref(), &id)?).await
}

pub(super) async fn set(admin: Arc<Admin>, id: String, body: ChangeGateway) -> Result<Gateway> {
    let before = gateway(&admin, body.tenant.as_deref(), &id)?;
    let change = body.read(&admin)?;
    let (tenant, id) = (&before.tenant, &before.gateway_id);
    let stored = admin.ports.records.change_gateway(tenant, id, change, &Actor::operator()).await?;
    let record = admin.identities.know(&stored).await?;
    admin.wake.start_over(record.instance);
    describe(&admin, &record).await
}

pub(super) async fn make_default(admin: Arc<Admin>, id: String, body: ChangeGateway) -> Result<Gateway> {
    let record = gateway(&admin, body.tenant.as_deref(), &id)?;
    check_welcome(&record)?;
    let (tenant, instance) = (&record.tenant, record.instance);
    admin.ports.records.set_default_instance(tenant, instance, &Actor::operator()).await?;
    admin.identities.follow().await?;
    describe(&admin, &record).await
}

pub(super) async fn rotate(admin: Arc<Admin>, id: String, body: RotateGateway) -> Result<GatewaySecret> {
    let record = gateway(&admin, body.tenant.as_deref(), &id)?;
    check_welcome(&record)?;
    let secret = Secret::mint();
    let bound_to = seal::gateway_secret(&record.tenant, &record.gateway_id);
    let sealed = admin.keys.seal(&secret, &bound_to)?;
    let old_until = (!body.now).then(|| clock::wall().after(ROTATION_WINDOW));
    let (tenant, id) = (&record.tenant, &record.gateway_id);
    let stored = admin
        .ports
        .records
        .rotate_gateway(tenant, id, sealed.to_vec(), old_until, &Actor::operator())
        .await?;
    let record = admin.identities.know(&stored).await?;
    if body.now {
        tracing::info!(tenant = %record.tenant, gateway = %record.gateway_id, "a gateway's old secrets are void");
    }
    Ok(with_secret(&admin, &record, &secret))
}

pub(super) async fn revoke(admin: Arc<Admin>, id: String, body: ChangeGateway) -> Result<RevokedGateway> {
    let record = gateway(&admin, body.tenant.as_deref(), &id)?;
    let was_default = admin.identities.now().is_default(&record.tenant, record.instance);
    let (tenant, id) = (&record.tenant, &record.gateway_id);
    let stored = admin.ports.records.revoke_gateway(tenant, id, &Actor::operator()).await?;
    let record = admin.identities.know(&stored).await?;
    tracing::info!(tenant = %record.tenant, gateway = %record.gateway_id, "a gateway was revoked");
    let next = if was_default { without_default(&admin, &record) } else { None };
    Ok(RevokedGateway { gateway: describe(&admin, &record).await?, next })
}

/// Who receives what no route assigns, now that the gateway is gone that did.
fn without_default(admin: &Admin, gone: &GatewayRecord) -> Option<String> {
    let known = admin.identities.now();
    let tenant = &gone.tenant;
    let all = known.all();
    let left: Vec<_> = all.iter().filter(|it| it.tenant == *tenant && it.revoked_at.is_none()).collect();
    if left.iter().any(|it| it.instance == gone.instance) {
        return None;
    }
    let default = left.iter().find(|it| known.is_default(tenant, it.instance));
    let names: Vec<&str> = left.iter().map(|it| it.gateway_id.as_str()).collect();
    Some(match (default, names.as_slice()) {
        (Some(next), _) => format!("What no route assigns goes to {} from now on.", next.gateway_id),
        (None, []) => format!(
            "Tenant {tenant} has no gateway left: nobody gets what is written to it. Make one: angelia gateway create \
             --tenant {tenant}"
        ),
        (None, names) => format!(
            "It received what no route assigns, and nobody does now. Choose another one: angelia gateway default \
             --tenant {tenant} {} (there are {})",
            names[0],
            names.join(", ")
        ),
    })
}

async fn describe(admin: &Admin, record: &Arc<GatewayRecord>) -> Result<Gateway> {
    let instances = Instances::of(admin, std::slice::from_ref(record)).await?;
    Ok(describe_as(admin, record, &instances))
}

fn describe_as(admin: &Admin, record: &GatewayRecord, instances: &Instances) -> Gateway {
    let known = admin.identities.now();
    let standing = instances.standing(admin, record.instance);
    let fronts = known.fronts(record.instance).into_iter();
    Gateway {
        tenant: record.tenant.clone(),
        gateway_id: record.gateway_id.clone(),
        instance: record.instance_name.clone(),
        connected: instances.is_connected(admin, record),
        idle: standing.idle,
        default: known.is_default(&record.tenant, record.instance),
        wake_url: record.wake_url.clone(),
        display_name: record.display_name.clone(),
        while_busy: record.while_busy.unwrap_or_default(),
        shared_groups: record.shared_groups,
        turns: standing.marks_turns().to_owned(),
        subject: record.subject.as_ref().map(|subject| subject.as_str().to_owned()),
        fronts: fronts.map(|(platform, bot)| Front { platform, bot }).collect(),
        revoked_at: record.revoked_at,
    }
}

/// The one answer that shows a secret, with the lines an agent needs.
fn with_secret(admin: &Admin, record: &GatewayRecord, secret: &Secret) -> GatewaySecret {
    let env = [
        format!("GATEWAY_RELAY_URL={}", admin.public_url),
        format!("GATEWAY_RELAY_ID={}", record.gateway_id),
        format!("GATEWAY_RELAY_SECRET={}", secret.expose()),
    ];
    GatewaySecret {
        tenant: record.tenant.clone(),
        gateway_id: record.gateway_id.clone(),
        secret: secret.expose().to_owned(),
        env: env.to_vec(),
    }
}
