//! Child processes with a log file, in a process group of their own.
//!
//! The group matters: a gateway starts helpers, and a test that dies must not
//! leave any of them behind. Dropping a [`Process`] kills the whole group.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// How often a condition is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(20);

/// How many bytes of a log a panic message quotes.
const QUOTED_LOG: usize = 4_000;

/// A running child process and the file that holds its output.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    group: Pid,
    log: PathBuf,
    /// Length of the log at start: a restart appends, and waiting for a line
    /// must not find the one of the run before.
    log_start: u64,
}

impl Process {
    /// Starts `command` in its own group with its output appended to `log`.
    ///
    /// # Panics
    ///
    /// When the log cannot be opened or the program cannot be started.
    pub fn spawn(name: impl Into<String>, mut command: Command, log: impl Into<PathBuf>) -> Self {
        let (name, log) = (name.into(), log.into());
        let log_start = file_length(&log);
        let out = append_to(&log);
        let err = out.try_clone().expect("duplicate the log's handle");
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let id = child.id().expect("a child just started has an id");
        let group = i32::try_from(id).ok().and_then(Pid::from_raw);
        let group = group.expect("a process id is a positive number");
        Self { name, child, group, log, log_start }
    }

    /// The process id, which is also the id of its group.
    pub fn id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// The file that holds what the process wrote.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What this run wrote so far.
    pub fn log_text(&self) -> String {
        read_from(&self.log, self.log_start)
    }

    /// Whether the process has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until the log of this run contains `needle`.
    ///
    /// # Panics
    ///
    /// When that does not happen in time, or the process ends before it.
    pub async fn wait_for_log(&mut self, needle: &str, limit: Duration) {
        let log = self.log.clone();
        let start = self.log_start;
        let what = format!("{needle:?} in its log");
        self.wait_until(&what, limit, || read_from(&log, start).contains(needle)).await;
    }

    /// Waits until `ready` says so, as long as the process lives.
    ///
    /// # Panics
    ///
    /// When that does not happen in time, or the process ends before it.
    pub async fn wait_until(&mut self, what: &str, limit: Duration, ready: impl Fn() -> bool) {
        let deadline = Instant::now() + limit;
        while !ready() {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("{} ended ({status}) before {what}{}", self.name, self.end_of_log());
            }
            assert!(
                Instant::now() < deadline,
                "{}: no {what} within {limit:?}{}",
                self.name,
                self.end_of_log()
            );
            sleep(POLL).await;
        }
    }

    /// Waits for the end; `None` when the process still runs after `limit`.
    pub async fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let status = timeout(limit, self.child.wait()).await.ok()?;
        Some(status.expect("wait for a child of this process"))
    }

    /// Sends SIGTERM, and waits for nothing.
    pub fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGINT, as Ctrl-C in its terminal does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends SIGTERM, waits for the end and prints how long it took.
    ///
    /// # Panics
    ///
    /// When the process is still there after `limit`.
    pub async fn terminate(&mut self, limit: Duration) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        // Only the leader: that is what an init system's main-process stop does,
        // and the gateway ends its helpers itself.
        self.signal(Signal::TERM);
        let Some(status) = self.wait(limit).await else {
            panic!("{} ignored SIGTERM for {limit:?}{}", self.name, self.end_of_log());
        };
        let took = begun.elapsed();
        eprintln!("{}: {status} {:.2} s after SIGTERM", self.name, took.as_secs_f64());
        (status, took)
    }

    /// Kills the whole group at once, as a crash would, and waits for the end.
    pub async fn kill(&mut self) {
        self.signal_group(Signal::KILL);
        let ended = self.wait(Duration::from_secs(10)).await;
        assert!(ended.is_some(), "{} survived SIGKILL", self.name);
    }

    /// Stops the whole group in its tracks: sockets stay open, nothing moves.
    pub fn freeze(&self) {
        self.signal_group(Signal::STOP);
    }

    /// Lets a frozen group go on.
    pub fn thaw(&self) {
        self.signal_group(Signal::CONT);
    }

    /// The last part of the log, ready to be appended to a panic message.
    fn end_of_log(&self) -> String {
        let text = self.log_text();
        let mut from = text.len().saturating_sub(QUOTED_LOG);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        format!("\n--- end of {} ---\n{}", self.log.display(), &text[from..])
    }

    fn signal(&self, signal: Signal) {
        // Not after the end was seen: the id may belong to somebody else by then.
        if self.child.id().is_some() {
            self.check(kill_process(self.group, signal));
        }
    }

    fn signal_group(&self, signal: Signal) {
        self.check(kill_process_group(self.group, signal));
    }

    fn check(&self, sent: Result<(), Errno>) {
        match sent {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => panic!("cannot signal {}: {error}", self.name),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What the test may have failed of; the folder of the log may go with it.
            eprintln!("{}{}", self.name, self.end_of_log());
        }
        // A frozen group needs no thaw: SIGKILL ends stopped processes too. The
        // group outlives its leader while helpers of it run.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

/// Runs a command to its end and returns what it wrote to standard output.
///
/// # Panics
///
/// When it cannot be started, takes longer than `limit`, or ends with an exit
/// code that is neither 0 nor in `also_fine`.
pub async fn run(program: impl AsRef<OsStr>, args: &[&str], limit: Duration, also_fine: &[i32]) -> String {
    let program = program.as_ref();
    let shown = format!("{} {}", program.to_string_lossy(), args.join(" "));
    let mut command = Command::new(program);
    command.args(args);
    let output = output(&shown, command, limit).await;
    let code = output.status.code().unwrap_or(-1);
    assert!(
        code == 0 || also_fine.contains(&code),
        "{shown}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command to its end, whatever that is.
///
/// # Panics
///
/// When it cannot be started or takes longer than `limit`.
pub async fn output(shown: &str, mut command: Command, limit: Duration) -> Output {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    timeout(limit, output)
        .await
        .unwrap_or_else(|_| panic!("{shown}: not finished after {limit:?}"))
        .unwrap_or_else(|error| panic!("{shown}: {error}"))
}

/// Ports that [`free_port`] hands out: below those the system gives to whoever dials, so
/// that nobody's connection sits on one before it is used, or while a server restarts.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A TCP port of the loopback address that was free a moment ago, another one each time.
///
/// # Panics
///
/// When there is no free port.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    // Test binaries that run side by side start far from each other.
    let start = u16::try_from(std::process::id() % 120).expect("below 120") * 100;
    let mut ports = (0..count).map(|_| {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        PORTS.start + (start + next % count) % count
    });
    let free = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.expect("a free port")
}

/// Waits until `ready` gives something and returns it.
///
/// # Panics
///
/// When that does not happen within `limit`; the message names `what`.
pub async fn eventually<T>(what: &str, limit: Duration, ready: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        sleep(POLL).await;
    }
}

/// The same for what has to be asked for: polls until the answer is yes.
///
/// # Panics
///
/// When that does not happen within `limit`; the message names `what`.
pub async fn until(what: &str, limit: Duration, is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        sleep(POLL).await;
    }
}

fn append_to(path: &Path) -> File {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).expect("create the folder of a log file");
    }
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()))
}

/// Length of a file; 0 for one that is not there yet.
pub(crate) fn file_length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| data.len())
}

/// The text of a file from a byte offset on; empty for one that is not there.
pub(crate) fn read_from(path: &Path, offset: u64) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    String::from_utf8_lossy(bytes.get(offset..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn log_file(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("angelia-process-{}", std::process::id()));
        folder.join(name)
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn terminates_and_reports_the_log_of_this_run_only() {
        let log = log_file("terminate.log");
        for run in ["first", "second"] {
            let script = format!("trap 'exit 3' TERM; echo {run}; while :; do sleep 0.05; done");
            let mut process = Process::spawn("loop", shell(&script), &log);
            process.wait_for_log(run, SOON).await;
            assert_eq!(process.log_text(), format!("{run}\n"));
            assert!(process.is_running());
            let (status, _) = process.terminate(SOON).await;
            assert_eq!(status.code(), Some(3));
            assert!(!process.is_running());
        }
    }

    #[tokio::test]
    async fn dropping_it_kills_the_helpers_too() {
        let log = log_file("group.log");
        let process = Process::spawn("parent", shell("sleep 300 & echo $!; wait"), &log);
        let helper =
            eventually("the helper's id", SOON, || process.log_text().trim().parse::<i32>().ok()).await;
        drop(process);
        let gone = || {
            let stat = fs::read_to_string(format!("/proc/{helper}/stat")).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        };
        eventually("the helper's end", SOON, gone).await;
    }

    #[tokio::test]
    async fn a_frozen_process_goes_on_after_the_thaw() {
        let log = log_file("freeze.log");
        let script = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";
        let mut process = Process::spawn("counter", shell(script), &log);
        process.wait_for_log("3\n", SOON).await;
        process.freeze();
        sleep(Duration::from_millis(100)).await;
        let frozen = process.log_text();
        sleep(Duration::from_millis(200)).await;
        assert_eq!(process.log_text(), frozen);
        process.thaw();
        eventually("more output", SOON, || (process.log_text() != frozen).then_some(())).await;
        process.kill().await;
    }
}
