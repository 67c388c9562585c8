//! From the SQLite file to PostgreSQL, and on from there.

use super::files::refused;
use super::operator::{config, data, done};
use super::world::{World, credentials};
use angelia_engines::store::sqlite::{DATABASE, MOVED};
use angelia_services::{Postgres, psql};
use angelia_testkit::socket::Socket;
use serde_json::Value;
use std::fs;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

fn empty() -> String {
    Postgres::shared().unwrap().fresh_database().unwrap()
}

impl World {
    async fn stop(&mut self) {
        self.connector.stop(SOON).await;
    }

    /// Has the next start use another store.
    fn set_store(&self, lines: &str) {
        let path = config(self);
        let text = fs::read_to_string(&path).unwrap();
        let before = text.split("[store]").next().unwrap();
        fs::write(&path, format!("{before}[store]\n{lines}\n")).unwrap();
    }

    /// What an operator sees of everything there is, without times and connections.
    async fn seen(&self) -> Vec<Value> {
        let mut seen = Vec::new();
        for command in [
            &["tenant", "list"][..],
            &["route", "list"],
            &["webchat", "list"],
            &["client", "list"],
            &["inbox", "list"],
        ] {
            seen.push(self.connector.command(command).await);
        }
        seen.extend(self.lines().await);
        seen
    }
}

#[tokio::test]
async fn a_server_moves_to_postgresql_with_everything_it_has() {
    let mut world = World::new().await;
    world.connector.command(&["tenant", "create", "acme"]).await;
    world.connector.command(&["client", "create", "--tenant", "acme"]).await;
    let second = world.connector.command(&["gateway", "create", "--tenant", "acme", "second"]).await;
    let second = credentials(&second);
    world.post("heard").await;
    assert_eq!(world.join().await.take_text().await, "heard");
    world.until_waiting(0).await;
    for text in ["waits-1", "waits-2"] {
        world.post(text).await;
    }
    world.until_waiting(2).await;
    let (before, url) = (world.seen().await, empty());
    let migrate = ["migrate", "--from", "sqlite", "--to", &url];
    let (code, error) = refused(&config(&world), &migrate);
    assert!(code == 4 && error.contains("the server runs: stop it first"), "{code} {error}");
    world.stop().await;

    // Nobody begins anew by accident: the file has data, and the database has not.
    world.set_store(&format!("url = {url:?}"));
    let (code, error) = refused(&config(&world), &["serve"]);
    assert!(code == 4 && error.contains("is empty") && error.contains("angelia migrate"), "{code} {error}");
    world.set_store("url = \"sqlite\"");

    let told = done(&config(&world), &migrate);
    assert!(told.contains(&format!("[store]\nurl = {url:?}")) && told.contains("angelia serve"), "{told}");
    assert!(data(&world).join(MOVED).exists() && !data(&world).join(DATABASE).exists());
    let (code, error) = refused(&config(&world), &["serve"]);
    assert!(code == 4 && error.contains("was moved to PostgreSQL"), "{code} {error}");

    world.set_store(&format!("url = {url:?}"));
    world.connector.restart().await;
    assert_eq!(world.seen().await, before);
    let mut socket = world.join().await;
    assert_eq!([socket.take_text().await, socket.take_text().await], ["waits-1", "waits-2"]);
    world.post("later").await;
    assert_eq!(socket.take_text().await, "later");
    drop(socket);
    Socket::join(&world.connector.url(), &second).await;
    assert!(done(&config(&world), &["key", "check"]).contains("2  secret of a gateway"));
    assert_eq!(world.lines().await.len(), 4);

    let (code, error) = refused(&config(&world), &["backup", "/backups/x.dump"]);
    assert!(code == 2 && error.contains("pg_dump") && error.contains("master.key"), "{code} {error}");
    let (code, error) = refused(&config(&world), &["compact"]);
    assert!(code == 2 && error.contains("PostgreSQL"), "{code} {error}");
    world.stop().await;
    for command in [&["gateway", "list"][..], &["gateway", "create", "other"], &["status"]] {
        let (code, error) = refused(&config(&world), command);
        assert!(code == 5 && error.contains("angelia serve"), "{code} {error}");
    }
    world.connector.restart().await;
    assert_eq!(world.lines().await.len(), 4, "and it is there after a restart");
}

#[tokio::test]
async fn what_cannot_be_moved_is_told_and_stays() {
    let mut world = World::new().await;
    world.stop().await;
    let to = |url: &str| refused(&config(&world), &["migrate", "--to", url]);
    let (code, error) = to("postgres://u:hunter2@x@db/x");
    assert!(code == 2 && error.contains("%40") && !error.contains("hunter2"), "{code} {error}");
    let (code, error) = to("postgres://u:hunter2@127.0.0.1:1/x");
    assert!(code == 5 && error.contains("127.0.0.1:1") && !error.contains("hunter2"), "{code} {error}");
    let (code, error) = refused(&config(&world), &["migrate"]);
    assert!(code == 2 && error.contains("--to URL"), "{code} {error}");
    let taken = empty();
    psql(&taken, "CREATE TABLE invoices (id INT)").unwrap();
    let (code, error) = to(&taken);
    assert!(code == 4 && error.contains("invoices"), "{code} {error}");
    assert!(data(&world).join(DATABASE).exists());

    // Another server's.
    let mut other = World::new().await;
    other.stop().await;
    let url = empty();
    other.set_store(&format!("url = {url:?}"));
    let told = done(&config(&other), &["migrate", "--json"]);
    assert!(serde_json::from_str::<Value>(&told).unwrap()["rows"].as_u64().unwrap() > 5, "{told}");
    let (code, error) = to(&url);
    assert!(code == 4 && error.contains("is not empty"), "{code} {error}");
    world.connector.restart().await;
    assert_eq!(world.waiting().await, 0, "and the server goes on with its file");
    // A key of ours knows its database there too.
    other.set_store(&format!("url = {:?}", empty()));
    let (code, error) = refused(&config(&other), &["serve"]);
    assert!(code == 4 && error.contains("has sealed secrets of the database"), "{code} {error}");
    fs::remove_file(data(&other).join("master.key")).unwrap();
    other.set_store(&format!("url = {url:?}"));
    let (_, error) = refused(&config(&other), &["serve"]);
    assert!(error.contains("holds data, but its master key,"), "{error}");
    assert!(!data(&other).join("master.key").exists(), "and none was made");
}

#[tokio::test]
async fn a_server_begins_in_an_empty_database() {
    let url = empty();
    let mut world = World::with(&format!("[store]\nurl = {url:?}\n")).await;
    world.post("one").await;
    assert!(!data(&world).join(DATABASE).exists());
    let printed = done(&config(&world), &["config", "print"]);
    assert!(printed.contains(&format!("\nurl = {url:?}\n")), "{printed}");
    done(&config(&world), &["config", "check"]);
    // A second one on another port, with the same directory.
    let other = config(&world).with_file_name("other.toml");
    let lines = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndata_dir = {:?}\n[store]\nurl = {url:?}\n",
        data(&world)
    );
    fs::write(&other, lines).unwrap();
    let (code, error) = refused(&other, &["serve"]);
    assert!(code == 4 && error.contains("another angelia is using"), "{code} {error}");
    world.stop().await;
    world.connector.restart().await;
    assert_eq!(world.join().await.take_text().await, "one");
}
