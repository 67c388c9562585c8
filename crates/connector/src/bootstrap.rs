//! What a server reads, and at its very first start makes, before it serves.

use crate::keyring::Keyring;
use crate::relay::{Sessions, Standing};
use angelia_core::admission::{Allow, Route, RouteOptions};
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::instances::waits_for_first;
use angelia_core::records::Records;
use angelia_core::seal::{BUS_KEY, FORMER_KEY, KEY_CHECK, Keys, OAUTH_KEY};
use angelia_core::secret::{Secret, fingerprint};
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
            let standing = Standing { habit: instance.habit, idle: instance.idle, ..Standing::default() };
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
        options: RouteOptions::default(),
    })
}

/// Refuses to go on with a key that does not open what is stored. Finds the key before
/// it, if a change of keys is not finished.
pub(crate) async fn check_key(records: &dyn Records, ring: &Keyring) -> Result<()> {
    let keys = ring.keys();
    let key = keys.current();
    let sealed = match records.note(KEY_CHECK).await? {
        Some(sealed) => sealed,
        // Of several nodes that begin with an empty store one is first, and its key counts.
        None => records.note_once(KEY_CHECK, key.seal(&Secret::new(KEY_CHECK), KEY_CHECK)?).await?,
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

/// The key that signs tokens of the built-in endpoint, made once, for all nodes.
pub(crate) async fn oauth_key(records: &dyn Records, keys: &Keys) -> Result<Secret> {
    let made = Secret::mint();
    let own = keys.seal(&made, OAUTH_KEY)?;
    let sealed = match records.note(OAUTH_KEY).await? {
        Some(sealed) => sealed,
        None => records.note_once(OAUTH_KEY, own.to_vec()).await?,
    };
    let error = match keys.open(&sealed, OAUTH_KEY) {
        Ok(known) => return Ok(known),
        Err(error) => error,
    };
    // It signs what is good for an hour: a new one costs less than no server.
    tracing::error!(%error, "the key of the token endpoint does not open; made anew");
    records.replace_note(OAUTH_KEY, sealed, own.to_vec()).await?;
    // Another node may have been first with that too.
    let sealed = records.note(OAUTH_KEY).await?.unwrap_or_default();
    Ok(keys.open(&sealed, OAUTH_KEY)?)
}

/// By what the nodes of a cluster know each other.
pub struct ClusterKey {
    /// What the cluster is called, where several share a bus.
    pub id: String,
    /// What proves that one of its nodes speaks.
    pub secret: [u8; 32],
}

/// What the cluster is called.
const CLUSTER_ID: &str = "cluster_id";

/// Reads by what nodes know each other; the first one makes it.
pub async fn cluster_key(records: &dyn Records, keys: &Keyring) -> Result<ClusterKey> {
    let name =
        Secret::mint().expose().chars().filter(char::is_ascii_alphanumeric).take(12).collect::<String>();
    let id = records.note_once(CLUSTER_ID, name.into_bytes()).await?;
    let sealed = match records.note(BUS_KEY).await? {
        Some(sealed) => sealed,
        None => records.note_once(BUS_KEY, keys.seal(&Secret::mint(), BUS_KEY)?.to_vec()).await?,
    };
    let secret = fingerprint(keys.open(&sealed, BUS_KEY)?.expose());
    Ok(ClusterKey { id: String::from_utf8_lossy(&id).into_owned(), secret })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin_token::AdminToken;
    use angelia_core::inbox::Quota;
    use angelia_core::seal::{ADMIN_TOKEN, MasterKey};
    use angelia_engines::local_bus::LocalBus;
    use angelia_engines::store::sqlite::Sqlite;
    use parking_lot::Mutex;
    use std::sync::Arc;

    const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

    fn store() -> (tempfile::TempDir, Arc<Sqlite>) {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(folder.path(), Quota::default(), Arc::new(LocalBus::default())).unwrap();
        (folder, Arc::new(store))
    }

    fn ring(hex: &str) -> Arc<Keyring> {
        Keyring::kept_nowhere(MasterKey::from_hex(hex).unwrap())
    }

    #[tokio::test]
    async fn nodes_that_begin_at_once_agree() {
        let (_folder, store) = store();
        let nodes = [ring(KEY), ring(KEY), ring(KEY)];
        let begin = async |ring: &Keyring| {
            check_key(&*store, ring).await.unwrap();
            furnish(&*store).await.unwrap();
            oauth_key(&*store, &ring.keys()).await.unwrap()
        };
        let made = tokio::join!(begin(&nodes[0]), begin(&nodes[1]), begin(&nodes[2]));
        assert!(made.0.matches(made.1.expose()) && made.0.matches(made.2.expose()), "one signing key");
        let other = ring(&KEY.replace('7', "8"));
        let refused = check_key(&*store, &other).await.unwrap_err().to_string();
        assert!(refused.contains(&other.keys().current().id().to_string()), "{refused}");
    }

    #[tokio::test]
    async fn a_signing_key_that_does_not_open_is_made_anew_once() {
        let (_folder, store) = store();
        store.set_note(OAUTH_KEY, b"damaged".to_vec()).await.unwrap();
        let keys = ring(KEY).keys();
        let (one, two) = tokio::join!(oauth_key(&*store, &keys), oauth_key(&*store, &keys));
        assert!(one.unwrap().matches(two.unwrap().expose()));
    }

    #[tokio::test]
    async fn the_admin_token_of_all_nodes_is_the_first_ones_and_follows() {
        let (_folder, store) = store();
        let (ring, written) = (ring(KEY), Arc::<Mutex<Vec<String>>>::default());
        let token = |own: &str| {
            let written = written.clone();
            let keep = move |token: &Secret| {
                written.lock().push(token.expose().to_owned());
                Ok(())
            };
            AdminToken::new(Secret::new(own), keep)
        };
        let [first, second] = [token("one"), token("two")];
        first.share(&*store, &ring).await.unwrap();
        second.share(&*store, &ring).await.unwrap();
        assert!(second.matches("one") && !second.matches("two"));
        assert_eq!(*written.lock(), ["one"], "only where it is news");

        second.rotate_shared(&*store, &ring).await.unwrap();
        let kept = store.note(ADMIN_TOKEN).await.unwrap();
        assert!(first.matches("one"), "until it has looked");
        first.follow(kept.clone(), &ring).unwrap();
        let new = written.lock().last().cloned().unwrap();
        assert!(first.matches(&new) && second.matches(&new) && !first.matches("one"));
        assert_eq!(written.lock().len(), 3);
        first.follow(kept, &ring).unwrap();
        assert_eq!(written.lock().len(), 3, "once");
    }
}
