//! Files of a cluster rest in a bucket that all nodes share.

use super::stage::{SOON, Stage, binary, folder, setup};
use angelia_contract::token;
use angelia_services::S3;
use angelia_testkit::process::output;
use angelia_testkit::socket;
use reqwest::{Method, RequestBuilder, StatusCode};
use std::path::Path;
use tokio::process::Command;

/// The lines that name the bucket, below a prefix of its own.
fn bucket(s3: &S3, folder: &Path, prefix: &str) -> String {
    let secret = folder.join("bucket-secret");
    std::fs::write(&secret, s3.secret_access_key()).unwrap();
    format!(
        "[media]\nurl = \"s3://{}/{prefix}\"\nendpoint = {:?}\naccess_key_id = {:?}\n\
         secret_access_key = {{ file = {:?} }}\n",
        S3::BUCKET,
        s3.endpoint(),
        s3.access_key_id(),
        secret.display().to_string()
    )
}

fn media(stage: &Stage, node: usize, method: Method, way: &str) -> RequestBuilder {
    let bearer = token::mint(&stage.gateway.gateway_id, &stage.gateway.secret, socket::now(), 60);
    let url = format!("{}/relay/media{way}", stage.cluster[node].url());
    stage.http.request(method, url).bearer_auth(bearer)
}

async fn upload(stage: &Stage, node: usize, file: Vec<u8>) -> String {
    let ask = media(stage, node, Method::POST, "").header("Content-Type", "application/octet-stream");
    let answer = ask.body(file).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let answer: serde_json::Value = answer.json().await.unwrap();
    answer["id"].as_str().unwrap_or_else(|| panic!("no id: {answer}")).to_owned()
}

#[tokio::test]
async fn a_file_that_came_to_one_node_is_read_at_another() {
    let (s3, files) = (S3::shared().unwrap(), folder("files-secret"));
    let setup = setup("files").lines(&bucket(s3, &files, "shared"));
    let stage = Stage::on(setup.start(2).await).await;
    let file: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let id = upload(&stage, 0, file.clone()).await;
    let seen = s3.objects().unwrap().into_iter().filter(|(name, _)| name.starts_with("shared/"));
    let sizes: Vec<u64> = seen.map(|(_, size)| size).collect();
    assert!(sizes.len() == 1 && sizes[0] > file.len() as u64, "one object, sealed: {sizes:?}");

    let whole = media(&stage, 1, Method::GET, &format!("/{id}")).send().await.unwrap();
    assert_eq!(whole.status(), StatusCode::OK);
    assert!(whole.bytes().await.unwrap() == file, "byte for byte");
    let ask = media(&stage, 1, Method::GET, &format!("/{id}")).header("Range", "bytes=65535-2000000");
    let part = ask.send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.headers()["content-range"], "bytes 65535-2000000/3000000");
    assert!(part.bytes().await.unwrap() == file[65_535..=2_000_000]);

    let again = upload(&stage, 1, file.clone()).await;
    let count = s3.objects().unwrap().iter().filter(|(name, _)| name.starts_with("shared/")).count();
    assert!(again != id && count == 1, "the same bytes are there once, whichever node took them");
    stage.cluster.assert_never_panicked();
}

#[tokio::test]
async fn without_a_bucket_nodes_take_no_files() {
    let stage = Stage::new("no-files", 1).await;
    let answer = media(&stage, 0, Method::POST, "").body("a file").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_bucket_that_goes_is_told_and_what_was_kept_is_there_when_it_is_back() {
    let (s3, files) = (S3::start().unwrap(), folder("bucket-gone-secret"));
    let setup = setup("bucket-gone").lines(&bucket(&s3, &files, "gone"));
    let stage = Stage::on(setup.start(1).await).await;
    let id = upload(&stage, 0, b"kept".to_vec()).await;
    s3.pause().unwrap();
    let refused = media(&stage, 0, Method::POST, "").body("not kept").send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let told = refused.text().await.unwrap();
    assert!(told.contains("could not keep a file in the bucket"), "{told}");
    s3.resume().unwrap();
    let kept = media(&stage, 0, Method::GET, &format!("/{id}")).send().await.unwrap();
    assert_eq!(kept.bytes().await.unwrap(), "kept");
    // What was refused may be there by now, whole: the request had been made. No file leads to it.
    let files = stage.cluster.sql("SELECT count(*) FROM files").await;
    assert_eq!(files, "1");
}

#[tokio::test]
async fn a_start_without_its_bucket_is_refused_with_what_to_do() {
    let (s3, files) = (S3::shared().unwrap(), folder("no-bucket"));
    let lines = bucket(s3, &files, "x");
    let config = files.join("angelia.toml");
    for (lines, next) in [
        (
            lines.replace("s3://angelia", &format!("s3://{}", S3::MISSING)),
            "make it, or name another in media.url",
        ),
        (lines.replace(s3.access_key_id(), "AKIANOBODYS"), "does not know the key of media.access_key_id"),
        (lines.replace(&s3.endpoint(), "http://127.0.0.1:1"), "see media.endpoint"),
    ] {
        let server = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\ndata_dir = {:?}\n{lines}",
            files.join("data").display().to_string()
        );
        std::fs::write(&config, server).unwrap();
        let run = |words: &[&str]| {
            let mut command = Command::new(binary());
            command.arg("--config").arg(&config).args(words);
            command
        };
        let refused = output("a start without its bucket", run(&["serve"]), SOON).await;
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && told.contains(next), "{told}");
        assert!(!told.contains(s3.secret_access_key()), "{told}");
        let listed = output("a command that needs no files", run(&["tenant", "list"]), SOON).await;
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    }
}
