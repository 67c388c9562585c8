//! What all manifests have to be true of, and what operators may write on each platform.

use super::*;
use crate::settings::{Bot, Given, Raw, Value};
use angelia_core::admission::{Allow, Place};
use angelia_core::ports::Ports;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use std::sync::Arc;

#[test]
fn places_are_read_and_written() {
    for good in ["webchat:lobby", "webchat:*", "discord:1/2", "discord:dm:5", "sms:+15550100"] {
        assert_eq!(good.parse::<Place>().unwrap().to_string(), good);
    }
    for bad in ["", "webchat", "webchat:", ":x", "Web:x", "webchat:a b", "webchat:\n"] {
        assert!(bad.parse::<Place>().is_err(), "{bad:?}");
    }
}

#[test]
fn a_platform_nobody_has_comes_with_the_one_that_is_meant() {
    for (text, meant) in
        [("webchta:x", "webchat:x"), ("telegramm:5", "telegram:5"), ("dicord:1/2", "discord:1/2")]
    {
        let error = PLACES.meant(text, &["fake"]).unwrap_err().to_string();
        assert!(error.contains(&format!("did you mean {meant}?")), "{error}");
        assert!(text.parse::<Place>().is_ok(), "what is stored is read");
    }
    for good in ["webchat:*", "discord:1/2", "telegram:5", "sms:+15550100", "wecom:main"] {
        assert_eq!(PLACES.meant(good, &[]).unwrap().to_string(), good);
    }
    assert!(PLACES.meant("fake:x", &["fake"]).is_ok());
}

#[test]
fn a_place_is_written_as_its_platform_names_chats() {
    for good in [
        "discord:10",
        "discord:10/20",
        "discord:dm:5",
        "discord:*",
        "telegram:5",
        "telegram:-1001234567890",
        "telegram:*",
        "webchat:dm:ann",
        "sms:+15550100/+1555",
    ] {
        assert_eq!(PLACES.meant(good, &[]).unwrap().to_string(), good);
    }
    for bad in ["discord:lobby", "discord:10/", "discord:10/20/30", "discord:dm:ann", "discord:-1"] {
        let error = PLACES.meant(bad, &[]).unwrap_err().to_string();
        assert!(error.contains("discord:SERVER/CHANNEL") && error.contains("Copy ID"), "{error}");
        assert!(bad.parse::<Place>().is_ok(), "what is stored is read");
    }
    for bad in ["telegram:@ann", "telegram:dm:5", "telegram:007", "telegram:+5", "telegram:--5", "telegram:0"]
    {
        let error = PLACES.meant(bad, &["telegram"]).unwrap_err().to_string();
        assert!(error.contains("telegram:CHAT") && error.contains("--unrouted"), "{error}");
    }
    for good in ["sms:+15550100", "sms:+15550100/+15550199", "sms:+15550100/72345", "sms:*"] {
        assert_eq!(PLACES.meant(good, &[]).unwrap().to_string(), good);
    }
    for bad in
        ["sms:15550100", "sms:+1-555", "sms:+15550100/", "sms:+15550100/ann", "sms:main", "sms:+1555/+1/+2"]
    {
        let error = PLACES.meant(bad, &[]).unwrap_err().to_string();
        assert!(error.contains("sms:NUMBER/PERSON") && error.contains("--unrouted"), "{error}");
    }
    for good in ["wecom:main", "wecom:main/ZhangSan", "wecom:main/li.si@x", "wecom:*"] {
        assert_eq!(PLACES.meant(good, &[]).unwrap().to_string(), good);
    }
    for bad in
        ["wecom:main/", "wecom:/ann", "wecom:main/@all", "wecom:main/a|b", "wecom:main/a/b", "wecom:dm:ann"]
    {
        let error = PLACES.meant(bad, &[]).unwrap_err().to_string();
        assert!(error.contains("wecom:APP/PERSON") && error.contains("--unrouted"), "{error}");
    }
}

#[test]
fn private_places_name_their_person() {
    let person = |text: &str| PLACES.private_person(&text.parse().unwrap()).map(str::to_owned);
    assert_eq!(person("webchat:dm:ann").as_deref(), Some("ann"));
    assert_eq!(person("discord:dm:5").as_deref(), Some("5"));
    assert_eq!(person("telegram:5").as_deref(), Some("5"));
    assert_eq!(person("sms:+15550100/+15550199").as_deref(), Some("+15550199"));
    assert_eq!(person("wecom:main/ZhangSan").as_deref(), Some("ZhangSan"));
    for shared in [
        "webchat:lab",
        "webchat:*",
        "discord:1/2",
        "discord:5",
        "discord:dm:*",
        "webchat:dm:",
        "sms:+1555",
        "sms:1555",
        "telegram:*",
        "telegram:-5",
        "telegram:-1001234567890",
        "wecom:main",
        "wecom:*",
    ] {
        assert_eq!(person(shared), None, "{shared}");
    }
}

#[test]
fn only_a_private_chat_says_by_itself_who_may_speak() {
    let default = |place: &str| PLACES.default_allow(&place.parse().unwrap());
    assert_eq!(default("webchat:dm:ann"), Some(Allow::People(vec!["ann".into()])));
    assert_eq!(default("discord:dm:5"), Some(Allow::People(vec!["5".into()])));
    assert_eq!(default("telegram:5"), Some(Allow::People(vec!["5".into()])));
    for place in ["telegram:-5", "discord:10", "discord:10/20", "webchat:lab", "sms:+15550100", "webchat:*"] {
        assert_eq!(default(place), None, "{place}");
    }
}

#[test]
fn a_number_is_the_same_in_a_block_and_in_a_place() {
    let sms = blocks().find(|block| block.platform == "sms").unwrap();
    for (number, good) in [
        ("+123", true),
        ("+15550100", true),
        ("+123456789012345", true),
        ("+1234567890123456", false),
        ("+12", false),
        ("+0155", false),
        ("15550100", false),
        ("72345", false),
    ] {
        assert_eq!((sms.is_id)(number), good, "{number}");
        assert_eq!(PLACES.meant(&format!("sms:{number}"), &[]).is_ok(), good, "{number}");
    }
}

#[test]
fn ids_are_what_their_providers_count_to() {
    let takes = |platform: &str, id: &str| {
        let block = blocks().find(|block| block.platform == platform).unwrap();
        (block.is_id)(id)
    };
    for (platform, good, bad) in [
        ("discord", "18446744073709551615", "18446744073709551616"),
        ("telegram", "9223372036854775807", "9223372036854775808"),
        ("wecom", "wpAb_c-D/1000002", "ww1/0"),
    ] {
        assert!(takes(platform, good) && !takes(platform, bad), "{platform}");
        assert!(!takes(platform, "007") && !takes(platform, ""), "{platform}");
    }
    let member = |length: usize| PLACES.meant(&format!("wecom:main/{}", "x".repeat(length)), &[]);
    assert!(member(64).is_ok() && member(65).is_err(), "WeCom's accounts have 64 characters at most");
}

#[test]
fn a_manifest_keeps_to_its_own_grammar() {
    for manifest in ALL {
        let Grammar { platform, example, .. } = manifest.places;
        let place = PLACES.meant(example, &[]).unwrap();
        assert_eq!(place.platform(), platform);
        if let Setup::Bots(block) = manifest.setup {
            assert_eq!(block.platform, platform);
            assert!(block.sample.contains(&format!("# platform = {platform:?}")), "{platform}");
            for key in block.keys {
                assert!(block.sample.contains(&format!("\n# {} = ", key.name)), "{platform} {}", key.name);
            }
        }
    }
}

#[test]
fn a_key_that_several_platforms_have_is_read_alike() {
    let given = |raw: &'static str| Given { key: "bots.key".into(), raw: Raw::Text(raw) };
    for (one, other) in blocks().flat_map(|one| blocks().map(move |other| (one, other))) {
        for key in one.keys {
            let Some(same) = other.key(key.name) else { continue };
            assert_eq!(key.is_secret(), same.is_secret(), "{}", key.name);
            for text in ["", "poll", "https://x", "AC1"] {
                let read = [key, same].map(|key| key.read(&given(text)).map_err(|it| it.to_string()));
                assert_eq!(read[0], read[1], "{} {text:?}", key.name);
            }
        }
    }
}

#[test]
fn what_stands_in_for_a_secret_makes_a_bot() {
    // Commands that only have to know what there is make bots of such.
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path(), Default::default(), Arc::new(LocalBus::default())).unwrap();
    let ports = Ports::of(&Arc::new(store));
    // It brings the process a TLS provider.
    let _ = angelia_testkit::webchat::http_client();
    for block in blocks() {
        let mut bot = Bot::new(block);
        bot.id = block.id_form.split('"').nth(1).unwrap_or("77").to_owned();
        assert!((block.is_id)(&bot.id), "{block:?}");
        if let Some(account) = block.key("account_sid") {
            bot.set(account, Value::Text("AC0123456789abcdef0123456789abcdef".into()));
        }
        let made = (block.make)(&bot, &|key| Ok(block.key(key).unwrap().blank_for(&bot)), ports.clone());
        let made = made.unwrap_or_else(|error| panic!("{block:?}: {error}"));
        assert_eq!((made.platform(), made.id()), (block.platform, bot.id.as_str()));
    }
}

/// As hermes' own adapters say it: where people are mentioned by their ids a model needs these.
#[test]
fn ids_of_people_are_kept_from_a_model_where_nobody_is_mentioned_by_them() {
    let safe = |descriptor: angelia_contract::descriptor::Descriptor| descriptor.pii_safe;
    assert!(safe(crate::telegram::descriptor()) && safe(crate::sms::descriptor()));
    assert!(!safe(crate::discord::descriptor()) && !safe(crate::wecom::descriptor()));
    assert!(!safe(crate::webchat::descriptor()));
}
