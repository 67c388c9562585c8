//! Connections to PostgreSQL: how one is made, and what to say when none is.

use super::tls::MakeTls;
use super::url::{DatabaseUrl, Tls};
use angelia_core::error::{Error, Result};
use std::error::Error as _;
use std::time::Duration;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

/// How long a connection may take to be made, to each of the servers that the URL names.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A server that is silent for so long is asked whether it is there; so often in vain, and the
/// connection is over. Without that, a machine that vanished is waited for for hours.
const SILENT_FOR: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_secs(10);
const ASKED: u32 = 3;
/// What was sent and is not confirmed for so long will not be.
const UNCONFIRMED_FOR: Duration = Duration::from_secs(30);
/// What the server is told of who comes.
const NAME: &str = concat!("angelia/", env!("CARGO_PKG_VERSION"));

/// How a database is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where it is.
    pub url: DatabaseUrl,
    /// Whether a server is taken that says it does not wait for its disk: that of a service whose
    /// storage keeps what is committed by other means.
    pub unsafe_fsync_off: bool,
}

impl Options {
    /// The usual ones.
    pub fn new(url: DatabaseUrl) -> Self {
        Self { url, unsafe_fsync_off: false }
    }

    /// Finds out whether connections could be made as the URL says, without making one.
    pub fn check(&self) -> Result<()> {
        Connector::new(self).map(drop)
    }
}

/// Makes connections.
pub(crate) struct Connector {
    pub(super) options: Options,
    config: Config,
    tls: Option<MakeTls>,
    within: Duration,
}

impl Connector {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let url = &options.url;
        let tls = match url.tls() {
            Tls::Off => None,
            Tls::Offered | Tls::Required => Some(MakeTls::new(url.roots())?),
        };
        let config = with_defaults(url);
        let each = config.get_connect_timeout().copied().unwrap_or(CONNECT_WITHIN);
        let within = each * u32::try_from(url.hosts()).unwrap_or(1).max(1);
        Ok(Self { options: options.clone(), config, tls, within })
    }

    /// A connection. What the server tells on it is taken in the background until it ends.
    pub(crate) async fn connect(&self) -> Result<Client> {
        let connecting = async {
            match &self.tls {
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    tokio::spawn(connection);
                    Ok(client)
                }
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    tokio::spawn(connection);
                    Ok(client)
                }
            }
        };
        match tokio::time::timeout(self.within, connecting).await {
            Ok(connected) => connected.map_err(|error| self.unreachable(error)),
            Err(_) => Err(Error::unavailable(format!(
                "PostgreSQL at {} does not answer within {} seconds; check store.url and the network in between",
                self.options.url.place(),
                self.within.as_secs()
            ))),
        }
    }

    fn unreachable(&self, error: tokio_postgres::Error) -> Error {
        let url = &self.options.url;
        let (why, then) = match error.as_db_error() {
            Some(said) => (said.message().to_owned(), advice(said.code(), url)),
            None => told(&error),
        };
        Error::unavailable(format!("PostgreSQL at {} cannot be reached: {why}; {then}", url.place()))
            .caused_by(error)
    }
}

fn with_defaults(url: &DatabaseUrl) -> Config {
    let mut config = url.config().clone();
    config.ssl_mode(match url.tls() {
        Tls::Off => tokio_postgres::config::SslMode::Disable,
        Tls::Offered => tokio_postgres::config::SslMode::Prefer,
        Tls::Required => tokio_postgres::config::SslMode::Require,
    });
    let unsaid = |option: &str| !url.says(option);
    if unsaid("connect_timeout") {
        config.connect_timeout(CONNECT_WITHIN);
    }
    if unsaid("keepalives_idle") {
        config.keepalives_idle(SILENT_FOR);
    }
    if unsaid("keepalives_interval") {
        config.keepalives_interval(ASK_EVERY);
    }
    if unsaid("keepalives_retries") {
        config.keepalives_retries(ASKED);
    }
    if unsaid("tcp_user_timeout") {
        config.tcp_user_timeout(UNCONFIRMED_FOR);
    }
    if unsaid("application_name") {
        config.application_name(NAME);
    }
    // Of several servers one takes writes, and it is not always the same.
    if unsaid("target_session_attrs") && url.hosts() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config
}

/// What to do about what the server said.
fn advice(code: &SqlState, url: &DatabaseUrl) -> String {
    let (database, user) = (url.database(), url.user());
    match *code {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            format!(
                "check the user {user:?} in store.url, its password in store.password, and pg_hba.conf there"
            )
        }
        SqlState::INVALID_CATALOG_NAME => {
            format!(
                "make the database there: createdb --owner={user} --encoding=UTF8 --template=template0 {database}"
            )
        }
        SqlState::TOO_MANY_CONNECTIONS => "let it take more, with max_connections there, or PgBouncer".into(),
        _ => "check store.url".into(),
    }
}

/// What went wrong before the server said anything, and what to do about it. The library keeps
/// what matters in the causes.
fn told(error: &tokio_postgres::Error) -> (String, String) {
    let mut why = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !why.contains(&words) {
            why = format!("{why}: {words}");
        }
        cause = inner.source();
    }
    let then = if why.contains("does not support TLS") {
        "have it do TLS (ssl = on there), or, if the network in between is yours alone, say so with sslmode=disable \
         in store.url"
    } else if why.contains("certificate") {
        "name the certificate that signed the server's with sslrootcert=PATH in store.url, and the server as the \
         certificate does; only if the network in between is yours alone, say sslmode=disable"
    } else if why.contains("password missing") {
        "give the password with store.password"
    } else {
        "check store.url, and whether the server runs"
    };
    (why, then.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> Options {
        Options::new(url.parse().unwrap())
    }

    #[test]
    fn what_the_url_does_not_say_has_a_default() {
        let config = with_defaults(&options("postgres://u@127.0.0.1/x").url);
        assert_eq!(config.get_connect_timeout(), Some(&CONNECT_WITHIN));
        assert_eq!((config.get_keepalives(), config.get_keepalives_idle()), (true, SILENT_FOR));
        assert_eq!(config.get_application_name(), Some(NAME));
        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::Any);
        let said = "postgres://u@a,b/x?connect_timeout=9&keepalives_idle=7&application_name=me";
        let config = with_defaults(&options(said).url);
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(9)));
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(7));
        assert_eq!(config.get_application_name(), Some("me"));
        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(Connector::new(&options(said)).unwrap().within, Duration::from_secs(18));
    }

    #[test]
    fn a_file_of_certificates_is_read_before_anybody_connects() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let url = format!("postgres://u@db/x?sslrootcert={}", file.display());
        let error = options(&url).check().unwrap_err().to_string();
        assert!(error.contains("ca.pem") && error.contains("PEM"), "{error}");
        std::fs::write(&file, "nothing").unwrap();
        let error = options(&url).check().unwrap_err().to_string();
        assert!(error.contains("there is no certificate in it"), "{error}");
        options("postgres://u@db/x").check().unwrap();
    }

    #[tokio::test]
    async fn who_does_not_answer_is_named_and_the_password_is_not() {
        let url = "postgres://u:hunter2@127.0.0.1:1/x";
        let error = Connector::new(&options(url)).unwrap().connect().await.map(drop).unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(told.contains("127.0.0.1:1") && told.contains("refused"), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}
