//! The OpenAPI document, judged by somebody else's validator, and the routes it
//! names, tried.

use super::fixture::Fixture;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn oracle() -> std::path::PathBuf {
    let folder = std::env::var_os("ANGELIA_TEST_ENV")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-env"), Into::into);
    let python = folder.join("oracles/bin/python");
    assert!(python.is_file(), "{} is missing: run ./test, which installs it", python.display());
    python
}

#[tokio::test]
async fn the_document_is_valid_and_names_what_is_served() {
    let fixture = Fixture::new().await;
    let read = |name: &str| std::fs::read_to_string(fixture.folder.path().join("data").join(name)).unwrap();
    let (admin, token) = (read("admin-url"), read("admin-token"));
    let get = async |path: &str| {
        let url = format!("{}{path}", admin.trim());
        fixture.http.get(url).bearer_auth(token.trim()).send().await.unwrap()
    };
    let document: Value = get("/admin/openapi.json").await.json().await.unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let file = fixture.folder.path().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let judged = Command::new(oracle()).args(["-m", "openapi_spec_validator"]).arg(&file).output().unwrap();
    assert!(judged.status.success(), "{judged:?}");

    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let url = format!("{}{}", admin.trim(), path.replace(['{', '}'], "x"));
            let request = fixture.http.request(method.to_uppercase().parse().unwrap(), &url);
            let answer = request.bearer_auth(token.trim()).send().await.unwrap();
            assert_ne!(answer.status(), 405, "{method} {path}");
            let body = answer.text().await.unwrap();
            assert!(!body.is_empty(), "{method} {path} answers nothing: it is not served");
            operations += 1;
        }
    }
    println!("{operations} operations");
    assert!(operations >= 30, "{operations}");
    let bare = fixture.http.get(format!("{}/admin/openapi.json", admin.trim())).send().await.unwrap();
    assert_eq!(bare.status(), 401);
}

#[tokio::test]
async fn wrong_admin_tokens_are_counted_and_the_right_one_is_not_shut_out() {
    let fixture = Fixture::new().await;
    let admin = std::fs::read_to_string(fixture.folder.path().join("data/admin-url")).unwrap();
    let url = format!("{}/admin/status", admin.trim());
    let mut statuses = Vec::new();
    for _ in 0..15 {
        let answer = fixture.http.get(&url).bearer_auth("guess").send().await.unwrap();
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses[..10], [401; 10]);
    assert_eq!(statuses[10..], [429; 5]);
    let status = fixture.run(&["status"]).await;
    assert_eq!(status["ready"], true, "{status}");
    let refused = fixture.refusals().await;
    assert_eq!(refused.iter().filter(|line| line.starts_with("admin.enter")).count(), 1, "{refused:?}");
    assert_eq!(fixture.connector.counter("angelia_access_refused_total").await, 15);

    let before = std::fs::read_to_string(fixture.folder.path().join("data/admin-token")).unwrap();
    fixture.run(&["admin-token", "rotate"]).await;
    let old = fixture.http.get(&url).bearer_auth(before.trim()).send().await.unwrap();
    assert_ne!(old.status(), 200, "the old token is void");
    assert_eq!(fixture.run(&["status"]).await["ready"], true, "commands read the new one");
}
