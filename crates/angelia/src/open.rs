//! A server over its data directory: store, keys, admin token.

use crate::config::Config;
use crate::files::{sweep_drafts, write_private};
use crate::presence::ADMIN_TOKEN;
use crate::{file_permissions, key_files, sealed_mark};
use angelia_connector::{AdminToken, EgressTimings, Keyring, Limits, Options, Server, Subscriber};
use angelia_core::connections::Lasting;
use angelia_core::error::Result;
use angelia_core::inbox::Quota;
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::{self, DATABASE, DataLock, Sqlite};
use angelia_platforms::Platform;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Makes the bots of a configuration: [`bots::platforms`](crate::bots::platforms) or
/// [`bots::mute`](crate::bots::mute).
type MakeBots = fn(&Config, &Ports) -> Result<Vec<Arc<dyn Platform>>>;

/// Opens the data directory, which is ours.
pub(crate) async fn open(
    config: &Config,
    lock: DataLock,
    public_url: String,
    lasting: Lasting,
    make_bots: MakeBots,
) -> Result<Arc<Server>> {
    let data_dir = &config.server.data_dir;
    let bus = Arc::new(LocalBus::default());
    let subscriber = Subscriber::on(&*bus);
    file_permissions::check(config, false)?;
    sweep_drafts(&lock);
    // The key comes first: a crash in between must not leave data without one.
    let master_key = key_files::master_key(config, &lock)?;
    if config.keys.master.is_none() {
        sealed_mark::check(data_dir, &master_key)?;
    }
    let tenant_bytes = config.limits.tenant_disk.unwrap_or_else(|| sqlite::tenant_disk(data_dir));
    let quota = Quota { tenant_bytes, ..config.inbox };
    let ports = Ports::of(&Arc::new(Sqlite::open_locked(lock, quota, bus)?));
    let (master_key, key_keeper) = key_files::settle(config, master_key, &*ports.records).await?;
    let token_file = data_dir.join(ADMIN_TOKEN);
    let options = Options {
        master_key: Keyring::new(master_key, key_keeper),
        admin_token: AdminToken::new(admin_token(data_dir)?, move |token| {
            write_private(&token_file, token.expose())
        }),
        wake_allow_http: config.wake.allow_http,
        wake_allow: config.wake.allow.clone(),
        webchat: config.built_in.webchat.enabled,
        open_rooms: config.built_in.webchat.open_rooms.clone(),
        webchat_pace: config.built_in.webchat.pace,
        platforms: make_bots(config, &ports)?,
        egress: EgressTimings::default(),
        turn_limit: config.relay.turn_limit,
        drain: config.server.drain,
        source_flags: config.relay.source_flags,
        identity: config.identity.clone(),
        public_url,
        notices: config.notices.clone(),
        limits: Limits { lasting, ..config.limits.connector() },
        gateways: config.limits.gateways,
    };
    Server::new(ports, &subscriber, options).await
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

/// Whether a store was ever made here.
pub(crate) fn has_data(data_dir: &Path) -> bool {
    data_dir.join(DATABASE).exists()
}
