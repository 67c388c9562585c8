//! A change of the master key while bots bring in what is sealed.

use super::directory::bot;
use super::identity::{by, gateway};
use super::open::{Engine, Opened};
use super::vault::interaction;
use crate::ports::seals::sealed_in;
use angelia_core::clock::UnixMillis;
use angelia_core::inbox::InstanceId;
use angelia_core::seal::{FORMER_KEY, KEY_CHECK, Keys, MasterKey, OAUTH_KEY};
use angelia_core::secret::Secret;
use angelia_core::store::{
    IdentityStore, Intake, KeyChange, NewQuarantined, Resealed, Retired, SealStore, SealedValue,
};
use std::sync::Arc;

/// A store with one value of each kind under a key, and the keys of a change from it.
async fn changing(store: &Arc<dyn Engine>) -> (Keys, InstanceId) {
    let (old, new) = (MasterKey::mint(), MasterKey::mint());
    let seal = |bound_to: &str| old.seal(&Secret::new("x"), bound_to).unwrap();
    let instance = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap().instance;
    store.rotate_gateway("acme", "gw", seal("gateway-secret/acme/gw"), None, &by()).await.unwrap();
    store.keep_delivery_key("acme", seal("delivery-key/acme")).await.unwrap();
    store.set_note(KEY_CHECK, seal(KEY_CHECK)).await.unwrap();
    store.set_note(OAUTH_KEY, seal(OAUTH_KEY)).await.unwrap();
    let sealed = seal("quarantine/discord/main").into();
    let quarantined = NewQuarantined { what: "1".into(), why: "2".into(), sealed, at: UnixMillis(0) };
    let quarantined = Intake { quarantined: Some(quarantined), ..Intake::default() };
    let mut pressed = interaction(instance, 1);
    pressed.capability.as_mut().unwrap().sealed = seal("capability/acme/1/discord/main/lab/ann/i1").into();
    store.take_in(&bot(), None, vec![quarantined, pressed]).await.unwrap();
    let change = KeyChange {
        from: old.id(),
        to: new.id(),
        old_check: store.note(KEY_CHECK).await.unwrap().unwrap(),
        check: new.seal(&Secret::new(KEY_CHECK), KEY_CHECK).unwrap(),
        former: new.enclose(&old).unwrap(),
    };
    store.begin_key_change(change, &by()).await.unwrap();
    (Keys::new(new).with_former(old), instance)
}

#[tokio::test]
async fn a_key_is_kept_while_any_value_needs_it() {
    let opened = Opened::with_tenants(&["acme"]).await;
    let store = &opened.store;
    let (keys, _) = changing(store).await;
    let head = keys.current().head();
    let due: Vec<SealedValue> =
        sealed_in(&**store, 100).await.into_iter().filter(|value| keys.is_due(&value.sealed)).collect();
    let kinds: Vec<&str> = due.iter().map(|value| value.kind).collect();
    assert_eq!(kinds.len(), 5, "all but the check: {kinds:?}");
    for old in due {
        assert_eq!(store.retire_key(head).await.unwrap(), Retired::Needed, "by the {}", old.kind);
        assert!(store.note(FORMER_KEY).await.unwrap().is_some());
        let sealed = keys.rewrap(&old.sealed, &old.bound_to).unwrap();
        assert_eq!(store.reseal(vec![Resealed { old, sealed }]).await.unwrap(), 1);
    }
    let gone = store.retire_key(head).await.unwrap();
    assert_eq!(gone, Retired::Gone { erased: Opened::ERASES }, "nobody reads: a log of our own is emptied");
    assert_eq!(store.note(FORMER_KEY).await.unwrap(), None);
    for value in sealed_in(&**store, 100).await {
        assert!(keys.current().open(&value.sealed, &value.bound_to).is_ok(), "{}", value.kind);
    }
    assert_eq!(store.retire_key(head).await.unwrap(), gone, "twice does no harm");
}

#[tokio::test]
async fn what_was_sealed_with_the_old_key_and_comes_late_keeps_it() {
    let opened = Opened::with_tenants(&["acme"]).await;
    let store = &opened.store;
    let (keys, instance) = changing(store).await;
    let due = sealed_in(&**store, 100).await.into_iter().filter(|value| keys.is_due(&value.sealed));
    let rewrap =
        |old: SealedValue| Resealed { sealed: keys.rewrap(&old.sealed, &old.bound_to).unwrap(), old };
    store.reseal(due.map(rewrap).collect()).await.unwrap();
    // It was sealed before the change, and waited.
    let bound_to = "capability/acme/1/discord/main/lab/ann/i2";
    let mut late = interaction(instance, 2);
    late.capability.as_mut().unwrap().sealed =
        keys.former().unwrap().seal(&Secret::new("late"), bound_to).unwrap().into();
    let taken = store.take_in(&bot(), None, vec![late]).await.unwrap();
    assert!(taken[0].appended.is_some() && !taken[0].given_up, "{taken:?}");
    assert_eq!(store.retire_key(keys.current().head()).await.unwrap(), Retired::Needed);
    let found = sealed_in(&**store, 100).await.into_iter().find(|value| value.bound_to == bound_to).unwrap();
    assert_eq!(keys.open(&found.sealed, bound_to).unwrap().expose(), "late");
    store.reseal(vec![rewrap(found)]).await.unwrap();
    assert!(matches!(store.retire_key(keys.current().head()).await.unwrap(), Retired::Gone { .. }));
}
