//! A PostgreSQL server that really writes to disk, and a way to ask one something.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::process::{Server, User, on_free_port, own};
use crate::program::{self, shell_words, unique};

/// Names a running server, `postgres://user@host:port`, that is used instead of a shared one.
const GIVEN: &str = "ANGELIA_TEST_POSTGRES";

/// The name under which everything is done.
const USER: &str = "angelia";

/// As in production where it is about what survives, and room for tests that run side by side.
const SETTINGS: [(&str, &str); 6] = [
    ("listen_addresses", "127.0.0.1"),
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("max_connections", "300"),
    ("shared_buffers", "128MB"),
];

/// The certificate of one that does TLS, and its key, in its folder.
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server-key.pem";

/// A PostgreSQL server, with one user, `angelia`, who is trusted.
#[derive(Debug)]
pub struct Postgres {
    address: Address,
    /// None where it is somebody else's.
    server: Option<Server>,
}

/// Where a server is, and who may come in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Postgres {
    /// Starts one. That takes a second or two, because its files are made first.
    pub fn start() -> io::Result<Self> {
        Self::start_with(&[])
    }

    /// Starts one with settings such as `("deadlock_timeout", "10ms")`, which win over ours.
    pub fn start_with(settings: &[(&str, &str)]) -> io::Result<Self> {
        Self::start_after("", settings)
    }

    /// Starts one that does TLS for whoever asks, with a certificate for localhost and
    /// 127.0.0.1 that nobody but itself signed.
    pub fn start_tls() -> io::Result<Self> {
        let openssl = program::find("openssl")?.display().to_string();
        // Made by whoever runs the server, which refuses a key that is somebody else's.
        let arguments = format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=postgres-of-a-test \
             -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1,DNS:localhost \
             -keyout {KEY} -out {CERTIFICATE}"
        );
        let make = shell_words(std::iter::once(openssl.as_str()).chain(arguments.split(' ')));
        let before = format!("test -f {CERTIFICATE} || {make} || exit 1\n");
        Self::start_after(
            &before,
            &[("ssl", "on"), ("ssl_cert_file", "../server.pem"), ("ssl_key_file", "../server-key.pem")],
        )
    }

    /// The certificate of one that does TLS.
    pub fn certificate(&self) -> Option<PathBuf> {
        self.folder().map(|folder| folder.join(CERTIFICATE)).filter(|file| file.exists())
    }

    /// Starts one whose files are below this folder, which everybody may enter: a disk of its own, say.
    pub fn start_in(folder: &Path) -> io::Result<Self> {
        let data = folder.join("data");
        std::fs::create_dir_all(&data)?;
        Self::start_at(Some(&data), "", &[])
    }

    fn start_after(before: &str, settings: &[(&str, &str)]) -> io::Result<Self> {
        Self::start_at(None, before, settings)
    }

    fn start_at(data: Option<&Path>, before: &str, settings: &[(&str, &str)]) -> io::Result<Self> {
        let server =
            Server::new("postgres", "database system is ready to accept connections", User::NotRoot)?;
        let data = match data {
            Some(data) => {
                own(data, User::NotRoot)?;
                data.to_owned()
            }
            None => server.folder().join("data"),
        };
        let port = on_free_port(|port| {
            server.set_script(&format!("{before}{}", script(server.folder(), &data, port, settings)?))?;
            server.start()
        })?;
        let address = Address { user: USER.into(), password: None, host: "127.0.0.1".into(), port };
        Ok(Self { address, server: Some(server) })
    }

    /// The one server of this process, started when it is first asked for.
    ///
    /// If `ANGELIA_TEST_POSTGRES` holds the url of a running one, without a
    /// database, that is used and none is started. Databases made there stay.
    pub fn shared() -> io::Result<&'static Self> {
        static SHARED: OnceLock<Result<Postgres, String>> = OnceLock::new();
        let start = || match std::env::var(GIVEN) {
            Ok(url) => Self::running_at(&url).map_err(|error| format!("{GIVEN}: {error}")),
            Err(_) => Self::start().map_err(|error| error.to_string()),
        };
        SHARED.get_or_init(start).as_ref().map_err(|error| io::Error::other(error.clone()))
    }

    /// A server that somebody else runs, by its url without a database. It
    /// cannot be killed, stopped or paused.
    pub fn running_at(url: &str) -> io::Result<Self> {
        let wanted = "a url like postgres://user@host:port is wanted, without a database";
        let address =
            Address::parse(url).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, wanted))?;
        Ok(Self { address, server: None })
    }

    /// The url of a database, which need not be there yet.
    pub fn url(&self, database: &str) -> String {
        let Address { user, password, host, port } = &self.address;
        let password = password.as_ref().map(|password| format!(":{password}")).unwrap_or_default();
        format!("postgres://{user}{password}@{host}:{port}/{database}")
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port
    }

    /// Where its socket and its files are, unless it is somebody else's.
    pub fn folder(&self) -> Option<&Path> {
        self.server.as_ref().map(Server::folder)
    }

    /// Makes a database and answers its url. The name is to be new, of small letters,
    /// digits and underscores.
    pub fn create_database(&self, name: &str) -> io::Result<String> {
        if name.is_empty() || !name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is no name of a database"),
            ));
        }
        // Copied through the log, as is the default since version 15; a copy of files costs a checkpoint.
        psql(&self.url("postgres"), &format!("CREATE DATABASE \"{name}\" TEMPLATE template0"))?;
        Ok(self.url(name))
    }

    /// Makes an empty database of a name that is used nowhere else, and answers its url.
    pub fn fresh_database(&self) -> io::Result<String> {
        self.create_database(&format!("angelia_{}", unique()))
    }

    /// Kills it with all its children, as a crash would. Its data stays.
    pub fn kill(&self) -> io::Result<()> {
        self.own()?.kill()
    }

    /// Ends it in good order, without waiting for its clients. Its data stays.
    pub fn stop(&self) -> io::Result<()> {
        self.own()?.stop("INT")
    }

    /// Starts it with its data and on its port again, and waits until it accepts
    /// connections. One that still runs is killed first.
    pub fn start_again(&self) -> io::Result<()> {
        self.own()?.start()
    }

    /// Halts it with all its children: connections stay open, and nothing answers.
    pub fn pause(&self) -> io::Result<()> {
        self.own()?.pause()
    }

    /// Lets it go on after a pause.
    pub fn resume(&self) -> io::Result<()> {
        self.own()?.resume()
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    fn own(&self) -> io::Result<&Server> {
        let foreign = || io::Error::new(io::ErrorKind::Unsupported, "this PostgreSQL is somebody else's");
        self.server.as_ref().ok_or_else(foreign)
    }
}

impl Address {
    /// Reads `postgres://user:password@host:port`; what is escaped in it stays so.
    fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"))?;
        let (who, place) = rest.trim_end_matches('/').rsplit_once('@')?;
        let (host, port) = place.rsplit_once(':')?;
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(password.to_owned())),
            None => (who, None),
        };
        let named = !user.is_empty() && !host.is_empty();
        named.then_some(Self { user: user.into(), password, host: host.into(), port: port.parse().ok()? })
    }
}

/// Has PostgreSQL's own client run statements at a url: the rows, bare, a line each.
pub fn psql(url: &str, statements: &str) -> io::Result<String> {
    let mut command = Command::new(program::find("psql")?);
    command.args(["-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statements]);
    program::output(&mut command)
}

/// Makes the files where there are none yet, and runs the server.
fn script(folder: &Path, data: &Path, port: u16, settings: &[(&str, &str)]) -> io::Result<String> {
    let (initdb, postgres) = (program::find("initdb")?, program::find("postgres")?);
    let data = data.display().to_string();
    let mut init =
        vec![initdb.display().to_string(), format!("--pgdata={data}"), format!("--username={USER}")];
    init.extend(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"].map(String::from));
    let mut run =
        vec![postgres.display().to_string(), "-D".into(), data.clone(), "-p".into(), port.to_string()];
    let socket = folder.display().to_string();
    let own = SETTINGS.iter().copied().chain([("unix_socket_directories", socket.as_str())]);
    for (name, value) in own.chain(settings.iter().copied()) {
        run.extend(["-c".into(), format!("{name}={value}")]);
    }
    let [made, init, run] =
        [shell_words([format!("{data}/postgresql.conf")]), shell_words(init), shell_words(run)];
    Ok(format!("test -f {made} || {init} || exit 1\nexec {run}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_server_is_taken_as_it_is() {
        let given = Postgres::running_at("postgres://me:word@db.example:5433/").unwrap();
        assert_eq!(given.url("x"), "postgres://me:word@db.example:5433/x");
        assert_eq!((given.port(), given.folder()), (5433, None));
        assert_eq!(given.kill().unwrap_err().kind(), io::ErrorKind::Unsupported);
        for wrong in
            ["", "postgres://host:1", "postgres://me@host", "http://me@host:1", "postgres://me@h:1/db"]
        {
            assert!(Postgres::running_at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_that_would_have_to_be_quoted_is_none() {
        let given = Postgres::running_at("postgres://me@127.0.0.1:1").unwrap();
        for name in ["", "A", "a b", "a\"b", "ä"] {
            assert_eq!(given.create_database(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
