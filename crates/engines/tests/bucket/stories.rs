//! What is a bucket's alone.

use super::blobs;
use super::stage::{Stage, answering, breaking_off};
use angelia_core::clock;
use angelia_core::error::Kind;
use angelia_core::media::FileId;
use angelia_core::ports::Blobs;
use angelia_core::secret::Secret;
use angelia_engines::blobs::BucketBlobs;
use angelia_services::S3;
use std::time::Duration;

macro_rules! in_a_bucket {
    ($($test:ident),* $(,)?) => {
        mod in_a_bucket {
            $(#[tokio::test]
            async fn $test() {
                let stage = super::Stage::new();
                super::blobs::$test(stage.blobs().await).await;
                assert_eq!(stage.lying(), 0, "nothing is left on this machine");
            })*
        }
    };
}

in_a_bucket!(
    what_is_put_is_read_whole_and_in_parts,
    nobody_sees_what_is_not_finished,
    a_short_object_is_not_taken_for_whole,
    objects_are_listed_in_order_and_page_by_page,
);

#[tokio::test]
async fn the_largest_file_comes_back_byte_for_byte_and_another_client_sees_it() {
    let stage = Stage::new();
    let blobs = stage.blobs().await;
    let large: Vec<u8> = (0..25 * 1024 * 1024_u32).map(|at| (at % 251) as u8).collect();
    let pieces: Vec<&[u8]> = large.chunks(65_552).collect();
    let blob = blobs::put(&blobs, &pieces).await;
    assert_eq!(stage.seen(), [(blob.to_string(), large.len() as u64)]);
    assert!(blobs::get(&blobs, &blob, 0, large.len() as u64).await.unwrap() == large);
    let part = blobs::get(&blobs, &blob, 131_071, 20_000_003).await.unwrap();
    assert!(part == large[131_071..20_000_003]);
    let listed = blobs.list(None, 5).await.unwrap();
    let now = clock::wall();
    let is_recent = |at| now.before(Duration::from_secs(120)) < at && at < now.after(Duration::from_secs(5));
    assert!(listed.len() == 1 && is_recent(listed[0].at), "{listed:?}");
}

#[tokio::test]
async fn what_else_is_in_the_bucket_is_left_alone() {
    let mut stage = Stage::new();
    let prefix = stage.options.prefix.clone();
    let blobs = stage.blobs().await;
    let mut ours = [blobs::put(&blobs, &[b"one"]).await, blobs::put(&blobs, &[b"two"]).await];
    ours.sort();
    // Of a prefix below ours, and of one that begins with ours.
    for other in ["0/", "more"] {
        stage.options.prefix = format!("{prefix}{other}");
        blobs::put(&stage.blobs().await, &[b"another's"]).await;
    }
    assert_eq!(blobs::names(&blobs).await, ours);
    assert_eq!(blobs.list(None, 1).await.unwrap()[0].blob, ours[0], "a page of strangers is passed over");
}

#[tokio::test]
async fn an_upload_that_is_broken_off_leaves_nothing_in_the_bucket() {
    let mut stage = Stage::new();
    let port = breaking_off(stage.s3.port(), 100_000).await;
    stage.options.endpoint = Some(format!("http://127.0.0.1:{port}").parse().unwrap());
    let blobs = stage.blobs().await;
    let mut writer = blobs.create(&FileId::mint()).await.unwrap();
    for _ in 0..20 {
        writer.write(vec![7; 64 * 1024].into()).await.unwrap();
    }
    assert_eq!(stage.lying(), 0, "not even while it is written has it a name");
    let error = writer.finish().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.to_string().starts_with("could not keep a file in the bucket: "), "{error}");
    assert_eq!((stage.seen(), stage.lying()), (Vec::new(), 0));
    let small = blobs::put(&blobs, &[b"what is smaller passes"]).await;
    assert_eq!(stage.seen(), [(small.to_string(), 22)]);
}

#[tokio::test]
async fn whoever_gives_up_while_it_is_sent_leaves_nothing_in_the_bucket() {
    let stage = Stage::new();
    let s3 = S3::start().unwrap();
    let mut options = stage.options.clone();
    options.endpoint = Some(s3.endpoint().parse().unwrap());
    options.access_key_id = s3.access_key_id().into();
    options.secret_access_key = Secret::new(s3.secret_access_key());
    let blobs = BucketBlobs::open(options).await.unwrap();
    let mut writer = blobs.create(&FileId::mint()).await.unwrap();
    for _ in 0..200 {
        writer.write(vec![7; 64 * 1024].into()).await.unwrap();
    }
    s3.pause().unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(500), writer.finish()).await;
    assert!(given_up.is_err(), "nobody answers");
    s3.resume().unwrap();
    assert_eq!(s3.objects().unwrap(), []);
}

#[tokio::test]
async fn a_bucket_that_cannot_be_used_is_told_at_once_with_what_to_do() {
    let stage = Stage::new();
    let right = || stage.options.clone();
    let mut cases = Vec::new();
    let mut options = right();
    options.bucket = S3::MISSING.into();
    cases.push((options, "there is no bucket missing at 127.0.0.1:"));
    let mut options = right();
    options.bucket = "somebodys".into();
    cases.push((
        options,
        "refuses it (403 AccessDenied): the key needs s3:ListBucket on the bucket somebodys",
    ));
    let mut options = right();
    options.access_key_id = "AKIAAAAAAAAAAAAAAAAA".into();
    cases.push((options, "does not know the key of media.access_key_id"));
    let mut options = right();
    options.secret_access_key = Secret::new("hunter2");
    cases.push((options, "media.secret_access_key does not fit media.access_key_id"));
    let mut options = right();
    // A port on which nobody can listen.
    options.endpoint = Some("http://127.0.0.1:1".parse().unwrap());
    cases.push((options, "127.0.0.1:1 does not answer (Connection refused"));
    for (options, next) in cases {
        let error = BucketBlobs::open(options).await.unwrap_err();
        let told = format!("{error} {error:?}");
        assert_eq!(error.kind(), Kind::Unavailable);
        assert!(
            told.starts_with("could not look into the bucket of files: ") && told.contains(next),
            "{told}"
        );
        for secret in ["hunter2", stage.s3.secret_access_key(), stage.s3.access_key_id(), "Signature="] {
            assert!(!told.contains(secret), "{told}");
        }
    }
    let shown = format!("{:?} {:?}", right(), stage.blobs().await);
    assert!(!shown.contains(stage.s3.secret_access_key()), "{shown}");
}

#[tokio::test]
async fn what_a_killed_server_left_on_its_disk_is_swept() {
    let stage = Stage::new();
    let blobs = stage.blobs().await;
    std::fs::write(stage.folder.path().join("unfinished").join(FileId::mint().as_str()), b"").unwrap();
    let blob = blobs::put(&blobs, &[b"whole"]).await;
    assert_eq!(blobs.sweep(clock::wall().before(Duration::from_secs(60))).await.unwrap(), 0, "it may go on");
    assert_eq!(blobs.sweep(clock::wall().after(Duration::from_secs(60))).await.unwrap(), 1);
    assert_eq!((blobs::names(&blobs).await, stage.lying()), (vec![blob], 0));
}

#[tokio::test]
async fn what_cannot_be_done_now_is_tried_again_with_its_whole_length() {
    const EMPTY: &str = "200 <ListBucketResult></ListBucketResult>";
    let mut stage = Stage::new();
    let busy = "503 <Error><Code>SlowDown</Code></Error>";
    let (port, asked) = answering(vec![EMPTY, busy, "200 ", busy, busy, busy]).await;
    stage.options.endpoint = Some(format!("http://127.0.0.1:{port}").parse().unwrap());
    let blobs = stage.blobs().await;
    let blob = blobs::put(&blobs, &[&[7; 30_000]]).await;
    let error = blobs.remove(&blob).await.unwrap_err();
    assert!(error.to_string().contains("answers 503 SlowDown"), "{error}");
    let asked = asked.await.unwrap();
    assert_eq!(asked.len(), 6, "three times at the most");
    for head in &asked[1..3] {
        assert!(head.starts_with(&format!("put /angelia/{}{blob} ", stage.options.prefix)), "{head}");
        assert!(
            head.contains("\r\ncontent-length: 30000\r\n") && !head.contains("transfer-encoding"),
            "{head}"
        );
        assert!(head.contains("\r\nauthorization: aws4-hmac-sha256 credential="), "{head}");
        assert!(!head.contains(&stage.s3.secret_access_key().to_lowercase()), "{head}");
    }
}
