//! `angelia serve`: from configuration to a running server, and down again.

use crate::config::Config;
use crate::log::{Visible, colours};
use crate::presence::{self, Holder};
use crate::tls::Certificate;
use crate::{bots, listen, modes, node, supervisor};
use angelia_connector::{Server, admin};
use angelia_core::error::{Error, Result};
use angelia_engines::store::sqlite;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing_subscriber::EnvFilter;

/// How often an announcement that could not be written is tried again.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(2);

/// Libraries that would print frames or headers at their chattiest levels.
const QUIET: [&str; 3] = ["tungstenite=warn", "tokio_tungstenite=warn", "hyper=info"];

/// Runs the server until a signal.
pub(crate) async fn serve(config: Config, insecure: bool) -> Result<()> {
    config.check_exposure(insecure).map_err(|faults| Error::invalid(faults.to_string()))?;
    log(&config)?;
    let mut stop = std::pin::pin!(stop_signal());
    let running = tokio::select! {
        // Heard from the first moment: as the first process of a container we
        // would not even end by a signal that nobody waits for.
        biased;
        stopped = &mut stop => return stopped,
        running = listen_and_start(&config) => running?,
    };
    tracing::info!(listen = %running.public, admin = %running.admin, "ready");
    supervisor::ready(&running.public);
    stop.await?;
    supervisor::stopping();
    tracing::info!("stopping: closing sockets so that gateways dial again");
    running.stop().await;
    Ok(())
}

async fn listen_and_start(config: &Config) -> Result<Running> {
    start(config, listen::bind(config.server.listen, "server.listen").await?).await
}

/// A server with its listeners.
pub(crate) struct Running {
    pub(crate) server: Arc<Server>,
    pub(crate) public: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// Tells commands where this server is, until it is aborted.
    announcing: JoinHandle<()>,
}

impl Running {
    /// Closes every socket, and takes no more commands.
    pub(crate) async fn stop(self) {
        self.server.stop().await;
        // Before the data directory is free: whoever gets it next may announce itself.
        self.announcing.abort();
        let _ = self.announcing.await;
    }
}

/// Opens the data directory and starts to serve on `public` and the admin address.
pub(crate) async fn start(config: &Config, public: TcpListener) -> Result<Running> {
    let public_address = listen::address(&public)?;
    let certificate = config.server.tls.as_ref().map(Certificate::load).transpose()?;
    let data_dir = &config.server.data_dir;
    let Holder::Us(lock) = presence::find(data_dir).await? else { return Err(sqlite::taken(data_dir)) };
    modes::check(config, true)?;
    let public_url = config.server.public_url(public_address);
    let server = node::open(config, lock, public_url, bots::platforms).await?;
    let admin = listen::bind(config.server.admin_listen, "server.admin_listen").await?;
    let admin_address = listen::address(&admin)?;
    server.start().await?;
    let announcing = announce(data_dir.clone(), format!("http://{admin_address}"));
    tokio::spawn(listen::serve(public, server.public_router(), certificate));
    tokio::spawn(listen::serve(admin, admin::router(server.clone()), None));
    Ok(Running { server, public: public_address, admin: admin_address, announcing })
}

/// Tells commands where this server is. It serves without that, so where nothing can
/// be written it is only tried again.
fn announce(data_dir: PathBuf, admin_url: String) -> JoinHandle<()> {
    let mut announced = presence::announce(&data_dir, &admin_url);
    if let Err(error) = &announced {
        tracing::error!(%error, "commands cannot find this server yet; trying again");
    }
    tokio::spawn(async move {
        while announced.is_err() {
            tokio::time::sleep(ANNOUNCE_EVERY).await;
            announced = presence::announce(&data_dir, &admin_url);
        }
        std::future::pending::<()>().await;
        drop(announced);
    })
}

/// Logs to standard error. `ANGELIA_LOG` overrides the configured level.
pub(crate) fn log(config: &Config) -> Result<()> {
    let wanted = std::env::var("ANGELIA_LOG").unwrap_or_else(|_| config.log.level.clone());
    let mut filter = EnvFilter::try_new(&wanted)
        .map_err(|e| Error::invalid(format!("log level {wanted:?} cannot be read: {e}")))?;
    for directive in QUIET {
        filter = filter.add_directive(directive.parse().map_err(|_| Error::internal("a log directive"))?);
    }
    let log = tracing_subscriber::fmt().with_ansi(colours());
    let _ = log.with_env_filter(filter).with_writer(Visible::stderr).try_init();
    Ok(())
}

/// Resolves when the process is asked to stop.
pub(crate) async fn stop_signal() -> Result<()> {
    let failed = |e: std::io::Error| Error::internal(format!("signals cannot be heard: {e}"));
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(failed),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.map_err(failed)
}
