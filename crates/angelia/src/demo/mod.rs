//! `angelia demo`: a server, three rooms and two agents, in one process.
//!
//! Nothing is shortcut: the agents are enrolled as an operator would, dial the
//! real socket with real secrets, and what people post goes through the real
//! inbox. The third room waits for the visitor's own hermes-agent.

mod agents;
mod cast;
mod iris;
mod kept;
mod metis;
mod phrases;
mod port;
mod welcome;

use crate::config::{Config, Log, Server};
use crate::files::Scratch;
use crate::remote::Remote;
use crate::serve::{self, Running};
use crate::stop_signals::{self, StopSignals};
use crate::{listen, show};
use agents::Agents;
use angelia_core::error::{Error, Result};
use cast::Cast;
use kept::Kept;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use welcome::Welcome;

/// How long the server gets to say goodbye: whoever presses Ctrl-C waits for it.
const GOODBYE: Duration = Duration::from_millis(1_500);
/// What is logged unless the operator wants something else: a terminal with a
/// welcome in it is no place for everyday news.
const LOG_LEVEL: &str = "warn";

/// Runs the demo until a signal; without `keep` its data goes with it.
pub(crate) async fn demo(config: Config, keep: Option<PathBuf>, as_json: bool) -> Result<()> {
    let scratch = Scratch::new("demo");
    let not_ours = config.server.admin_listen.port();
    let data_dir = keep.clone().unwrap_or_else(|| scratch.path().to_owned());
    let config = own_config(config, data_dir)?;
    serve::log(&config)?;
    // Heard from here on: a Ctrl-C during the start leaves no trace either.
    let mut stopped = std::pin::pin!(stop_signal());
    let open = tokio::select! {
        biased;
        heard = &mut stopped => return heard,
        open = Demo::open(config, keep.as_deref(), not_ours) => open?,
    };
    show::text(&if as_json { open.welcome.json() } else { open.welcome.text() })?;
    let heard = stopped.await;
    open.close().await;
    heard
}

/// A configuration of the demo's own. Of the operator's only the address, its
/// names and the log count: bots, keys and data are for the server that is meant in earnest.
fn own_config(config: Config, data_dir: PathBuf) -> Result<Config> {
    let Config { server: Server { listen, hosts, behind_proxy, .. }, log, .. } = config;
    let log = if log.level == Log::default().level { Log { level: LOG_LEVEL.into(), ..log } } else { log };
    let admin_listen = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Server { listen, hosts, behind_proxy, admin_listen, data_dir, ..Server::default() };
    let config = Config { server, log, ..Config::default() };
    config.check_exposure(false).map_err(|faults| Error::invalid(faults.to_string()))?;
    Ok(config)
}

/// Everything that runs.
struct Demo {
    agents: Agents,
    running: Running,
    welcome: Welcome,
}

impl Demo {
    /// `not_ours` is the port where the server that is meant in earnest takes commands.
    async fn open(config: Config, keep: Option<&Path>, not_ours: u16) -> Result<Self> {
        let kept = keep.map(Kept::claim).transpose()?.unwrap_or_default();
        let wanted = config.server.listen;
        let public = port::next_free(wanted, kept.port, not_ours).await?;
        let bound = listen::address(&public)?;
        let running = serve::start(&config, public).await?;
        let url = config.server.public_url(bound);
        let remote = Remote::open(&config, false).await?;
        let cast = Cast::assemble(&remote, &url, &kept).await?;
        if let Some(folder) = keep {
            Kept { port: Some(bound.port()), ..cast.kept() }.store(folder)?;
        }
        let explain = welcome::explain_command(&config.server.data_dir);
        running.server.guide_room(cast::HERMES, cast.guide_lines());
        running.server.guide_explain(explain.clone());
        let agents = Agents::start(&cast, &url).await?;
        let moved = kept.port.filter(|last| *last != bound.port());
        let port_taken = (wanted.port() != 0 && wanted.port() != bound.port()).then_some(wanted.port());
        let welcome = Welcome {
            url,
            data_dir: config.server.data_dir.clone(),
            kept: keep.is_some(),
            port_taken: port_taken.filter(|_| kept.port.is_none()),
            moved_from: moved,
            rooms: cast.rooms(),
            guide: cast.guide_lines(),
            explain,
        };
        Ok(Self { agents, running, welcome })
    }

    /// Ends everything, the agents first: they would only dial again.
    async fn close(self) {
        drop(self.agents);
        // What is committed is safe; whoever dawdles finds the socket closed.
        let _ = tokio::time::timeout(GOODBYE, self.running.stop()).await;
    }
}

/// Resolves when somebody stops the demo, or closes the window it runs in.
async fn stop_signal() -> Result<()> {
    let mut signals = StopSignals::listen()?;
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut hangup = signal(SignalKind::hangup()).map_err(stop_signals::unheard)?;
        tokio::select! {
            _ = hangup.recv() => Ok(()),
            heard = signals.next() => heard,
        }
    }
    #[cfg(not(unix))]
    signals.next().await
}
