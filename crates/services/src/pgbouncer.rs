//! A PgBouncer before a PostgreSQL, that lends a connection for one transaction at a time.

use std::fs;
use std::io;
use std::process::Command;

use crate::Postgres;
use crate::process::{Server, User, on_free_port};
use crate::program::{self, shell_words};

/// The first version that keeps prepared statements for its clients, if it is not told otherwise.
const KEEPS_STATEMENTS: (u32, u32) = (1, 21);

/// A PgBouncer. Whoever comes is let in, and is `angelia` behind it.
#[derive(Debug)]
pub struct PgBouncer {
    server: Server,
    port: u16,
}

impl PgBouncer {
    /// Starts one before a server; every database of that is reached through it.
    pub fn start(postgres: &Postgres) -> io::Result<Self> {
        Self::start_with(postgres, &[])
    }

    /// Starts one with settings such as `("default_pool_size", "2")`, which win over ours.
    pub fn start_with(postgres: &Postgres, settings: &[(&str, &str)]) -> io::Result<Self> {
        let program = program::find("pgbouncer")?;
        let server = Server::new("pgbouncer", "process up", User::NotRoot)?;
        let file = server.folder().join("pgbouncer.ini");
        server.set_script(&format!(
            "exec {}\n",
            shell_words([program.display(), file.display()].map(|path| path.to_string()))
        ))?;
        let forgets = version(&program::output(Command::new(&program).arg("--version"))?) < KEEPS_STATEMENTS;
        let port = on_free_port(|port| {
            fs::write(&file, configuration(postgres, port, forgets, settings))?;
            server.start()
        })?;
        Ok(Self { server, port })
    }

    /// The url of a database behind it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://angelia@127.0.0.1:{}/{database}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it: every connection breaks.
    pub fn kill(&self) -> io::Result<()> {
        self.server.kill()
    }

    /// Starts it on its port again. One that still runs is killed first.
    pub fn start_again(&self) -> io::Result<()> {
        self.server.start()
    }

    /// Halts it: connections stay open, and nothing answers.
    pub fn pause(&self) -> io::Result<()> {
        self.server.pause()
    }

    /// Lets it go on after a pause.
    pub fn resume(&self) -> io::Result<()> {
        self.server.resume()
    }
}

/// `forgets`: this version knows nothing of prepared statements, nor of the setting.
fn configuration(postgres: &Postgres, port: u16, forgets: bool, settings: &[(&str, &str)]) -> String {
    let behind = postgres.address();
    let mut text = format!("[databases]\n* = host={} port={} user={}", behind.host, behind.port, behind.user);
    if let Some(password) = &behind.password {
        text += &format!(" password='{password}'");
    }
    text += &format!("\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n");
    // No socket of its own: with one it would run on where the port is taken.
    text += "unix_socket_dir =\nauth_type = any\npool_mode = transaction\nmax_client_conn = 500\n";
    if !forgets {
        text += "max_prepared_statements = 0\n";
    }
    for (name, value) in settings {
        text += &format!("{name} = {value}\n");
    }
    text
}

/// Reads "PgBouncer 1.18.0" and what follows.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split_whitespace().nth(1).unwrap_or_default().split('.').map(str::parse);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_forgotten_by_every_version() {
        assert_eq!(version("PgBouncer 1.18.0\nlibevent 2.1.12-stable"), (1, 18));
        assert_eq!(version("nothing"), (0, 0));
        let behind = Postgres::running_at("postgres://me:word@host:5").unwrap();
        let old = configuration(&behind, 7, true, &[("default_pool_size", "2")]);
        assert!(old.contains("* = host=host port=5 user=me password='word'\n"), "{old}");
        assert!(old.contains("listen_port = 7\n") && old.ends_with("default_pool_size = 2\n"), "{old}");
        assert!(!old.contains("max_prepared_statements"), "{old}");
        assert!(configuration(&behind, 7, false, &[]).contains("max_prepared_statements = 0\n"));
    }
}
