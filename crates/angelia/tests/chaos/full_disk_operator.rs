//! On a full disk the server starts, and the operator ends whoever filled it.

use crate::agent::Agent;
use crate::full_disk::{Disk, fill, wait_status};
use crate::room::Room;
use crate::server::{Server, fresh_folder};
use crate::stage::{busy, report};
use angelia_engines::inspect::Inspect;
use angelia_engines::store::sqlite::DATABASE;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Room for a tenant of a hundred megabytes and the reserve, and not much more.
const LARGE: &str = "size=160m";
/// Room for little.
const SMALL: &str = "size=64m";
/// Rows of the tenant that fills the disk, and what each holds.
const ROWS: usize = 1_000;
const BODY: usize = 100_000;
const MIB: u64 = 1 << 20;
const SOON: Duration = Duration::from_secs(30);

/// A server on a small disk of its own.
struct Stage {
    server: Server,
    path: PathBuf,
    // Dropped last: it is mounted while the server runs.
    _disk: Disk,
}

impl Stage {
    /// `None` where disks cannot be mounted: a limit on files has no reserve to give up.
    async fn set(test: &str, size: &str) -> Option<Self> {
        let folder = fresh_folder(test);
        let disk = Disk::make(&folder, size);
        let Disk::Mounted(path) = &disk else {
            report(test, "NOT SHOWN: mounting is not permitted, and a limit on files is no full disk");
            return None;
        };
        let path = path.clone();
        Some(Self::on(disk, folder, path).await)
    }

    /// On a disk with space.
    async fn roomy(test: &str) -> Self {
        let folder = fresh_folder(test);
        let path = folder.join("disk");
        fs::create_dir_all(&path).expect("make the folder");
        Self::on(Disk::Limited(path.clone()), folder, path).await
    }

    async fn on(disk: Disk, folder: PathBuf, path: PathBuf) -> Self {
        let server = Server::start_in(folder, disk.data(), &[]).await;
        let stage = Self { server, path, _disk: disk };
        stage.wait_for("the reserve", || stage.reserve() > 0).await;
        stage
    }

    fn data(&self, name: &str) -> PathBuf {
        self.path.join("data").join(name)
    }

    fn reserve(&self) -> u64 {
        length(&self.data("reserve"))
    }

    fn free(&self) -> u64 {
        let disk = rustix::fs::statvfs(&self.path).expect("look at the disk");
        disk.f_bavail * disk.f_frsize
    }

    fn fill(&self) {
        fill(&self.path.join("ballast"));
    }

    async fn wait_for(&self, what: &str, mut ready: impl FnMut() -> bool) {
        let deadline = Instant::now() + SOON;
        while !ready() {
            assert!(Instant::now() < deadline, "no {what} after {SOON:?}: {}", self.server.log());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Runs a command that has to work.
    async fn operator(&self, line: &[&str]) -> String {
        let (code, said) = self.server.command(line).await;
        assert_eq!(code, Some(0), "{line:?} on a full disk: {said}\n{}", self.server.log());
        said
    }

    /// What `status` says of a server that takes nothing in; whoever asks by a script sees it by the code.
    async fn not_ready(&self) -> String {
        let (code, said) = self.server.command(&["status"]).await;
        assert_eq!(code, Some(1), "{said}\n{}", self.server.log());
        said
    }

    /// Stops the server, and gives a tenant a hundred megabytes of waiting messages and actions.
    async fn stuff(&mut self, tenant: &str) {
        self.server.process.kill().await;
        self.disk().stuff(tenant, ROWS / 2, BODY);
    }

    async fn start_again(&mut self) {
        self.server.respawn(None);
        self.server.wait_ready().await;
    }

    /// Rows that are left of a tenant.
    fn rows_of(&self, tenant: &str) -> u64 {
        self.disk().rows_of(tenant)
    }

    fn disk(&self) -> Inspect {
        Inspect::of(&self.path.join("data"))
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// One post; whether it was taken.
async fn post(room: &Room, id: &str) -> bool {
    match room.post_once(id, &format!("{id} {}", "x".repeat(7_000))).await {
        Some(200..=299) => true,
        Some(503) => false,
        other => panic!("a post on a full disk was answered with {other:?}"),
    }
}

/// Posts until one is refused; how many were taken.
async fn post_until_refused(room: &Room) -> usize {
    let deadline = Instant::now() + SOON;
    let mut taken = 0;
    while post(room, &format!("den-{taken:05}")).await {
        taken += 1;
        assert!(Instant::now() < deadline, "{taken} posts on a full disk");
    }
    taken
}

/// A gateway is revoked and its tenant of a hundred megabytes removed while not one
/// byte is free; what was given up for that is nobody else's, and afterwards the
/// others go on.
#[test]
fn an_operator_ends_whoever_filled_it() {
    const TEST: &str = "full_disk_operator";
    busy(async {
        let Some(mut stage) = Stage::set(TEST, LARGE).await else { return };
        let credentials = stage.server.gateway("default", "gw-log").await;
        stage.server.gateway("rogue", "gw-rogue").await;
        let room = Room::enter(&stage.server, "den", "gw-log").await;
        stage.stuff("rogue").await;
        stage.start_again().await;
        let agent = Agent::start(&stage.server, &credentials, &[]);
        stage.wait_for("the whole reserve", || stage.reserve() == 16 * MIB).await;
        let database = length(&stage.data(DATABASE));
        assert!(database > 95 * MIB, "the tenant is large: {database}");

        stage.fill();
        let in_what_was_left = post_until_refused(&room).await;
        wait_status(&stage.server, 503).await;
        stage.fill();
        assert_eq!(stage.reserve(), 16 * MIB, "not for them");

        stage.operator(&["gateway", "revoke", "--tenant", "rogue", "gw-rogue"]).await;
        assert!(stage.reserve() < 16 * MIB, "it was needed");
        for number in 0..20 {
            assert!(!post(&room, &format!("late-{number}")).await, "what was given up is the operator's");
        }
        stage.server.process.kill().await;
        serves_what_needs_no_commit(&mut stage, &room).await;
        for number in 0..20 {
            assert!(!post(&room, &format!("later-{number}")).await, "nor is it theirs after a restart");
        }
        let status = stage.not_ready().await;
        assert!(status.contains("THE DISK IS FULL") && status.contains("next: "), "{status}");
        assert!(status.contains("NOT READY (the store cannot commit: is the disk full?"), "{status}");

        let began = Instant::now();
        stage.operator(&["tenant", "remove", "rogue", "--confirm", "rogue"]).await;
        stage.wait_for("space of the tenant", || stage.free() + stage.reserve() > 95 * MIB).await;
        let removed_in = began.elapsed();
        assert_eq!(stage.rows_of("rogue"), 0);
        wait_status(&stage.server, 200).await;
        stage.wait_for("the reserve again", || stage.reserve() == 16 * MIB).await;
        let database = length(&stage.data(DATABASE));
        assert!(database < 20 * MIB, "the file shrank: {database}");
        assert!(post(&room, "after").await, "others go on");
        agent.wait_for(in_what_was_left + 1, SOON).await;
        let status = stage.operator(&["status"]).await;
        assert!(status.starts_with("ready") && !status.contains("disk"), "{status}");
        stage.server.assert_never_panicked();
        report(TEST, &format!("{in_what_was_left} posts in what was left; removed in {removed_in:.1?}"));
        drop(agent);
        stage.server.process.kill().await;
    });
}

/// After a crash, and after a stop whose space somebody else took, a server starts on
/// a full disk: it says so, rooms can be read, gateways connect, and with space again
/// everybody gets what was accepted, once.
#[test]
fn a_server_starts_on_it() {
    const TEST: &str = "full_disk_start";
    busy(async {
        let Some(mut stage) = Stage::set(TEST, SMALL).await else { return };
        let credentials = stage.server.gateway("default", "gw-log").await;
        stage.server.gateway("rogue", "gw-rogue").await;
        let room = Room::enter(&stage.server, "den", "gw-log").await;
        for number in 0..5 {
            assert!(post(&room, &format!("early-{number}")).await);
        }
        stage.fill();
        let taken = 5 + post_until_refused(&room).await;
        stage.server.process.kill().await;
        stage.fill();
        serves_what_needs_no_commit(&mut stage, &room).await;

        stage.server.process.terminate(SOON).await;
        stage.fill();
        let reserve = stage.reserve();
        serves_what_needs_no_commit(&mut stage, &room).await;
        assert!(stage.reserve() < reserve, "the start took some of it: the last stop had left no space");

        let agent = Agent::start(&stage.server, &credentials, &[]);
        let deadline = Instant::now() + SOON;
        while !stage.operator(&["gateway", "show", "gw-log"]).await.contains("state         connected") {
            assert!(Instant::now() < deadline, "gateways connect: {}", stage.server.log());
        }
        stage.operator(&["gateway", "revoke", "gw-rogue"]).await;
        assert!(!post(&room, "late").await, "still full");
        assert!(agent.seen().is_empty(), "nothing is pushed whose acknowledgement could not be kept");

        fs::remove_file(stage.path.join("ballast")).unwrap();
        wait_status(&stage.server, 200).await;
        agent.wait_for(taken, SOON).await;
        assert_eq!(agent.seen().len(), taken, "once each");
        stage.server.assert_never_panicked();
        drop(agent);
        stage.server.process.kill().await;
    });
}

async fn serves_what_needs_no_commit(stage: &mut Stage, room: &Room) {
    stage.server.respawn(None);
    let deadline = Instant::now() + SOON;
    while stage.server.probe("/livez").await != Some(200) {
        assert!(
            stage.server.process.is_running(),
            "it does not start on a full disk: {}",
            stage.server.log()
        );
        assert!(Instant::now() < deadline, "it does not serve: {}", stage.server.log());
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(stage.server.probe("/readyz").await, Some(503));
    assert!(room.try_answers().await.is_some(), "rooms can be read");
    let status = stage.not_ready().await;
    assert!(status.contains("THE DISK IS FULL"), "{status}");
    assert!(!post(room, "in vain").await, "nothing is taken in");
}

/// The same without a server: commands open the data directory themselves.
#[test]
fn an_operator_needs_no_server_for_it() {
    const TEST: &str = "full_disk_offline";
    busy(async {
        let Some(mut stage) = Stage::set(TEST, LARGE).await else { return };
        stage.server.gateway("rogue", "gw-rogue").await;
        stage.wait_for("the whole reserve", || stage.reserve() == 16 * MIB).await;
        stage.stuff("rogue").await;
        stage.fill();
        stage.operator(&["gateway", "revoke", "gw-rogue"]).await;
        stage.operator(&["tenant", "remove", "rogue", "--confirm", "rogue"]).await;
        assert_eq!(stage.rows_of("rogue"), 0);
        assert!(stage.free() > 90 * MIB, "{} bytes are free", stage.free());
        stage.start_again().await;
        stage.wait_for("the reserve again", || stage.reserve() == 16 * MIB).await;
        stage.server.process.kill().await;
    });
}

/// A removal that is cut short goes on with the next start; the tenant is gone from
/// its first moment on.
#[test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
fn a_removal_cut_short_is_finished() {
    const TEST: &str = "removal_cut_short";
    busy(async {
        let mut stage = Stage::roomy(TEST).await;
        let credentials = stage.server.gateway("rogue", "gw-rogue").await;
        stage.stuff("rogue").await;
        stage.server.respawn(Some("removal_step@3"));
        stage.server.wait_ready().await;
        let (code, _) = stage.server.command(&["tenant", "remove", "rogue", "--confirm", "rogue"]).await;
        assert_ne!(code, Some(0), "the server died meanwhile");
        assert!(stage.server.process.wait(SOON).await.is_some(), "it passed the point");
        let left = stage.rows_of("rogue");
        assert!(left > 100, "it died in the middle: {left} rows are left");

        stage.start_again().await;
        let tenants = stage.operator(&["tenant", "list"]).await;
        assert!(!tenants.contains("rogue"), "{tenants}");
        let agent = Agent::start(&stage.server, &credentials, &[]);
        stage.wait_for("end of the removal", || stage.rows_of("rogue") == 0).await;
        assert!(agent.seen().is_empty(), "nobody gets what waited");
        stage.operator(&["tenant", "create", "rogue"]).await;
        stage.server.assert_never_panicked();
        drop(agent);
        stage.server.process.kill().await;
    });
}
