//! What nodes hear each other by: nothing, or a Redis that they share.

use super::SecretRef;
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use angelia_engines::redis_bus;
use angelia_platforms::settings::{BadValue, Given, Shown};
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// The word for one node.
const LOCAL: &str = "local";

/// What nodes hear each other by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// Where it is.
    pub url: BusUrl,
    /// The password, where the URL has none.
    pub password: Option<SecretRef>,
    /// The certificates to trust instead of those of the system.
    pub ca: Option<PathBuf>,
}

/// Where the bus is. A password in it is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum BusUrl {
    /// Within the process.
    #[default]
    Local,
    /// Servers of Redis.
    Redis(Vec<Url>),
}

impl fmt::Display for BusUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Redis(all) = self else { return to.write_str(LOCAL) };
        let shown = all.iter().map(|url| {
            let mut url = url.clone();
            // It cannot fail: these have a host.
            let _ = url.set_password(None);
            url.to_string()
        });
        to.write_str(&shown.collect::<Vec<_>>().join(","))
    }
}

impl fmt::Debug for BusUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{self}")
    }
}

impl Bus {
    /// Whether other nodes are heard.
    pub fn is_shared(&self) -> bool {
        self.url != BusUrl::Local
    }

    /// How the bus is joined as `node`, of the cluster that `prefix` names and `key` proves;
    /// nothing if there is none.
    pub fn redis(&self, node: &str, prefix: &str, key: [u8; 32]) -> Result<Option<redis_bus::Config>> {
        let BusUrl::Redis(all) = &self.url else { return Ok(None) };
        let password = self.password.as_ref().map(SecretRef::resolve).transpose();
        let password = password.map_err(|e| Error::invalid(format!("bus.password: {e}")).caused_by(e))?;
        let urls: Vec<String> = all.iter().map(|url| with(url, password.as_ref())).collect();
        let authority = self.ca.as_ref().map(|path| {
            std::fs::read(path).map_err(|e| {
                Error::invalid(format!("bus.ca: cannot read {}: {e}", path.display())).caused_by(e)
            })
        });
        Ok(Some(redis_bus::Config {
            url: urls.join(","),
            authority: authority.transpose()?,
            prefix: prefix.to_owned(),
            node: node.to_owned(),
            key,
        }))
    }

    /// What does not go together.
    pub(super) fn fault(&self, store_is_shared: bool) -> Option<BadValue> {
        let bad = |key: &str, message: &str| Some(BadValue { key: key.into(), message: message.into() });
        let BusUrl::Redis(all) = &self.url else { return None };
        if !store_is_shared {
            return bad(
                "bus.url",
                "is a Redis, and store.url is a file that one server uses: several need a PostgreSQL, \
                 store.url = \"postgres://…\". One alone needs no Redis: take the line out",
            );
        }
        if self.password.is_some() && all.iter().any(|url| url.password().is_some()) {
            return bad("bus.password", "is given, and bus.url holds a password too; take it out of the URL");
        }
        if self.ca.is_some() && all.iter().any(|url| url.scheme() != "rediss") {
            return bad("bus.ca", "is for TLS, and bus.url says redis://: say rediss://");
        }
        None
    }
}

fn with(url: &Url, password: Option<&Secret>) -> String {
    let mut url = url.clone();
    if let Some(password) = password {
        let _ = url.set_password(Some(password.expose()));
    }
    url.to_string()
}

pub(super) fn url(given: &Given<'_>) -> std::result::Result<BusUrl, BadValue> {
    let text = given.text()?;
    if text == LOCAL {
        return Ok(BusUrl::Local);
    }
    let read = |text: &str| {
        let url = Url::parse(text.trim()).ok()?;
        (matches!(url.scheme(), "redis" | "rediss") && url.has_host()).then_some(url)
    };
    let all: Option<Vec<Url>> = text.split(',').map(read).collect();
    // Not repeated: it may hold a password.
    all.map(BusUrl::Redis).ok_or_else(|| {
        given.bad(format!(
            "can be {LOCAL:?}, which is one node, or a URL of Redis, such as \"redis://cache.example.org:6379\" or \
             \"rediss://…\" for TLS; of a cluster several, with commas between them"
        ))
    })
}

pub(super) fn shown_url(url: &BusUrl) -> Shown {
    Shown::quoted(url)
}

/// Where the password is. One in the URL is not shown.
pub(super) fn shown_password(bus: &Bus) -> Shown {
    match (&bus.password, &bus.url) {
        (Some(reference), _) => Shown::bare(reference),
        (None, BusUrl::Redis(all)) if all.iter().any(|url| url.password().is_some()) => {
            Shown::unset("the one in the URL is used, which is not shown")
        }
        (None, _) => Shown::unset("none is needed"),
    }
}
