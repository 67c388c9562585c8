//! Where the bytes of files rest: the same tests for every engine.

use angelia_core::clock;
use angelia_core::media::FileId;
use angelia_core::ports::Blobs;
use angelia_engines::blobs::{FolderBlobs, MemoryBlobs};
use std::time::Duration;

pub(crate) async fn put(blobs: &impl Blobs, pieces: &[&[u8]]) -> FileId {
    let blob = FileId::mint();
    let mut writer = blobs.create(&blob).await.unwrap();
    for piece in pieces {
        writer.write(piece.to_vec().into()).await.unwrap();
    }
    writer.finish().await.unwrap();
    blob
}

pub(crate) async fn get(blobs: &impl Blobs, blob: &FileId, from: u64, to: u64) -> Option<Vec<u8>> {
    let mut reader = blobs.read(blob, from, to).await.unwrap()?;
    let mut read = Vec::new();
    while let Some(piece) = reader.next().await.unwrap() {
        assert!(piece.len() <= 128 * 1024);
        read.extend(piece);
    }
    Some(read)
}

pub(crate) async fn names(blobs: &impl Blobs) -> Vec<FileId> {
    blobs.list(None, 100).await.unwrap().into_iter().map(|listing| listing.blob).collect()
}

pub(crate) async fn what_is_put_is_read_whole_and_in_parts(blobs: impl Blobs) {
    let blob = put(&blobs, &[b"one ", b"", b"two"]).await;
    assert_eq!(get(&blobs, &blob, 0, 7).await.unwrap(), b"one two");
    assert_eq!(get(&blobs, &blob, 2, 5).await.unwrap(), b"e t");
    assert_eq!(get(&blobs, &FileId::mint(), 0, 1).await, None);
    let large = vec![7; 300_000];
    let blob = put(&blobs, &[&large, &large]).await;
    assert_eq!(get(&blobs, &blob, 0, 600_000).await.unwrap().len(), 600_000);
    blobs.remove(&blob).await.unwrap();
    assert_eq!(get(&blobs, &blob, 0, 1).await, None);
    blobs.remove(&blob).await.unwrap();
}

pub(crate) async fn nobody_sees_what_is_not_finished(blobs: impl Blobs) {
    let blob = FileId::mint();
    let mut writer = blobs.create(&blob).await.unwrap();
    writer.write(b"half".to_vec().into()).await.unwrap();
    assert_eq!(get(&blobs, &blob, 0, 4).await, None);
    drop(writer);
    assert!(names(&blobs).await.is_empty());
    assert_eq!(
        blobs.sweep(clock::wall().after(Duration::from_secs(60))).await.unwrap(),
        0,
        "nothing is left"
    );
}

pub(crate) async fn a_short_object_is_not_taken_for_whole(blobs: impl Blobs) {
    let blob = put(&blobs, &[b"short"]).await;
    let longer = match blobs.read(&blob, 0, 9).await {
        Ok(Some(mut reader)) => loop {
            match reader.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        },
        Ok(None) => panic!("it is there"),
        Err(error) => Err(error),
    };
    assert!(longer.is_err());
}

pub(crate) async fn objects_are_listed_in_order_and_page_by_page(blobs: impl Blobs) {
    let mut made = Vec::new();
    for number in 0..30u8 {
        made.push(put(&blobs, &[&[number]]).await);
    }
    made.sort();
    assert_eq!(names(&blobs).await, made);
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let some = blobs.list(after.as_ref(), 7).await.unwrap();
        assert!(some.len() <= 7);
        let Some(last) = some.last() else { break };
        after = Some(last.blob.clone());
        found.extend(some.into_iter().map(|listing| listing.blob));
    }
    assert_eq!(found, made);
}

macro_rules! on_every_engine_of_blobs {
    ($($test:ident),* $(,)?) => {
        mod in_a_folder {
            $(#[tokio::test]
            async fn $test() {
                let folder = tempfile::tempdir().unwrap();
                super::$test(super::FolderBlobs::open(folder.path().join("media")).await.unwrap()).await;
            })*
        }

        mod in_memory {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::MemoryBlobs::default()).await;
            })*
        }
    };
}

on_every_engine_of_blobs!(
    what_is_put_is_read_whole_and_in_parts,
    nobody_sees_what_is_not_finished,
    a_short_object_is_not_taken_for_whole,
    objects_are_listed_in_order_and_page_by_page,
);

#[tokio::test]
async fn what_a_killed_server_left_half_written_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = FolderBlobs::open(folder.path().to_owned()).await.unwrap();
    std::fs::write(folder.path().join("unfinished").join(FileId::mint().as_str()), b"half").unwrap();
    let blob = put(&blobs, &[b"whole"]).await;
    assert_eq!(blobs.sweep(clock::wall().before(Duration::from_secs(60))).await.unwrap(), 0, "it may go on");
    assert_eq!(blobs.sweep(clock::wall().after(Duration::from_secs(60))).await.unwrap(), 1);
    assert_eq!(names(&blobs).await, [blob], "what is whole stays");
}

#[tokio::test]
async fn only_its_owner_looks_into_the_folder() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("media");
    let blobs = FolderBlobs::open(path.clone()).await.unwrap();
    let blob = put(&blobs, &[b"x"]).await;
    for folder in [path.clone(), path.join("unfinished"), path.join(&blob.as_str()[..2])] {
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{folder:?}");
    }
}
