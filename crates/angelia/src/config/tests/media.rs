//! Where the bytes of files rest.

use super::*;
use angelia_core::media::TENANT_BYTES;

const KEY: &str = "access_key_id = \"AKIA1\"\nsecret_access_key = { env = \"ANGELIA_MEDIA_SECRET\" }\n";

#[test]
fn a_bucket_is_named_by_its_url_and_asked_with_a_key() {
    assert_eq!(Config::default().media.bucket(Path::new("x")).unwrap().map(drop), None);
    let secret = File::new("media-secret", "hunter2\n");
    let text = format!(
        "[media]\nurl = \"s3://files/of/angelia/\"\nendpoint = \"http://10.0.0.7:9000\"\nregion = \"eu-west-3\"\n\
         access_key_id = \"AKIA1\"\nsecret_access_key = {{ file = {:?} }}\ntenant_bytes = \"5GiB\"\n\
         source_networks = [\"10.1.0.0/16\"]",
        secret.0.display()
    );
    let config = load("media", &text, &[]).unwrap();
    let bucket = config.media.bucket(Path::new("data/media")).unwrap().unwrap();
    assert_eq!((&*bucket.bucket, &*bucket.prefix), ("files", "of/angelia/"));
    assert_eq!((&*bucket.region, &*bucket.access_key_id), ("eu-west-3", "AKIA1"));
    assert_eq!(bucket.endpoint.as_ref().unwrap().as_str(), "http://10.0.0.7:9000/");
    assert_eq!(bucket.secret_access_key.expose(), "hunter2");
    assert_eq!(config.media.source_networks, ["10.1.0.0/16".parse().unwrap()]);
    assert_eq!((config.media.tenant_bytes, TENANT_BYTES), (5 << 30, 1 << 30));
    let printed = config.print();
    assert!(printed.contains("\nurl = \"s3://files/of/angelia\"\n"), "{printed}");
    assert_eq!(load("media-printed", &printed, &[]).unwrap().media, config.media);
    for text in [printed, format!("{config:?}"), format!("{bucket:?}")] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn the_environment_names_it_too() {
    let env = [
        ("ANGELIA_MEDIA__URL", "s3://files"),
        ("ANGELIA_MEDIA__ACCESS_KEY_ID", "AKIA1"),
        ("ANGELIA_MEDIA__SECRET_ACCESS_KEY__ENV", "ANGELIA_MEDIA_URL"),
        // It is a secret of ours, not a setting that was misspelt.
        ("ANGELIA_MEDIA_URL", "hunter2"),
    ];
    let told = from(None, &env).unwrap().media.bucket(Path::new("x")).unwrap_err().to_string();
    assert!(
        told.starts_with("media.secret_access_key: the environment variable ANGELIA_MEDIA_URL"),
        "{told}"
    );
}

#[test]
fn what_is_wrong_is_told_without_what_may_be_secret() {
    let one = |lines: &str| {
        let told = faults(load("media-bad", &format!("[media]\n{lines}"), &[])).join("\n");
        assert!(!told.contains("hunter2"), "{told}");
        told
    };
    for url in [
        "files",
        "https://files",
        "s3://",
        "s3://x",
        "s3://AKIA:hunter2@files",
        "s3://files/a//b",
        "s3://files/..",
    ] {
        let told = one(&format!("url = {url:?}\n{KEY}"));
        assert!(told.starts_with(":2: `media.url` is not a bucket; write something like"), "{url}: {told}");
    }
    for endpoint in ["10.0.0.7:9000", "http://u:hunter2@host", "ftp://host", "http://host/?x=hunter2"] {
        let told = one(&format!("url = \"s3://files\"\nendpoint = {endpoint:?}\n{KEY}"));
        assert!(told.starts_with(":3: `media.endpoint` is not the address of a server ("), "{told}");
    }
    let told = one("url = \"s3://files\"\naccess_key_id = \"AKIA1\"");
    assert!(told.starts_with("`media.secret_access_key` is missing: a bucket is asked with a key"), "{told}");
    let told = one("endpoint = \"http://host\"");
    assert!(told.starts_with("`media.endpoint` is for a bucket, and media.url names none"), "{told}");
    let told = one(&KEY.replace("{ env = \"ANGELIA_MEDIA_SECRET\" }", "\"hunter2\""));
    assert!(told.contains("`media.secret_access_key` is a secret and must be a reference"), "{told}");
    let told = one("access_key_id = \"hunter2/with+signs\"");
    assert!(told.starts_with(":2: `media.access_key_id` must be one word"), "{told}");
    let told = one("tenant_bytes = \"1MiB\"");
    assert!(told.starts_with(":2: `media.tenant_bytes` must be at least 25MiB: one file"), "{told}");
}
