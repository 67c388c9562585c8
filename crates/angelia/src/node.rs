//! A server over its data directory: store, keys, admin token.

use crate::config::Config;
use crate::keeper;
use angelia_connector::{
    AdminToken, Announcer, EgressTimings, Identity, Keyring, OidcIssuer, Options, Server,
};
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use angelia_engines::store::sqlite::{DATABASE, Sqlite};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const ADMIN_TOKEN: &str = "admin-token";
const ADMIN_URL: &str = "admin-url";

/// Opens the data directory; nobody else may have it open.
pub(crate) async fn open(config: &Config, public_url: String) -> Result<Arc<Server>> {
    let data_dir = &config.server.data_dir;
    let announcer = Arc::new(Announcer::default());
    // The key comes first: a crash in between must not leave data without one.
    let master_key = keeper::master_key(config)?;
    let store = Sqlite::open(data_dir, config.inbox.quota(), announcer.clone())?;
    let (master_key, key_keeper) = keeper::settle(config, master_key, &store).await?;
    let token_file = data_dir.join(ADMIN_TOKEN);
    let options = Options {
        master_key: Keyring::new(master_key, key_keeper),
        admin_token: AdminToken::new(admin_token(data_dir)?, move |token| {
            write_private(&token_file, token.expose())
        }),
        wake_allow_http: config.wake.allow_http,
        wake_allow: config.wake.allow.clone(),
        webchat: config.webchat.enabled,
        platforms: Vec::new(),
        egress: EgressTimings::default(),
        source_flags: config.relay.source_flags,
        identity: identity(config),
        public_url,
    };
    Server::new(Arc::new(store), &announcer, options).await
}

fn identity(config: &Config) -> Identity {
    let configured = &config.identity;
    let oidc = configured.oidc.iter().cloned().map(|it| OidcIssuer {
        issuer: it.issuer,
        jwks_url: it.jwks_url,
        audience: it.audience,
        tenant_claim: it.tenant_claim,
    });
    Identity { builtin: configured.builtin, oidc: oidc.collect(), portal: configured.portal.clone() }
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
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
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
