//! Several `angelia` processes on one PostgreSQL and one Redis.
//!
//! Every node has a data directory and ports of its own; they share the database,
//! the Redis and the master key. A node is killed, paused and started again by its
//! number; what it reaches PostgreSQL and Redis by can be cut, where it goes through
//! a [`Proxy`].

use std::fs;
use std::net::Ipv4Addr;
use std::ops::Index;
use std::path::{Path, PathBuf};
use std::time::Duration;

use angelia_services::{Postgres, Redis, psql};
use tokio::time::{Instant, sleep};

use crate::connector::Connector;
use crate::process::free_port;
use crate::proxy::Proxy;
use crate::small_disk::SmallDisk;

/// How long a node may take until the others know it.
const KNOWN: Duration = Duration::from_secs(20);

/// How often something is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(20);

/// The master key that all nodes of tests have.
const MASTER_KEY: &str = "5f2d0c6b8a1e4937c0de5f2d0c6b8a1e4937c0de5f2d0c6b8a1e4937c0de5f2d";

/// How a cluster is begun.
#[derive(Clone, Debug)]
pub struct Setup {
    binary: PathBuf,
    folder: PathBuf,
    lines: String,
    proxied: bool,
    own_postgres: bool,
    deaf: bool,
    apart: Vec<u16>,
    disk: Option<usize>,
}

impl Setup {
    /// Nodes of this binary, with their folders below this one.
    pub fn new(binary: &Path, folder: &Path) -> Self {
        let (binary, folder) = (binary.to_owned(), folder.to_owned());
        Self {
            binary,
            folder,
            lines: String::new(),
            proxied: false,
            own_postgres: false,
            deaf: false,
            apart: Vec::new(),
            disk: None,
        }
    }

    /// With more lines of configuration, the same for every node.
    #[must_use]
    pub fn lines(mut self, lines: &str) -> Self {
        self.lines = lines.to_owned();
        self
    }

    /// With a proxy between each node and its PostgreSQL and Redis. The test's runtime
    /// needs a second thread then.
    #[must_use]
    pub fn proxied(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// With a PostgreSQL of its own, which can be stopped.
    #[must_use]
    pub fn own_postgres(mut self) -> Self {
        self.own_postgres = true;
        self
    }

    /// Without a Redis in the configuration.
    #[must_use]
    pub fn deaf(mut self) -> Self {
        self.deaf = true;
        self
    }

    /// Each node reaches what listens at this port, where the lines of configuration name it,
    /// from [an address of its own](Cluster::address): whoever listens there can tell them apart.
    #[must_use]
    pub fn apart(mut self, port: u16) -> Self {
        self.apart.push(port);
        self
    }

    /// With a PostgreSQL of its own on a disk of so many megabytes, where disks can be mounted.
    #[must_use]
    pub fn small_disk(mut self, megabytes: usize) -> Self {
        self.disk = Some(megabytes);
        self.own_postgres()
    }

    /// Starts so many nodes, one after the other: the first has all leases.
    ///
    /// # Panics
    ///
    /// When they do not start.
    pub async fn start(self, nodes: usize) -> Cluster {
        let mut cluster = self.empty();
        for _ in 0..nodes {
            cluster.add().await;
        }
        cluster
    }

    /// A PostgreSQL and a Redis, and no node yet.
    ///
    /// # Panics
    ///
    /// When the services are not installed.
    pub fn empty(self) -> Cluster {
        let redis = Redis::start().expect("a Redis");
        let disk = self.disk.and_then(SmallDisk::mount);
        let own = self.own_postgres.then(|| match &disk {
            Some(disk) => Postgres::start_in(disk.path()).expect("a PostgreSQL on a small disk"),
            None => Postgres::start().expect("a PostgreSQL"),
        });
        let postgres = match &own {
            Some(own) => own,
            None => Postgres::shared().expect("the shared PostgreSQL"),
        };
        let (store, store_port) = (postgres.fresh_database().expect("a database"), postgres.port());
        fs::create_dir_all(&self.folder).expect("create the cluster's folder");
        fs::write(self.folder.join("master.key"), MASTER_KEY).expect("write the master key");
        Cluster { setup: self, nodes: Vec::new(), redis, postgres: own, disk, store, store_port }
    }
}

/// One process.
#[derive(Debug)]
pub struct Node {
    /// The process, and how it is talked to.
    pub connector: Connector,
    /// What the others call it; it changes with every start.
    pub name: String,
    /// What is between it and PostgreSQL, if anything.
    pub to_store: Option<Proxy>,
    /// What is between it and Redis, if anything.
    pub to_bus: Option<Proxy>,
    _apart: Vec<Proxy>,
}

/// Nodes, and what they share.
#[derive(Debug)]
pub struct Cluster {
    setup: Setup,
    nodes: Vec<Node>,
    /// Their Redis.
    pub redis: Redis,
    /// Their PostgreSQL, if it is only theirs.
    pub postgres: Option<Postgres>,
    /// The disk that it is on, if that is small.
    pub disk: Option<SmallDisk>,
    store: String,
    store_port: u16,
}

impl Index<usize> for Cluster {
    type Output = Connector;

    fn index(&self, node: usize) -> &Connector {
        &self.nodes[node].connector
    }
}

impl Cluster {
    /// Adds a node and waits until it is ready and known.
    ///
    /// # Panics
    ///
    /// When it does not become so.
    pub async fn add(&mut self) -> usize {
        let node = self.spawn().await;
        self.arrived(node).await;
        node
    }

    /// Adds a node without waiting for it.
    pub async fn spawn(&mut self) -> usize {
        let node = self.nodes.len();
        let (mut to_store, mut to_bus) = (None, None);
        let (mut store_port, mut bus_port) = (self.store_port, self.redis.port());
        if self.setup.proxied {
            let proxies = (Proxy::start(store_port).await, Proxy::start(bus_port).await);
            (store_port, bus_port) = (proxies.0.port(), proxies.1.port());
            (to_store, to_bus) = (Some(proxies.0), Some(proxies.1));
        }
        let store = self.store.replace(&format!(":{}/", self.store_port), &format!(":{store_port}/"));
        let (mut apart, mut lines) = (Vec::new(), self.setup.lines.clone());
        for port in &self.setup.apart {
            let proxy = Proxy::start_from(Self::address(node), *port).await;
            lines = lines.replace(&format!(":{port}"), &format!(":{}", proxy.port()));
            apart.push(proxy);
        }
        lines += &format!(
            "\n[store]\nurl = {store:?}\n[keys]\nmaster = {{ file = {:?} }}\n",
            self.setup.folder.join("master.key").display().to_string()
        );
        if !self.setup.deaf {
            lines += &format!("[bus]\nurl = \"redis://127.0.0.1:{bus_port}\"\n");
        }
        let folder = self.folder(node);
        let connector = Connector::alone(&self.setup.binary, &folder, free_port(), &lines, &[]);
        self.nodes.push(Node { connector, name: String::new(), to_store, to_bus, _apart: apart });
        node
    }

    /// Waits until a node that was started is ready and known.
    ///
    /// # Panics
    ///
    /// When it does not become so.
    pub async fn arrived(&mut self, node: usize) {
        self.nodes[node].connector.wait_ready().await;
        let deadline = Instant::now() + KNOWN;
        loop {
            let names = self.sql("SELECT node FROM nodes ORDER BY started_at DESC").await;
            let fresh = |name: &&str| self.nodes.iter().all(|node| node.name != **name);
            if let Some(name) = names.lines().find(fresh) {
                self.nodes[node].name = name.to_owned();
                return;
            }
            assert!(Instant::now() < deadline, "node {node} is known by nobody: {names}");
            sleep(POLL).await;
        }
    }

    /// The address from which a node reaches what it is kept [apart](Setup::apart) at.
    pub fn address(node: usize) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 0, 11 + u8::try_from(node).unwrap_or_default())
    }

    /// How many nodes were ever added.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    pub fn node(&mut self, node: usize) -> &mut Node {
        &mut self.nodes[node]
    }

    /// The folder of a node: its configuration, its log, its data directory.
    pub fn folder(&self, node: usize) -> PathBuf {
        self.setup.folder.join(format!("node-{node}"))
    }

    /// Kills a node as a crash would.
    pub async fn kill(&mut self, node: usize) {
        self.nodes[node].connector.process().kill().await;
    }

    /// Asks a node to stop, and waits for its end.
    pub async fn stop(&mut self, node: usize) -> Duration {
        self.nodes[node].connector.process().terminate(KNOWN + KNOWN).await.1
    }

    /// Starts a node again that has ended.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn restart(&mut self, node: usize) {
        self.nodes[node].connector.respawn(&[]);
        self.arrived(node).await;
    }

    /// Halts a node in its tracks.
    pub fn freeze(&mut self, node: usize) {
        self.nodes[node].connector.process().freeze();
    }

    /// Lets a halted node go on.
    pub fn thaw(&mut self, node: usize) {
        self.nodes[node].connector.process().thaw();
    }

    /// The url of the database, past all proxies.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Asks the database itself: the rows, bare, a line each.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn sql(&self, statement: &str) -> String {
        let (url, statement) = (self.store.clone(), statement.to_owned());
        let asked = tokio::task::spawn_blocking(move || psql(&url, &statement)).await;
        asked.expect("psql does not panic").expect("the database answers").trim().to_owned()
    }

    /// Which node holds a lease just now, by the database's own clock.
    pub async fn holder(&self, lease: &str) -> Option<usize> {
        let held = format!(
            "SELECT node FROM leases WHERE name = '{lease}' AND released = 0 \
             AND until > extract(epoch FROM clock_timestamp()) * 1000"
        );
        let name = self.sql(&held).await;
        self.nodes.iter().position(|node| !name.is_empty() && node.name == name)
    }

    /// Waits until one of these nodes holds a lease; which, and how long that took.
    ///
    /// # Panics
    ///
    /// When that does not happen in time.
    pub async fn until_held(&self, lease: &str, by: &[usize], limit: Duration) -> (usize, Duration) {
        let began = Instant::now();
        loop {
            if let Some(holder) = self.holder(lease).await.filter(|holder| by.contains(holder)) {
                return (holder, began.elapsed());
            }
            assert!(began.elapsed() < limit, "none of {by:?} holds {lease:?} within {limit:?}");
            sleep(POLL).await;
        }
    }

    /// No node ever panicked.
    ///
    /// # Panics
    ///
    /// When one did.
    pub fn assert_never_panicked(&self) {
        for node in 0..self.nodes.len() {
            let log = fs::read_to_string(self.folder(node).join("angelia.log")).unwrap_or_default();
            let line = log.lines().find(|line| line.contains("panicked"));
            assert!(line.is_none(), "node {node} panicked: {line:?}, see {}", self.folder(node).display());
        }
    }
}
