//! A real redis-server for a test, alone or as a cluster. It ends with the test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to be there.
const WITHIN: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alone,
    Cluster,
    Tls,
}

/// A running server.
pub(super) struct RedisServer {
    port: u16,
    kind: Kind,
    folder: TempDir,
    child: Option<Child>,
}

impl RedisServer {
    /// A server for itself.
    pub(super) fn start() -> Self {
        Self::new(Kind::Alone)
    }

    /// So many servers that are a cluster.
    pub(super) fn start_cluster(servers: u16) -> Vec<Self> {
        let all: Vec<Self> = (0..servers).map(|_| Self::new(Kind::Cluster)).collect();
        let share = 16_384 / servers;
        for (at, server) in (0..).zip(&all) {
            let last = if at + 1 == servers { 16_383 } else { share * (at + 1) - 1 };
            let (from, to) = ((share * at).to_string(), last.to_string());
            server.say(&[b"CLUSTER", b"ADDSLOTSRANGE", from.as_bytes(), to.as_bytes()]);
            server.say(&[b"CLUSTER", b"MEET", b"127.0.0.1", all[0].port.to_string().as_bytes()]);
        }
        let known = format!("cluster_known_nodes:{servers}\r");
        let is_whole = |says: &str| says.contains("cluster_state:ok") && says.contains(&known);
        until(|| all.iter().all(|server| is_whole(&server.say(&[b"CLUSTER", b"INFO"]))));
        all
    }

    /// A server that speaks TLS, and the certificate by which it is known.
    pub(super) fn start_tls() -> (Self, Vec<u8>) {
        let server = Self::new(Kind::Tls);
        let certificate = std::fs::read(server.folder.path().join("cert.pem")).unwrap();
        (server, certificate)
    }

    fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if kind == Kind::Tls {
            certify(&folder);
        }
        let mut server = Self { port: free_port(), kind, folder, child: None };
        server.start_again();
        server
    }

    /// Where it is.
    pub(super) fn url(&self) -> String {
        let scheme = if self.kind == Kind::Tls { "rediss" } else { "redis" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Starts it where it was.
    pub(super) fn start_again(&mut self) {
        let mut command = Command::new("redis-server");
        let (port, folder) = (self.port.to_string(), self.folder.path().to_str().unwrap());
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]);
        match self.kind {
            Kind::Alone => command.args(["--port", &port]),
            Kind::Cluster => command.args(["--port", &port, "--cluster-enabled", "yes"]),
            Kind::Tls => command
                .args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"])
                .args(["--tls-cert-file", &format!("{folder}/cert.pem")])
                .args(["--tls-key-file", &format!("{folder}/key.pem")])
                .args(["--tls-ca-cert-file", &format!("{folder}/cert.pem")]),
        };
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.child = Some(child.expect("redis-server is needed for this test: apt-get install redis-server"));
        until(|| TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Has it stand still: its connections stay open, and nothing answers.
    pub(super) fn pause(&self) {
        self.signal("-STOP");
    }

    /// Has it go on.
    pub(super) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Sends a command past every client; answers what comes first.
    pub(super) fn say(&self, words: &[&[u8]]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend(format!("${}\r\n", word.len()).bytes());
            command.extend_from_slice(word);
            command.extend(b"\r\n");
        }
        stream.write_all(&command).unwrap();
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Writes a certificate that signed itself, and its key.
fn certify(folder: &TempDir) {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=redis"]);
    openssl.args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(folder.path());
    assert!(openssl.stderr(Stdio::null()).status().unwrap().success());
}

/// A port nobody has; the one ten thousand above is the cluster's.
fn free_port() -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    loop {
        let port =
            TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port() % 20_000 + 12_000;
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "how long a process takes is real time")]
fn until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WITHIN, "the server does not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
}
