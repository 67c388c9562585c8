//! A disk that is full: who may still write, and how it gets free again.

use super::directory::bot;
use super::identity::{by, gateway};
use super::open::{Opened, entry};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::Kind;
use angelia_core::inbox::{InstanceId, Quota};
use angelia_core::store::{AuditStore, IdentityStore, Intake, NewEntry, NewQuarantined, StreamStore};
use futures_util::future::join_all;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A small disk over a folder, until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` where that is not permitted: then nothing is shown, which is a failure if
    /// `ANGELIA_TEST_MUST_MOUNT` is set.
    fn over(folder: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(folder).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(folder.to_owned()));
        }
        assert!(std::env::var_os("ANGELIA_TEST_MUST_MOUNT").is_none(), "mounting is not permitted");
        println!("NOT SHOWN: mounting is not permitted");
        None
    }

    /// Leaves so many bytes.
    fn fill(&self, but_for: u64) {
        let disk = rustix::fs::statvfs(&self.0).unwrap();
        let free = (disk.f_bavail * disk.f_frsize).saturating_sub(but_for);
        let mut ballast = fs::File::options().create(true).append(true).open(self.0.join("ballast")).unwrap();
        ballast.write_all(&vec![0x5a; usize::try_from(free).unwrap()]).unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A store on a disk of 64 MiB, with a quota that is larger.
fn on_a_small_disk() -> Option<(Opened, Mounted)> {
    let mut disk = None;
    let quota = Quota { entries: 1_000_000, bytes: 1 << 40, tenant_bytes: 1 << 40, ..Quota::default() };
    let opened = Opened::with(quota).closed(|folder| disk = Mounted::over(folder));
    disk.map(|disk| (opened, disk))
}

/// Appends what was received so long ago, until the disk is full; how many.
async fn append_until_full(opened: &Opened, instance: InstanceId, received_at: UnixMillis) -> usize {
    let (mut written, began) = (0, clock::mono());
    loop {
        let body = "x".repeat(20_000).into();
        let new = NewEntry { body, received_at, ..entry(instance, &format!("m{written}")) };
        match opened.store.append(new).await {
            Ok(_) => written += 1,
            Err(error) => {
                assert!(error.to_string().contains("full"), "{error}");
                return written;
            }
        }
        assert!(clock::mono().since(began) < Duration::from_secs(60), "{written} writes on a full disk");
    }
}

/// What is past its time goes although nobody else may write: nothing else would free
/// the disk by itself.
#[tokio::test]
async fn what_is_past_its_time_goes_on_a_full_disk() {
    let Some((opened, disk)) = on_a_small_disk() else { return };
    let instance = opened.instance("gw").await;
    opened.store.tend().await.unwrap();
    let long_ago = clock::wall().before(Quota::default().age * 2);
    let body = "x".repeat(20_000);
    let early = (0..1_000).map(|n| {
        let body = body.clone().into();
        opened.store.append(NewEntry {
            body,
            received_at: long_ago,
            ..entry(instance, &format!("early-{n}"))
        })
    });
    assert!(join_all(early).await.iter().all(Result::is_ok), "much more than is free in the end");
    opened.store.tend().await.unwrap();
    disk.fill(6 << 20);
    let written = 1_000 + append_until_full(&opened, instance, long_ago).await;
    assert!(opened.store.disk().await.unwrap().short);
    opened.store.keep_clock().await.expect("the time by which they go is noted first");
    let pruned = opened.store.prune().await.unwrap();
    assert_eq!(pruned.overaged, written as u64);
    opened.store.tend().await.unwrap();
    opened.store.probe().await.expect("there is space again");
    assert!(!opened.store.disk().await.unwrap().short);
}

/// The operator frees the disk by what nobody can read: in steps that each have room.
#[tokio::test]
async fn the_quarantine_is_purged_on_a_full_disk() {
    const UNREADABLE: usize = 900;
    let Some((opened, disk)) = on_a_small_disk() else { return };
    let instance = opened.instance("gw").await;
    opened.store.tend().await.unwrap();
    for n in 0..UNREADABLE {
        let sealed = vec![7; 20_000].into();
        let new = NewQuarantined { what: format!("update {n}"), why: "?".into(), sealed, at: clock::wall() };
        let intake = Intake { quarantined: Some(new), ..Intake::default() };
        opened.store.take_in(&bot(), None, vec![intake]).await.unwrap();
    }
    opened.store.tend().await.unwrap();
    disk.fill(4 << 20);
    append_until_full(&opened, instance, clock::wall()).await;
    disk.fill(0);
    assert!(opened.store.disk().await.unwrap().short);
    assert_eq!(opened.store.purge_quarantine(None, &by()).await.unwrap(), UNREADABLE as u64);
    assert!(opened.store.quarantine(None, 10).await.unwrap().is_empty());
    let steps = opened.store.audit_lines(None, 1_000).await.unwrap();
    let steps = steps.iter().filter(|line| line.action == "quarantine.purge").count();
    assert!(steps > 10, "{steps} steps, each as large as there was room for");
    opened.store.tend().await.unwrap();
    opened.store.probe().await.expect("there is space again");
}

/// A clock that leapt keeps everything: its word has to be heard on a full disk.
#[tokio::test]
async fn the_clock_is_accepted_on_a_full_disk() {
    let Some((opened, disk)) = on_a_small_disk() else { return };
    let instance = opened.instance("gw").await;
    opened.store.tend().await.unwrap();
    disk.fill(4 << 20);
    append_until_full(&opened, instance, clock::wall()).await;
    disk.fill(0);
    assert!(opened.store.disk().await.unwrap().short);
    opened.store.accept_clock(&by()).await.unwrap();
}

/// What was given up for the operator is not everybody's after a restart.
#[tokio::test]
async fn a_restart_hands_the_reserve_to_nobody() {
    let Some((opened, disk)) = on_a_small_disk() else { return };
    let instance = opened.instance("gw").await;
    opened.instance("rogue").await;
    opened.store.tend().await.unwrap();
    disk.fill(4 << 20);
    append_until_full(&opened, instance, clock::wall()).await;
    disk.fill(0);
    opened.store.revoke_gateway("acme", "rogue", &by()).await.unwrap();
    let given_up = opened.store.disk().await.unwrap();
    assert!(given_up.short && given_up.disk.reserve == 0 && given_up.disk.free > 6 << 20, "{given_up:?}");
    let opened = opened.reopen();
    assert_eq!(
        append_until_full(&opened, instance, clock::wall()).await,
        0,
        "what is free is the operator's"
    );
    opened.store.revoke_gateway("acme", "gw", &by()).await.expect("who may use it");
    fs::remove_file(disk.0.join("ballast")).unwrap();
    opened.store.probe().await.unwrap();
    opened.store.tend().await.unwrap();
    let renewed = opened.store.disk().await.unwrap();
    assert!(!renewed.short && renewed.disk.reserve == renewed.reserve_wanted, "{renewed:?}");
}

/// The writes of a tenant fill the disk, as fast as they can: what is in the log then
/// still fits, and the tenant can be removed.
#[tokio::test]
async fn a_tenant_that_filled_the_disk_itself_is_removed() {
    let Some((opened, _disk)) = on_a_small_disk() else { return };
    let store = &opened.store;
    let instance = opened.instance("gw").await;
    store.create_tenant("other", None, &by()).await.unwrap();
    let other = store.create_gateway(gateway("other", "gw"), &by()).await.unwrap().instance;
    store.tend().await.unwrap();
    assert_eq!(store.disk().await.unwrap().disk.reserve, 8 << 20);
    let append = |instance, id: String, bytes: usize| {
        let tenant = if instance == other { "other" } else { "acme" };
        let body = "x".repeat(bytes).into();
        store.append(NewEntry { tenant: tenant.into(), body, ..entry(instance, &id) })
    };
    // What a large write leaves, smaller ones take, also when the log was emptied once more.
    let mut written = 0;
    for size in [1 << 20, 100_000, 10_000] {
        let mut refused = clock::mono();
        while clock::mono().since(refused) < Duration::from_millis(1_500) {
            let [a, b, c] = [0, 1, 2].map(|part| append(instance, format!("m{written}-{part}"), size));
            let (a, b, c) = tokio::join!(a, b, c);
            match a.and(b).and(c) {
                Ok(_) => (written, refused) = (written + 3 * size, clock::mono()),
                Err(error) => assert!(error.to_string().contains("full"), "{error}"),
            }
        }
    }
    assert!(written > 24 << 20, "{written} bytes of 64 MiB were written");
    let full = store.disk().await.unwrap();
    assert!(full.short && !store.healthy() && full.disk.reserve == 8 << 20, "{full:?}");
    assert_eq!(append(other, "o1".into(), 10).await.unwrap_err().kind(), Kind::Unavailable);

    store.revoke_gateway("acme", "gw", &by()).await.unwrap();
    store.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    store.tend().await.unwrap();
    store.probe().await.unwrap();
    store.tend().await.unwrap();
    let freed = store.disk().await.unwrap();
    assert!(!freed.short && freed.database < 8 << 20 && freed.disk.reserve == 8 << 20, "{freed:?}");
    append(other, "o1".into(), 10).await.unwrap();
}
