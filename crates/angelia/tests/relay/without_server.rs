//! Commands without a server: they take turns, and talk to nobody they do not know.

use super::operator::{done, refused};
use super::world::{World, binary};
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// How often a race is tried: without its cure one of a few attempts shows it.
const ROUNDS: usize = 5;

fn config(folder: &Path) -> PathBuf {
    let path = folder.join("angelia.toml");
    std::fs::write(&path, format!("[server]\ndata_dir = {:?}\n", folder.join("data"))).unwrap();
    path
}

fn begin(config: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(binary());
    command.arg("--config").arg(config).args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_first_commands_of_all_come_at_once_and_agree_on_one_key() {
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let ids = ["gw-1", "gw-2", "gw-3", "gw-4"];
        let begun: Vec<Child> = ids.iter().map(|id| begin(&config, &["gateway", "create", id])).collect();
        begun.into_iter().map(end).for_each(drop);
        assert!(done(&config, &["key", "check"]).contains("4  secret of a gateway"));
        let left: Vec<String> = std::fs::read_dir(folder.path().join("data"))
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with('.'))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn commands_take_turns_and_ask_nobody_at_an_old_address() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let data = folder.path().join("data");
    done(&config, &["gateway", "create", "gw"]);
    // Somebody else has the port of a server that was killed.
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    let address = stranger.local_addr().unwrap();
    let leave_behind = || std::fs::write(data.join("admin-url"), format!("http://{address}\n")).unwrap();

    leave_behind();
    let lock = File::options().write(true).open(data.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut waiting = begin(&config, &["gateway", "list"]);
    // Fixed pause: long enough for it to have asked, had it wanted to. It tells nobody that it waits.
    std::thread::sleep(Duration::from_millis(500));
    assert!(waiting.try_wait().unwrap().is_none(), "it waits for whoever has the lock");
    drop(lock);
    assert!(end(waiting).contains("gw"));

    for _ in 0..ROUNDS {
        leave_behind();
        let begun: Vec<Child> = (0..6).map(|_| begin(&config, &["gateway", "list"])).collect();
        for child in begun {
            assert!(end(child).contains("gw"));
        }
    }
    assert!(stranger.accept().is_err(), "the stranger was asked, and given the admin token");

    let lock = File::options().write(true).open(data.join("lock")).unwrap();
    lock.lock().unwrap();
    let (code, error) = refused(&config, &["gateway", "list"]);
    assert!(code == 4 && error.contains("another angelia is using"), "{code} {error}");
}

#[tokio::test]
async fn a_server_that_stops_takes_its_address_along() {
    let mut world = World::new().await;
    let config = world.folder.path().join("angelia.toml");
    let url = world.folder.path().join("data/admin-url");
    assert!(url.exists());
    world.connector.stop(SOON).await;
    assert!(!url.exists());
    world.connector.restart().await;
    world.connector.kill().await;
    assert!(url.exists(), "one that is killed cannot");
    assert!(done(&config, &["gateway", "list"]).contains("gw"), "and nobody goes by it");
    assert!(!url.exists());
    // A server that starts while commands come and go is not in their way, nor they in its.
    let begun: Vec<Child> = (0..4).map(|_| begin(&config, &["gateway", "list"])).collect();
    world.connector.restart().await;
    begun.into_iter().map(end).for_each(drop);
    assert_eq!(world.connector.command(&["status"]).await["ready"], true);
}
