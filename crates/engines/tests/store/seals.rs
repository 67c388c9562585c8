//! A change of the master key, as the store sees it.

use super::directory::bot;
use super::identity::{by, gateway};
use super::open::Opened;
use super::vault::interaction;
use angelia_core::clock::UnixMillis;
use angelia_core::error::Kind;
use angelia_core::seal::{KEY_CHECK, OAUTH_KEY};
use angelia_core::store::{Resealed, SealedValue};

/// Every value with a byte more, as another key would make of it.
fn anew(values: Vec<SealedValue>) -> Vec<Resealed> {
    let longer = |old: SealedValue| Resealed { sealed: [old.sealed.as_slice(), &[9]].concat(), old };
    values.into_iter().map(longer).collect()
}

#[tokio::test]
async fn every_kind_is_listed_with_what_it_is_bound_to() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    let instance = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap().instance;
    store.take_in(&bot(), vec![interaction(instance, 5), interaction(instance, 6)]).await.unwrap();
    store.rotate_gateway("acme", "gw", vec![8], Some(UnixMillis(i64::MAX)), &by()).await.unwrap();
    store.keep_delivery_key("acme", vec![3]).await.unwrap();
    store.set_note(KEY_CHECK, vec![1]).await.unwrap();
    store.set_note(OAUTH_KEY, vec![2]).await.unwrap();
    store.set_note("furnished", vec![1]).await.unwrap();
    let listed = store.sealed_values().await.unwrap();
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
    let held = store.capabilities(instance, UnixMillis(0)).await.unwrap();
    let bindings: Vec<String> = held.iter().map(|it| it.bound_to()).collect();
    assert_eq!(bindings, [bound[5].0, bound[6].0], "as whoever opens one says it");

    assert!(store.reseal(anew(listed), "cafe", &by()).await.unwrap(), "nobody reads: the log is emptied");
    let resealed = store.sealed_values().await.unwrap();
    assert!(resealed.iter().all(|value| value.sealed.len() == 2 && value.sealed[1] == 9), "{resealed:?}");
    assert_eq!(store.note("furnished").await.unwrap(), Some(vec![1]), "what is not sealed stays");
    assert_eq!(store.note(KEY_CHECK).await.unwrap(), Some(vec![1, 9]));
    let secrets = store.gateways().await.unwrap().remove(0).secrets;
    assert_eq!(secrets.iter().map(|secret| secret.sealed.clone()).collect::<Vec<_>>(), [[8, 9], [7, 9]]);
    let held = store.capabilities(instance, UnixMillis(0)).await.unwrap();
    assert_eq!(held.iter().map(|it| it.sealed.clone()).collect::<Vec<_>>(), [[5, 9], [6, 9]]);
    let line = store.audit_lines(None, 1).await.unwrap().remove(0);
    assert_eq!((line.action.as_str(), line.target.as_str()), ("key.rotate", "cafe"));
}

#[tokio::test]
async fn what_a_change_of_keys_overtook_is_not_taken_in() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    let instance = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap().instance;
    let sealed_with = |key: u8, n| {
        let mut intake = interaction(instance, n);
        intake.capability.as_mut().unwrap().sealed = vec![key, key, key, key, 0];
        intake
    };
    store.set_note(KEY_CHECK, vec![2, 2, 2, 2, 9]).await.unwrap();
    let taken = store.take_in(&bot(), vec![sealed_with(1, 1), sealed_with(2, 2)]).await.unwrap();
    assert!(taken[0].given_up && taken[0].appended.is_none(), "it would never open: {taken:?}");
    assert!(!taken[1].given_up && taken[1].appended.is_some(), "{taken:?}");
    assert_eq!(store.capabilities(instance, UnixMillis(0)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_sealed_meanwhile_is_not_lost() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap();
    store.set_note(KEY_CHECK, vec![1]).await.unwrap();
    let stale = anew(store.sealed_values().await.unwrap());
    store.create_gateway(gateway("acme", "late"), &by()).await.unwrap();
    assert_eq!(store.reseal(stale, "cafe", &by()).await.unwrap_err().kind(), Kind::Conflict, "one came");
    let stale = anew(store.sealed_values().await.unwrap());
    store.set_note(KEY_CHECK, vec![4]).await.unwrap();
    assert_eq!(store.reseal(stale, "cafe", &by()).await.unwrap_err().kind(), Kind::Conflict, "one changed");
    let mut short = anew(store.sealed_values().await.unwrap());
    short.pop();
    assert_eq!(
        store.reseal(short, "cafe", &by()).await.unwrap_err().kind(),
        Kind::Conflict,
        "one is missing"
    );
    let left = store.sealed_values().await.unwrap();
    assert!(left.iter().all(|value| value.sealed.len() == 1), "nothing was changed: {left:?}");
}
