//! What a server reads, and at its very first start makes, before it serves.

use crate::admin::Keyring;
use crate::identities::Front;
use crate::relay::Standing;
use crate::server::{DEFAULT_TENANT, Server};
use angelia_core::admission::{Allow, Route};
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::instances::waits_for_first;
use angelia_core::inbox::InstanceId;
use angelia_core::records::Records;
use angelia_core::seal::{FORMER_KEY, KEY_CHECK, Keys, OAUTH_KEY};
use angelia_core::secret::Secret;
use angelia_core::store::{AccessStore, IdentityStore};
use std::collections::{BTreeSet, HashMap};

/// Whether the first route was made; an operator who removes it means it.
const FURNISHED: &str = "furnished";

impl Server {
    /// Reads who is known and which routes there are; makes the first ones.
    pub(crate) async fn read_roster(&self) -> Result<()> {
        let keys = self.options.master_key.keys();
        for stored in self.ports.records.gateways().await? {
            self.identities.put(stored, &keys);
        }
        for instance in self.ports.records.instances().await? {
            if waits_for_first(&instance.name) {
                self.identities.await_first(&instance.tenant, instance.instance);
                continue;
            }
            if instance.is_default {
                self.identities.set_default(&instance.tenant, Some(instance.instance));
            }
            let standing = Standing { habit: instance.habit, idle: instance.idle };
            self.sessions.remember(instance.instance, standing);
        }
        for (instance, platform, policy) in self.ports.records.policies().await? {
            self.identities.set_policy(instance, platform, policy);
        }
        let mut fronts: HashMap<InstanceId, BTreeSet<Front>> = HashMap::new();
        for (instance, platform, bot) in self.ports.records.fronts().await? {
            fronts.entry(instance).or_default().insert((platform, bot));
        }
        for (instance, fronts) in fronts {
            self.identities.set_fronts(instance, fronts);
        }
        let mut routes = self.ports.records.routes().await?;
        if self.ports.records.note(FURNISHED).await?.is_none() {
            let everywhere = web_chat_for_everybody()?;
            self.make_first_tenant().await?;
            match self.ports.records.add_route(everywhere.clone(), &Actor::server()).await {
                Ok(()) => routes.push(everywhere),
                // A start that was cut short had made it already.
                Err(error) if error.kind() == Kind::Conflict => {}
                Err(error) => return Err(error),
            }
            self.ports.records.set_note(FURNISHED, vec![1]).await?;
        }
        self.identities.set_routes(routes);
        Ok(())
    }

    /// A start that was cut short may have made it already.
    async fn make_first_tenant(&self) -> Result<()> {
        match self.ports.records.create_tenant(DEFAULT_TENANT, None, &Actor::server()).await {
            Ok(first) => self.identities.await_first(DEFAULT_TENANT, first),
            Err(error) if error.kind() == Kind::Conflict => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The first route: rooms of the web chat belong to the default tenant until
/// an operator says otherwise. Everybody who was invited may speak there.
fn web_chat_for_everybody() -> Result<Route> {
    Ok(Route {
        place: "webchat:*".parse()?,
        bot: None,
        tenant: DEFAULT_TENANT.into(),
        instance: None,
        allow: Allow::Any,
        free: true,
    })
}

/// Refuses to go on with a key that does not open what is stored. Finds the key before
/// it, if a change of keys is not finished.
pub(crate) async fn check_key(records: &dyn Records, ring: &Keyring) -> Result<()> {
    let keys = ring.keys();
    let key = keys.current();
    let Some(sealed) = records.note(KEY_CHECK).await? else {
        return records.set_note(KEY_CHECK, key.seal(&Secret::new(KEY_CHECK), KEY_CHECK)?).await;
    };
    key.open(&sealed, KEY_CHECK)
        .map_err(|error| Error::internal(format!("the check of the master key failed: {error}")))?;
    if let Some(enclosed) = records.note(FORMER_KEY).await? {
        let former = key.disclose(&enclosed);
        if let Err(error) = &former {
            // What was sealed with it is named when it is opened; the rest works.
            tracing::error!(%error, "the master key before this one does not open");
        }
        ring.resume_from(former.ok());
    }
    Ok(())
}

/// The key that signs tokens of the built-in endpoint, made once.
pub(crate) async fn oauth_key(records: &dyn Records, keys: &Keys) -> Result<Secret> {
    if let Some(sealed) = records.note(OAUTH_KEY).await? {
        match keys.open(&sealed, OAUTH_KEY) {
            Ok(known) => return Ok(known),
            // It signs what is good for an hour: a new one costs less than no server.
            Err(error) => tracing::error!(%error, "the key of the token endpoint does not open; made anew"),
        }
    }
    let made = Secret::mint();
    records.set_note(OAUTH_KEY, keys.seal(&made, OAUTH_KEY)?.into()).await?;
    Ok(made)
}
