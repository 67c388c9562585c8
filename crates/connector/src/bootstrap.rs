//! What a server reads, and at its very first start makes, before it serves.

use crate::keyring::Keyring;
use crate::relay::{Sessions, Standing};
use angelia_core::admission::{Allow, Route};
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::instances::waits_for_first;
use angelia_core::records::Records;
use angelia_core::seal::{FORMER_KEY, KEY_CHECK, Keys, OAUTH_KEY};
use angelia_core::secret::Secret;
use angelia_core::store::IdentityStore;

/// The tenant of whoever runs angelia for themselves; exists from the start.
pub(crate) const DEFAULT_TENANT: &str = "default";
/// Whether the first route was made; an operator who removes it means it.
const FURNISHED: &str = "furnished";

/// Makes the first tenant and the first route, once.
pub(crate) async fn furnish(records: &dyn Records) -> Result<()> {
    if records.note(FURNISHED).await?.is_some() {
        return Ok(());
    }
    let server = Actor::server();
    // A start that was cut short may have made either already.
    unless_made(records.create_tenant(DEFAULT_TENANT, None, &server).await)?;
    unless_made(records.add_route(web_chat_for_everybody()?, &server).await)?;
    records.set_note(FURNISHED, vec![1]).await
}

fn unless_made<T>(made: Result<T>) -> Result<()> {
    match made {
        Err(error) if error.kind() != Kind::Conflict => Err(error),
        _ => Ok(()),
    }
}

/// Reads what is known of the gateways behind instances.
pub(crate) async fn recall_standing(records: &dyn Records, sessions: &Sessions) -> Result<()> {
    for instance in records.instances().await? {
        if !waits_for_first(&instance.name) {
            let standing = Standing { habit: instance.habit, idle: instance.idle };
            sessions.remember(instance.instance, standing);
        }
    }
    Ok(())
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
        while_busy: None,
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
