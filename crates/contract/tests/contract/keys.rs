//! Session keys: the keys real gateways built, and laws about them.

use angelia_contract::platform::bare_whatsapp;
use angelia_contract::session_key::{
    KeyError, KeyOptions, Rules, may_belong_to, parse_key, session_key, session_key_from_value,
};
use angelia_contract::source::Source;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::cases;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/session-keys.json")).unwrap()
}

fn options(value: &Value) -> KeyOptions {
    let known = ["group_sessions_per_user", "thread_sessions_per_user", "profile"];
    assert!(value.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())));
    let flag = |key: &str, default| value[key].as_bool().unwrap_or(default);
    KeyOptions {
        group_sessions_per_user: flag(known[0], true),
        thread_sessions_per_user: flag(known[1], false),
        profile: value["profile"].as_str().map(str::to_owned),
    }
}

fn rules(version: &str) -> Rules {
    match version {
        "0.17.0" | "0.18.2" | "0.19.0" => Rules::Published,
        _ => Rules::Newer,
    }
}

#[test]
fn every_vector_in_every_version() {
    let vectors = vectors();
    let mut checked = 0;
    for vector in vectors["vectors"].as_array().unwrap() {
        let options = options(&vector["options"]);
        for (version, key) in vector["keys"].as_object().unwrap() {
            let wire = &vector["wire_source"];
            let got = session_key_from_value(wire, &options, rules(version));
            assert_eq!(got.as_deref().ok(), key.as_str(), "{} {version}", vector["name"]);
            if let Some(key) = key.as_str() {
                let source: Source = serde_json::from_value(wire.clone()).unwrap();
                assert_eq!(session_key(&source, &options, rules(version)), key);
                let (thread, user) = (source.thread_id.as_deref(), source.user_id_alt.as_deref());
                let user = user.or(source.user_id.as_deref());
                assert!(may_belong_to(key, &source.platform, &source.chat_id, thread, user), "{key}");
                assert!(!may_belong_to(key, &source.platform, "elsewhere", thread, user), "{key}");
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 4 * vectors["vectors"].as_array().unwrap().len());
}

#[test]
fn the_abridged_rows_of_the_specification() {
    let key = |source: Value, options: &KeyOptions| {
        let published = session_key_from_value(&source, options, Rules::Published).unwrap();
        let newer = session_key_from_value(&source, options, Rules::Newer).unwrap();
        (published, newer)
    };
    let same = |key: &str| (key.to_owned(), key.to_owned());
    let default = KeyOptions::default();
    let shared = KeyOptions { group_sessions_per_user: false, ..KeyOptions::default() };
    let group = json!({"platform": "discord", "chat_id": "111", "chat_type": "group", "user_id": "42"});
    assert_eq!(key(group.clone(), &shared), same("agent:main:discord:group:111"));
    let dm = json!({"platform": "discord", "chat_id": "", "chat_type": "dm", "user_id": "42"});
    assert_eq!(key(dm, &default), same("agent:main:discord:dm:42"));
    let nobody = json!({"platform": "discord", "chat_type": "dm"});
    assert_eq!(key(nobody, &default), same("agent:main:discord:dm"));
    let topic = json!({"platform": "telegram", "chat_id": "1001", "chat_type": "dm", "user_id": "1001", "thread_id": "7"});
    assert_eq!(key(topic, &default), same("agent:main:telegram:dm:1001:7"));
    let channel = json!({"platform": "telegram", "chat_id": "-100300", "chat_type": "channel"});
    assert_eq!(key(channel, &default), same("agent:main:telegram:channel:-100300"));
    let matrix =
        json!({"platform": "matrix", "chat_id": "!r:hs.org", "chat_type": "group", "user_id": "@a:hs.org"});
    assert_eq!(key(matrix, &default), same("agent:main:matrix:group:!r:hs.org:@a:hs.org"));
    let unknown = json!({"platform": "webchat", "chat_id": "9", "chat_type": "dm"});
    assert_eq!(key(unknown, &default), same("agent:main:relay:dm:9"));
    let mut prospective = group;
    prospective["prospective_thread_id"] = json!("333");
    let (published, newer) = key(prospective, &default);
    assert_eq!(published, "agent:main:discord:group:111:42");
    assert_eq!(newer, "agent:main:discord:thread:111:333");
    let follow_up = |chat| json!({"platform": "discord", "chat_id": chat, "chat_type": "thread", "thread_id": "333", "user_id": "42"});
    assert_eq!(key(follow_up("111"), &default), same("agent:main:discord:thread:111:333"));
    assert_eq!(key(follow_up("333"), &default), same("agent:main:discord:thread:333:333"));
}

#[test]
fn types_matter_to_published_gateways() {
    let key = |source: Value, rules| session_key_from_value(&source, &KeyOptions::default(), rules);
    let numbers = json!({"platform": "telegram", "chat_id": 1, "chat_type": "group", "user_id": 2});
    assert_eq!(key(numbers, Rules::Published), Err(KeyError::NotText { field: "chat_id" }));
    let dm = json!({"platform": "telegram", "chat_id": 1, "chat_type": "dm"});
    assert_eq!(key(dm, Rules::Published).unwrap(), "agent:main:telegram:dm:1");
    let user = json!({"platform": "telegram", "chat_id": "1", "chat_type": "group", "user_id": 2});
    assert_eq!(key(user, Rules::Published).unwrap(), "agent:main:telegram:group:1:2");
    let untyped = json!({"platform": "telegram", "chat_id": "1", "chat_type": null});
    assert!(key(untyped.clone(), Rules::Published).is_err());
    assert_eq!(key(untyped, Rules::Newer).unwrap(), "agent:main:telegram:None:1");
    assert_eq!(key(json!([]), Rules::Newer), Err(KeyError::NotAnObject));
    let nested = json!({"platform": "telegram", "chat_id": {"a": 1}});
    assert_eq!(key(nested, Rules::Newer), Err(KeyError::NotText { field: "chat_id" }));
}

#[test]
fn interaction_keys_are_recognised_in_every_generation() {
    for vector in vectors()["interaction_vectors"].as_array().unwrap() {
        let body = &vector["body"];
        let Some(channel) = body["channel_id"].as_str() else { continue };
        let user = body["member"]["user"]["id"].as_str().or(body["user"]["id"].as_str()).unwrap();
        let thread = (body["channel"]["type"] == 11).then_some(channel);
        for (version, result) in vector["result"].as_object().unwrap() {
            let key = result["key"].as_str().unwrap();
            let named = may_belong_to(key, "discord", channel, thread, Some(user));
            assert!(named, "{} {version} {key}", vector["name"]);
            assert!(may_belong_to(key, "discord", channel, None, None));
            assert!(!may_belong_to(key, "telegram", channel, thread, Some(user)) || key.contains(":relay:"));
            let other = may_belong_to(key, "discord", channel, None, Some("somebody"));
            assert_eq!(other, !key.ends_with(":42"), "{key}");
        }
    }
    assert!(may_belong_to("agent:main:discord:thread:222:222", "discord", "222", Some("222"), Some("42")));
    assert!(!may_belong_to("agent:main:discord:group:1112", "discord", "111", None, None));
    assert!(!may_belong_to("nonsense", "discord", "111", None, None));
}

#[test]
fn keys_come_apart_as_far_as_they_can() {
    let parts = parse_key("agent:coder:matrix:group:!r:hs.org:@a:hs.org").unwrap();
    assert_eq!((parts.namespace, parts.platform, parts.chat_type), ("coder", "matrix", "group"));
    assert_eq!(parts.rest, "!r:hs.org:@a:hs.org");
    assert_eq!(parse_key("agent:main:relay:dm").unwrap().rest, "");
    for key in ["", "agent:", "agent:main", "agent:main:relay", "user:main:relay:dm", "agent::a:b"] {
        assert_eq!(parse_key(key), None, "{key}");
    }
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn keys_are_stable_parsable_and_recognised(
        platform in prop::sample::select(vec!["discord", "Slack", "whatsapp", "webchat", "matrix", ""]),
        chat_type in prop::sample::select(vec!["dm", "group", "channel", "thread", "forum"]),
        chat in "[a-z0-9:@.+!-]{1,8}", thread in prop::option::of("[0-9.]{0,4}"),
        user in prop::option::of("[a-z0-9:@+]{0,6}"), scope in prop::option::of("[A-Z0-9]{0,3}"),
        prospective in prop::option::of("[0-9]{0,3}"),
        per_user in any::<bool>(), per_thread in any::<bool>(), newer in any::<bool>(),
    ) {
        let source = Source {
            platform: platform.into(), chat_type: chat_type.into(), chat_id: chat.clone(),
            thread_id: thread.clone(), user_id: user.clone(), scope_id: scope,
            prospective_thread_id: prospective.clone(), ..Source::default()
        };
        let options = KeyOptions {
            group_sessions_per_user: per_user, thread_sessions_per_user: per_thread, profile: None,
        };
        let rules = if newer { Rules::Newer } else { Rules::Published };
        let key = session_key(&source, &options, rules);
        prop_assert_eq!(&session_key(&source, &options, rules), &key);
        prop_assert!(parse_key(&key).is_some());
        let wire = serde_json::to_value(&source).unwrap();
        prop_assert_eq!(session_key_from_value(&wire, &options, rules), Ok(key.clone()));
        if !newer || prospective.is_none() {
            // A WhatsApp id of nothing but syntax leaves no id in a key.
            let empty = platform == "whatsapp" && bare_whatsapp(&chat).is_empty();
            let named = may_belong_to(&key, platform, &chat, thread.as_deref(), user.as_deref());
            prop_assert!(named || empty, "{} does not name {}", key, chat);
        }
    }
}
