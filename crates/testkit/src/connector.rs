//! An `angelia` binary with a data directory of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::process::{Process, free_port, run};
use crate::two_nodes::{self, OtherNode};
use crate::webchat::{Person, http_client};

/// How long one command of the binary may take.
const COMMAND: Duration = Duration::from_secs(20);

/// How long the server may take until it is ready.
const START: Duration = Duration::from_secs(30);

/// Fixed pause: in it something that is on its way must have had the time to move.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The exit code that says that something is there already.
const CONFLICT: i32 = 4;

/// A server and what is needed to talk to it.
#[derive(Debug)]
pub struct Connector {
    binary: PathBuf,
    folder: PathBuf,
    port: u16,
    admin: u16,
    process: Process,
    /// The node that reads the bots, where this one is to be part of a cluster.
    other: Option<OtherNode>,
}

/// A gateway's credentials.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The gateway's id.
    pub gateway_id: String,
    /// Its secret, as the gateway's environment takes it.
    pub secret: String,
}

impl Connector {
    /// Writes a configuration into `folder` and starts `binary` with it.
    ///
    /// # Panics
    ///
    /// When the server does not become ready.
    pub async fn start(binary: &Path, folder: &Path) -> Self {
        Self::start_with(binary, folder, "").await
    }

    /// The same, with more lines of configuration.
    ///
    /// # Panics
    ///
    /// When the server does not become ready.
    pub async fn start_with(binary: &Path, folder: &Path, lines: &str) -> Self {
        Self::start_on(binary, folder, free_port(), lines).await
    }

    /// The same, on a port that others know already.
    ///
    /// # Panics
    ///
    /// When the server does not become ready.
    pub async fn start_on(binary: &Path, folder: &Path, port: u16, lines: &str) -> Self {
        Self::start_as(binary, folder, port, lines, &[]).await
    }

    /// The same, with environment variables such as those of the fail points.
    ///
    /// # Panics
    ///
    /// When the server does not become ready.
    pub async fn start_as(
        binary: &Path,
        folder: &Path,
        port: u16,
        lines: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let mut connector = Self::spawn(binary, folder, port, lines, variables);
        connector.wait_ready().await;
        connector
    }

    /// The same, without waiting until it is ready.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn spawn(binary: &Path, folder: &Path, port: u16, lines: &str, variables: &[(&str, &str)]) -> Self {
        match two_nodes::asked(folder, lines) {
            Some(lines) => {
                let this = Self::alone(binary, folder, port, &lines, variables);
                let other = OtherNode::start(binary, folder, variables);
                Self { other: Some(other), ..this }
            }
            None => Self::alone(binary, folder, port, lines, variables),
        }
    }

    /// The same, whatever [`two_nodes`](crate::two_nodes) would make of it.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn alone(binary: &Path, folder: &Path, port: u16, lines: &str, variables: &[(&str, &str)]) -> Self {
        fs::create_dir_all(folder).expect("create the server's folder");
        let admin = free_port();
        configure(folder, port, port, admin, lines);
        let process = serve(binary, folder, variables);
        Self { binary: binary.to_owned(), folder: folder.to_owned(), port, admin, process, other: None }
    }

    /// Starts it again with the same data; the one before must have ended.
    ///
    /// # Panics
    ///
    /// When the server does not become ready.
    pub async fn restart(&mut self) {
        self.restart_with(&[]).await;
    }

    /// The same, with environment variables; those of the run before are gone.
    ///
    /// # Panics
    ///
    /// When the server does not become ready.
    pub async fn restart_with(&mut self, variables: &[(&str, &str)]) {
        self.respawn(variables);
        self.wait_ready().await;
    }

    /// The same, without waiting until it is ready.
    ///
    /// # Panics
    ///
    /// When the one before still runs.
    pub fn respawn(&mut self, variables: &[(&str, &str)]) {
        assert!(!self.process.is_running(), "restart of a server that still runs");
        self.process = serve(&self.binary, &self.folder, variables);
        if let Some(other) = &mut self.other
            && !other.process.is_running()
        {
            *other = OtherNode::start(&self.binary, &self.folder, variables);
        }
    }

    /// Stops it, and the node that reads the bots.
    ///
    /// # Panics
    ///
    /// When it is still there after `limit`.
    pub async fn stop(&mut self, limit: Duration) -> ExitStatus {
        if let Some(other) = &self.other {
            other.process.ask_to_stop();
        }
        let (status, _) = self.process.terminate(limit).await;
        if let Some(other) = &mut self.other {
            other.process.terminate(limit).await;
        }
        status
    }

    /// Kills it, and the node that reads the bots.
    pub async fn kill(&mut self) {
        if let Some(other) = &mut self.other {
            other.process.kill().await;
        }
        self.process.kill().await;
    }

    /// What it and the node that reads the bots wrote in this run.
    pub fn log_text(&self) -> String {
        let other = self.other.as_ref().map(|other| other.process.log_text());
        self.process.log_text() + &other.unwrap_or_default()
    }

    /// The same, of all runs.
    pub fn whole_log(&self) -> String {
        let other = self.other.as_ref().map(|other| other.process.log_path());
        let logs = [self.process.log_path()].into_iter().chain(other);
        logs.map(|log| fs::read_to_string(log).unwrap_or_default()).collect()
    }

    /// Waits until it ends by itself; `None` when it still runs after `limit`. Where one of two
    /// nodes does, the other is killed.
    pub async fn died(&mut self, limit: Duration) -> Option<ExitStatus> {
        let Some(other) = &mut self.other else { return self.process.wait(limit).await };
        let ended = tokio::select! {
            ended = self.process.wait(limit) => ended,
            ended = other.process.wait(limit) => ended,
        };
        self.kill().await;
        ended
    }

    /// The server's address as gateways and browsers see it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The process and the file with its output; of two nodes, the one that gateways dial.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Runs a command of the binary and returns the JSON it prints.
    ///
    /// # Panics
    ///
    /// When it fails for another reason than a conflict.
    pub async fn command(&self, args: &[&str]) -> Value {
        let config = self.folder.join("angelia.toml").display().to_string();
        let mut all = vec!["--config", &config];
        all.extend(args);
        all.push("--json");
        let output = run(&self.binary, &all, COMMAND, &[CONFLICT]).await;
        serde_json::from_str(&output).unwrap_or_default()
    }

    /// Makes a tenant with one gateway.
    ///
    /// # Panics
    ///
    /// When the server refuses it.
    pub async fn gateway(&self, tenant: &str, id: &str) -> Credentials {
        self.command(&["tenant", "create", tenant]).await;
        let made = self.command(&["gateway", "create", "--tenant", tenant, id]).await;
        let text = |name: &str| {
            let value = made[name].as_str();
            value.unwrap_or_else(|| panic!("no {name} in {made}")).to_owned()
        };
        Credentials { gateway_id: text("gateway_id"), secret: text("secret") }
    }

    /// Opens a web-chat room of a tenant and lets `user` enter it.
    ///
    /// # Panics
    ///
    /// When the server refuses it.
    pub async fn person(&self, tenant: &str, room: &str, user: &str) -> Person {
        let place = format!("webchat:{room}");
        self.command(&["route", "add", "--tenant", tenant, "--allow", "any", &place]).await;
        self.invite(&["--room", room, "--user", user], user).await
    }

    /// Opens a private chat of `user` with an agent of a tenant.
    ///
    /// # Panics
    ///
    /// When the server refuses it.
    pub async fn private(&self, tenant: &str, user: &str) -> Person {
        let place = format!("webchat:dm:{user}");
        self.command(&["route", "add", "--tenant", tenant, &place]).await;
        self.invite(&["--user", user], user).await
    }

    async fn invite(&self, args: &[&str], user: &str) -> Person {
        let invited = self.command(&[&["webchat", "invite"], args].concat()).await;
        let text = |name: &str| invited[name].as_str().unwrap_or_else(|| panic!("no {name} in {invited}"));
        Person::enter(&self.url(), text("room"), user, text("key"))
    }

    /// Posts to the admin API, over a client whose connections stay open: for those who make
    /// thousands of things, where a command each would take minutes.
    ///
    /// # Panics
    ///
    /// When the server refuses it.
    pub async fn admin(&self, client: &reqwest::Client, path: &str, body: &Value) -> Value {
        let token = fs::read_to_string(self.folder.join("data/admin-token")).expect("read the admin token");
        let url = format!("http://127.0.0.1:{}/admin/{path}", self.admin);
        let answer = client.post(&url).bearer_auth(token.trim()).json(body).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("POST {url}: {error}"));
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        assert!(status.is_success(), "POST {url}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// What the audit log says of an action, newest first.
    ///
    /// # Panics
    ///
    /// When the server does not tell.
    pub async fn audited(&self, action: &str) -> Vec<Value> {
        let log = self.command(&["audit", "list"]).await;
        let lines = log["audit"].as_array().unwrap_or_else(|| panic!("no audit log in {log}"));
        lines.iter().filter(|line| line["action"] == action).cloned().collect()
    }

    /// Waits until nothing is on its way any more: what gateways were pushed, what of it
    /// settled and what they asked for is the same from one look to the next.
    pub async fn until_quiet(&self) {
        let deadline = Instant::now() + START;
        let mut last = self.moved().await;
        loop {
            sleep(LOOK_AGAIN).await;
            let now = self.moved().await;
            if now == last || Instant::now() > deadline {
                return;
            }
            last = now;
        }
    }

    async fn moved(&self) -> Vec<String> {
        const MOVED: [&str; 3] =
            ["angelia_relay_pushed_total ", "angelia_relay_settled_total ", "angelia_relay_outbound_total "];
        let text = self.metrics().await;
        text.lines()
            .filter(|line| MOVED.iter().any(|name| line.starts_with(name)))
            .map(str::to_owned)
            .collect()
    }

    /// The value of a counter; of two nodes, what they have together.
    ///
    /// # Panics
    ///
    /// When the server does not tell, or has no such counter.
    pub async fn counter(&self, name: &str) -> u64 {
        let text = self.metrics().await;
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok();
        let values: Vec<u64> = text.lines().filter_map(value).collect();
        assert!(!values.is_empty(), "no {name} in {text}");
        values.iter().sum()
    }

    /// All metrics, as Prometheus reads them; of two nodes, one after the other.
    ///
    /// # Panics
    ///
    /// When the server does not tell.
    pub async fn metrics(&self) -> String {
        let mut text = String::new();
        for admin in [self.admin].into_iter().chain(self.other.as_ref().map(OtherNode::admin)) {
            let url = format!("http://127.0.0.1:{admin}/metrics");
            let answer = http_client().get(&url).send().await.expect("ask for metrics");
            text.push_str(&answer.text().await.expect("read metrics"));
        }
        text
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    ///
    /// When it does not become so.
    pub async fn wait_ready(&mut self) {
        if let Some(other) = &mut self.other {
            other.wait_ready().await;
        }
        let url = format!("{}/readyz", self.url());
        let client = http_client();
        let (sender, ready) = tokio::sync::watch::channel(false);
        let probe = tokio::spawn(async move {
            loop {
                if client.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                    let _ = sender.send(true);
                    return;
                }
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        });
        self.process.wait_until("readiness", START, || *ready.borrow()).await;
        probe.abort();
    }
}

/// Tests say in seconds what people say in a day. Those about the pace itself set
/// their own.
pub const WIDE_PACE: [(&str, &str); 2] =
    [("ANGELIA_WEBCHAT__POSTS_BURST", "1000000"), ("ANGELIA_WEBCHAT__POSTS_PER_MINUTE", "1000000")];

/// Writes the configuration of a server that others know by `public`.
fn configure(folder: &Path, port: u16, public: u16, admin: u16, lines: &str) {
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:{port}\"\npublic_url = \"http://127.0.0.1:{public}\"\n\
         admin_listen = \"127.0.0.1:{admin}\"\ndata_dir = {:?}\n{lines}",
        folder.join("data").display().to_string()
    );
    fs::write(folder.join("angelia.toml"), config).expect("write angelia.toml");
}

pub(crate) fn serve(binary: &Path, folder: &Path, variables: &[(&str, &str)]) -> Process {
    let mut command = Command::new(binary);
    command.arg("--config").arg(folder.join("angelia.toml")).arg("serve");
    command.envs(WIDE_PACE).envs(variables.iter().copied());
    Process::spawn("angelia", command, folder.join("angelia.log"))
}
