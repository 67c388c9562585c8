//! What is sealed, and a change of the master key, as the store sees them.

use super::directory::bot;
use super::identity::{by, gateway};
use super::open::Opened;
use super::vault::interaction;
use angelia_core::clock::UnixMillis;
use angelia_core::error::Kind;
use angelia_core::inbox::InstanceId;
use angelia_core::seal::{FORMER_KEY, KEY_CHECK, Keys, MasterKey, OAUTH_KEY};
use angelia_core::secret::Secret;
use angelia_core::store::{
    AuditStore, IdentityStore, Intake, KeyChange, NewQuarantined, PageSize, Resealed, Retired, SealedValue,
    Store,
};
use std::sync::Arc;

/// Everything that is sealed, read in steps of so many.
pub(crate) async fn sealed_in(store: &Arc<dyn Store>, step: usize) -> Vec<SealedValue> {
    let mut values: Vec<SealedValue> = Vec::new();
    loop {
        let page = store.sealed_values(values.last(), PageSize::of(step)).await.unwrap();
        let more = page.more;
        values.extend(page);
        if !more {
            return values;
        }
    }
}

/// Every value with a byte more, as another key would make of it.
pub(crate) fn anew(values: Vec<SealedValue>) -> Vec<Resealed> {
    let longer = |old: SealedValue| Resealed { sealed: [old.sealed.as_slice(), &[9]].concat(), old };
    values.into_iter().map(longer).collect()
}

/// A change from one check to another.
fn change(old_check: &[u8], check: &[u8]) -> KeyChange {
    let (from, to) = (MasterKey::mint().id(), MasterKey::mint().id());
    KeyChange { from, to, old_check: old_check.to_vec(), check: check.to_vec(), former: vec![6] }
}

#[tokio::test]
async fn every_kind_is_listed_with_what_it_is_bound_to() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    let instance = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap().instance;
    store.take_in(&bot(), None, vec![interaction(instance, 5), interaction(instance, 6)]).await.unwrap();
    store.rotate_gateway("acme", "gw", vec![8], Some(UnixMillis(i64::MAX)), &by()).await.unwrap();
    store.keep_delivery_key("acme", vec![3]).await.unwrap();
    store.set_note(KEY_CHECK, vec![1]).await.unwrap();
    store.set_note(OAUTH_KEY, vec![2]).await.unwrap();
    store.set_note("furnished", vec![1]).await.unwrap();
    let listed = sealed_in(store, 100).await;
    let bound: Vec<(&str, &[u8])> =
        listed.iter().map(|value| (value.bound_to.as_str(), value.sealed.as_slice())).collect();
    let expected: [(&str, &[u8]); 7] = [
        ("key_check", &[1]),
        ("oauth_key", &[2]),
        ("delivery-key/acme", &[3]),
        ("gateway-secret/acme/gw", &[7]),
        ("gateway-secret/acme/gw", &[8]),
        ("capability/acme/1/discord/main/lab/ann/i5", &[5]),
        ("capability/acme/1/discord/main/lab/ann/i6", &[6]),
    ];
    assert_eq!(bound, expected);
    for step in 1..=8 {
        assert_eq!(sealed_in(store, step).await, listed, "in steps of {step}");
    }
    let small = store.sealed_values(None, PageSize { count: 100, bytes: 3 }).await.unwrap();
    assert_eq!((small.items.as_slice(), small.more), (&listed[..3], true), "a step is short of bytes too");
    let held = store.capabilities(instance, UnixMillis(0)).await.unwrap();
    let bindings: Vec<String> = held.iter().map(|it| it.bound_to()).collect();
    assert_eq!(bindings, [bound[5].0, bound[6].0], "as whoever opens one says it");

    assert_eq!(store.reseal(anew(listed)).await.unwrap(), 7);
    let resealed = sealed_in(store, 100).await;
    assert!(resealed.iter().all(|value| value.sealed.len() == 2 && value.sealed[1] == 9), "{resealed:?}");
    assert_eq!(store.note("furnished").await.unwrap(), Some(vec![1]), "what is not sealed stays");
    assert_eq!(store.note(KEY_CHECK).await.unwrap(), Some(vec![1, 9]));
    let secrets = store.gateways().await.unwrap().remove(0).secrets;
    assert_eq!(secrets.iter().map(|secret| secret.sealed.clone()).collect::<Vec<_>>(), [[8, 9], [7, 9]]);
    let held = store.capabilities(instance, UnixMillis(0)).await.unwrap();
    assert_eq!(held.iter().map(|it| it.sealed.clone()).collect::<Vec<_>>(), [[5, 9], [6, 9]]);
}

#[tokio::test]
async fn what_changed_meanwhile_is_left_as_it_is_now() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    store.create_gateway(gateway("acme", "gone"), &by()).await.unwrap();
    store.create_gateway(gateway("acme", "stays"), &by()).await.unwrap();
    store.set_note(OAUTH_KEY, vec![1]).await.unwrap();
    let read = anew(sealed_in(store, 100).await);
    store.set_note(OAUTH_KEY, vec![4]).await.unwrap();
    store.revoke_gateway("acme", "gone", &by()).await.unwrap();
    store.rotate_gateway("acme", "gone", vec![5], None, &by()).await.ok();
    store.create_gateway(gateway("acme", "late"), &by()).await.unwrap();
    let before: Vec<_> = sealed_in(store, 100).await;
    let same = before.iter().filter(|value| read.iter().any(|it| it.old == **value)).count();
    assert_eq!(store.reseal(read).await.unwrap(), same);
    assert_eq!(store.note(OAUTH_KEY).await.unwrap(), Some(vec![4]), "it was sealed anew by somebody else");
    let after = sealed_in(store, 100).await;
    assert_eq!(after.len(), before.len());
    assert!(after.last().unwrap().sealed.len() == 1, "one that came is not touched: {after:?}");
}

#[tokio::test]
async fn a_change_begins_once_and_is_written_down() {
    let Opened { store, .. } = &Opened::new();
    store.set_note(KEY_CHECK, vec![1]).await.unwrap();
    let conflict = async |change| store.begin_key_change(change, &by()).await.unwrap_err().kind();
    assert_eq!(conflict(change(&[2], &[3])).await, Kind::Conflict, "another check was read");
    assert_eq!(store.note(FORMER_KEY).await.unwrap(), None);
    let begun = change(&[1], &[2]);
    store.begin_key_change(begun.clone(), &by()).await.unwrap();
    assert_eq!(store.note(KEY_CHECK).await.unwrap(), Some(vec![2]));
    assert_eq!(store.note(FORMER_KEY).await.unwrap(), Some(vec![6]));
    assert_eq!(conflict(change(&[2], &[3])).await, Kind::Conflict, "the one before is not finished");
    assert_eq!(store.note(KEY_CHECK).await.unwrap(), Some(vec![2]));
    let line = store.audit_lines(None, 1).await.unwrap().remove(0);
    assert_eq!((line.action.as_str(), line.target), ("key.rotate", begun.to.to_string()));
    assert_eq!(line.detail, format!("from {}", begun.from));
}

/// A store with one value of each kind under a key, and the keys of a change from it.
async fn changing(store: &Arc<dyn Store>) -> (Keys, InstanceId) {
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
        sealed_in(store, 100).await.into_iter().filter(|value| keys.is_due(&value.sealed)).collect();
    let kinds: Vec<&str> = due.iter().map(|value| value.kind).collect();
    assert_eq!(kinds.len(), 5, "all but the check: {kinds:?}");
    for old in due {
        assert_eq!(store.retire_key(head).await.unwrap(), Retired::Needed, "by the {}", old.kind);
        assert!(store.note(FORMER_KEY).await.unwrap().is_some());
        let sealed = keys.rewrap(&old.sealed, &old.bound_to).unwrap();
        assert_eq!(store.reseal(vec![Resealed { old, sealed }]).await.unwrap(), 1);
    }
    let gone = store.retire_key(head).await.unwrap();
    assert_eq!(gone, Retired::Gone { erased: true }, "nobody reads: the log is emptied");
    assert_eq!(store.note(FORMER_KEY).await.unwrap(), None);
    for value in sealed_in(store, 100).await {
        assert!(keys.current().open(&value.sealed, &value.bound_to).is_ok(), "{}", value.kind);
    }
    assert_eq!(store.retire_key(head).await.unwrap(), gone, "twice does no harm");
}

#[tokio::test]
async fn what_was_sealed_with_the_old_key_and_comes_late_keeps_it() {
    let opened = Opened::with_tenants(&["acme"]).await;
    let store = &opened.store;
    let (keys, instance) = changing(store).await;
    let due = sealed_in(store, 100).await.into_iter().filter(|value| keys.is_due(&value.sealed));
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
    let found = sealed_in(store, 100).await.into_iter().find(|value| value.bound_to == bound_to).unwrap();
    assert_eq!(keys.open(&found.sealed, bound_to).unwrap().expose(), "late");
    store.reseal(vec![rewrap(found)]).await.unwrap();
    assert!(matches!(store.retire_key(keys.current().head()).await.unwrap(), Retired::Gone { .. }));
}
