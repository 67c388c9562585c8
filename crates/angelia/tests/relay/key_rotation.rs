//! A change of the master key: under traffic, cut short at any step, by whoever keeps it.

use super::operator::{chatter, config, data, done, drain, refused};
use super::world::{World, binary, credentials, store};
use angelia_core::clock;
use angelia_core::directory::BotKey;
use angelia_core::seal::{self, MasterKey};
use angelia_core::secret::Secret;
use angelia_core::store::{Ingest, Intake, NewQuarantined};
use angelia_engines::inspect::Inspect;
use angelia_engines::store::sqlite::{DATABASE, DATABASE_FILES};
use angelia_testkit::process::Process;
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_master_key_changes_under_traffic() {
    let mut world = World::new().await;
    let key_file = data(&world).join("master.key");
    let first = std::fs::read_to_string(&key_file).unwrap();
    let checked = world.connector.command(&["key", "check"]).await;
    assert_eq!(checked["unreadable"], 0);
    let old_id = checked["key_id"].as_str().unwrap().to_owned();
    let old = sealed(&data(&world));
    assert!(old.len() >= 2, "a check and a gateway's secret, at least");

    let mut socket = world.join().await;
    let (enough, accepted, writing) = chatter(&world);
    let mut taken = Vec::new();
    for _ in 0..3 {
        let rotated = world.connector.command(&["key", "rotate"]).await;
        assert_eq!(rotated["old_erased"], true, "{rotated}");
        let so_far = accepted.lock().unwrap().clone();
        let missing: Vec<String> = so_far.into_iter().filter(|text| !taken.contains(text)).collect();
        taken.extend(drain(&mut socket, &missing).await);
    }
    enough.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    let missing: Vec<String> =
        accepted.lock().unwrap().iter().filter(|text| !taken.contains(text)).cloned().collect();
    taken.extend(drain(&mut socket, &missing).await);
    assert_eq!(taken, *accepted.lock().unwrap(), "one socket, everything in order, nothing twice");

    let checked = world.connector.command(&["key", "check"]).await;
    assert_eq!(checked["unreadable"], 0);
    let new_id = checked["key_id"].as_str().unwrap().to_owned();
    assert_ne!(new_id, old_id);
    assert!(!data(&world).join("master.key.next").exists());
    let disk = Inspect::of(&data(&world));
    assert!(old.iter().all(|value| !disk.holds(value)), "values under the old key");
    assert!(sealed(&data(&world)).iter().all(|value| disk.holds(value)), "values are found where they are");
    let audit = world.connector.command(&["audit", "list", "--limit", "3"]).await;
    let actions = audit["audit"].as_array().unwrap().iter().map(|line| &line["action"]);
    assert_eq!(actions.collect::<Vec<_>>(), ["key.rotate"; 3]);

    world.connector.stop(SOON).await;
    let newest = std::fs::read_to_string(&key_file).unwrap();
    std::fs::write(&key_file, first).unwrap();
    let (_, error) = refused(&config(&world), &["serve"]);
    assert!(error.contains(&format!("needs master key {new_id}")) && error.contains(&old_id), "{error}");
    std::fs::write(&key_file, newest).unwrap();
    world.connector.restart().await;
    world.post("after").await;
    assert_eq!(world.join().await.take_text().await, "after", "its secret is the same");
}

/// Every sealed value in the database.
fn sealed(data: &Path) -> Vec<Vec<u8>> {
    Inspect::of(data).sealed_values().into_iter().map(|value| value.sealed).collect()
}

#[test]
fn a_configured_key_is_changed_by_its_keeper() {
    let folder = tempfile::tempdir().unwrap();
    let (config, data) = (folder.path().join("angelia.toml"), folder.path().join("data"));
    let configure = |key: &Path| {
        let text = format!("[server]\ndata_dir = {data:?}\n[keys]\nmaster = {{ file = {key:?} }}\n");
        std::fs::write(&config, text).unwrap();
    };
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    std::fs::write(&first, "1".repeat(64)).unwrap();
    configure(&first);
    done(&config, &["gateway", "create", "gw"]);
    let (code, error) = refused(&config, &["key", "rotate"]);
    assert!(code == 2 && error.contains("--to FILE"), "{code} {error}");
    std::fs::write(&second, "not a key").unwrap();
    let (code, error) = refused(&config, &["key", "rotate", "--to", second.to_str().unwrap()]);
    assert!(
        code == 2 && error.contains("64 hexadecimal digits") && !error.contains("not a key"),
        "{code} {error}"
    );
    let (code, _) = refused(&config, &["key", "rotate", "--to", first.to_str().unwrap()]);
    assert_eq!(code, 4, "it is in use already");
    std::fs::write(&second, "2".repeat(64)).unwrap();
    // A path is taken from where the command runs, wherever the server does.
    let rotate = Command::new(binary())
        .current_dir(folder.path())
        .args(["--config", config.to_str().unwrap(), "key", "rotate", "--to", "second"])
        .output()
        .unwrap();
    let text = String::from_utf8(rotate.stdout).unwrap();
    assert!(text.contains(&format!("master = {{ file = \"{}\" }}", second.display())), "{text}");
    let (_, error) = refused(&config, &["key", "check"]);
    assert!(error.contains("needs master key") && error.contains("point keys.master at that"), "{error}");
    configure(&second);
    assert!(done(&config, &["key", "check"]).contains("Everything sealed with it opens"));
    assert!(!data.join("master.key").exists(), "the configured key is kept nowhere else");
}

/// Puts so many updates that could not be read into the database of a server that is
/// stopped, a thousand for each bot, sealed with the key it has.
async fn fill(data: &Path, count: usize) {
    let key = MasterKey::from_hex(&std::fs::read_to_string(data.join("master.key")).unwrap()).unwrap();
    let store = store(data);
    let numbers: Vec<usize> = (0..count).collect();
    for (bot, numbers) in numbers.chunks(1_000).enumerate() {
        let bot = bot.to_string();
        let bound_to = seal::quarantine("telegram", &bot);
        let intakes = numbers.iter().map(|number| {
            let sealed = key.seal(&Secret::new(format!("update {number}")), &bound_to).unwrap().into();
            let (what, why) = (format!("update {number}"), "no chat".to_owned());
            let quarantined = Some(NewQuarantined { what, why, sealed, at: clock::wall() });
            Intake { quarantined, ..Intake::default() }
        });
        store.take_in(&BotKey::new("telegram", &bot), None, intakes.collect()).await.unwrap();
    }
}

/// What `key check` tells; everything has to open.
fn checked(config: &Path) -> Value {
    let checked: Value = serde_json::from_str(&done(config, &["key", "check", "--json"])).unwrap();
    assert_eq!(checked["unreadable"], 0, "{checked}");
    checked
}

/// A server that ends itself at a named point.
fn dying(folder: &Path, point: &str) -> Process {
    let mut command = tokio::process::Command::new(binary());
    command.arg("--config").arg(folder.join("angelia.toml")).arg("serve").env("ANGELIA_FAIL", point);
    Process::spawn("angelia", command, folder.join("angelia.log"))
}

/// Where a change can be cut short, whether the new key counts after it, and whether
/// something is left to be wrapped anew.
const POINTS: [(&str, bool, bool); 6] = [
    ("key_staged@1", false, false),
    ("key_begun@1", true, true),
    ("key_adopted@1", true, true),
    ("key_rewrapped@1", true, true),
    ("key_rewrapped@3", true, true),
    ("key_retired@1", true, false),
];

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_change_of_keys_that_is_cut_short_is_finished_by_the_next_start() {
    let mut world = World::new().await;
    let config = config(&world);
    world.connector.stop(SOON).await;
    fill(&data(&world), 350).await;
    for (point, changes, is_left) in POINTS {
        let before = checked(&config)["key_id"].clone();
        let mut process = dying(world.folder.path(), point);
        process.wait_for_log("ready", SOON).await;
        let (code, _) = refused(&config, &["key", "rotate"]);
        assert_eq!(code, 5, "the server was gone before it could answer");
        let status = process.wait(SOON).await.expect("it ended itself");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "{point}: {status}");
        let is_adopted = !["key_staged@1", "key_begun@1"].contains(&point);
        assert_eq!(data(&world).join("master.key.next").exists(), !is_adopted, "{point}");

        // As a command finds it, which opens the database and finishes nothing.
        let between = checked(&config);
        assert_eq!(between["key_id"] != before, changes, "{point}");
        let retiring = if is_left { before.clone() } else { Value::Null };
        assert_eq!(between["retiring_key_id"], retiring, "{point}");
        assert!(!data(&world).join("master.key.next").exists(), "{point} is settled");

        world.connector.restart().await;
        world.post(point).await;
        assert_eq!(world.join().await.take_text().await, point, "its secret is the same");
        while checked(&config)["retiring_key_id"] != Value::Null {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(checked(&config)["key_id"], between["key_id"], "{point}");
        let rotated = world.connector.command(&["key", "rotate"]).await;
        assert_eq!(rotated["old_key_id"], between["key_id"], "and it can be changed again");
        world.connector.stop(SOON).await;
    }
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn the_command_again_finishes_and_a_backup_in_between_needs_the_new_key_only() {
    let mut world = World::new().await;
    let config = config(&world);
    world.connector.stop(SOON).await;
    fill(&data(&world), 350).await;
    let before = checked(&config);
    let mut rotate = Command::new(binary());
    rotate.arg("--config").arg(&config).args(["key", "rotate"]).env("ANGELIA_FAIL", "key_rewrapped@2");
    assert!(!rotate.output().unwrap().status.success());
    let between = checked(&config);
    assert_eq!(between["retiring_key_id"], before["key_id"]);
    let file = world.folder.path().join("between.db");
    let backup: Value =
        serde_json::from_str(&done(&config, &["backup", file.to_str().unwrap(), "--json"])).unwrap();
    assert_eq!(backup["key_id"], between["key_id"]);
    let other = world.folder.path().join("other.key");
    std::fs::write(&other, "9".repeat(64)).unwrap();
    let (code, error) = refused(&config, &["key", "rotate", "--to", other.to_str().unwrap()]);
    assert!(code == 4 && error.contains("is not finished"), "{code} {error}");

    let rotated: Value = serde_json::from_str(&done(&config, &["key", "rotate", "--json"])).unwrap();
    assert_eq!((&rotated["old_key_id"], &rotated["key_id"]), (&before["key_id"], &between["key_id"]));
    assert_eq!(checked(&config)["retiring_key_id"], Value::Null);
    // The copy was made before; the key it names is all it needs.
    for name in DATABASE_FILES {
        let _ = std::fs::remove_file(data(&world).join(name));
    }
    std::fs::copy(&file, data(&world).join(DATABASE)).unwrap();
    assert_eq!(checked(&config)["retiring_key_id"], before["key_id"]);
    world.connector.restart().await;
    world.post("restored").await;
    assert_eq!(world.join().await.take_text().await, "restored");
}

#[test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
fn a_configured_key_whose_change_was_cut_short_is_asked_for_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (config, data) = (folder.path().join("angelia.toml"), folder.path().join("data"));
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let configure = |key: &Path| {
        let text = format!("[server]\ndata_dir = {data:?}\n[keys]\nmaster = {{ file = {key:?} }}\n");
        std::fs::write(&config, text).unwrap();
    };
    std::fs::write(&first, "1".repeat(64)).unwrap();
    std::fs::write(&second, "2".repeat(64)).unwrap();
    configure(&first);
    done(&config, &["gateway", "create", "gw"]);
    let before = checked(&config);
    let mut rotate = Command::new(binary());
    rotate.arg("--config").arg(&config).args(["key", "rotate", "--to"]).arg(&second);
    assert!(!rotate.env("ANGELIA_FAIL", "key_begun@1").output().unwrap().status.success());
    let (_, error) = refused(&config, &["key", "check"]);
    assert!(error.contains("needs master key") && error.contains("point keys.master at that"), "{error}");
    configure(&second);
    assert_eq!(checked(&config)["retiring_key_id"], before["key_id"], "the old one is found in the database");
    // The file of the old key is needed no more.
    std::fs::remove_file(&first).unwrap();
    done(&config, &["key", "rotate"]);
    assert_eq!(checked(&config)["retiring_key_id"], Value::Null);
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_a_change_and_the_next_one_finishes_it() {
    let mut world = World::new().await;
    let config = config(&world);
    world.connector.stop(SOON).await;
    fill(&data(&world), 5_000).await;
    world.connector.restart().await;
    let rotating = tokio::task::spawn_blocking({
        let config = config.clone();
        move || refused(&config, &["key", "rotate"])
    });
    let key_file = data(&world).join("master.key");
    let before = std::fs::read_to_string(&key_file).unwrap();
    while std::fs::read_to_string(&key_file).unwrap() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let began = clock::mono();
    world.connector.stop(SOON).await;
    assert!(clock::mono().since(began) < Duration::from_secs(5), "it stops at the next step");
    assert_eq!(rotating.await.unwrap().0, 5, "nobody was left to answer");
    let between = checked(&config);
    assert_ne!(between["retiring_key_id"], Value::Null, "{between}");
    world.connector.restart().await;
    while checked(&config)["retiring_key_id"] != Value::Null {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How many values are wrapped anew under traffic.
const MANY: usize = 4_000;

#[tokio::test]
async fn posts_and_gateways_go_on_while_thousands_of_values_are_wrapped_anew() {
    let mut world = World::new().await;
    let config = config(&world);
    world.connector.stop(SOON).await;
    fill(&data(&world), MANY).await;
    world.connector.restart().await;

    let over = Arc::new(AtomicBool::new(false));
    let posting = tokio::spawn(post_until(&world, over.clone()));
    let making = tokio::spawn(make_gateways_until(&world, over.clone()));
    let began = clock::mono();
    let rotated = world.connector.command(&["key", "rotate"]).await;
    let took = clock::mono().since(began);
    over.store(true, Ordering::Relaxed);
    let (posts, made) = (posting.await.unwrap(), making.await.unwrap());
    assert!(rotated["resealed"].as_u64().unwrap() as usize > MANY, "{rotated}");
    println!("{MANY} values in {took:?}: {}, and {} gateways", told(&posts), made.len());
    assert!(
        posts.len() > 20 && made.len() > 3,
        "they went on: {} posts, {} gateways",
        posts.len(),
        made.len()
    );
    assert!(percentile(&posts, 99) < took / 4, "nobody waits for the change");

    // What was sealed in its course opens at the next start as well.
    assert_eq!(checked(&config)["retiring_key_id"], Value::Null);
    world.connector.stop(SOON).await;
    world.connector.restart().await;
    for gateway in &made {
        Socket::join(&world.connector.url(), &credentials(gateway)).await;
    }
}

fn percentile(took: &[Duration], percent: usize) -> Duration {
    let mut took = took.to_vec();
    took.sort_unstable();
    took[(took.len() - 1) * percent / 100]
}

fn told(posts: &[Duration]) -> String {
    let [p50, p99, all] = [50, 99, 100].map(|percent| percentile(posts, percent));
    format!("{} posts, p50 {p50:?}, p99 {p99:?}, slowest {all:?}", posts.len())
}

/// Somebody who writes until it is over; how long each post took.
fn post_until(world: &World, over: Arc<AtomicBool>) -> impl Future<Output = Vec<Duration>> + Send + 'static {
    let url = format!("{}/chat/api/rooms/lab/messages", world.connector.url());
    let (http, key) = (world.http.clone(), world.key.clone());
    async move {
        let mut took = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let began = clock::mono();
            let text = json!({ "text": format!("m-{}", took.len()) });
            let answer = http.post(&url).bearer_auth(&key).json(&text).send().await.unwrap();
            assert_eq!(answer.status(), 201);
            took.push(clock::mono().since(began));
        }
        took
    }
}

/// An operator who makes gateways until it is over; what was answered.
fn make_gateways_until(
    world: &World,
    over: Arc<AtomicBool>,
) -> impl Future<Output = Vec<Value>> + Send + 'static {
    let read = |name: &str| std::fs::read_to_string(data(world).join(name)).unwrap().trim().to_owned();
    let (url, token) = (format!("{}/admin/gateways", read("admin-url")), read("admin-token"));
    let http = world.http.clone();
    async move {
        let mut made = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let body = json!({ "gateway_id": format!("gw-{}", made.len()) });
            let answer = http.post(&url).bearer_auth(&token).json(&body).send().await.unwrap();
            assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
            made.push(answer.json().await.unwrap());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        made
    }
}
