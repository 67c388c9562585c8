//! A change of the master key while somebody holds what they sealed before it.

use super::platform::Scripted;
use super::world::{A_WHILE, World, master_key};
use angelia_core::clock;
use angelia_core::directory::BotKey;
use angelia_core::egress::Dedupe;
use angelia_core::seal::{self, FORMER_KEY, KEY_CHECK};
use angelia_core::secret::Secret;
use angelia_core::store::{IdentityStore, Ingest, Intake, NewQuarantined};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn world() -> World {
    let bot = Scripted::new(Dedupe::No);
    bot.keeps_desk.store(true, Ordering::Relaxed);
    World::new(bot).await
}

/// What a bot has sealed and not stored yet.
fn received(world: &World, text: &str) -> Intake {
    let ingress = world.platform.ingress.get().unwrap();
    let sealed = ingress.seal.seal(text, &seal::quarantine("fake", "1")).unwrap();
    let (what, why, at) = ("an update".into(), "it cannot be read".into(), clock::wall());
    Intake { quarantined: Some(NewQuarantined { what, why, sealed, at }), ..Intake::default() }
}

#[tokio::test]
async fn the_old_key_stays_until_what_it_sealed_is_stored_and_nothing_else_waits() {
    let world = Arc::new(world().await);
    let before = world.look("key").await["key_id"].clone();
    let late = received(&world, "sealed before the change");
    let change = tokio::spawn({
        let world = world.clone();
        async move { world.admin("key/rotate", json!({})).await }
    });
    let changed = loop {
        let key = world.look("key").await;
        if key["key_id"] != before {
            break key;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(changed["retiring_key_id"], before);
    tokio::time::sleep(A_WHILE).await;
    assert!(!change.is_finished(), "it waits for what was sealed before");

    // Others do not wait for it.
    let soon = tokio::time::timeout(Duration::from_secs(2), async {
        let gateway = world.gateway("acme", "meanwhile").await;
        drop(world.join(&gateway).await);
        let bot = BotKey::new("fake", "1");
        world.store.take_in(&bot, None, vec![received(&world, "sealed after it")]).await.unwrap();
        assert_eq!(world.look("quarantine/1").await["raw"], "sealed after it");
        world.store.take_in(&bot, None, vec![late]).await.unwrap();
    });
    soon.await.expect("no change is held back");

    let rotated = change.await.unwrap();
    assert_eq!((&rotated["old_key_id"], &rotated["key_id"]), (&before, &changed["key_id"]));
    assert_eq!(world.look("quarantine/2").await["raw"], "sealed before the change");
    let checked = world.look("key").await;
    assert_eq!((&checked["unreadable"], &checked["retiring_key_id"]), (&json!(0), &Value::Null), "{checked}");
    assert_eq!(world.store.note(FORMER_KEY).await.unwrap(), None);
    let check = world.store.note(KEY_CHECK).await.unwrap().unwrap();
    assert!(master_key().open(&check, KEY_CHECK).is_err(), "the old key opens nothing any more");
}

#[tokio::test]
async fn two_changes_at_a_time_come_one_after_the_other() {
    let world = world().await;
    world.gateway("acme", "gw").await;
    let before = world.look("key").await["key_id"].clone();
    let (one, two) = tokio::join!(world.admin("key/rotate", json!({})), world.admin("key/rotate", json!({})));
    let (first, second) = if one["old_key_id"] == before { (one, two) } else { (two, one) };
    assert_eq!((&first["old_key_id"], &second["old_key_id"]), (&before, &first["key_id"]));
    let checked = world.look("key").await;
    assert_eq!((&checked["key_id"], &checked["unreadable"]), (&second["key_id"], &json!(0)));
}

#[tokio::test]
async fn what_is_damaged_meanwhile_keeps_the_old_key_and_is_named() {
    let world = world().await;
    world.gateway("acme", "gw").await;
    let late = received(&world, "holds the change up");
    let waits = world.admin_answer("key/rotate", json!({}));
    let damage = async {
        while world.store.note(FORMER_KEY).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Under the old key, for a row it does not belong to.
        let bent = master_key().seal(&Secret::new("x"), "another row").unwrap();
        world.store.keep_delivery_key("acme", bent).await.unwrap();
        drop(late);
    };
    let ((status, answer), ()) = tokio::join!(waits, damage);
    let error = answer["error"].as_str().unwrap();
    assert_eq!(status, 409, "{answer}");
    assert!(error.contains("delivery-key/acme") && error.contains("is still needed"), "{error}");
    let checked = world.look("key").await;
    assert_eq!(checked["unreadable"], 1, "the rest opens: {checked}");
    assert_eq!(checked["retiring_key_id"], json!(master_key().id().to_string()));
    let (status, _) = world.admin_answer("key/rotate", json!({})).await;
    assert_eq!(status, 409, "and again");
}
