//! The configuration: defaults, then a file, then the environment.
//!
//! [`default_file`] documents every key. All faults are found before any is
//! reported, so that one run of `angelia config check` is enough.

mod bots;
mod bus_url;
mod fault;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod human;
mod keys;
mod lists;
mod load;
mod media;
mod notices;
mod store;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use human::parse_duration;

pub use angelia_platforms::settings::{BadValue, Bot, SecretRef, SecretRefError};
pub use bus_url::{Bus, BusUrl};
pub use fault::{ConfigErrors, Fault, Origin, Problem};
pub use load::environment;
pub use media::{BucketUrl, Media};
pub use store::{Store, StoreUrl};

use angelia_connector::{IdentityOptions, Notices};
use angelia_core::connections::MAX_PER_ADDRESS;
use angelia_core::identity::new_gateway_limits::GatewayLimits;
use angelia_core::inbox::Quota;
use angelia_core::memory::MemoryLimits;
use angelia_core::turns::TURN_LIMIT;
use angelia_platforms::settings::{BuiltIn, Shown};
use angelia_platforms::{ALL, Setup, blocks};
use ipnet::IpNet;
use keys::{Key, keys};
use lists::LISTS;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The commented default file: what every key means and what it is if not set. It is put
/// together from `template.toml` and what each platform says; `default.toml` is the whole.
pub fn default_file() -> String {
    let blocks: Vec<&str> = blocks().map(|block| block.sample).collect();
    let sections = ALL.iter().filter_map(|manifest| match manifest.setup {
        Setup::Section { sample, .. } => Some(sample),
        Setup::Bots(_) => None,
    });
    let sections: Vec<&str> = sections.collect();
    include_str!("template.toml")
        .replace("#: the blocks of all platforms\n", &blocks.join("#\n"))
        .replace("#: the sections of all platforms\n", &sections.join("\n"))
}

/// What the server is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Addresses and directories.
    pub server: Server,
    /// Keys that seal what is stored.
    pub keys: Keys,
    /// What the relay says, and how long it waits.
    pub relay: Relay,
    /// Where everything is kept.
    pub store: Store,
    /// What nodes hear each other by.
    pub bus: Bus,
    /// What this server does among others on the same store.
    pub cluster: Cluster,
    /// Where the bytes of files rest.
    pub media: Media,
    /// Who may enroll and provision, and for which tenant.
    pub identity: IdentityOptions,
    /// The bots whose credentials the server holds.
    pub bots: Vec<Bot>,
    /// What people are told by the server itself.
    pub notices: Notices,
    /// What may wait for one instance.
    pub inbox: Quota,
    /// How much others may make the server hold.
    pub limits: Limits,
    /// What wake URLs may point to.
    pub wake: Wake,
    /// Platforms that need no bot.
    pub built_in: BuiltIn,
    /// What is logged.
    pub log: Log,
}

/// Addresses and directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where gateways, providers and the web chat connect.
    pub listen: SocketAddr,
    /// The base URL others know the server by, if it was given; see [`Server::public_url`].
    pub public_url: Option<String>,
    /// Further names requests may ask for it by.
    pub hosts: Vec<String>,
    /// Where the admin API listens; always loopback.
    pub admin_listen: SocketAddr,
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Whether a proxy in front does TLS.
    pub behind_proxy: bool,
    /// How long agents may finish their turns when the server is asked to stop.
    pub drain: Duration,
    /// The certificate with which the server does TLS itself.
    pub tls: Option<Tls>,
}

/// A certificate and its key, both in PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificate, followed by those between it and the root.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Server {
    /// The base URL others know the server by, without a trailing slash.
    ///
    /// `bound` is the address the listener really got, which differs from
    /// `listen` where that asks for any port.
    pub fn public_url(&self, bound: SocketAddr) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        let ip = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", SocketAddr::new(ip, bound.port()))
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8787).into(),
            public_url: None,
            hosts: Vec::new(),
            admin_listen: (Ipv4Addr::LOCALHOST, 8788).into(),
            data_dir: "angelia-data".into(),
            behind_proxy: false,
            drain: Duration::from_secs(30),
            tls: None,
        }
    }
}

/// Keys that seal what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The master key; if not given, a key file in the data directory.
    pub master: Option<SecretRef>,
}

/// What the relay says, and how long it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Whether sources carry `is_bot` and `message_is_edit`.
    pub source_flags: bool,
    /// The longest turn: one that takes longer counts as over.
    pub turn_limit: Duration,
}

impl Default for Relay {
    fn default() -> Self {
        Self { source_flags: false, turn_limit: TURN_LIMIT }
    }
}

/// What a server does among others on the same store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Whether it reads bots and makes their calls, and does what one does for all.
    pub bots: bool,
}

impl Default for Cluster {
    fn default() -> Self {
        Self { bots: true }
    }
}

/// How much others may make the server hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory for all gateways together.
    pub memory: u64,
    /// Memory for one tenant's.
    pub tenant_memory: u64,
    /// Disk for one tenant; if not given, what is left to each on this disk.
    pub tenant_disk: Option<u64>,
    /// Relay sockets of one gateway at a time.
    pub sockets_per_gateway: u64,
    /// Gateways that come by self-service.
    pub gateways: GatewayLimits,
    /// Connections from one address.
    pub connections_per_address: usize,
}

impl Limits {
    /// The same, as the connector takes it.
    pub fn connector(&self) -> angelia_connector::Limits {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let defaults = MemoryLimits::default();
        let (all, tenant) = (size(self.memory), size(self.tenant_memory));
        let memory = MemoryLimits {
            all,
            reserve: defaults.reserve.min(all / 8),
            tenant,
            instance: defaults.instance.min(tenant),
            socket: defaults.socket.min(tenant),
        };
        let sockets_per_gateway = size(self.sockets_per_gateway);
        angelia_connector::Limits { memory, sockets_per_gateway, ..angelia_connector::Limits::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let defaults = angelia_connector::Limits::default();
        Self {
            memory: defaults.memory.all as u64,
            tenant_memory: defaults.memory.tenant as u64,
            tenant_disk: None,
            sockets_per_gateway: defaults.sockets_per_gateway as u64,
            gateways: GatewayLimits::default(),
            connections_per_address: MAX_PER_ADDRESS,
        }
    }
}

/// What wake URLs may point to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Whether plain http is allowed.
    pub allow_http: bool,
    /// Ranges exempt from the guard against private addresses.
    pub allow: Vec<IpNet>,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// A level, or levels by part, as `tracing` filters are written.
    pub level: String,
    /// How a line looks.
    pub format: LogFormat,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line, for programs.
    Json,
}

impl LogFormat {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::default() }
    }
}

impl Config {
    /// Refuses to be reachable by others without TLS.
    ///
    /// Apart from loading, because `--insecure` is a word for one run and has
    /// no place in a file that is copied around.
    pub fn check_exposure(&self, insecure: bool) -> Result<(), ConfigErrors> {
        ConfigErrors::check(self.exposure(insecure).into_iter().collect())
    }

    fn exposure(&self, insecure: bool) -> Option<Fault> {
        let listen = self.server.listen;
        let protected = self.server.tls.is_some() || self.server.behind_proxy;
        if insecure || protected || is_loopback(listen) {
            return None;
        }
        let problem = Problem::Exposed(format!(
            "`server.listen` is {listen}, which others can reach, and secrets would cross the network in the \
             clear. Set `server.tls = {{ cert = \"FILE\", key = \"FILE\" }}`, or put a proxy that does TLS in front \
             and set `server.behind_proxy = true`, or listen on a loopback address, or pass --insecure if the \
             network is yours alone"
        ));
        Some(Fault { origin: Origin::Whole, problem })
    }

    /// What is allowed, and most likely not meant: others reach the server by a name, and
    /// nobody said which.
    pub fn warning(&self) -> Option<&'static str> {
        let Server { tls, behind_proxy, public_url, hosts, .. } = &self.server;
        let named = public_url.is_some() || !hosts.is_empty();
        ((tls.is_some() || *behind_proxy) && !named).then_some(
            "neither server.public_url nor server.hosts is set: requests that reach this server by a name, through \
             a proxy or with a certificate, get 421. Set server.public_url to the address others know",
        )
    }

    /// The configuration in force as TOML; secrets appear as references only.
    pub fn print(&self) -> String {
        let keys: Vec<Key> = keys().collect();
        let sections = keys.chunk_by(|a, b| a.section() == b.section());
        let texts = sections.map(|keys| {
            let section = keys[0].section();
            let mut text = format!("[{section}]\n");
            keys.iter().for_each(|key| show(&mut text, key.name(), key.show(self)));
            std::iter::once(text).chain(self.print_lists(section)).collect::<Vec<_>>().join("\n")
        });
        texts.chain(self.print_lists("")).collect::<Vec<_>>().join("\n")
    }

    /// Every entry of the lists in a section; those that stand by themselves are in the one without a name.
    fn print_lists<'a>(&'a self, section: &'a str) -> impl Iterator<Item = String> + 'a {
        let lists = LISTS.iter().filter(move |list| list.section == section);
        let entries = lists.flat_map(move |list| (0..(list.count)(self)).map(move |index| (list, index)));
        entries.map(move |(list, index)| {
            let mut text = format!("[[{}]]\n", list.path());
            (list.fields)()
                .into_iter()
                .for_each(|field| show(&mut text, field.name(), field.show(self, index)));
            text
        })
    }
}

fn show(text: &mut String, name: &str, shown: Shown) {
    text.push_str(&match shown {
        Shown::Value(value) => format!("{name} = {value}\n"),
        Shown::Unset(instead) => format!("# {name} is not set: {instead}\n"),
    });
}

/// Whether only this machine can reach an address.
fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
