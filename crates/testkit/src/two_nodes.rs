//! Tests that know of one server, on two: the gateway on one node, the bots on the other.
//!
//! With `ANGELIA_TEST_CLUSTER=2` in the environment every [`Connector`](crate::connector::Connector)
//! is two processes on one PostgreSQL and one Redis. The one a test sees takes no leases: it has the
//! address, the data directory, the log and the admin API that the test uses, so gateways, webhooks
//! and people come to it. Files rest in a bucket. The other one, in the folder `bots` below, has all leases: it reads the
//! bots and makes their calls. They start and end together. A server whose test gives it a store or a
//! key of its own stays alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use angelia_services::{Postgres, Redis, S3};
use tokio::time::{Instant, sleep};

use crate::connector::serve;
use crate::process::{Process, free_port};
use crate::webchat::http_client;

/// Asks for two nodes.
const ASKED: &str = "ANGELIA_TEST_CLUSTER";

/// How long the other node may take until it is ready.
const START: Duration = Duration::from_secs(30);

/// How often it is asked meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// What makes a node leave the bots to others.
const NO_BOTS: &str = "bots = false";

/// What a server that belongs to a cluster has in common with the others.
const OF_A_CLUSTER: [&str; 4] = ["[store]", "[bus]", "[keys]", "[cluster]"];

/// Where nodes have their files in common.
const MEDIA: &str = "[media]";

/// Whether every server is two nodes.
pub fn are_asked_for() -> bool {
    std::env::var(ASKED).is_ok()
}

/// What the configuration of the node that a test sees ends with, if two are asked for and the
/// server has nothing of its own that is theirs: it leaves the bots to the other.
pub(crate) fn asked(folder: &Path, lines: &str) -> Option<String> {
    let is_own = OF_A_CLUSTER.iter().any(|section| lines.contains(section));
    if !are_asked_for() || is_own {
        return None;
    }
    fs::create_dir_all(folder).expect("create the server's folder");
    let shared = shared(folder);
    // What a test says of files stands in the section that names the bucket.
    let (lines, own) = match lines.split_once(&format!("{MEDIA}\n")) {
        Some((before, own)) => (before, own),
        None => (lines, ""),
    };
    Some(format!("{lines}\n{MEDIA}\n{}{own}\n{shared}[cluster]\n{NO_BOTS}\n", bucket(folder)))
}

/// The node that a test does not see.
#[derive(Debug)]
pub(crate) struct OtherNode {
    pub(crate) process: Process,
    port: u16,
    admin: u16,
}

impl OtherNode {
    /// Starts it with the configuration that the node in this folder has, but for the bots.
    pub(crate) fn start(binary: &Path, of_this: &Path, variables: &[(&str, &str)]) -> Self {
        let (home, port, admin) = (of_this.join("bots"), free_port(), free_port());
        fs::create_dir_all(&home).expect("create the other node's folder");
        let text = fs::read_to_string(of_this.join("angelia.toml")).expect("read angelia.toml");
        let own = |line: &str| match line.split_once(" = ") {
            Some((name @ "listen", _)) => format!("{name} = \"127.0.0.1:{port}\"\n"),
            Some((name @ "admin_listen", _)) => format!("{name} = \"127.0.0.1:{admin}\"\n"),
            Some((name @ "data_dir", _)) => {
                format!("{name} = {:?}\n", home.join("data").display().to_string())
            }
            _ if line == NO_BOTS => String::new(),
            _ => format!("{line}\n"),
        };
        let text: String = text.lines().map(own).collect();
        fs::write(home.join("angelia.toml"), text).expect("write angelia.toml");
        Self { process: serve(binary, &home, variables), port, admin }
    }

    /// The port of its admin API.
    pub(crate) fn admin(&self) -> u16 {
        self.admin
    }

    pub(crate) async fn wait_ready(&mut self) {
        let (url, client) = (format!("http://127.0.0.1:{}/readyz", self.port), http_client());
        let deadline = Instant::now() + START;
        while !client.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
            let ended = !self.process.is_running();
            let log = || self.process.log_text();
            assert!(!ended && Instant::now() < deadline, "the node with the bots is not ready: {}", log());
            sleep(POLL).await;
        }
    }
}

/// Where both nodes have their files: in one bucket, below the name of their database.
fn bucket(folder: &Path) -> String {
    let s3 = S3::shared().expect("a bucket");
    let (secret, store) = (folder.join("bucket.secret"), folder.join("cluster.store"));
    fs::write(&secret, s3.secret_access_key()).expect("write the bucket's key");
    let store = fs::read_to_string(store).expect("read which database it is");
    let name = store.split('?').next().and_then(|url| url.rsplit('/').next()).unwrap_or_default();
    format!(
        "url = \"s3://{}/{name}\"\nendpoint = {:?}\naccess_key_id = {:?}\nsecret_access_key = {{ file = {:?} }}\n",
        S3::BUCKET,
        s3.endpoint(),
        s3.access_key_id(),
        secret.display().to_string()
    )
}

/// What both nodes have; a server that is started again in a folder finds its database.
fn shared(folder: &Path) -> String {
    static REDIS: OnceLock<Redis> = OnceLock::new();
    let redis = REDIS.get_or_init(|| Redis::start().expect("a Redis"));
    let (key, kept): (PathBuf, PathBuf) = (folder.join("cluster.key"), folder.join("cluster.store"));
    let store = fs::read_to_string(&kept).unwrap_or_else(|_| {
        let url = Postgres::shared().and_then(Postgres::fresh_database).expect("a database");
        fs::write(&kept, &url).expect("note the database");
        fs::write(&key, "5c".repeat(32)).expect("write the master key");
        url
    });
    format!(
        "[store]\nurl = {store:?}\n[keys]\nmaster = {{ file = {:?} }}\n[bus]\nurl = {:?}\n",
        key.display().to_string(),
        redis.url()
    )
}
