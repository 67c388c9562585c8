//! From a signed request to what waits in the inbox and in the vault.

use super::edge::{BOT, Edge, TOKEN, command, words};
use super::world::SOON;
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_core::admission::DropReason;
use angelia_core::clock;
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::inbox::Rendering;
use angelia_core::own_words::Language;
use angelia_core::store::{DirectoryStore, StreamStore};
use angelia_core::vault::{Deferral, LIVES_FOR};
use angelia_platforms::Platform;
use angelia_platforms::discord::INTERACTION_TOKEN;
use axum::body::Body;
use axum::http::StatusCode;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn new(id: &str) -> Value {
    command(id, json!({"name": "new", "type": 1}))
}

#[tokio::test]
async fn only_what_discord_signed_just_now_is_looked_at() {
    let edge = Edge::new().await;
    let body = new("901").to_string();
    let refused = async |change: fn(&mut axum::http::Request<Body>)| {
        let (status, answer) = edge.post_raw(&body, change).await;
        assert_eq!((status, answer), (StatusCode::UNAUTHORIZED, Value::Null));
    };
    refused(|request| drop(request.headers_mut().remove("x-signature-ed25519"))).await;
    refused(|request| drop(request.headers_mut().remove("x-signature-timestamp"))).await;
    refused(|request| *request.body_mut() = Body::from("{\"type\":1}")).await;
    refused(|request| {
        drop(request.headers_mut().insert("x-signature-timestamp", "1700000000".parse().unwrap()))
    })
    .await;
    refused(|request| {
        let again = request.headers()["x-signature-ed25519"].clone();
        request.headers_mut().append("x-signature-ed25519", again);
    })
    .await;
    assert_eq!(edge.count("refused_signatures"), 5);
    let (status, _) = edge.post_raw(&"x".repeat((1 << 20) + 1), |_| {}).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(edge.entries().await.is_empty());
    assert_eq!(
        edge.post(&json!({"type": 1, "id": "1", "application_id": BOT, "token": TOKEN})).await["type"],
        1
    );
    let typing = with(new("902"), json!({"type": 4}));
    assert_eq!(edge.post(&typing).await, json!({"type": 8, "data": {"choices": []}}));
    assert!(edge.entries().await.is_empty() && edge.capabilities().await.is_empty());
    assert_eq!(edge.bot.rendering(), Rendering::Event);
}

#[tokio::test]
async fn a_command_waits_in_the_inbox_and_its_credential_in_the_vault() {
    let edge = Edge::new().await;
    let asked = json!({"name": "ask", "options": [{"name": "question", "type": 3, "value": "why?"}]});
    assert_eq!(edge.post(&command("901", asked.clone())).await, json!({"type": 5}));
    let stop = command("902", json!({"name": "stop", "type": 1}));
    assert_eq!(edge.post(&stop).await, json!({"type": 5}));
    assert_eq!(edge.post(&command("901", asked)).await, json!({"type": 5}), "a retry is deferred as well");
    let press = json!({"type": 3, "data": {"custom_id": "hp1:ab:once", "component_type": 2}, "message": {"id": "31"}});
    assert_eq!(edge.post(&with(new("903"), press)).await, json!({"type": 6}));
    let entries = edge.entries().await;
    assert_eq!(entries.len(), 3);
    let ahead: Vec<_> = edge.ahead().await.iter().map(|entry| entry.seq).collect();
    let expected = [entries[1].0.seq, entries[2].0.seq];
    assert_eq!(ahead, expected, "what stops a turn, or answers its question, does not wait behind it");
    let events: Vec<_> = entries.iter().map(|(_, interaction)| &interaction.event).collect();
    let said: Vec<_> = events.iter().map(|event| (&*event.text, &*event.message_type)).collect();
    assert_eq!(said, [("why?", "text"), ("/stop", "command"), ("/once", "command")]);
    let source = &events[0].source;
    assert_eq!(
        session_key(source, &KeyOptions::default(), Rules::Published),
        "agent:main:discord:group:111:42"
    );
    assert_eq!(
        (source.user_display_name.as_deref(), source.chat_name.as_deref()),
        (Some("Annie"), Some("#general"))
    );
    assert_eq!((events[0].message_id.as_deref(), source.message_id.as_deref()), (Some("901"), Some("901")));
    let response = events[2].prompt_response.as_ref().unwrap();
    assert_eq!(
        (&*response.prompt_id, &*response.option_id, response.prompt_message_id.as_deref()),
        ("ab", "once", Some("31"))
    );
    let request = &entries[0].1.request;
    assert_eq!((&*request.method, &*request.path), ("POST", "/webhooks/discord/main"));
    let forwarded: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!((&forwarded["id"], &forwarded["token"]), (&json!("901"), &Value::Null));
    let kept = edge.capabilities().await;
    assert_eq!(kept.len(), 3, "none for what came again");
    let first = &kept[0];
    assert_eq!((&*first.kind, &*first.chat_id, &*first.user_id), (INTERACTION_TOKEN, "111", "42"));
    assert_eq!((&*first.interaction_id, first.deferral), ("901", Deferral::Message));
    assert_eq!(kept[2].deferral, Deferral::Update);
    // The seal of this test shows what it is bound to and what it seals.
    assert_eq!(first.sealed, format!("{}|{BOT}/{TOKEN}", first.bound_to()).into_bytes());
    let now = clock::wall();
    assert!(first.expires_at <= now.after(LIVES_FOR) && first.expires_at > now.after(LIVES_FOR / 2));
    let outside = entries.iter().any(|(entry, _)| String::from_utf8_lossy(&entry.body).contains(TOKEN));
    assert!(!outside, "what goes to gateways holds no credential");
    let bytes = String::from_utf8_lossy(&edge.bytes()).into_owned();
    assert_eq!(bytes.matches(TOKEN).count(), bytes.matches(&format!("|{BOT}/{TOKEN}")).count());
}

#[tokio::test]
async fn a_chat_is_what_discord_says_it_is() {
    let edge = Edge::new().await;
    let thread = json!({"channel_id": "222", "channel": {"id": "222", "type": 11, "parent_id": "111", "name": "plan"}});
    edge.post(&with(new("901"), thread)).await;
    let mut dm = with(
        new("902"),
        json!({
            "channel_id": "555", "channel": {"id": "555", "type": 1}, "context": 1, "user": {"id": "42", "username": "ann"},
            "locale": "de",
        }),
    );
    for key in ["member", "guild_id"] {
        dm.as_object_mut().unwrap().remove(key);
    }
    edge.post(&dm).await;
    let others = with(
        dm,
        json!({"id": "903", "channel_id": "556", "channel": {"id": "556", "type": 1}, "context": 2}),
    );
    edge.post(&others).await;
    let mut untold = new("904");
    untold.as_object_mut().unwrap().remove("channel");
    edge.post(&untold).await;
    let keys: Vec<String> =
        edge.entries().await.iter().map(|(entry, _)| entry.session_key.to_string()).collect();
    assert_eq!(
        keys,
        [
            "agent:main:discord:thread:222:222",
            "agent:main:discord:dm:555",
            "agent:main:discord:group:556:42",
            "agent:main:discord:group:111:42",
        ]
    );
    assert_eq!(edge.api.calls(), ["GET channels/111"], "only what was not told is asked");
    let chat =
        async |id: &str| edge.ports.records.chat(&BotKey::new("discord", BOT), id).await.unwrap().unwrap();
    let (known, private) = (chat("222").await, chat("555").await.chat);
    assert_eq!((known.chat.kind, known.chat.parent.as_deref()), (ChatKind::Thread, Some("111")));
    assert!(known.engaged.is_some(), "who was asked in a thread is meant from then on");
    assert_eq!((private.kind, private.person.as_deref()), (ChatKind::Dm, Some("42")));
    assert_eq!(private.language, Some(Language::German), "what is told there later is told in it");
    let chats: Vec<String> = edge.capabilities().await.into_iter().map(|kept| kept.chat_id).collect();
    assert_eq!(chats, ["222", "555", "556", "111"]);
}

#[tokio::test]
async fn whoever_reaches_nobody_is_told_at_once() {
    let edge = Edge::new().await;
    *edge.door.place.lock().unwrap() = "discord:901".into();
    assert!(words(&edge.post(&new("901")).await).starts_with("Nobody answers here"));
    let mut german = new("904");
    german["locale"] = "de".into();
    assert!(words(&edge.post(&german).await).starts_with("Hier antwortet niemand"), "in their own language");
    *edge.door.place.lock().unwrap() = "discord:*".into();
    let mut by_bot = new("902");
    by_bot["member"]["user"]["bot"] = true.into();
    words(&edge.post(&by_bot).await);
    let code = json!({"name": "ask", "options": [{"name": "question", "value": "/link c0de"}]});
    assert!(words(&edge.post(&command("903", code)).await).contains("/link"));
    let reasons: Vec<DropReason> =
        edge.door.dropped.lock().unwrap().iter().map(|(_, reason)| *reason).collect();
    assert_eq!(
        reasons,
        [DropReason::NoRoute, DropReason::NoRoute, DropReason::BotNotAllowed, DropReason::Consumed]
    );
    assert!(edge.entries().await.is_empty() && edge.capabilities().await.is_empty());
    assert!(!String::from_utf8_lossy(&edge.bytes()).contains("c0de"), "a code is kept nowhere");
}

#[tokio::test]
async fn what_is_authentic_and_makes_no_sense_is_kept_for_people() {
    let edge = Edge::new().await;
    for (body, why) in [
        ("not json".to_owned(), "it is not JSON"),
        (with(new("901"), json!({"type": 9})).to_string(), "type 9"),
        (with(new("902"), json!({"channel_id": "x", "channel": null})).to_string(), "ids"),
        (with(new("903"), json!({"member": null})).to_string(), "who did it"),
    ] {
        let (status, answer) = edge.post_raw(&body, |_| {}).await;
        assert_eq!(status, StatusCode::OK);
        words(&answer);
        let kept = edge.ports.records.quarantine(None, 1).await.unwrap().remove(0);
        assert!(kept.why.contains(why) && kept.what.starts_with("interaction"), "{kept:?}");
    }
    assert_eq!(edge.count("quarantined"), 4);
    assert!(edge.entries().await.is_empty());
}

#[tokio::test]
async fn while_the_key_is_changed_people_are_told_to_try_again() {
    let edge = Edge::new().await;
    edge.seal.held.store(true, Ordering::Relaxed);
    assert!(words(&edge.post(&new("901")).await).contains("again"));
    assert!(edge.ports.records.quarantine(None, 1).await.unwrap().is_empty(), "nothing is wrong with it");
    edge.seal.held.store(false, Ordering::Relaxed);
    assert_eq!(edge.post(&new("901")).await["type"], 5);
}

#[tokio::test]
async fn whoever_hangs_up_still_has_a_place() {
    let edge = Edge::new().await;
    edge.gate.shut(true);
    // Reading what a crowd sends takes a busy machine a while.
    let deadline = Instant::now() + 4 * SOON;
    let (mut crowds, mut is_full) = (0, false);
    while !is_full && Instant::now() < deadline {
        // Places are counted in bytes.
        let large = json!({ "padding": "x".repeat(900 * 1024) });
        let asked: Vec<_> =
            (0..40).map(|n| with(new(&format!("9{crowds:03}{n:03}")), large.clone())).collect();
        let mut posts: FuturesUnordered<_> = asked.iter().map(|asked| edge.status_of(asked)).collect();
        let turned_away = async {
            while let Some(status) = posts.next().await {
                if status == StatusCode::SERVICE_UNAVAILABLE {
                    return true;
                }
            }
            false
        };
        // All of them hang up.
        is_full = tokio::time::timeout(Duration::from_secs(3), turned_away).await.unwrap_or(false);
        crowds += 1;
    }
    edge.gate.shut(false);
    assert!(is_full, "a store that hangs was given the work of {crowds} crowds");
    while edge.status_of(&new("901")).await != StatusCode::OK {
        assert!(Instant::now() < deadline, "the places are not free again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_store_that_hangs_is_not_waited_for() {
    let edge = Edge::new().await;
    edge.gate.shut(true);
    let begun = Instant::now();
    let (one, two) = (new("901"), new("902"));
    let (first, second) = tokio::join!(edge.post(&one), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        edge.post(&two).await
    });
    let took = begun.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_millis(2_900)).contains(&took), "{took:?}");
    assert!(words(&first).contains("may have arrived"), "it was begun: {first}");
    assert!(words(&second).contains("try again"), "{second}");
    edge.gate.shut(false);
    assert_eq!(edge.post(&new("903")).await, json!({"type": 5}));
    let ids: Vec<_> =
        edge.entries().await.into_iter().map(|(_, interaction)| interaction.event.message_id).collect();
    assert_eq!(ids, [Some("901".to_owned()), Some("903".to_owned())], "what was given up never comes");
    assert_eq!(edge.count("given_up"), 1);
}
