//! The operator's hands: backups, tokens, tenants, watching.

use super::world::{World, binary};
use angelia_engines::store::sqlite::{DATABASE, DATABASE_FILES};
use angelia_testkit::process::{Process, eventually};
use angelia_testkit::socket::{Next, Socket};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(30);

pub(crate) fn config(world: &World) -> PathBuf {
    world.folder.path().join("angelia.toml")
}

pub(crate) fn data(world: &World) -> PathBuf {
    world.folder.path().join("data")
}

pub(crate) fn angelia(config: &Path, args: &[&str]) -> Output {
    Command::new(binary()).arg("--config").arg(config).args(args).stdin(Stdio::null()).output().unwrap()
}

/// A command that must work; what it printed.
pub(crate) fn done(config: &Path, args: &[&str]) -> String {
    let output = angelia(config, args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// A command that must fail; its exit code and what it said.
pub(crate) fn refused(config: &Path, args: &[&str]) -> (i32, String) {
    let output = angelia(config, args);
    let error = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap_or_else(|| panic!("{args:?} was killed")), error)
}

/// Somebody who writes until told to stop; answers the texts that were accepted.
pub(crate) fn chatter(
    world: &World,
) -> (Arc<AtomicBool>, Arc<std::sync::Mutex<Vec<String>>>, JoinHandle<()>) {
    let (enough, accepted) =
        (Arc::new(AtomicBool::new(false)), Arc::<std::sync::Mutex<Vec<String>>>::default());
    let (stop, list) = (enough.clone(), accepted.clone());
    let url = format!("{}/chat/api/rooms/lab/messages", world.connector.url());
    let (http, key) = (world.http.clone(), world.key.clone());
    let writing = tokio::spawn(async move {
        for number in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let text = format!("m-{number:05}");
            let answer =
                http.post(&url).bearer_auth(&key).json(&json!({ "text": text })).send().await.unwrap();
            assert_eq!(answer.status(), 201, "{text}");
            list.lock().unwrap().push(text);
        }
    });
    (enough, accepted, writing)
}

/// Takes texts off a socket until all of `wanted` came; the socket never breaks.
pub(crate) async fn drain(socket: &mut Socket, wanted: &[String]) -> Vec<String> {
    let mut missing: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    let mut taken = Vec::new();
    while !missing.is_empty() {
        let text = socket.take_text().await;
        missing.remove(text.as_str());
        taken.push(text);
    }
    taken
}

pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn a_backup_made_under_traffic_restores() {
    let mut world = World::new().await;
    let (enough, accepted, writing) = chatter(&world);
    eventually("some messages", SOON, || (accepted.lock().unwrap().len() > 50).then_some(())).await;

    let before = accepted.lock().unwrap().clone();
    let file = world.folder.path().join("copy.db");
    let made = world.connector.command(&["backup", file.to_str().unwrap()]).await;
    let after = accepted.lock().unwrap().len();
    assert!(after > before.len(), "nobody wrote while the backup ran");
    enough.store(true, Ordering::Relaxed);
    writing.await.unwrap();

    let key = std::fs::read_to_string(data(&world).join("master.key")).unwrap();
    let raw: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap()).collect();
    let copy = std::fs::read(&file).unwrap();
    assert_eq!(made["bytes"], copy.len());
    for secret in [key.trim().as_bytes(), &raw] {
        assert!(!contains(&copy, secret), "the copy holds the master key");
    }
    let (code, error) = refused(&config(&world), &["backup", file.to_str().unwrap()]);
    assert!(code == 4 && error.contains("exists already"), "{code} {error}");

    world.connector.stop(SOON).await;
    for name in DATABASE_FILES {
        let _ = std::fs::remove_file(data(&world).join(name));
    }
    std::fs::copy(&file, data(&world).join(DATABASE)).unwrap();
    world.connector.restart().await;
    let taken = drain(&mut world.join().await, &before).await;
    assert_eq!(taken[..before.len()], before, "everything acknowledged before it began, in order");

    // Another key beside the restored data: refused, with the name of the right one.
    world.connector.stop(SOON).await;
    std::fs::write(data(&world).join("master.key"), "0".repeat(64)).unwrap();
    let (_, error) = refused(&config(&world), &["serve"]);
    assert!(error.contains(made["key_id"].as_str().unwrap()), "{made} {error}");
    assert!(error.contains("put that key into") && error.contains("master.key"), "{error}");
    // The backup itself needs no key and no server.
    let cold = world.folder.path().join("cold.db");
    let text = done(&config(&world), &["backup", cold.to_str().unwrap()]);
    assert!(text.contains(DATABASE_FILES[1]) && text.contains("does not hold the master key"), "{text}");
}

#[tokio::test]
async fn the_admin_token_changes_and_commands_go_on() {
    let world = World::new().await;
    let read = |name: &str| std::fs::read_to_string(data(&world).join(name)).unwrap().trim().to_owned();
    let (url, old) = (read("admin-url"), read("admin-token"));
    for _ in 0..2 {
        assert_eq!(world.connector.command(&["admin-token", "rotate"]).await, json!({ "rotated": true }));
    }
    assert_ne!(read("admin-token"), old);
    let with = async |token: &str| {
        world.http.get(format!("{url}/admin/status")).bearer_auth(token).send().await.unwrap().status()
    };
    assert_eq!(with(&old).await, 401);
    assert_eq!(with(&read("admin-token")).await, 200);
}

#[tokio::test]
async fn a_watch_outlives_a_restart_of_the_server() {
    let mut world = World::new().await;
    let mut command = tokio::process::Command::new(binary());
    command.arg("--config").arg(config(&world)).args(["status", "--watch"]);
    let mut watch = Process::spawn("watch", command, world.folder.path().join("watch.log"));
    watch.wait_for_log("ready, ", SOON).await;
    world.connector.stop(SOON).await;
    watch.wait_for_log("trying again", SOON).await;
    let log = watch.log_path().to_owned();
    let told = || std::fs::read_to_string(&log).unwrap();
    let said = told().len();
    world.connector.restart().await;
    watch.wait_until("the status again", SOON, || told()[said..].contains("ready, ")).await;
    let pid = rustix::process::Pid::from_raw(watch.id()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = watch.wait(SOON).await.expect("Ctrl-C ends it");
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_tenant_goes_with_everything_of_it_and_only_when_meant() {
    let world = World::new().await;
    let config = config(&world);
    let gateway = world.connector.gateway("acme", "gw-a").await;
    done(&config, &["route", "add", "--tenant", "acme", "--allow", "any", "webchat:den"]);
    let mut socket = Socket::join(&world.connector.url(), &gateway).await;

    let (code, error) = refused(&config, &["tenant", "remove", "acme"]);
    assert!(code == 2 && error.contains("--confirm acme"), "{code} {error}");
    let (code, error) = refused(&config, &["tenant", "remove", "acme", "--confirm", "acne"]);
    assert!(code == 2 && error.contains("nothing was removed"), "{code} {error}");
    let (code, _) = refused(&config, &["tenant", "remove", "nobody", "--confirm", "nobody"]);
    assert_eq!(code, 3);

    let (asked, status) = on_a_terminal(&config, &["tenant", "remove", "acme"], "acne\n");
    assert_eq!(status, Some(2), "{asked}");
    let (asked, status) = on_a_terminal(&config, &["tenant", "remove", "acme"], "acme\n");
    assert_eq!(status, Some(0), "{asked}");
    for part in ["1 gateway", "1 route", "Type its name again"] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
    assert!(matches!(socket.next(SOON).await, Next::Closed(..)), "its gateway is shut out");
    assert!(!done(&config, &["tenant", "list"]).contains("acme"));
    assert!(!done(&config, &["route", "list"]).contains("webchat:den"));
}

/// Runs a command with a terminal as its standard input, on which `typed` is typed.
fn on_a_terminal(config: &Path, args: &[&str], typed: &str) -> (String, Option<i32>) {
    use std::io::Write;
    let near =
        rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&near).unwrap();
    rustix::pty::unlockpt(&near).unwrap();
    let name = rustix::pty::ptsname(&near, Vec::new()).unwrap();
    let far = std::fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = Command::new(binary());
    command.arg("--config").arg(config).args(args).stdin(far).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut keyboard = std::fs::File::from(near);
    keyboard.write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}
