//! Published hermes-agent gateways, run as they are.
//!
//! `scripts/install-hermes` puts each version into an environment of its own;
//! [`Hermes::start`] runs `hermes gateway run` from there with a home directory
//! that holds nothing but a small `config.yaml`.
//!
//! # Settings, and what each is for
//!
//! The package is unchanged; these are settings an operator could make.
//!
//! - **Proxies that refuse** (`HTTP_PROXY` and friends name a closed port, with
//!   `NO_PROXY` for the loopback address). hermes looks up model metadata in
//!   several places of the internet; without a network each look-up waits for
//!   its time-out: up to 18 s for the start and 20 s for the first turn. Refused
//!   at once, the start takes 1–2 s and the first turn 4–7 s, nearly all of it
//!   imports; later turns take 0.1–0.8 s.
//! - **`model.context_length`** saves the look-up of the context size.
//! - **`security.tirith_enabled: false`, `allow_lazy_installs: false`** and
//!   `HERMES_DISABLE_LAZY_INSTALLS`: no downloads while a test runs.
//! - **`platform_toolsets.relay: [todo]`**: one harmless tool. None at all would
//!   do too, but turns are told from auxiliary requests by their tools.
//! - **`auxiliary.title_generation.enabled: false`** (read by 0.19.0 only).
//! - **`onboarding.profile_build: off`**: a shorter note on the first text.
//! - **`GATEWAY_ALLOW_ALL_USERS`** for 0.17.0, which does not trust the relay's
//!   authors; the later ones do.
//!
//! # How they behave, as far as tests must know
//!
//! Times are those of an idle machine with two cores; a busy one takes three
//! times as long.
//!
//! - SIGTERM ends an idle gateway in 0.6–0.9 s with exit code 1. During a turn
//!   0.18.2 and 0.19.0 cut it and end in 1.0–1.5 s; 0.17.0 waits for the turn
//!   (over 60 s if the model hangs).
//! - For about one second after the handshake of a fresh process, inbound texts
//!   are queued in memory (and acknowledged). The queue is then handled if the
//!   source's platform is one the process runs an adapter for. `webchat`, being
//!   unknown, counts as `relay` and is; texts from `discord` are **dropped**, in
//!   all three versions (seen up to 0.9 s, no longer at 1.5 s).
//! - A text for a chat whose turn still runs cuts that turn. With the default
//!   [`Options::busy_ack`] it also makes the reader wait 30 s for the result of
//!   its own notice, because `webchat` is served by the relay adapter itself.
//! - 0.19.0: a text that arrives within milliseconds of the end of a turn is
//!   acknowledged, but parked until the next text of the chat, and then handled
//!   after that one.
//! - A typed `/stop` cuts the turn in 0.1 s and answers "Stopped", then the
//!   reader stalls for 30 s. `interrupt_inbound` cuts it in 0.1–0.3 s without a
//!   stall, on all three versions, for chats of the `relay` platform.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::process::Command;

use crate::model::MODEL_NAME;
use crate::process::{Process, file_length, read_from};

/// A proxy nobody runs: the discard port of the loopback address.
const CLOSED_PROXY: &str = "http://127.0.0.1:9";

/// The line a gateway logs when descriptor and hello were exchanged.
const CONNECTED_LINE: &str = "relay connected";

/// A supported release of hermes-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 0.17.0: no acknowledgements, no reconnect, no going idle.
    V0_17_0,
    /// 0.18.2: acknowledges, reconnects, goes idle.
    V0_18_2,
    /// 0.19.0: also takes channel context.
    V0_19_0,
}

impl Version {
    /// Every supported release, oldest first.
    pub const ALL: [Self; 3] = [Self::V0_17_0, Self::V0_18_2, Self::V0_19_0];

    /// The version number.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_17_0 => "0.17.0",
            Self::V0_18_2 => "0.18.2",
            Self::V0_19_0 => "0.19.0",
        }
    }

    /// Whether it acknowledges inbound frames, so that nothing need be sent
    /// twice; it also reconnects by itself then.
    pub fn acknowledges(self) -> bool {
        self > Self::V0_17_0
    }

    /// The `hermes` command of this version.
    ///
    /// # Panics
    ///
    /// When it is not installed: a test that cannot run must not look passed.
    pub fn command(self) -> PathBuf {
        let command = self.environment().join("bin/hermes");
        assert!(
            command.is_file(),
            "hermes-agent {} is not installed at {}: run ./test, which installs them",
            self.as_str(),
            command.display()
        );
        command
    }

    fn environment(self) -> PathBuf {
        let folder = std::env::var_os("ANGELIA_TEST_ENV")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-env"), PathBuf::from);
        folder.join(format!("hermes-{}", self.as_str()))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a test may want different from the usual gateway.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether the gateway announces that a new text interrupts the running
    /// turn; `None` leaves it at hermes' default, which is on. Off spares a
    /// test the 30 s stall that the announcement causes.
    pub busy_ack: Option<bool>,
    /// Platforms and bot ids to say hello for. None: `relay` and an empty id,
    /// as a gateway does that was given only a URL, an id and a secret. 0.17.0
    /// can name only one.
    pub identities: Vec<(String, String)>,
    /// Further environment variables.
    pub env: Vec<(String, String)>,
}

/// Where a gateway belongs and whom it talks to; kept for a restart.
#[derive(Clone, Debug)]
struct Launch {
    version: Version,
    home: PathBuf,
    relay_url: String,
    gateway_id: String,
    secret: String,
    model_url: String,
    options: Options,
}

/// A running gateway.
#[derive(Debug)]
pub struct Hermes {
    launch: Launch,
    process: Process,
    /// Length of the gateway's own log at start.
    log_start: u64,
}

impl Hermes {
    /// Starts a gateway with the usual settings.
    ///
    /// # Panics
    ///
    /// When the version is not installed or cannot be started.
    pub fn start(
        version: Version,
        home: impl Into<PathBuf>,
        relay_url: &str,
        gateway_id: &str,
        secret: &str,
        model_url: &str,
    ) -> Self {
        let options = Options::default();
        Self::start_with(version, home, relay_url, gateway_id, secret, model_url, options)
    }

    /// Starts a gateway with settings of the test's own.
    ///
    /// # Panics
    ///
    /// When the version is not installed or cannot be started.
    pub fn start_with(
        version: Version,
        home: impl Into<PathBuf>,
        relay_url: &str,
        gateway_id: &str,
        secret: &str,
        model_url: &str,
        options: Options,
    ) -> Self {
        let launch = Launch {
            version,
            home: home.into(),
            relay_url: relay_url.to_owned(),
            gateway_id: gateway_id.to_owned(),
            secret: secret.to_owned(),
            model_url: model_url.to_owned(),
            options,
        };
        launch.run()
    }

    /// Starts it again in the same home; the one before must have ended.
    ///
    /// # Panics
    ///
    /// When the process before still runs, or the new one cannot be started.
    pub fn restart(&mut self) {
        assert!(!self.process.is_running(), "restart of a gateway that still runs");
        *self = self.launch.run();
    }

    /// The version that runs.
    pub fn version(&self) -> Version {
        self.launch.version
    }

    /// The process and the file with its output.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// What this run wrote to the gateway's own log.
    pub fn gateway_log(&self) -> String {
        read_from(&self.launch.gateway_log(), self.log_start)
    }

    /// Waits until the gateway itself says that its relay is connected.
    ///
    /// # Panics
    ///
    /// When it does not within `limit`, or ends before.
    pub async fn wait_connected(&mut self, limit: Duration) {
        let (log, start) = (self.launch.gateway_log(), self.log_start);
        let connected = || read_from(&log, start).contains(CONNECTED_LINE);
        self.process.wait_until("relay connection", limit, connected).await;
    }

    /// Ends it the friendly way and prints how long that took.
    ///
    /// # Panics
    ///
    /// When it is still there after `limit`.
    pub async fn terminate(&mut self, limit: Duration) -> (ExitStatus, Duration) {
        self.process.terminate(limit).await
    }

    /// Ends it as a crash would.
    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Freezes it as a suspended machine would: its socket stays open.
    pub fn freeze(&self) {
        self.process.freeze();
    }

    /// Wakes it up again.
    pub fn thaw(&self) {
        self.process.thaw();
    }
}

impl Launch {
    fn gateway_log(&self) -> PathBuf {
        self.home.join("logs/gateway.log")
    }

    fn run(&self) -> Hermes {
        let program = self.version.command();
        fs::create_dir_all(&self.home).expect("create the gateway's home");
        fs::write(self.home.join("config.yaml"), self.config()).expect("write config.yaml");
        let log_start = file_length(&self.gateway_log());
        let mut command = Command::new(program);
        command.args(["gateway", "run"]).current_dir(&self.home).env_clear().envs(self.environment());
        let name = format!("hermes {} {}", self.version, self.gateway_id);
        Hermes {
            launch: self.clone(),
            process: Process::spawn(name, command, self.home.join("output.log")),
            log_start,
        }
    }

    fn config(&self) -> String {
        let mut config = format!(
            "model:\n  provider: custom\n  base_url: {}\n  api_key: none\n  default: {MODEL_NAME}\n  \
             context_length: 131072\n\
             security:\n  tirith_enabled: false\n  allow_lazy_installs: false\n\
             auxiliary:\n  title_generation:\n    enabled: false\n\
             onboarding:\n  profile_build: \"off\"\n\
             platform_toolsets:\n  relay: [todo]\n\
             kanban:\n  dispatch_in_gateway: false\n",
            self.model_url
        );
        if let Some(on) = self.options.busy_ack {
            config.push_str(&format!("display:\n  busy_ack_enabled: {on}\n"));
        }
        config
    }

    fn environment(&self) -> Vec<(String, String)> {
        let home = self.home.display().to_string();
        // The usual path: the gateway looks for git, ssh and the like.
        let path = std::env::var("PATH").unwrap_or_default();
        let mut env = vec![
            ("PATH", path),
            ("HOME", home.clone()),
            ("HERMES_HOME", home),
            ("LANG", "C.UTF-8".to_owned()),
            ("PYTHONUNBUFFERED", "1".to_owned()),
            ("HERMES_DISABLE_LAZY_INSTALLS", "1".to_owned()),
            ("GATEWAY_RELAY_URL", self.relay_url.clone()),
            ("GATEWAY_RELAY_ID", self.gateway_id.clone()),
            ("GATEWAY_RELAY_SECRET", self.secret.clone()),
        ];
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            env.push((name, CLOSED_PROXY.to_owned()));
        }
        for name in ["NO_PROXY", "no_proxy"] {
            env.push((name, "127.0.0.1,localhost".to_owned()));
        }
        let (platforms, bots): (Vec<_>, Vec<_>) = self.options.identities.iter().cloned().unzip();
        let single = self.version == Version::V0_17_0;
        if single {
            env.push(("GATEWAY_ALLOW_ALL_USERS", "true".to_owned()));
        }
        if !platforms.is_empty() {
            assert!(!single || platforms.len() == 1, "0.17.0 fronts one platform only");
            if single {
                env.push(("GATEWAY_RELAY_PLATFORM", platforms.join("")));
                env.push(("GATEWAY_RELAY_BOT_ID", bots.join("")));
            } else {
                env.push(("GATEWAY_RELAY_PLATFORMS", platforms.join(",")));
                let bots = bots.into_iter().map(|bot| json!({"botId": bot}));
                let ids: Map<_, _> = platforms.into_iter().zip(bots).collect();
                env.push(("GATEWAY_RELAY_BOT_IDS", Value::Object(ids).to_string()));
            }
        }
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value));
        env.chain(self.options.env.iter().cloned()).collect()
    }
}
