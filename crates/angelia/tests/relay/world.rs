//! One server with one gateway and one room, the usual beginning.

use angelia_core::inbox::Quota;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) connector: Connector,
    pub(crate) gateway: Credentials,
    pub(crate) key: String,
    pub(crate) http: reqwest::Client,
    pub(crate) folder: TempDir,
}

/// The store of a server that is stopped.
pub(crate) fn store(data: &Path) -> Sqlite {
    Sqlite::open(data, Quota::default(), Arc::new(LocalBus::default())).unwrap()
}

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_angelia"))
}

impl World {
    /// Stops the server, adds lines to its configuration and starts it again.
    pub(crate) async fn restart_with(&mut self, lines: &str) {
        self.connector.stop(Duration::from_secs(10)).await;
        let path = self.folder.path().join("angelia.toml");
        let config = std::fs::read_to_string(&path).unwrap() + lines;
        std::fs::write(&path, config).unwrap();
        self.connector.restart().await;
    }

    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// The same, with more lines of configuration.
    pub(crate) async fn with(lines: &str) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = tempfile::tempdir().unwrap();
        let connector = Connector::start_with(binary(), folder.path(), lines).await;
        let made = connector.command(&["gateway", "create", "gw"]).await;
        let gateway = credentials(&made);
        let invited = connector.command(&["webchat", "invite", "--room", "lab", "--user", "ann"]).await;
        let key = invited["key"].as_str().unwrap().to_owned();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { connector, gateway, key, http, folder }
    }

    pub(crate) async fn join(&self) -> Socket {
        Socket::join(&self.connector.url(), &self.gateway).await
    }

    pub(crate) async fn post(&self, text: &str) -> String {
        self.post_as(&self.key, "lab", &json!({ "text": text })).await["message_id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) async fn post_as(&self, key: &str, room: &str, body: &Value) -> Value {
        let url = format!("{}/chat/api/rooms/{room}/messages", self.connector.url());
        let answer = self.http.post(url).bearer_auth(key).json(body).send().await.unwrap();
        answer.json().await.unwrap()
    }

    pub(crate) async fn lines(&self) -> Vec<Value> {
        let url = format!("{}/chat/api/rooms/lab/messages", self.connector.url());
        let answer = self.http.get(url).bearer_auth(&self.key).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["messages"].as_array().unwrap().clone()
    }

    /// How many entries wait for the gateway.
    pub(crate) async fn waiting(&self) -> u64 {
        let inboxes = self.connector.command(&["inbox", "list"]).await;
        inboxes["inboxes"].as_array().unwrap().iter().map(|inbox| inbox["waiting"].as_u64().unwrap()).sum()
    }

    pub(crate) async fn until_waiting(&self, count: u64) {
        for _ in 0..100 {
            if self.waiting().await == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} entries wait, not {count}", self.waiting().await);
    }
}

pub(crate) fn credentials(made: &Value) -> Credentials {
    let text = |name: &str| made[name].as_str().unwrap_or_else(|| panic!("no {name} in {made}")).to_owned();
    Credentials { gateway_id: text("gateway_id"), secret: text("secret") }
}
