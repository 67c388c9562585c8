//! A server over its data directory and its store: keys, admin token, database.

use crate::config::Config;
use crate::files::{absolute, sweep_drafts, write_private};
use crate::key_files::Kept;
use crate::presence::ADMIN_TOKEN;
use crate::{bots, file_permissions, key_files, sealed_mark};
use angelia_connector::{
    AdminToken, ClusterKey, EgressTimings, Keyring, Limits, Options, Server, Subscriber, cluster_key,
};
use angelia_core::connections::Lasting;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{Quota, TENANT_DISK};
use angelia_core::ports::{Blobs, Bus, Ports};
use angelia_core::records::Records;
use angelia_core::seal::MasterKey;
use angelia_core::secret::{Secret, random_hex};
use angelia_engines::blobs::{BucketBlobs, FolderBlobs};
use angelia_engines::deaf_bus::DeafBus;
use angelia_engines::late_bus::LateBus;
use angelia_engines::redis_bus::RedisBus;
use angelia_engines::store::postgres::{self, Postgres};
use angelia_engines::store::sqlite::{self, DATABASE, DataLock, MOVED, Sqlite};
use angelia_platforms::Platform;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a server is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To serve: bots can be spoken through, and files are taken.
    Serve,
    /// For one command, which needs neither, nor their secrets.
    Command,
}

impl Purpose {
    fn bots(self, config: &Config, ports: &Ports) -> Result<Vec<Arc<dyn Platform>>> {
        match self {
            Self::Serve => bots::platforms(config, ports),
            Self::Command => bots::mute(config, ports),
        }
    }
}

/// Where files rest in the data directory.
const MEDIA: &str = "media";

/// A server that was opened.
pub(crate) struct Opened {
    pub(crate) server: Arc<Server>,
    /// The data directory, where the store does not hold it itself. Whoever serves keeps it.
    pub(crate) lock: Option<DataLock>,
}

/// Opens the data directory, which is ours, and the store.
pub(crate) async fn open(
    config: &Config,
    lock: DataLock,
    public_url: String,
    lasting: Lasting,
    purpose: Purpose,
) -> Result<Opened> {
    let data_dir = &config.server.data_dir;
    let late = Arc::<LateBus>::default();
    let bus: Arc<dyn Bus> = late.clone();
    let subscriber = Subscriber::on(&bus);
    let node = node_name();
    file_permissions::check(config, false)?;
    sweep_drafts(&lock);
    let Store { ports, master_key, lock } = match config.store.postgres()? {
        None => in_file(config, lock, bus)?,
        Some(options) => in_postgres(config, lock, &options, bus).await?,
    };
    let (master_key, key_keeper) = key_files::settle(config, master_key, &*ports.records).await?;
    let token_file = data_dir.join(ADMIN_TOKEN);
    let master_key = Keyring::new(master_key, key_keeper);
    let shared_store = lock.is_some();
    if shared_store {
        late.join(join_bus(config, &*ports.records, &master_key, &node).await?);
    }
    let options = Options {
        master_key,
        admin_token: AdminToken::new(admin_token(data_dir)?, move |token| {
            write_private(&token_file, token.expose())
        }),
        wake_allow_http: config.wake.allow_http,
        wake_allow: config.wake.allow.clone(),
        webchat: config.built_in.webchat.enabled,
        open_rooms: config.built_in.webchat.open_rooms.clone(),
        webchat_pace: config.built_in.webchat.pace,
        platforms: purpose.bots(config, &ports)?,
        egress: EgressTimings::default(),
        turn_limit: config.relay.turn_limit,
        drain: config.server.drain,
        source_flags: config.relay.source_flags,
        identity: config.identity.clone(),
        public_url,
        speaks_tls: config.server.tls.is_some(),
        notices: config.notices.clone(),
        limits: Limits { lasting, ..config.limits.connector() },
        gateways: config.limits.gateways,
        shared_store,
        takes_leases: config.cluster.bots,
        node,
        blobs: if purpose == Purpose::Serve { blobs(config, shared_store).await? } else { None },
        tenant_file_bytes: config.media.tenant_bytes,
        file_sources: config.media.source_networks.clone(),
    };
    let server = Server::new(ports, &subscriber, options).await?;
    Ok(Opened { server, lock })
}

/// The folder in which the bytes of files rest, where that is no bucket.
pub(crate) fn media_folder(config: &Config) -> PathBuf {
    config.server.data_dir.join(MEDIA)
}

/// Where the bytes of files rest: in a bucket, or beside the database. Several nodes have no folder
/// in common, so with a store that they share and without a bucket none are taken.
async fn blobs(config: &Config, shared_store: bool) -> Result<Option<Arc<dyn Blobs>>> {
    let folder = media_folder(config);
    if let Some(bucket) = config.media.bucket(&folder)? {
        return Ok(Some(Arc::new(BucketBlobs::open(bucket).await?)));
    }
    if shared_store {
        return Ok(None);
    }
    Ok(Some(Arc::new(FolderBlobs::open(folder).await?)))
}

/// Joins the bus of the nodes that share a store.
async fn join_bus(
    config: &Config,
    records: &dyn Records,
    master_key: &Keyring,
    node: &str,
) -> Result<Arc<dyn Bus>> {
    let ClusterKey { id, secret } = cluster_key(records, master_key).await?;
    Ok(match config.bus.redis(node, &id, secret)? {
        Some(redis) => RedisBus::start(&redis)?,
        None => Arc::new(DeafBus::default()),
    })
}

/// Letters of a node's name that are its machine's.
const HOST_LETTERS: usize = 24;

/// A name that no other process has or had: the machine's, for people, and a random part.
fn node_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let letters = host.trim().split('.').next().unwrap_or_default().chars();
    let host: String =
        letters.filter(|it| it.is_ascii_alphanumeric() || *it == '-').take(HOST_LETTERS).collect();
    let host = if host.is_empty() { "node" } else { &host };
    format!("{host}-{}", random_hex::<6>())
}

/// A store that was opened, and the key that is to fit it.
struct Store {
    ports: Ports,
    master_key: MasterKey,
    lock: Option<DataLock>,
}

/// The store in the data directory.
fn in_file(config: &Config, lock: DataLock, bus: Arc<dyn Bus>) -> Result<Store> {
    let data_dir = &config.server.data_dir;
    if sqlite::is_moved(data_dir) {
        return Err(Error::conflict(format!(
            "the data of {folder} was moved to PostgreSQL, and store.url says \"sqlite\": set store.url to the \
             database it was moved to. To go back to what there was before that, without anything since: \
             mv {folder}/{MOVED} {folder}/{DATABASE}",
            folder = absolute(data_dir).display()
        )));
    }
    // The key comes first: a crash in between must not leave data without one.
    let kept = Kept {
        has_data: has_data(data_dir),
        place: data_dir.display().to_string(),
        key_id: &|| sqlite::key_id(data_dir).ok().flatten(),
    };
    let master_key = key_files::master_key(config, &lock, &kept)?;
    if config.keys.master.is_none() {
        sealed_mark::check(data_dir, &master_key)?;
    }
    let quota = quota(config, || sqlite::tenant_disk(data_dir));
    let ports = Ports::of(&Arc::new(Sqlite::open_locked(lock, quota, bus)?));
    Ok(Store { ports, master_key, lock: None })
}

/// The store in a database of PostgreSQL. It comes before the key: only it knows whether there
/// is something that a new key would lose.
async fn in_postgres(
    config: &Config,
    lock: DataLock,
    options: &postgres::Options,
    bus: Arc<dyn Bus>,
) -> Result<Store> {
    let data_dir = &config.server.data_dir;
    let quota = quota(config, || TENANT_DISK);
    let ports = Ports::of(&Arc::new(Postgres::open_with(options, quota, bus).await?)).shared();
    let found = sealed_mark::found(&*ports.records).await?;
    let place = format!("the database {} at {}", options.url.database(), options.url.place());
    if found.key_id.is_none() && has_data(data_dir) {
        return Err(Error::conflict(format!(
            "store.url says PostgreSQL, and {place} is empty, but {} holds a database with data. Move it: angelia \
             migrate. Or, to begin anew without any of it, move {DATABASE} away",
            absolute(data_dir).display()
        )));
    }
    let key_id = || found.key_id.clone();
    let kept = Kept { has_data: found.key_id.is_some(), place: place.clone(), key_id: &key_id };
    let master_key = key_files::master_key(config, &lock, &kept)?;
    if config.keys.master.is_none() {
        sealed_mark::check_elsewhere(data_dir, &master_key, &found, &place)?;
    }
    Ok(Store { ports, master_key, lock: Some(lock) })
}

/// What may be kept; `share` is what a tenant gets of the disk if nobody says.
fn quota(config: &Config, share: impl FnOnce() -> u64) -> Quota {
    Quota { tenant_bytes: config.limits.tenant_disk.unwrap_or_else(share), ..config.inbox }
}

/// The token the admin API asks for, made once.
pub(crate) fn admin_token(data_dir: &Path) -> Result<Secret> {
    let path = data_dir.join(ADMIN_TOKEN);
    if let Ok(text) = fs::read_to_string(&path)
        && !text.trim().is_empty()
    {
        return Ok(Secret::new(text.trim()));
    }
    let token = Secret::mint();
    write_private(&path, token.expose())?;
    Ok(token)
}

/// Whether a store was ever made here, in the data directory.
pub(crate) fn has_data(data_dir: &Path) -> bool {
    data_dir.join(DATABASE).exists()
}
