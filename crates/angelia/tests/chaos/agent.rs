//! A `log-agent` process and what it wrote down.

use crate::server::{Credentials, Server};
use angelia_testkit::process::Process;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// A frame on the wire, as the gateway saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Process and socket: one connection.
    pub(crate) socket: (u64, u64),
    /// The number in its `bufferId`.
    pub(crate) buffer: u64,
    pub(crate) chat: String,
    /// Its first word.
    pub(crate) text: String,
}

/// The gateway process.
pub(crate) struct Agent {
    pub(crate) process: Process,
    binary: PathBuf,
    args: Vec<String>,
    log: PathBuf,
}

impl Agent {
    /// Starts an agent that logs and acknowledges; `extra` goes to its command line.
    pub(crate) fn start(server: &Server, credentials: &Credentials, extra: &[&str]) -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_angelia")).with_file_name("log-agent");
        assert!(
            binary.exists(),
            "{} is missing: run ./test, or cargo build --workspace --bins",
            binary.display()
        );
        let log = server.folder().join(format!("{}.jsonl", credentials.id));
        let named = [
            ("--url", server.url()),
            ("--id", credentials.id.clone()),
            ("--secret", credentials.secret.clone()),
            ("--log", log.display().to_string()),
        ];
        let mut args: Vec<String> =
            named.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        args.extend(extra.iter().map(|part| (*part).to_owned()));
        let process = spawn(&binary, &args, &log);
        Self { process, binary, args, log }
    }

    /// Kills the process as a crash would, and starts another with the same log.
    pub(crate) async fn kill_and_restart(&mut self) {
        self.process.kill().await;
        self.process = spawn(&self.binary, &self.args, &self.log);
    }

    /// Every `inbound` frame it logged, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.records("inbound").iter().map(seen).collect()
    }

    /// Every acknowledgement it wrote, in order.
    pub(crate) fn acked(&self) -> Vec<Seen> {
        self.records("ack").iter().map(seen).collect()
    }

    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("whole lines"));
        records.filter(|record| record["kind"] == kind).collect()
    }

    /// Waits until it has seen `count` different messages.
    pub(crate) async fn wait_for(&self, count: usize, limit: Duration) {
        let deadline = Instant::now() + limit;
        loop {
            let mut texts: Vec<String> = self.seen().into_iter().map(|seen| seen.text).collect();
            texts.sort_unstable();
            texts.dedup();
            if texts.len() >= count {
                return;
            }
            assert!(Instant::now() < deadline, "{} of {count} messages arrived in {limit:?}", texts.len());
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn seen(record: &Value) -> Seen {
    let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| record[name].as_u64().unwrap_or_default();
    let buffer = text("buffer").trim_start_matches('b').parse();
    Seen {
        socket: (number("process"), number("socket")),
        buffer: buffer.unwrap_or_else(|_| panic!("every frame has a bufferId: {record}")),
        chat: text("chat"),
        text: text("text"),
    }
}

fn spawn(binary: &Path, args: &[String], log: &Path) -> Process {
    let mut command = Command::new(binary);
    command.args(args);
    Process::spawn("log-agent", command, log.with_extension("err"))
}
