//! The command line, with and without a running server.

use super::world::{World, binary, credentials};
use angelia_engines::inspect::Inspect;
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};
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

#[test]
fn what_becomes_of_messages_while_an_agent_is_busy_is_set_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let answer = |args: &[&str]| -> Value {
        let output = angelia(&config, &[&["--json"], args].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    answer(&["tenant", "create", "acme"]);
    answer(&["gateway", "create", "--tenant", "acme", "plain"]);
    answer(&["gateway", "create", "--tenant", "acme", "--while-busy", "followup", "--shared-groups", "gw"]);
    let conduct = |shown: Value| (shown["while_busy"].clone(), shown["shared_groups"].clone());
    assert_eq!(conduct(answer(&["gateway", "show", "plain"])), (json!("auto"), json!(false)));
    assert_eq!(conduct(answer(&["gateway", "show", "gw"])), (json!("followup"), json!(true)));
    let set = answer(&["gateway", "set", "gw", "--while-busy", "collect"]);
    assert_eq!(conduct(set), (json!("collect"), json!(true)), "the rest stays");
    let set = answer(&["gateway", "set", "gw", "--shared-groups=false"]);
    assert_eq!(conduct(set), (json!("collect"), json!(false)));
    assert_eq!(conduct(answer(&["gateway", "set", "--shared-groups", "gw"])).1, true);
    let route =
        |more: &[&str]| answer(&[&["route", "add", "--tenant", "acme", "--allow", "any"], more].concat());
    assert_eq!(route(&["--while-busy", "interrupt", "webchat:lab"])["while_busy"], "interrupt");
    assert_eq!(route(&["webchat:den"])["while_busy"], Value::Null, "its gateway says so");
    for (args, shown) in
        [(["gateway", "list"], ["WHILE BUSY", "collect"]), (["route", "list"], ["WHILE BUSY", "interrupt"])]
    {
        let text = String::from_utf8(angelia(&config, &args).stdout).unwrap();
        assert!(shown.iter().all(|word| text.contains(word)), "{text}");
    }
    for slip in [
        &["gateway", "set", "gw", "--while-busy", "colect"] as &[&str],
        &["route", "add", "--tenant", "acme", "--allow", "any", "--while-busy", "colect", "webchat:x"],
    ] {
        let refused = angelia(&config, slip);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && error.contains("'collect'"), "{error}");
    }
}

#[test]
fn without_a_server_nothing_is_ready_and_what_is_made_comes_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let data = folder.path().join("data");
    let invite = ["webchat", "invite", "--room", "lab", "--user", "ann", "--json"];
    for (args, made) in [(&["gateway", "create", "gw"] as &[_], " (made just now)"), (&invite, "")] {
        let output = angelia(&config, args);
        let (told, note) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let wanted = format!(
            "No server is running on {}{made}: this works once `angelia serve` runs with it.",
            data.display()
        );
        assert!(output.status.success() && note.contains(&wanted), "{args:?}: {note}");
        assert!(!told.contains("No server"), "{told}");
    }
    assert!(angelia(&config, &["gateway", "list"]).stderr.is_empty(), "who only looks is told nothing");

    let no_server = format!("no server is running on {}; start one with: angelia serve", data.display());
    for (args, wanted) in [
        (&["status"] as &[_], format!("angelia: {no_server}\n")),
        (&["status", "--json"], format!("{}\n", serde_json::json!({ "error": no_server }))),
    ] {
        let status = angelia(&config, args);
        assert_eq!((status.status.code(), String::from_utf8(status.stderr).unwrap()), (Some(5), wanted));
        assert!(status.stdout.is_empty(), "{:?}", status.stdout);
    }
}

#[test]
fn an_address_that_is_taken_is_told_with_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let somebody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = somebody.local_addr().unwrap().to_string();
    for (variable, other, setting) in [
        ("ANGELIA_SERVER__LISTEN", "ANGELIA_SERVER__ADMIN_LISTEN", "(server.listen)"),
        ("ANGELIA_SERVER__ADMIN_LISTEN", "ANGELIA_SERVER__LISTEN", "(server.admin_listen)"),
    ] {
        let mut serve = Command::new(binary());
        serve.arg("--config").arg(&config).arg("serve").env(variable, &taken).env(other, "127.0.0.1:0");
        let error = String::from_utf8(serve.output().unwrap().stderr).unwrap();
        assert!(error.contains(&format!("cannot listen on {taken} {setting}: ")), "{error}");
    }
}

#[test]
fn one_check_finds_every_fault_and_a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    assert!(angelia(&config, &["gateway", "create"]).status.success());
    let nowhere = folder.path().join("nowhere");
    let refused = angelia(&config, &["backup", nowhere.join("copy.db").to_str().unwrap()]);
    let error = String::from_utf8(refused.stderr).unwrap();
    let wanted = format!("the folder {} does not exist; make it first", nowhere.display());
    assert!(refused.status.code() == Some(3) && error.contains(&wanted), "{error}");

    std::fs::write(&config, "[server]\nlisten = \"0.0.0.0:1\"\nlisten_too = 1\n").unwrap();
    let refused = angelia(&config, &["config", "check"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    for part in ["2 faults", "`server.listen_too`", "which others can reach"] {
        assert!(error.contains(part), "{part} in {error}");
    }
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
    let disk = Inspect::of(&folder.path().join("data"));
    assert!(disk.holds(b"gw-1") && !disk.holds(secret.as_bytes()));
    let checked = angelia(&config, &["key", "check", "--json"]);
    let checked: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    let id = checked["key_id"].as_str().unwrap();
    let key = folder.path().join("data/master.key");
    let kept = std::fs::read_to_string(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let lost = angelia(&config, &["gateway", "list"]);
    let error = String::from_utf8(lost.stderr).unwrap();
    assert!(lost.status.code() == Some(1) && error.contains("its master key"), "{error}");
    assert!(error.contains(&format!(", {id},")), "the key it needs is {id}: {error}");
    assert!(!key.exists(), "no new key beside existing data");
    std::fs::write(&key, "0".repeat(64)).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let error = String::from_utf8(angelia(&config, &["gateway", "list"]).stderr).unwrap();
    let advice = format!("; put that key into {}, or point keys.master at it", key.display());
    assert!(error.contains("needs master key") && error.contains(&advice), "{error}");
    std::fs::write(&key, kept).unwrap();
    assert!(angelia(&config, &["gateway", "list"]).status.success());
}

#[test]
fn a_database_from_the_future_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    assert!(angelia(&config, &["gateway", "create"]).status.success());
    Inspect::of(&folder.path().join("data")).set_schema_version(99);
    let refused = angelia(&config, &["gateway", "list"]);
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
