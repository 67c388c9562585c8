//! The command line, with and without a running server.

use super::world::{World, binary, credentials};
use angelia_testkit::socket::Socket;
use std::path::Path;
use std::process::{Command, Output};

fn angelia(config: &Path, args: &[&str]) -> Output {
    Command::new(binary()).arg("--config").arg(config).args(args).output().unwrap()
}

fn config(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("angelia.toml");
    let data = folder.join("data");
    std::fs::write(&path, format!("[server]\ndata_dir = {:?}\n", data.display().to_string())).unwrap();
    path
}

#[test]
fn commands_work_without_a_server_and_exit_codes_tell() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    assert_eq!(angelia(&config, &["status"]).status.code(), Some(5), "no server and no data");
    for typo in [
        &["gateway", "create", "--tenant", "acme", "gw-1"] as &[_],
        &["route", "add", "--tenant", "acme", "--allow", "any", "webchat:lab"],
    ] {
        let refused = angelia(&config, typo);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(3), "{error}");
        assert!(error.contains("angelia tenant create acme"), "{error}");
    }
    let tenants = String::from_utf8(angelia(&config, &["tenant", "list"]).stdout).unwrap();
    assert!(tenants.contains("default") && !tenants.contains("acme"), "{tenants}");
    for tenant in ["acme", "other"] {
        assert!(angelia(&config, &["tenant", "create", tenant]).status.success());
    }
    let made = angelia(&config, &["gateway", "create", "--tenant", "acme", "gw-1"]);
    let text = String::from_utf8(made.stdout).unwrap();
    assert!(made.status.success() && text.contains("GATEWAY_RELAY_SECRET="), "{text}");
    assert_eq!(angelia(&config, &["gateway", "create", "--tenant", "acme", "gw-1"]).status.code(), Some(4));
    assert!(angelia(&config, &["gateway", "create", "--tenant", "other", "gw-1"]).status.success());
    assert_eq!(angelia(&config, &["explain", "nothing"]).status.code(), Some(3));
    assert_eq!(angelia(&config, &["inbox", "show", "--gateway", "gw-9"]).status.code(), Some(3));
    assert_eq!(
        angelia(&config, &["inbox", "show", "--gateway", "gw-1"]).status.code(),
        Some(4),
        "ids collide"
    );
    assert_eq!(angelia(&config, &["nonsense"]).status.code(), Some(2));
    assert_eq!(angelia(&config, &["route", "add", "--tenant", "acme", "webchat:lab"]).status.code(), Some(2));
    assert!(
        angelia(&config, &["route", "add", "--tenant", "acme", "--allow", "any", "webchat:lab"])
            .status
            .success()
    );
    for (allow, place, hint) in [
        ("", "webchat:den", "nobody's id"),
        ("81,,82", "webchat:den", "nobody's id"),
        ("81, 82", "webchat:den", "no spaces"),
        ("Any", "webchat:den", "--allow any"),
        ("ANY", "webchat:den", "--allow any"),
        ("any", "webchta:den", "did you mean webchat:den?"),
    ] {
        let refused = angelia(&config, &["route", "add", "--tenant", "acme", "--allow", allow, place]);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && error.contains(hint), "{allow:?} {place}: {error}");
    }
    let taken = angelia(&config, &["route", "add", "--tenant", "other", "--allow", "any", "webchat:lab"]);
    assert_eq!(taken.status.code(), Some(4));
    assert!(angelia(&config, &["route", "remove", "webchat:lab"]).status.success());
    assert_eq!(angelia(&config, &["route", "remove", "webchat:lab"]).status.code(), Some(3));
    assert!(angelia(&config, &["config", "check"]).status.success());
}

#[tokio::test]
async fn the_default_gateway_gets_what_no_route_assigns() {
    let world = World::new().await;
    let second = world.connector.command(&["gateway", "create", "second"]).await;
    let shown = world.connector.command(&["gateway", "show", "second"]).await;
    assert_eq!((&shown["default"], &shown["wake_url"]), (&false.into(), &serde_json::Value::Null));
    let set =
        world.connector.command(&["gateway", "set", "second", "--wake-url", "https://wake.example/"]).await;
    assert_eq!(set["wake_url"], "https://wake.example/");
    let made = world.connector.command(&["gateway", "default", "second"]).await;
    assert_eq!(made["default"], true);
    let mut socket = Socket::join(&world.connector.url(), &credentials(&second)).await;
    world.post("for the default").await;
    assert_eq!(socket.take_text().await, "for the default");
    let config = world.folder.path().join("angelia.toml");
    assert_eq!(angelia(&config, &["gateway", "show", "nobody"]).status.code(), Some(3));
    assert!(angelia(&config, &["gateway", "revoke", "second"]).status.success());
    assert_eq!(
        angelia(&config, &["gateway", "rotate", "second"]).status.code(),
        Some(4),
        "revoked is revoked"
    );
}

#[test]
fn secrets_rest_sealed_and_a_lost_key_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let made = angelia(&config, &["gateway", "create", "gw-1", "--json"]);
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let secret = made["secret"].as_str().unwrap();
    for file in ["angelia.db", "angelia.db-wal"] {
        let bytes = std::fs::read(folder.path().join("data").join(file)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
    let checked = angelia(&config, &["key", "check", "--json"]);
    let checked: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    let id = checked["key_id"].as_str().unwrap();
    let key = folder.path().join("data/master.key");
    let kept = std::fs::read_to_string(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let lost = angelia(&config, &["status"]);
    let error = String::from_utf8(lost.stderr).unwrap();
    assert!(lost.status.code() == Some(1) && error.contains("its master key"), "{error}");
    assert!(error.contains(&format!(", {id},")), "the key it needs is {id}: {error}");
    assert!(!key.exists(), "no new key beside existing data");
    std::fs::write(&key, "0".repeat(64)).unwrap();
    let error = String::from_utf8(angelia(&config, &["status"]).stderr).unwrap();
    assert!(error.contains("needs master key"), "{error}");
    std::fs::write(&key, kept).unwrap();
    assert!(angelia(&config, &["status"]).status.success());
}

#[test]
fn a_database_from_the_future_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    assert!(angelia(&config, &["gateway", "create"]).status.success());
    let database = rusqlite::Connection::open(folder.path().join("data/angelia.db")).unwrap();
    database.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(database);
    let refused = angelia(&config, &["status"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("schema version 99") && error.contains("newer"), "{error}");
}

#[tokio::test]
async fn one_server_per_data_directory_and_commands_reach_it() {
    let world = World::new().await;
    let config = world.folder.path().join("angelia.toml");
    let second = angelia(&config, &["serve"]);
    let error = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success(), "{error}");
    let status = String::from_utf8(angelia(&config, &["status"]).stdout).unwrap();
    assert!(status.starts_with("ready") && status.contains("gw"), "{status}");
    for path in ["/livez", "/readyz"] {
        let answer = world.http.get(format!("{}{path}", world.connector.url())).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}");
    }
    let metrics = world.http.get(format!("{}/metrics", world.connector.url())).send().await.unwrap();
    assert_eq!(metrics.status(), 404, "metrics are on the admin address only");
    let url = std::fs::read_to_string(world.folder.path().join("data/admin-url")).unwrap();
    let answer =
        world.http.get(format!("{}/admin/status", url.trim())).bearer_auth("wrong").send().await.unwrap();
    assert_eq!(answer.status(), 401);
}
