//! A Redis node: alone, as a cluster of one, or behind TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::process::{Server, User, free_port, on_free_port};
use crate::program::{self, shell_words};

/// How long a cluster of one may take to find itself complete: after a start it waits two seconds.
const CLUSTER_READY: Duration = Duration::from_secs(30);

/// How often it is asked meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// A Redis node. It keeps nothing on disk unless it is told to.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    port: u16,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Alone,
    Cluster,
    Tls,
}

impl Redis {
    /// Starts a node.
    pub fn start() -> io::Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a node with arguments such as `["--appendonly", "yes"]`, which win over ours.
    pub fn start_with(arguments: &[&str]) -> io::Result<Self> {
        Self::start_as(Kind::Alone, arguments)
    }

    /// Starts a cluster of one node that has all slots, and waits until it is complete.
    pub fn start_cluster() -> io::Result<Self> {
        let redis = Self::start_as(Kind::Cluster, &[])?;
        redis.cli(&["cluster", "addslotsrange", "0", "16383"])?;
        redis.await_cluster()?;
        Ok(redis)
    }

    /// Starts a node that speaks TLS only. Clients have to trust [`Redis::authority`].
    pub fn start_tls() -> io::Result<Self> {
        Self::start_as(Kind::Tls, &[])
    }

    fn start_as(kind: Kind, arguments: &[&str]) -> io::Result<Self> {
        let server = Server::new("redis", "Ready to accept connections", User::Same)?;
        if kind == Kind::Tls {
            make_certificate(server.folder())?;
        }
        let port = on_free_port(|port| {
            let mut run = common(server.folder())?;
            run.extend(of_kind(kind, port)?);
            run.extend(arguments.iter().map(|&argument| argument.to_owned()));
            server.set_script(&format!("exec {}\n", shell_words(run)))?;
            server.start()
        })?;
        Ok(Self { server, port, kind })
    }

    /// Its url, without a database.
    pub fn url(&self) -> String {
        let scheme = if self.kind == Kind::Tls { "rediss" } else { "redis" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The file with the certificate that signed a TLS node's own.
    pub fn authority(&self) -> Option<PathBuf> {
        (self.kind == Kind::Tls).then(|| self.server.folder().join(AUTHORITY))
    }

    /// Has Redis' own client run one command: the answer, bare.
    pub fn cli(&self, arguments: &[&str]) -> io::Result<String> {
        let mut command = Command::new(program::find("redis-cli")?);
        command.args(["-e", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        if let Some(authority) = self.authority() {
            command.arg("--tls").arg("--cacert").arg(authority);
        }
        program::output(command.args(arguments))
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) -> io::Result<()> {
        self.server.kill()
    }

    /// Ends it in good order.
    pub fn stop(&self) -> io::Result<()> {
        self.server.stop("TERM")
    }

    /// Starts it on its port again, with what it kept on disk, and waits until it
    /// accepts connections. One that still runs is killed first.
    pub fn start_again(&self) -> io::Result<()> {
        self.server.start()?;
        if self.kind == Kind::Cluster { self.await_cluster() } else { Ok(()) }
    }

    /// Halts it: connections stay open, and nothing answers.
    pub fn pause(&self) -> io::Result<()> {
        self.server.pause()
    }

    /// Lets it go on after a pause.
    pub fn resume(&self) -> io::Result<()> {
        self.server.resume()
    }

    fn await_cluster(&self) -> io::Result<()> {
        let mut state = String::new();
        for _ in 0..CLUSTER_READY.as_millis() / POLL.as_millis() {
            state = self.cli(&["cluster", "info"])?;
            if state.contains("cluster_state:ok") {
                return Ok(());
            }
            sleep(POLL);
        }
        Err(io::Error::other(format!("the cluster was not complete in time: {state}")))
    }
}

fn common(folder: &Path) -> io::Result<Vec<String>> {
    let server = program::find("redis-server")?.display().to_string();
    let folder = folder.display().to_string();
    let arguments = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"];
    Ok([server].into_iter().chain(arguments.map(String::from)).chain([folder]).collect())
}

fn of_kind(kind: Kind, port: u16) -> io::Result<Vec<String>> {
    let port = port.to_string();
    let bus; // Its own default, ten thousand above the port, is one of outgoing connections.
    let arguments: &[&str] = match kind {
        Kind::Alone => &["--port", &port],
        Kind::Cluster => {
            bus = free_port()?.to_string();
            &[
                &["--port", &port, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"][..],
                &["--cluster-announce-ip", "127.0.0.1", "--cluster-port", &bus],
            ]
            .concat()
        }
        Kind::Tls => &[
            &["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"][..],
            &["--tls-ca-cert-file", AUTHORITY, "--tls-cert-file", CERTIFICATE, "--tls-key-file", KEY],
        ]
        .concat(),
    };
    Ok(arguments.iter().map(|&argument| argument.to_owned()).collect())
}

const AUTHORITY: &str = "authority.pem";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// Makes an authority and a certificate it signed: clients take no authority for a server.
fn make_certificate(folder: &Path) -> io::Result<()> {
    let openssl = |arguments: &str| {
        let mut command = Command::new(program::find("openssl")?);
        command.current_dir(folder).args(["req", "-x509", "-newkey", "ec", "-pkeyopt"]);
        command.args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
        program::output(command.args(arguments.split(' ')))
    };
    openssl(&format!("-subj /CN=authority -keyout authority-key.pem -out {AUTHORITY}"))?;
    openssl(&format!(
        "-subj /CN=localhost -keyout {KEY} -out {CERTIFICATE} -CA {AUTHORITY} -CAkey authority-key.pem \
         -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1,DNS:localhost"
    ))?;
    Ok(())
}
