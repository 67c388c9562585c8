//! Published hermes-agent gateways, run as they are.
//!
//! `scripts/install-hermes` puts each version into an environment of its own;
//! [`Hermes::start`] runs `hermes gateway run` from there as a [`Setup`] says,
//! with a home directory that holds nothing but a small `config.yaml`.
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
//! - A text for a chat whose turn still runs cuts that turn. It also makes the
//!   reader wait 30 s for the result of its own notice, because `webchat` is
//!   served by the relay adapter itself. `display.busy_ack_enabled: false` would
//!   spare it that, but hardly anybody has it.
//! - 0.19.0: a text that arrives within milliseconds of the end of a turn is
//!   acknowledged, but parked until the next text of the chat, and then handled
//!   after that one.
//! - A typed `/stop` cuts the turn in 0.1 s and answers "Stopped", then the
//!   reader stalls for 30 s. `interrupt_inbound` cuts it in 0.1–0.3 s without a
//!   stall, on all three versions, for chats of the `relay` platform.
//! - A first dial that is refused with 401 is tried again after 30 s, then 60 s,
//!   120 s and so on; a later one after 1 s, 2 s, 4 s up to 30 s. 0.17.0 has no
//!   later one.

mod pasted;
mod setup;
mod version;

pub use pasted::paste;
pub use setup::{Login, Relay, Setup};
pub use version::Version;

use std::process::ExitStatus;
use std::time::Duration;

use crate::clock;
use crate::process::{Process, file_length, read_from};

/// The line a gateway logs when descriptor and hello were exchanged.
const CONNECTED_LINE: &str = "relay connected";

/// A running gateway.
#[derive(Debug)]
pub struct Hermes {
    setup: Setup,
    process: Process,
    /// Length of the gateway's own log at start.
    log_start: u64,
}

impl Hermes {
    /// Starts a gateway.
    ///
    /// # Panics
    ///
    /// When the version is not installed or cannot be started.
    pub fn start(setup: Setup) -> Self {
        let name = match &setup.relay {
            Relay::Pinned { gateway_id, .. } => format!("hermes {} {gateway_id}", setup.version),
            Relay::Provisioned { .. } | Relay::Enrolled => format!("hermes {}", setup.version),
        };
        let log_start = file_length(&setup.log());
        let process = Process::spawn(name, setup.command(&["gateway", "run"]), setup.home.join("output.log"));
        Self { setup, process, log_start }
    }

    /// Starts it again in the same home; the one before must have ended.
    ///
    /// # Panics
    ///
    /// When the process before still runs, or the new one cannot be started.
    pub fn restart(&mut self) {
        assert!(!self.process.is_running(), "restart of a gateway that still runs");
        *self = Self::start(self.setup.clone());
    }

    /// The version that runs.
    pub fn version(&self) -> Version {
        self.setup.version
    }

    /// The process and the file with its output.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// What this run wrote to the gateway's own log.
    pub fn gateway_log(&self) -> String {
        read_from(&self.setup.log(), self.log_start)
    }

    /// A file in its home; empty for one that is not there.
    pub fn home_file(&self, name: &str) -> String {
        read_from(&self.setup.home.join(name), 0)
    }

    /// Waits until the gateway itself says that its relay is connected.
    ///
    /// # Panics
    ///
    /// When it does not within `limit`, or ends before.
    pub async fn wait_connected(&mut self, limit: Duration) {
        self.wait_logged(CONNECTED_LINE, limit).await;
    }

    /// Waits until its own log says something `times` times in this run.
    ///
    /// # Panics
    ///
    /// When it does not within `limit`, or ends before.
    pub async fn wait_logged_times(&mut self, words: &str, times: usize, limit: Duration) {
        let (log, start) = (self.setup.log(), self.log_start);
        let logged = || read_from(&log, start).matches(words).count() >= times;
        self.process.wait_until(&format!("{words:?} {times} times in its log"), limit, logged).await;
    }

    /// Waits until its own log says something.
    ///
    /// # Panics
    ///
    /// When it does not within `limit`, or ends before.
    pub async fn wait_logged(&mut self, words: &str, limit: Duration) {
        self.wait_logged_times(words, 1, limit).await;
    }

    /// Sets its clock while it runs: so many seconds from the real time.
    ///
    /// # Panics
    ///
    /// When it was started with the machine's clock.
    pub fn set_clock(&mut self, seconds: i64) {
        assert!(self.setup.clock.is_some(), "this gateway has the machine's clock");
        self.setup.clock = Some(seconds);
        clock::set(&self.setup.home, seconds);
    }

    /// How many seconds its clock is off, as a process in its place sees it.
    ///
    /// # Panics
    ///
    /// When that cannot be found out.
    pub async fn clock_offset(&self) -> i64 {
        clock::offset(&self.setup.home).await
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
