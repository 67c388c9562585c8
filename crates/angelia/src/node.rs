//! A server over its data directory: store, keys, admin token.

use crate::config::Config;
use angelia_connector::{Announcer, Options, Server};
use angelia_core::error::{Error, Result};
use angelia_core::seal::MasterKey;
use angelia_core::secret::Secret;
use angelia_engines::store::sqlite::{self, DATABASE, Sqlite};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const MASTER_KEY: &str = "master.key";
const ADMIN_TOKEN: &str = "admin-token";
const ADMIN_URL: &str = "admin-url";

/// Opens the data directory; nobody else may have it open.
pub(crate) async fn open(config: &Config, public_url: String) -> Result<Arc<Server>> {
    let data_dir = &config.server.data_dir;
    let announcer = Arc::new(Announcer::default());
    // The key comes first: a crash in between must not leave data without one.
    let master_key = master_key(config)?;
    let store = Sqlite::open(data_dir, config.inbox.quota(), announcer.clone())?;
    let options = Options {
        master_key,
        admin_token: admin_token(data_dir)?,
        wake_allow_http: config.wake.allow_http,
        wake_allow: config.wake.allow.clone(),
        webchat: config.webchat.enabled,
        source_flags: config.relay.source_flags,
        public_url,
    };
    Server::new(Arc::new(store), &announcer, options).await
}

/// The configured key, or the one in the data directory. A key is made only
/// together with the data: making one beside existing data would lose every
/// secret in it.
fn master_key(config: &Config) -> Result<MasterKey> {
    if let Some(reference) = &config.keys.master {
        let text = reference.resolve().map_err(|e| Error::invalid(e.to_string()))?;
        return MasterKey::from_hex(text.expose());
    }
    let path = config.server.data_dir.join(MASTER_KEY);
    match fs::read_to_string(&path) {
        Ok(text) => MasterKey::from_hex(&text),
        Err(_) if !has_data(&config.server.data_dir) => {
            sqlite::make_private_dir(&config.server.data_dir).map_err(|e| {
                let folder = config.server.data_dir.display();
                Error::unavailable(format!("cannot make the data directory {folder}: {e}"))
            })?;
            let key = MasterKey::mint();
            write_private(&path, key.to_hex().expose())?;
            // Another process may have been quicker: what is there counts.
            fs::read_to_string(&path).map_or(Ok(key), |text| MasterKey::from_hex(&text))
        }
        Err(e) => Err(Error::invalid(format!(
            "{} holds data, but its master key cannot be read: {}: {e}. Put the key back, \
             or name it in the configuration under [keys]",
            config.server.data_dir.display(),
            path.display()
        ))),
    }
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

/// Where the running server takes commands, and the token it asks for.
pub(crate) fn running(data_dir: &Path) -> Result<(String, Secret)> {
    let read = |name: &str| {
        fs::read_to_string(data_dir.join(name)).map(|text| text.trim().to_owned()).map_err(|e| {
            Error::unavailable(format!(
                "a server is using {}, but {name} in it cannot be read: {e}",
                data_dir.display()
            ))
        })
    };
    Ok((read(ADMIN_URL)?, Secret::new(read(ADMIN_TOKEN)?)))
}

/// Tells other processes where this server takes commands.
pub(crate) fn announce(data_dir: &Path, admin_url: &str) -> Result<()> {
    write_private(&data_dir.join(ADMIN_URL), admin_url)
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_private(path: &Path, text: &str) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let temporary = path.with_extension("new");
        let mut options = fs::File::options();
        options.create(true).truncate(true).write(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = options.open(&temporary)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        // The name has to survive a power cut as well.
        path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
    };
    write().map_err(|e| Error::unavailable(format!("cannot write {}: {e}", path.display())))
}
