//! A server that speaks S3, with one bucket and one key: every signature is checked, and every right.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::process::{Server, User, on_free_port};
use crate::program::{self, shell_words};

const SCRIPT: &str = include_str!("s3.py");

/// A server that speaks S3. It keeps everything in memory: after a kill it is empty.
#[derive(Debug)]
pub struct S3 {
    server: Server,
    port: u16,
    key: Vec<String>,
}

impl S3 {
    /// The only bucket there is.
    pub const BUCKET: &str = "angelia";
    /// One that the key may look into, and that is not there.
    pub const MISSING: &str = "missing";

    /// Starts one.
    pub fn start() -> io::Result<Self> {
        let python = python()?;
        let server = Server::new("s3", "the bucket is ready", User::Same)?;
        fs::write(server.folder().join("s3.py"), SCRIPT)?;
        let port = on_free_port(|port| {
            let run = words(&python, server.folder(), port);
            server.set_script(&format!("exec {}\n", shell_words(run)))?;
            server.start()
        })?;
        let key = fs::read_to_string(server.folder().join("key"))?;
        Ok(Self { server, port, key: key.lines().map(str::to_owned).collect() })
    }

    /// One that all tests of this process use, each below a prefix of its own.
    pub fn shared() -> io::Result<&'static Self> {
        static SHARED: OnceLock<Result<S3, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| Self::start().map_err(|error| error.to_string()));
        shared.as_ref().map_err(|error| io::Error::other(error.clone()))
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name of the key.
    pub fn access_key_id(&self) -> &str {
        self.key.first().map_or("", String::as_str)
    }

    /// Its secret.
    pub fn secret_access_key(&self) -> &str {
        self.key.get(1).map_or("", String::as_str)
    }

    /// What another client sees in the bucket: names and sizes.
    pub fn objects(&self) -> io::Result<Vec<(String, u64)>> {
        let run = words(&python()?, self.server.folder(), self.port);
        let listed = program::output(Command::new(&run[0]).args(&run[1..]).arg("list"))?;
        let object = |line: &str| {
            let (name, size) = line.rsplit_once(' ')?;
            Some((name.to_owned(), size.parse().ok()?))
        };
        Ok(listed.lines().filter_map(object).collect())
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) -> io::Result<()> {
        self.server.kill()
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

/// The Python that has moto, which is no program of the distribution.
fn python() -> io::Result<PathBuf> {
    let folder = std::env::var_os("ANGELIA_TEST_ENV")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-env"), PathBuf::from);
    let (python, moto) = (folder.join("oracles/bin/python"), folder.join("oracles/bin/moto_server"));
    if moto.exists() {
        return Ok(python);
    }
    let hint = format!("{} is missing: run scripts/install-oracles", moto.display());
    Err(io::Error::new(io::ErrorKind::NotFound, hint))
}

fn words(python: &Path, folder: &Path, port: u16) -> [String; 4] {
    let text = |path: &Path| path.display().to_string();
    [text(python), text(&folder.join("s3.py")), port.to_string(), text(folder)]
}
