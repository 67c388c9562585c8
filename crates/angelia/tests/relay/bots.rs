//! `angelia bot`: with no bots, with one that cannot be reached, beside a server and without.

use super::operator::{angelia, done, refused};
use super::world::World;
use angelia_core::clock;
use angelia_core::directory::BotKey;
use angelia_core::inbox::Quota;
use angelia_core::seal::{self, MasterKey};
use angelia_core::secret::Secret;
use angelia_core::store::{Ingest, Intake, NewQuarantined};
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use angelia_testkit::process::eventually;
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Looks like a token, and must never be seen again.
const TOKEN: &str = "765:hunter2-hunter2";

fn config(folder: &Path, more: &str) -> PathBuf {
    let path = folder.join("angelia.toml");
    std::fs::write(&path, format!("[server]\ndata_dir = {:?}\n{more}", folder.join("data"))).unwrap();
    path
}

/// A bot of each platform at an address where nobody is.
pub(crate) fn unreachable_bots(folder: &Path) -> String {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let token = folder.join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let bot = |platform: &str, name: &str| {
        format!(
            "[[bots]]\nplatform = \"{platform}\"\nid = \"765\"\nname = \"{name}\"\n\
             token = {{ file = {token:?} }}\napi_url = \"http://{nobody}\"\n"
        )
    };
    bot("discord", "dora") + &bot("telegram", "tom")
}

#[test]
fn no_bots_are_no_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "");
    for command in ["list", "check"] {
        let text = done(&config, &["bot", command]);
        assert!(text.starts_with("No bot is configured.") && text.contains("[[bots]]"), "{text}");
    }
    let (code, error) = refused(&config, &["bot", "check", "main"]);
    assert!(code == 3 && error.contains("no bot \"main\" is configured"), "{code} {error}");
    assert!(!folder.path().join("data").exists(), "looking makes nothing");
}

#[test]
fn a_bot_that_cannot_be_reached_is_told_without_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), &unreachable_bots(folder.path()));
    let listed = done(&config, &["bot", "list"]);
    assert!(listed.contains("dora") && listed.contains("tom") && listed.contains("not running"), "{listed}");
    assert!(listed.contains("angelia serve"), "{listed}");

    let checked = angelia(&config, &["bot", "check"]);
    let (text, error) =
        (String::from_utf8(checked.stdout).unwrap(), String::from_utf8(checked.stderr).unwrap());
    assert_eq!(checked.status.code(), Some(1), "{text}{error}");
    for part in ["discord bot dora (765)", "telegram bot tom (765)", "  ✗ ", "    next: "] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(text.matches("cannot be reached").count(), 2, "{text}");
    assert!(error.contains("2 of 2 bots cannot work"), "{error}");
    assert!(!format!("{text}{error}").contains("hunter2"), "{text}{error}");

    let checked = angelia(&config, &["bot", "check", "telegram:tom", "--json"]);
    assert_eq!(checked.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let bots = answer["bots"].as_array().unwrap();
    assert_eq!(bots.len(), 1, "{answer}");
    assert_eq!((&bots[0]["name"], &bots[0]["usable"]), (&"tom".into(), &false.into()), "{answer}");
    assert_eq!(bots[0]["findings"][0]["verdict"], "bad", "{answer}");
    let (code, error) = refused(&config, &["bot", "check", "discord:tom"]);
    assert!(code == 3 && error.contains("there is: dora, tom"), "{code} {error}");
    assert!(!folder.path().join("data").exists(), "a check leaves nothing behind");
}

#[test]
fn a_token_is_asked_for_only_by_who_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let bot = "[[bots]]\nplatform = \"telegram\"\nid = \"765\"\ntoken = { env = \"NO_SUCH_TOKEN\" }\n";
    let config = config(folder.path(), bot);
    done(&config, &["config", "check"]);
    done(&config, &["gateway", "create", "gw"]);
    done(&config, &["bot", "quarantine"]);
    for command in [&["serve"] as &[_], &["bot", "check"]] {
        let output = angelia(&config, command);
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!output.status.success(), "{command:?}: {told}");
        assert!(told.contains("the telegram bot telegram") && told.contains("NO_SUCH_TOKEN"), "{told}");
    }
    std::fs::write(folder.path().join("other"), "766:hunter2").unwrap();
    let text = std::fs::read_to_string(&config).unwrap();
    let other = format!("{{ file = {:?} }}", folder.path().join("other"));
    std::fs::write(&config, text.replace("{ env = \"NO_SUCH_TOKEN\" }", &other)).unwrap();
    let (code, error) = refused(&config, &["serve"]);
    assert!(code == 2 && error.contains("is not one of bot 765"), "{code} {error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_running_server_tells_how_its_bots_are() {
    let mut world = World::new().await;
    let file = world.folder.path().join("angelia.toml");
    let listed = world.connector.command(&["bot", "list"]).await;
    assert_eq!(listed["running"], true, "{listed}");
    let webchat = &listed["bots"][0];
    assert_eq!((&webchat["name"], &webchat["health"]), (&"webchat".into(), &Value::Null), "{listed}");
    assert_eq!((&webchat["routes"], &webchat["quarantined"]), (&1.into(), &0.into()), "{listed}");
    // Configured since the start.
    let text = std::fs::read_to_string(&file).unwrap() + &unreachable_bots(world.folder.path());
    std::fs::write(&file, text).unwrap();
    let text = done(&file, &["bot", "list"]);
    assert!(text.contains("built in") && text.contains("discord:dora: is configured since"), "{text}");
    // Beside a server, which has the data directory.
    let (code, error) = refused(&file, &["bot", "check", "dora"]);
    assert!(code == 1 && error.contains("1 of 1 bots"), "{code} {error}");

    world.restart_with("").await;
    let down = |text: &str| ["discord:dora", "telegram:tom"].iter().all(|who| text.contains(&told(who)));
    let look = || Some(done(&file, &["bot", "list"])).filter(|text| down(text));
    let text = eventually("both bots are down", Duration::from_secs(20), look).await;
    assert_eq!(text.matches(" down ").count(), 2, "{text}");
    assert!(text.contains("discord:dora: no route leads here"), "{text}");
    for up in ["platform=\"discord\",bot=\"765\"", "platform=\"telegram\",bot=\"765\""] {
        assert_eq!(world.connector.counter(&format!("angelia_bot_up{{{up}}}")).await, 0);
    }
}

/// How a bot that cannot reach its provider is told of.
fn told(who: &str) -> String {
    let provider = if who.starts_with("discord") { "Discord" } else { "Telegram" };
    format!("\n{who}: {provider} cannot be reached")
}

#[tokio::test]
async fn what_could_not_be_read_is_listed_shown_and_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "");
    let data = folder.path().join("data");
    done(&config, &["gateway", "create", "gw"]);
    let key = MasterKey::from_hex(&std::fs::read_to_string(data.join("master.key")).unwrap()).unwrap();
    let store = Sqlite::open(&data, Quota::default(), Arc::new(LocalBus::default())).unwrap();
    for number in 1..=3 {
        let text = Secret::new(format!("{{\"update_id\": {number}, \"x\": \"what ann wrote\"}}"));
        let quarantined = NewQuarantined {
            what: format!("update {number}"),
            why: "no chat".into(),
            sealed: key.seal(&text, &seal::quarantine("telegram", "765")).unwrap().into(),
            at: clock::wall(),
        };
        let intake = Intake { quarantined: Some(quarantined), ..Intake::default() };
        store.take_in(&BotKey::new("telegram", "765"), None, vec![intake]).await.unwrap();
    }
    drop(store);

    let listed = done(&config, &["bot", "quarantine", "list", "--bot", "telegram:765"]);
    assert!(listed.contains("update 3") && !listed.contains("what ann wrote"), "{listed}");
    assert_eq!(done(&config, &["bot", "quarantine"]), listed);
    assert!(done(&config, &["bot", "quarantine", "list", "--bot", "telegram:7"]).starts_with("Nothing"));
    assert_eq!(refused(&config, &["bot", "quarantine", "list", "--bot", "nobody"]).0, 3);
    let shown = done(&config, &["bot", "quarantine", "show", "2"]);
    assert!(shown.contains("\"update_id\": 2") && shown.contains("what ann wrote"), "{shown}");
    assert_eq!(refused(&config, &["bot", "quarantine", "show", "9"]).0, 3);
    assert_eq!(refused(&config, &["bot", "quarantine", "show", "x"]).0, 2);

    assert_eq!(done(&config, &["bot", "quarantine", "purge", "2"]), "1 thrown away\n");
    assert_eq!(refused(&config, &["bot", "quarantine", "purge", "2"]).0, 3);
    assert_eq!(done(&config, &["bot", "quarantine", "purge"]), "2 thrown away\n");
    assert!(done(&config, &["bot", "quarantine"]).starts_with("Nothing"));
    let audit = done(&config, &["audit", "list"]);
    assert_eq!(audit.matches("quarantine.show").count(), 1, "{audit}");
    assert_eq!(audit.matches("quarantine.purge").count(), 2, "{audit}");
    assert!(!audit.contains("ann wrote"), "{audit}");
}
