//! `angelia serve`: from configuration to a running server, and down again.

use crate::config::{Config, LogFormat};
use crate::listen::{Door, Misdirected};
use crate::log::{Visible, colours};
use crate::open::{Opened, Purpose};
use crate::presence::{self, Holder};
use crate::stop_signals::StopSignals;
use crate::tls::Certificate;
use crate::{file_permissions, listen, open, open_files_limit, supervisor};
use angelia_connector::Server;
use angelia_core::allowed_hosts::Hosts;
use angelia_core::connections::{Lasting, Shares, share};
use angelia_core::error::{Error, Result};
use angelia_engines::store::sqlite::{self, DataLock};
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

/// What a request with a name that is not ours is answered.
const ELSEWHERE: &str = "this server does not go by the name in the request's Host header; if it should, add the \
                         name to server.hosts in angelia.toml, or make it the host of server.public_url, and \
                         restart the server\n";
const ADMIN_ELSEWHERE: &str = "the admin API goes by loopback names only; address it as in the setting \
                               server.admin_listen, for example http://127.0.0.1:8788\n";

/// Runs the server until a signal.
pub(crate) async fn serve(config: Config, insecure: bool) -> Result<()> {
    config.check_exposure(insecure).map_err(|faults| Error::invalid(faults.to_string()))?;
    log(&config)?;
    if let Some(warning) = config.warning() {
        tracing::warn!("{warning}");
    }
    // Heard from the first moment: as the first process of a container we would not even end
    // by a signal that nobody waits for.
    let mut signals = StopSignals::listen()?;
    let running = tokio::select! {
        biased;
        stopped = signals.next() => return stopped,
        running = listen_and_start(&config) => running?,
    };
    tracing::info!(listen = %running.public, admin = %running.admin, "ready");
    supervisor::ready(&running.public);
    signals.next().await?;
    let drain = config.server.drain;
    supervisor::stopping(drain, config.store.is_shared());
    tracing::info!(
        ?drain,
        "stopping: each socket is closed once its agent has finished, so that gateways dial again"
    );
    tokio::select! {
        () = running.server.finish_turns() => {}
        again = signals.next() => {
            again?;
            tracing::info!("stopping at once: told so a second time");
        }
    }
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
    /// Held to the end: one server per data directory.
    _lock: Option<DataLock>,
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
    file_permissions::check(config, true)?;
    let public_url = config.server.public_url(public_address);
    let shares = shares();
    let lasting = Lasting::of(shares.connections);
    let Opened { server, lock } = open::open(config, lock, public_url, lasting, Purpose::Serve).await?;
    let admin = listen::bind(config.server.admin_listen, "server.admin_listen").await?;
    let admin_address = listen::address(&admin)?;
    server.start().await?;
    let announcing = announce(data_dir.clone(), format!("http://{admin_address}"));
    let front = Door {
        router: server.public_router(),
        certificate,
        hosts: hosts(config, public_address),
        misdirected: Misdirected::new(ELSEWHERE, "add it to server.hosts if it is this server's", {
            let server = server.clone();
            move || server.note_misdirected()
        }),
        behind_proxy: config.server.behind_proxy,
        places: shares.connections,
        per_address: config.limits.connections_per_address,
    };
    tokio::spawn(listen::serve(public, front));
    let back = Door {
        router: server.admin_router(),
        certificate: None,
        hosts: Hosts::loopback(),
        misdirected: Misdirected::new(ADMIN_ELSEWHERE, "the admin API goes by loopback names only", {
            let server = server.clone();
            move || server.note_misdirected()
        }),
        behind_proxy: false,
        places: shares.admin,
        // On loopback, where nobody has an address of their own.
        per_address: shares.admin,
    };
    tokio::spawn(listen::serve(admin, back));
    Ok(Running { server, public: public_address, admin: admin_address, announcing, _lock: lock })
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

/// How many connections each listener may have.
fn shares() -> Shares {
    let descriptors = open_files_limit::raise();
    let shares @ Shares { connections, admin, reserve } = share(descriptors);
    tracing::info!(descriptors, connections, admin, reserve, "file descriptors are shared out");
    shares
}

/// The names the public listener goes by.
fn hosts(config: &Config, bound: SocketAddr) -> Hosts {
    let url = url::Url::parse(&config.server.public_url(bound)).ok();
    let host = url.as_ref().and_then(url::Url::host_str);
    Hosts::named(host.into_iter().chain(config.server.hosts.iter().map(String::as_str)))
}

/// Logs to standard error. `ANGELIA_LOG` overrides the configured level.
pub(crate) fn log(config: &Config) -> Result<()> {
    let wanted = std::env::var("ANGELIA_LOG").unwrap_or_else(|_| config.log.level.clone());
    let mut filter = EnvFilter::try_new(&wanted)
        .map_err(|e| Error::invalid(format!("log level {wanted:?} cannot be read: {e}")).caused_by(e))?;
    for directive in QUIET {
        filter = filter.add_directive(directive.parse().map_err(|_| Error::internal("a log directive"))?);
    }
    // A second server of the same process, in tests, goes on with the log of the first.
    let _ = match config.log.format {
        LogFormat::Text => {
            let log = tracing_subscriber::fmt().with_ansi(colours());
            log.with_env_filter(filter).with_writer(Visible::stderr).try_init()
        }
        LogFormat::Json => {
            let log = tracing_subscriber::fmt().json().flatten_event(true).with_current_span(false);
            log.with_span_list(false).with_env_filter(filter).with_writer(Visible::stderr_json).try_init()
        }
    };
    Ok(())
}
