//! One server process in a folder of its own, under a guard that ends it when this process ends.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use crate::program::{self, unique};

/// What runs the server, and outlives this process for as long as it takes to clean up.
const GUARD: &str = include_str!("guard.sh");

/// How long a server may take until it is ready: an `initdb` on a busy machine takes seconds.
const READY: Duration = Duration::from_secs(30);

/// How often it is looked at meanwhile.
const POLL: Duration = Duration::from_millis(10);

/// How many characters of a log an error quotes.
const QUOTED_LOG: usize = 4_000;

/// How often another port is tried when somebody else took the one that was free.
const PORTS_TRIED: usize = 5;

/// Below the ports Linux gives to outgoing connections, which start at 32768: of those,
/// one that a killed server left could be taken by a client before it starts again.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

/// A server, running or not, with its folder.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    /// What the log says once connections are accepted.
    ready: &'static str,
    folder: PathBuf,
    guard: Mutex<Guard>,
}

#[derive(Debug)]
struct Guard {
    child: Child,
    /// Whoever holds the other end sees this process end.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// Whose process it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// That of this process.
    Same,
    /// `postgres`, where this process is root's: some servers refuse to be.
    NotRoot,
}

impl Server {
    /// Makes the folder of a server that is not started yet.
    pub(crate) fn new(name: &'static str, ready: &'static str, user: User) -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("angelia-{name}-{}", unique()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        let guard = own(&folder, user).and_then(|account| Guard::spawn(&folder, account));
        match guard {
            Ok(guard) => Ok(Self { name, ready, folder, guard: Mutex::new(guard) }),
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                Err(io::Error::new(error.kind(), format!("{name} in {}: {error}", folder.display())))
            }
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes what the shell runs from now on; its last command is to `exec` the server.
    pub(crate) fn set_script(&self, script: &str) -> io::Result<()> {
        fs::write(self.folder.join("run"), script)
    }

    /// Starts the server and waits until it is ready. One that runs is killed before.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.tell("start")?;
        for _ in 0..READY.as_millis() / POLL.as_millis() {
            if self.log().contains(self.ready) {
                return Ok(());
            }
            if self.tell("look").is_err() {
                return Err(self.not_started("ended before it was ready"));
            }
            sleep(POLL);
        }
        let error = self.not_started("was not ready in time");
        self.kill()?;
        Err(error)
    }

    /// Ends it and all its children at once, as a crash would.
    pub(crate) fn kill(&self) -> io::Result<()> {
        self.tell("kill")
    }

    /// Ends it in good order: `signal` is the name of what it is sent.
    pub(crate) fn stop(&self, signal: &str) -> io::Result<()> {
        self.tell(&format!("stop {signal}"))
    }

    /// Halts it and all its children.
    pub(crate) fn pause(&self) -> io::Result<()> {
        self.tell("pause")
    }

    /// Lets them go on.
    pub(crate) fn resume(&self) -> io::Result<()> {
        self.tell("resume")
    }

    fn tell(&self, command: &str) -> io::Result<()> {
        let answer = self.guard.lock().unwrap_or_else(PoisonError::into_inner).ask(command)?;
        match answer.as_str() {
            "done" => Ok(()),
            "ended" => Err(io::Error::other(format!("{} does not run", self.name))),
            _ => Err(io::Error::other(format!("the guard of {} is gone", self.name))),
        }
    }

    /// What the run wrote so far.
    fn log(&self) -> String {
        let bytes = fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn not_started(&self, what: &str) -> io::Error {
        let log = self.log();
        let taken = log.contains("Address already in use");
        let kind = if taken { io::ErrorKind::AddrInUse } else { io::ErrorKind::Other };
        let skipped = log.chars().count().saturating_sub(QUOTED_LOG);
        let end: String = log.chars().skip(skipped).collect();
        io::Error::new(kind, format!("{} {what}; it wrote:\n{end}", self.name))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let guard = self.guard.get_mut().unwrap_or_else(PoisonError::into_inner);
        guard.commands = None;
        let _ = guard.child.wait();
    }
}

impl Guard {
    fn spawn(folder: &Path, account: Option<(u32, u32)>) -> io::Result<Self> {
        fs::write(folder.join("guard"), GUARD)?;
        let mut command = Command::new("sh");
        command.arg(folder.join("guard")).arg(folder).current_dir(folder);
        command.env("HOME", folder).env("LC_ALL", "C");
        program::forget_settings(&mut command);
        if let Some((user, group)) = account {
            command.uid(user).gid(group);
        }
        // A group of its own: what is sent to that of a test must not end it before its work is done.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let commands = child.stdin.take();
        let answers = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, commands, answers: BufReader::new(answers) })
    }

    fn ask(&mut self, command: &str) -> io::Result<String> {
        let commands = self.commands.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(commands, "{command}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer.trim_end().to_owned())
    }
}

/// Gives the folder to the user it is for: the account, where it is another's than ours.
pub(crate) fn own(folder: &Path, user: User) -> io::Result<Option<(u32, u32)>> {
    if user == User::Same || fs::metadata(folder)?.uid() != 0 {
        return Ok(None);
    }
    let (user, group) = program::account("postgres")?;
    chown(folder, Some(user), Some(group))?;
    Ok(Some((user, group)))
}

/// A loopback port nobody listens on.
pub(crate) fn free_port() -> io::Result<u16> {
    let mut last = io::Error::other("no port was tried");
    for _ in 0..100 {
        let port = FIRST_PORT + u16::try_from(program::random() % u64::from(PORTS)).unwrap_or(0);
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Starts something on a free port, and on another one when that was taken meanwhile.
pub(crate) fn on_free_port(mut start: impl FnMut(u16) -> io::Result<()>) -> io::Result<u16> {
    let mut tried = 0;
    loop {
        let port = free_port()?;
        tried += 1;
        match start(port) {
            Ok(()) => return Ok(port),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tried < PORTS_TRIED => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_port_is_tried_when_one_is_taken() {
        let mut tried = 0;
        let port = on_free_port(|_| {
            tried += 1;
            if tried < 3 { Err(io::ErrorKind::AddrInUse.into()) } else { Ok(()) }
        });
        assert!((FIRST_PORT..FIRST_PORT + PORTS).contains(&port.unwrap()));
        assert_eq!(tried, 3);
        let never = on_free_port(|_| Err(io::ErrorKind::AddrInUse.into()));
        assert_eq!(never.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_server_that_ends_at_once_is_quoted() {
        let server = Server::new("nothing", "never said", User::Same).unwrap();
        server.set_script("echo bind: Address already in use; exit 1").unwrap();
        let error = server.start().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains("nothing ended before it was ready; it wrote:\nbind"), "{error}");
        let folder = server.folder().to_owned();
        drop(server);
        assert!(!folder.exists());
    }
}
