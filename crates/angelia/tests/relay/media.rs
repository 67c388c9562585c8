//! `/relay/media`: gateways send files and fetch them, as newer ones do, and nobody else's.

use super::world::{World, credentials};
use angelia_contract::token;
use angelia_testkit::canary::files_below;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket;
use axum::body::Bytes;
use futures_util::stream;
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A picture of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89 canary";
const CANARY: &[u8] = b"canary";
const MIB: usize = 1024 * 1024;

fn bearer(gateway: &Credentials) -> String {
    token::mint(&gateway.gateway_id, &gateway.secret, socket::now(), 60)
}

impl World {
    /// Each on a connection of its own: the server ends one on which it did not read a file to its end.
    fn media(&self, method: Method, path: &str, gateway: &Credentials) -> RequestBuilder {
        let url = format!("{}/relay/media{path}", self.connector.url());
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        http.request(method, url).bearer_auth(bearer(gateway))
    }

    /// Sends a file as a gateway does; answers its id.
    async fn upload(&self, file: impl Into<Body>, name: &str, media_type: &str) -> String {
        let ask = self.media(Method::POST, "", &self.gateway);
        let ask = ask.header("Content-Type", media_type).header("X-Media-Filename", name);
        let answer = ask.body(file).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let answer: Value = answer.json().await.unwrap();
        answer["id"].as_str().unwrap_or_else(|| panic!("no id: {answer}")).to_owned()
    }

    async fn fetch(&self, id: &str, gateway: &Credentials, range: Option<&str>) -> Response {
        let mut ask = self.media(Method::GET, &format!("/{id}"), gateway);
        if let Some(range) = range {
            ask = ask.header("Range", range);
        }
        ask.send().await.unwrap()
    }
}

fn header<'a>(answer: &'a Response, name: &str) -> &'a str {
    answer.headers().get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
}

/// Every file below a folder that has these bytes in it.
fn containing(folder: &Path, needle: &[u8]) -> Vec<PathBuf> {
    let holds =
        |path: &PathBuf| std::fs::read(path).unwrap().windows(needle.len()).any(|part| part == needle);
    files_below(folder).into_iter().filter(holds).collect()
}

/// Objects there are, and what is being written.
fn blobs(world: &World) -> usize {
    files_below(&world.folder.path().join("data/media")).len()
}

#[tokio::test]
async fn a_file_comes_back_as_it_went_sealed_in_between() {
    let mut world = World::new().await;
    let id = world.upload(PNG, "Zoë's map.png", "image/png").await;
    let answer = world.fetch(&id, &world.gateway, None).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(header(&answer, "content-type"), "image/png");
    assert_eq!(header(&answer, "content-length"), PNG.len().to_string());
    assert_eq!(header(&answer, "x-content-type-options"), "nosniff");
    let disposition = header(&answer, "content-disposition").to_owned();
    assert!(disposition.starts_with("inline; filename=\""), "{disposition}");
    assert!(disposition.contains("Zo%C3%AB") && disposition.contains(".png"), "{disposition}");
    assert_eq!(answer.bytes().await.unwrap(), PNG);
    assert_eq!(containing(world.folder.path(), CANARY), Vec::<PathBuf>::new());

    world.connector.kill().await;
    world.connector.restart().await;
    assert_eq!(world.fetch(&id, &world.gateway, None).await.bytes().await.unwrap(), PNG, "it was durable");
    world.connector.command(&["key", "rotate"]).await;
    assert_eq!(world.fetch(&id, &world.gateway, None).await.bytes().await.unwrap(), PNG, "under another key");
}

#[tokio::test]
async fn a_file_is_for_one_instance_and_everybody_else_hears_the_same() {
    let world = World::new().await;
    let id = world.upload(PNG, "map.png", "image/png").await;
    let sibling = credentials(&world.connector.command(&["gateway", "create", "sibling"]).await);
    world.connector.command(&["tenant", "create", "bolt"]).await;
    let made = world.connector.command(&["gateway", "create", "--tenant", "bolt", "stranger"]).await;
    let stranger = credentials(&made);
    let mut told = Vec::new();
    for (gateway, id) in [
        (&sibling, id.as_str()),
        (&stranger, id.as_str()),
        (&world.gateway, "0123456789abcdef0123456789abcdef"),
        (&world.gateway, "..%2F..%2Fmaster.key"),
        (&world.gateway, "nonsense"),
    ] {
        let answer = world.fetch(id, gateway, None).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{id}");
        told.push(answer.text().await.unwrap());
    }
    assert!(told.iter().all(|words| *words == told[0]), "{told:?}");
    let wrong = Credentials { secret: "0".repeat(64), ..world.gateway.clone() };
    assert_eq!(world.fetch(&id, &wrong, None).await.status(), StatusCode::UNAUTHORIZED);
    let refused = world.media(Method::POST, "", &wrong).body(PNG).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let url = format!("{}/relay/media/{id}", world.connector.url());
    assert_eq!(world.http.get(url).send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    world.connector.command(&["gateway", "revoke", "gw"]).await;
    assert_eq!(world.fetch(&id, &world.gateway, None).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn parts_of_a_file_can_be_asked_for() {
    let world = World::new().await;
    let file: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    let id = world.upload(file.clone(), "data.bin", "application/octet-stream").await;
    for (range, first, last) in
        [("bytes=0-0", 0, 0), ("bytes=65535-65537", 65_535, 65_537), ("bytes=-5", 299_995, 299_999)]
    {
        let answer = world.fetch(&id, &world.gateway, Some(range)).await;
        assert_eq!(answer.status(), StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(header(&answer, "content-range"), format!("bytes {first}-{last}/300000"));
        assert_eq!(answer.bytes().await.unwrap(), file[first..=last], "{range}");
    }
    let rest = world.fetch(&id, &world.gateway, Some("bytes=100000-")).await;
    assert_eq!(rest.bytes().await.unwrap(), file[100_000..]);
    let past = world.fetch(&id, &world.gateway, Some("bytes=300000-")).await;
    assert_eq!(past.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(header(&past, "content-range"), "bytes */300000");
}

#[tokio::test]
async fn what_is_too_large_empty_or_broken_off_leaves_nothing() {
    let world = World::new().await;
    let largest = vec![7; 25 * MIB];
    let id = world.upload(largest.clone(), "large.bin", "application/octet-stream").await;
    let back = world.fetch(&id, &world.gateway, None).await.bytes().await.unwrap();
    assert!(back == largest, "{} bytes", back.len());
    assert_eq!(blobs(&world), 1);
    let again = world.upload(largest.clone(), "same.bin", "application/octet-stream").await;
    assert!(again != id && blobs(&world) == 1, "the same bytes are there once");

    // One that does not say how long it is is read up to its bound.
    let pieces = (0..26).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![1; MIB])));
    let endless = Body::wrap_stream(stream::iter(pieces));
    for body in [Body::from(vec![1; 25 * MIB + 1]), endless] {
        // The server may hang up while the rest is still on its way.
        if let Ok(answer) = world.media(Method::POST, "", &world.gateway).body(body).send().await {
            assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
            assert!(answer.text().await.unwrap().contains("25 MiB"));
        }
    }
    let empty = world.media(Method::POST, "", &world.gateway).body("").send().await.unwrap();
    assert_eq!(empty.status(), StatusCode::BAD_REQUEST);
    let broken = stream::iter([Ok(Bytes::from(vec![1; MIB])), Err(std::io::Error::other("gone"))]);
    let body = Body::wrap_stream(broken);
    assert!(world.media(Method::POST, "", &world.gateway).body(body).send().await.is_err());
    let only_one = async || blobs(&world) == 1;
    angelia_testkit::process::until("nothing is left", Duration::from_secs(20), only_one).await;
}

/// Makes all files look two hours older.
fn set_back(world: &World) {
    let then = std::time::UNIX_EPOCH + Duration::from_secs(socket::now() - 2 * 3_600);
    for path in files_below(&world.folder.path().join("data/media")) {
        std::fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn what_a_death_left_between_bytes_and_row_is_swept_and_what_has_a_row_stays() {
    let mut world = World::new().await;
    let id = world.upload(PNG, "map.png", "image/png").await;
    world.connector.stop(Duration::from_secs(10)).await;
    world.connector.restart_with(&[("ANGELIA_FAIL", "file_written@1")]).await;
    let lost = world.media(Method::POST, "", &world.gateway).body("another").send().await;
    assert!(lost.is_err(), "the server ended: {lost:?}");
    assert_eq!(blobs(&world), 2);
    let half = world.folder.path().join("data/media/unfinished/0123456789abcdef0123456789abcdef");
    std::fs::write(half, b"half").unwrap();
    world.connector.kill().await;
    world.connector.restart().await;
    assert_eq!(blobs(&world), 3, "they may be on their way");
    world.connector.kill().await;
    set_back(&world);
    world.connector.restart().await;
    let swept = async || blobs(&world) == 1;
    angelia_testkit::process::until("the rest is swept", Duration::from_secs(20), swept).await;
    assert_eq!(world.fetch(&id, &world.gateway, None).await.bytes().await.unwrap(), PNG);
}

#[tokio::test]
async fn the_files_of_a_removed_tenant_go_with_it() {
    let mut world = World::new().await;
    world.connector.command(&["tenant", "create", "bolt"]).await;
    let made = world.connector.command(&["gateway", "create", "--tenant", "bolt", "other"]).await;
    let other = credentials(&made);
    let sent = world.media(Method::POST, "", &other).body("a file").send().await.unwrap();
    assert_eq!(sent.status(), StatusCode::OK);
    let kept = world.upload(PNG, "map.png", "image/png").await;
    world.connector.command(&["tenant", "remove", "bolt", "--confirm", "bolt"]).await;
    world.connector.kill().await;
    set_back(&world);
    world.connector.restart().await;
    let gone = async || blobs(&world) == 1;
    angelia_testkit::process::until("its bytes are gone", Duration::from_secs(20), gone).await;
    assert_eq!(world.fetch(&kept, &world.gateway, None).await.status(), StatusCode::OK);
}
