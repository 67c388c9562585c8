//! Where everything is kept: a file in the data directory, or a database elsewhere.

use super::SecretRef;
use angelia_core::error::{Error, Result};
use angelia_engines::store::postgres::{DatabaseUrl, Options, UrlError};
use angelia_platforms::settings::{BadValue, Given, Shown};

/// The word for the file.
const SQLITE: &str = "sqlite";

/// Where everything is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// Which database it is.
    pub url: StoreUrl,
    /// The password, where the URL has none.
    pub password: Option<SecretRef>,
    /// Whether a database that does not wait for its disk is meant.
    pub unsafe_fsync_off: bool,
}

/// Which database it is. A password in it is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file in the data directory.
    #[default]
    Sqlite,
    /// A database of PostgreSQL.
    Postgres(Box<DatabaseUrl>),
}

impl Store {
    /// How the database is used, if it is one of PostgreSQL.
    pub fn postgres(&self) -> Result<Option<Options>> {
        match &self.url {
            StoreUrl::Sqlite => Ok(None),
            StoreUrl::Postgres(url) => self.at(DatabaseUrl::clone(url)).map(Some),
        }
    }

    /// The same for another database than the one that is configured.
    pub fn at(&self, url: DatabaseUrl) -> Result<Options> {
        let url = match &self.password {
            Some(password) if !url.has_password() => {
                let password = password
                    .resolve()
                    .map_err(|e| Error::invalid(format!("store.password: {e}")).caused_by(e))?;
                url.with_password(&password)
            }
            _ => url,
        };
        Ok(Options { url, unsafe_fsync_off: self.unsafe_fsync_off })
    }

    /// Whether it is somewhere that others reach too.
    pub fn is_shared(&self) -> bool {
        self.url != StoreUrl::Sqlite
    }

    /// A password in two places: nobody could say which one counts.
    pub(super) fn fault(&self) -> Option<BadValue> {
        let StoreUrl::Postgres(url) = &self.url else { return None };
        (url.has_password() && self.password.is_some()).then(|| BadValue {
            key: "store.password".into(),
            message: "is given, and store.url holds a password too; take it out of the URL".into(),
        })
    }
}

pub(super) fn url(given: &Given<'_>) -> std::result::Result<StoreUrl, BadValue> {
    match given.text()? {
        SQLITE => Ok(StoreUrl::Sqlite),
        // Not repeated: it may hold a password.
        text if !DatabaseUrl::is_meant(text) => Err(given.bad(format!(
            "can be {SQLITE:?}, which is a file in data_dir, or a URL of PostgreSQL, such as \
             \"postgres://angelia@db.example.org/angelia\""
        ))),
        text => match text.parse() {
            Ok(url) => Ok(StoreUrl::Postgres(Box::new(url))),
            Err(error) => Err(given.bad(UrlError::to_string(&error))),
        },
    }
}

pub(super) fn shown_url(url: &StoreUrl) -> Shown {
    match url {
        StoreUrl::Sqlite => Shown::quoted(SQLITE),
        StoreUrl::Postgres(url) => Shown::quoted(url),
    }
}

/// Where the password is. One in the URL is not shown.
pub(super) fn shown_password(store: &Store) -> Shown {
    match (&store.password, &store.url) {
        (Some(reference), _) => Shown::bare(reference),
        (None, StoreUrl::Postgres(url)) if url.has_password() => {
            Shown::unset("the one in the URL is used, which is not shown")
        }
        (None, _) => Shown::unset("none is needed"),
    }
}
