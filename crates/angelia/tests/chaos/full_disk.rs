//! The disk fills up under the store, and is freed again.

use crate::agent::Agent;
use crate::judge::{Accepted, judge};
use crate::room::Room;
use crate::server::{Server, fresh_folder};
use crate::stage::{busy, report};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const TEST: &str = "full_disk";
/// Room for the store and some thousand messages.
const DISK: &str = "size=12m";
/// The largest file where disks cannot be mounted: the write-ahead log stays below it until messages come.
const FILE_LIMIT: u64 = 3 * 1024 * 1024;
const SOON: Duration = Duration::from_secs(20);

/// While nothing can be committed, posts get 503 and `/readyz` is red; nothing
/// that was acknowledged is lost, and with space again all goes on.
#[test]
fn nothing_acknowledged_is_lost() {
    busy(async {
        let folder = fresh_folder(TEST);
        let disk = Disk::make(&folder, DISK);
        report(TEST, disk.method());
        let mut server = Server::start_in(folder, disk.data(), &disk.wrap()).await;
        let credentials = server.gateway("default", "gw-log").await;
        let agent = Agent::start(&server, &credentials, &[]);
        let room = Room::enter(&server, "den", "gw-log").await;
        let mut texts = Vec::new();
        for _ in 0..20 {
            assert!(post(&room, &mut texts).await, "there is space");
        }
        agent.wait_for(texts.len(), SOON).await;

        disk.fill(&server);
        let before = texts.len();
        let deadline = Instant::now() + SOON * 2;
        while post(&room, &mut texts).await {
            assert!(Instant::now() < deadline, "{} posts on a full disk", texts.len() - before);
        }
        let in_what_was_left = texts.len() - before;
        wait_status(&server, 503).await;
        assert_eq!(server.probe("/livez").await, Some(200), "it lives, it is only not ready");
        // While it is full nothing is acknowledged; what is must come true later.
        let mut refused = 1;
        for _ in 0..30 {
            refused += usize::from(!post(&room, &mut texts).await);
        }
        assert!(refused > 15, "most posts are refused on a full disk, {refused} were");

        disk.free(&server);
        let freed = Instant::now();
        wait_status(&server, 200).await;
        let green_after = freed.elapsed();
        for _ in 0..20 {
            assert!(post(&room, &mut texts).await, "there is space again");
        }
        agent.wait_for(texts.len(), SOON).await;
        let count = texts.len();
        let verdict = judge(&Accepted::from([(room.chat(), texts)]), &agent.seen());
        assert!(server.process.is_running(), "it survived");
        server.assert_never_panicked();
        report(
            TEST,
            &format!(
                "{count} accepted ({in_what_was_left} in what was left), {refused} refused with 503, \
                 ready {green_after:.1?} after space was freed; {verdict}"
            ),
        );
        drop(agent);
        server.process.kill().await;
    });
}

/// What waits for one tenant's agent takes an eighth of the disk at most: then its posts get 503, and
/// the others have their own.
#[test]
fn one_tenant_does_not_use_it_up() {
    busy(async {
        let folder = fresh_folder("full_disk_tenant");
        let disk = Disk::make(&folder, DISK);
        if !matches!(disk, Disk::Mounted(_)) {
            return report(
                TEST,
                "NOT SHOWN: mounting is not permitted, and a limit on files is no small disk",
            );
        }
        let mut server = Server::start_in(folder, disk.data(), &disk.wrap()).await;
        for (tenant, gateway) in [("acme", "gw-away"), ("globex", "gw-other")] {
            server.gateway(tenant, gateway).await;
        }
        let away = Room::enter(&server, "den", "gw-away").await;
        let other = Room::enter(&server, "lair", "gw-other").await;
        let mut texts = Vec::new();
        while post(&away, &mut texts).await {
            assert!(texts.len() < 1_000, "it has no end");
        }
        // An eighth of twelve megabytes, in texts of seven kilobytes.
        assert!((100..250).contains(&texts.len()), "{} posts were accepted", texts.len());
        assert!(post(&other, &mut Vec::new()).await, "another tenant");
        assert_eq!(server.probe("/readyz").await, Some(200));
        server.process.kill().await;
    });
}

/// Posts a long text once; whether it was accepted. Anything but 2xx and 503 is wrong.
async fn post(room: &Room, texts: &mut Vec<String>) -> bool {
    let id = format!("den-{:05}", texts.len());
    let text = format!("{id} {}", "x".repeat(7_000));
    match room.post_once(&id, &text).await {
        Some(200..=299) => {
            texts.push(id);
            true
        }
        Some(503) => false,
        other => panic!("a post on a full disk was answered with {other:?}"),
    }
}

pub(crate) async fn wait_status(server: &Server, wanted: u16) {
    let deadline = Instant::now() + SOON;
    loop {
        let status = server.probe("/readyz").await;
        if status == Some(wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "/readyz is {status:?}, not {wanted}: {}", server.log());
        sleep(Duration::from_millis(20)).await;
    }
}

/// A place for data that can be filled: a small disk of its own, or a limit on
/// the size of files where mounting is not permitted.
pub(crate) enum Disk {
    Mounted(PathBuf),
    Limited(PathBuf),
}

impl Disk {
    pub(crate) fn make(folder: &Path, size: &str) -> Self {
        let path = folder.join("disk");
        fs::create_dir_all(&path).expect("make the mount point");
        let target = path.display().to_string();
        // One that a killed run left behind.
        let _ = run("umount", &[&target]);
        // CHAOS_NO_MOUNT=1 tries the other way on a machine that could mount.
        let mount = if std::env::var_os("CHAOS_NO_MOUNT").is_some() { "false" } else { "mount" };
        let mounted = run(mount, &["-t", "tmpfs", "-o", size, "tmpfs", &target]);
        if mounted.status.success() {
            return Self::Mounted(path);
        }
        // ANGELIA_TEST_MUST_MOUNT=1 is for machines on which everything has to be shown.
        let must = std::env::var_os("ANGELIA_TEST_MUST_MOUNT").is_some();
        assert!(!must, "mounting is not permitted: {mounted:?}");
        let limited = run("prlimit", &["--fsize=1000000", "true"]);
        assert!(limited.status.success(), "neither mount nor prlimit works: {mounted:?} {limited:?}");
        Self::Limited(path)
    }

    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Mounted(_) => "method: a small tmpfs and a ballast file",
            Self::Limited(_) => "method: mounting is not permitted; a limit on the size of files (prlimit)",
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        let (Self::Mounted(path) | Self::Limited(path)) = self;
        path.join("data")
    }

    /// What goes before the server's command line. A process that ignores
    /// SIGXFSZ gets an error from a write beyond the limit, like on a full disk.
    fn wrap(&self) -> Vec<&'static str> {
        match self {
            Self::Mounted(_) => vec![],
            Self::Limited(_) => vec!["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"],
        }
    }

    pub(crate) fn fill(&self, server: &Server) {
        match self {
            Self::Mounted(path) => fill(&path.join("ballast")),
            Self::Limited(_) => limit(server, &FILE_LIMIT.to_string()),
        }
    }

    pub(crate) fn free(&self, server: &Server) {
        match self {
            Self::Mounted(path) => fs::remove_file(path.join("ballast")).unwrap(),
            Self::Limited(_) => limit(server, "unlimited"),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Self::Mounted(path) = self {
            let _ = run("umount", &["-l", &path.display().to_string()]);
        }
    }
}

/// Grows a file until not one byte more fits.
pub(crate) fn fill(ballast: &Path) {
    let mut ballast = OpenOptions::new().create(true).append(true).open(ballast).unwrap();
    for size in [64 * 1024, 4 * 1024, 1] {
        while ballast.write_all(&vec![0; size]).is_ok() {}
    }
}

fn limit(server: &Server, size: &str) {
    let set = run("prlimit", &["--pid", &server.process.id().to_string(), &format!("--fsize={size}:")]);
    assert!(set.status.success(), "{set:?}");
}

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().unwrap_or_else(|error| panic!("{program}: {error}"))
}
