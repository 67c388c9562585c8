//! Files in the records: whose, for whom, until when, and how many.

use angelia_core::error::Kind;
use angelia_core::inbox::InstanceId;
use angelia_core::media::{
    FileId, Handed, Holder, KEPT_FOR, MediaStore, NewFile, TENANT_BYTES, TENANT_FILES, TenantFiles,
};
use angelia_core::records::Records;
use std::time::Duration;

fn new(tenant: &str, instance: i64, hash: &str, size: u64) -> NewFile {
    NewFile {
        file: FileId::mint(),
        tenant: tenant.into(),
        holder: Holder::Instance(InstanceId(instance)),
        blob: FileId::mint(),
        sealed: b"sealed".to_vec(),
        hash: hash.into(),
        size,
        name: "map.png".into(),
        media_type: "image/png".into(),
        tenant_files: TENANT_FILES,
        tenant_bytes: TENANT_BYTES,
        kept_for: KEPT_FOR,
    }
}

async fn a_file_is_there_for_whom_it_was_meant(records: &(impl Records + ?Sized)) {
    let file = new("acme", 1, "h1", 100);
    let stored = records.keep_file(file.clone()).await.unwrap();
    assert!(!stored.known);
    let kept = records.use_file(&stored.file, &file.holder).await.unwrap().unwrap();
    assert_eq!((kept.blob, kept.size, &*kept.name), (file.blob, 100, "map.png"));
    assert_eq!(
        (&*kept.tenant, &*kept.media_type, &*kept.sealed),
        ("acme", "image/png", b"sealed".as_slice())
    );
    for other in [Holder::Instance(InstanceId(2)), Holder::Room("1".into())] {
        assert_eq!(records.use_file(&stored.file, &other).await.unwrap(), None, "{other}");
    }
    assert_eq!(records.use_file(&FileId::mint(), &file.holder).await.unwrap(), None);
}

async fn the_same_bytes_are_kept_once_within_a_tenant(records: &(impl Records + ?Sized)) {
    let (first, again) = (new("acme", 1, "h1", 100), new("acme", 2, "h1", 100));
    let one = records.keep_file(first.clone()).await.unwrap();
    let two = records.keep_file(again.clone()).await.unwrap();
    assert!(two.known && one.file != two.file, "a name of its own: {two:?}");
    let kept = records.use_file(&two.file, &again.holder).await.unwrap().unwrap();
    assert_eq!(kept.blob, first.blob);
    assert_eq!(records.use_file(&one.file, &again.holder).await.unwrap(), None, "a name is for one");
    assert!(!records.keep_file(new("bolt", 3, "h1", 100)).await.unwrap().known, "of another tenant");
    assert_eq!(records.tenant_files("acme").await.unwrap(), TenantFiles { files: 2, bytes: 100 });
    let unknown = FileId::mint();
    let asked = vec![first.blob, unknown.clone(), again.blob.clone()];
    assert_eq!(records.unknown_blobs(asked).await.unwrap(), [unknown, again.blob]);
}

async fn a_tenant_has_no_more_than_it_may(records: &(impl Records + ?Sized)) {
    let bounded = |hash: &str, size| NewFile { tenant_bytes: 250, ..new("acme", 1, hash, size) };
    records.keep_file(bounded("h1", 100)).await.unwrap();
    records.keep_file(bounded("h2", 150)).await.unwrap();
    let full = records.keep_file(bounded("h3", 1)).await.unwrap_err();
    assert!(full.kind() == Kind::TooMany && full.to_string().contains("last use"), "{full}");
    assert!(records.keep_file(bounded("h2", 150)).await.unwrap().known, "what is there takes no more");
    assert_eq!(records.tenant_files("acme").await.unwrap(), TenantFiles { files: 3, bytes: 250 });
    records.keep_file(NewFile { tenant_bytes: 250, ..new("bolt", 2, "h3", 1) }).await.unwrap();
}

/// As for those whom nobody invited: they leave the rest to the others.
async fn who_may_have_a_part_takes_no_more_than_that(records: &(impl Records + ?Sized)) {
    let part = |hash: &str| NewFile { tenant_files: 2, ..new("acme", 1, hash, 1) };
    records.keep_file(part("h1")).await.unwrap();
    records.keep_file(part("h2")).await.unwrap();
    for hash in ["h3", "h1"] {
        let full = records.keep_file(part(hash)).await.unwrap_err();
        assert_eq!(full.kind(), Kind::TooMany, "known bytes are a file as well: {full}");
    }
    records.keep_file(new("acme", 1, "h3", 1)).await.unwrap();
}

async fn what_is_not_past_its_time_stays(records: &(impl Records + ?Sized)) {
    let file = new("acme", 1, "h1", 100);
    let stored = records.keep_file(file.clone()).await.unwrap();
    let expired = records.expire_files().await.unwrap();
    assert!(expired.blobs.is_empty() && !expired.more, "{expired:?}");
    assert!(records.use_file(&stored.file, &file.holder).await.unwrap().is_some());
}

async fn a_file_is_handed_on_within_its_tenant(records: &(impl Records + ?Sized)) {
    let said = Holder::Room("lab".into());
    let in_room = NewFile { holder: said.clone(), ..new("acme", 1, "h1", 100) };
    let sent = records.keep_file(in_room).await.unwrap().file;
    let handed = |tenant: &str, from: &Holder, named: &str| Handed {
        file: sent.clone(),
        from: from.clone(),
        tenant: tenant.into(),
        to: Holder::Instance(InstanceId(7)),
        named: FileId::named(&[named]),
        called: Some("plan.png".into()),
        kept_for: KEPT_FOR,
    };
    let kept = records.hand_on(handed("acme", &said, "one")).await.unwrap().unwrap();
    assert_eq!((&*kept.name, kept.size), ("plan.png", 100));
    let again = records.hand_on(handed("acme", &said, "one")).await.unwrap().unwrap();
    assert_eq!(again.blob, kept.blob, "handed on again it is the same");
    let theirs = records.use_file(&FileId::named(&["one"]), &Holder::Instance(InstanceId(7))).await.unwrap();
    assert_eq!(theirs.unwrap().name, "plan.png");
    assert_eq!(records.use_file(&sent, &said).await.unwrap().unwrap().name, "map.png", "as it was");
    assert_eq!(records.tenant_files("acme").await.unwrap(), TenantFiles { files: 2, bytes: 100 });
    for (tenant, from) in [("bolt", said), ("acme", Holder::Room("den".into()))] {
        assert_eq!(records.hand_on(handed(tenant, &from, "two")).await.unwrap(), None, "{tenant} {from}");
    }
    assert_eq!(records.tenant_files("bolt").await.unwrap(), TenantFiles::default());
}

/// Upkeep comes now and then: what is past its time counts until it was there.
async fn what_is_past_its_time_and_handed_on_again_counts_once(records: &(impl Records + ?Sized)) {
    let file = new("acme", 1, "h1", 100);
    records.keep_file(file.clone()).await.unwrap();
    let soon = Duration::from_millis(100);
    let handed = Handed {
        file: file.file,
        from: file.holder,
        tenant: "acme".into(),
        to: Holder::Room("lab".into()),
        named: FileId::named(&["one"]),
        called: None,
        kept_for: soon,
    };
    records.hand_on(handed.clone()).await.unwrap().unwrap();
    // Fixed pause: until it is past its time.
    tokio::time::sleep(2 * soon).await;
    assert_eq!(records.use_file(&handed.named, &handed.to).await.unwrap(), None);
    assert!(records.hand_on(handed).await.unwrap().is_some());
    assert_eq!(records.tenant_files("acme").await.unwrap(), TenantFiles { files: 2, bytes: 100 });
}

async fn some_files_are_kept_for_longer(records: &(impl Records + ?Sized)) {
    let soon = Duration::from_millis(300);
    let short = |hash: &str| NewFile { kept_for: soon, ..new("acme", 1, hash, 100) };
    let (named, other) = (short("h1"), short("h2"));
    records.keep_file(named.clone()).await.unwrap();
    records.keep_file(other.clone()).await.unwrap();
    let (ids, holder) = (vec![named.file.clone(), FileId::mint()], named.holder.clone());
    let kept = records.keep_longer(ids, holder.clone(), KEPT_FOR).await.unwrap();
    assert!(kept[0].is_some() && kept[1].is_none(), "in their order: {kept:?}");
    // Fixed pause: until the other one is past its time.
    tokio::time::sleep(2 * soon).await;
    assert!(records.use_file(&named.file, &holder).await.unwrap().is_some());
    assert_eq!(records.use_file(&other.file, &holder).await.unwrap(), None);
    assert_eq!(records.expire_files().await.unwrap().blobs, [other.blob]);
}

on_every_engine!(
    a_file_is_handed_on_within_its_tenant,
    what_is_past_its_time_and_handed_on_again_counts_once,
    some_files_are_kept_for_longer,
    a_file_is_there_for_whom_it_was_meant,
    the_same_bytes_are_kept_once_within_a_tenant,
    a_tenant_has_no_more_than_it_may,
    who_may_have_a_part_takes_no_more_than_that,
    what_is_not_past_its_time_stays,
);

mod later {
    use super::*;
    use angelia_core::clock::{UnixMillis, wall};
    use angelia_core::media::KEPT_FOR;
    use angelia_engines::memory::MemoryRecords;
    use std::sync::atomic::{AtomicI64, Ordering};

    static AHEAD: AtomicI64 = AtomicI64::new(0);

    fn clock() -> UnixMillis {
        UnixMillis(wall().0 + AHEAD.load(Ordering::SeqCst))
    }

    /// The only test that moves this clock.
    #[tokio::test]
    async fn a_file_goes_a_day_after_its_last_use_and_its_bytes_with_the_last_of_its_names() {
        let records = MemoryRecords::new(clock);
        let day = i64::try_from(KEPT_FOR.as_millis()).unwrap();
        let (first, again) = (new("acme", 1, "h1", 100), new("acme", 2, "h1", 100));
        let one = records.keep_file(first.clone()).await.unwrap();
        let two = records.keep_file(again.clone()).await.unwrap();
        AHEAD.store(day / 2, Ordering::SeqCst);
        assert!(records.use_file(&two.file, &again.holder).await.unwrap().is_some(), "used at noon");
        AHEAD.store(day + 1_000, Ordering::SeqCst);
        assert_eq!(records.use_file(&one.file, &first.holder).await.unwrap(), None, "past its time");
        assert!(records.expire_files().await.unwrap().blobs.is_empty(), "another name leads there");
        assert!(records.use_file(&two.file, &again.holder).await.unwrap().is_some());
        assert_eq!(records.tenant_files("acme").await.unwrap(), TenantFiles { files: 1, bytes: 100 });
        AHEAD.store(3 * day, Ordering::SeqCst);
        assert_eq!(records.expire_files().await.unwrap().blobs, [first.blob]);
        assert_eq!(records.tenant_files("acme").await.unwrap(), TenantFiles::default());
    }
}
