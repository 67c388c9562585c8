//! Files that come with text messages: Twilio keeps them, and hands them out to its customer only.

use super::readers::{by_twilio, content};
use super::sms_stage::{Stage, heard};
use angelia_testkit::socket::fetch_file;
use angelia_testkit::twilio::{ACCOUNT, AUTH_TOKEN, NUMBER, post_signed};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use reqwest::Client;
use serde_json::json;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

const ANN: &str = "+15550199";
/// The message, and what came with it.
pub(super) const MESSAGE: &str = "MM00000000000000000000000000000001";
const FILES: [(&str, &str, &[u8]); 3] = [
    ("ME01", "image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89"),
    ("ME02", "audio/amr", b"#!AMR\n a few words"),
    ("ME03", "text/vcard", b"BEGIN:VCARD\r\nFN:Bob\r\nEND:VCARD\r\n"),
];

/// Twilio's API with the files of one message, and with some that are gone, or do not come at first; the
/// stand-in behind it has none, and answers the rest.
pub(super) async fn with_files(behind: &str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let kept = format!("{url}/kept");
    let client = Client::builder().no_proxy().build().unwrap();
    let asked: Asked = Arc::default();
    let below = format!("/2010-04-01/Accounts/{ACCOUNT}/Messages/{MESSAGE}/Media");
    let router = Router::new()
        .route(&format!("{below}.json"), get(list))
        .route(&format!("{below}/{{file}}"), get(async move |file, headers| find(&kept, file, headers)))
        .route("/kept/{file}", get(async move |file, headers| keep(&asked, file, headers)))
        .fallback(pass)
        .with_state((client, behind.to_owned()));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn list() -> Json<serde_json::Value> {
    let at = |file: &str| format!("/2010-04-01/Accounts/{ACCOUNT}/Messages/{MESSAGE}/Media/{file}.json");
    let listed = FILES.map(|(file, media_type, _)| {
        json!({ "sid": file, "account_sid": ACCOUNT, "parent_sid": MESSAGE, "content_type": media_type, "uri": at(file) })
    });
    Json(json!({ "media_list": listed, "page": 0, "page_size": 50, "next_page_uri": null, "uri": "" }))
}

/// Where the bytes are is told to the customer only.
fn find(kept: &str, Path(file): Path<String>, headers: HeaderMap) -> Response {
    let known = Client::new().get("http://twilio/").basic_auth(ACCOUNT, Some(AUTH_TOKEN)).build().unwrap();
    if headers.get(AUTHORIZATION) != known.headers().get(AUTHORIZATION) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, format!("{kept}/{file}"))]).into_response()
}

/// The files that somebody asked for.
type Asked = Arc<Mutex<HashSet<String>>>;

/// Where they are is no place for a credential; a client that brings one is sent away.
fn keep(asked: &Asked, Path(file): Path<String>, headers: HeaderMap) -> Response {
    let found = FILES.into_iter().find(|(name, ..)| *name == file);
    let is_first = asked.lock().unwrap().insert(file.clone());
    match found.or(["MEcut", "MEbusy"].contains(&&*file).then_some(FILES[0])) {
        Some(_) if is_first && file == "MEbusy" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some((_, media_type, bytes)) if is_first && file == "MEcut" => {
            let broken = std::io::Error::other("cut");
            let pieces = futures_util::stream::iter([Ok(bytes), Err(broken)]);
            ([(CONTENT_TYPE, media_type)], Body::from_stream(pieces)).into_response()
        }
        Some((_, media_type, bytes)) if !headers.contains_key(AUTHORIZATION) => {
            ([(CONTENT_TYPE, media_type)], bytes).into_response()
        }
        Some(_) => StatusCode::BAD_REQUEST.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn pass(State((client, behind)): State<(Client, String)>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let url = format!("{behind}{}", parts.uri);
    let answer = client.request(parts.method, url).headers(parts.headers).body(body).send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut passed = (status, Body::from(answer.bytes().await.unwrap())).into_response();
    passed.headers_mut().extend(headers.get(CONTENT_TYPE).map(|kind| (CONTENT_TYPE, kind.clone())));
    passed
}

#[tokio::test]
async fn files_of_a_text_message_reach_the_agent() {
    let mut api = String::new();
    let stage = Stage::behind("files-in", async |behind: &str| {
        api = with_files(behind).await;
        api.clone()
    });
    let stage = stage.await;
    stage.route("sms:*").await;
    let other = stage.connector.gateway("acme", "gw-other").await;
    let mut socket = stage.join().await;
    let at = |file: &str| {
        format!("https://api.twilio.com/2010-04-01/Accounts/{ACCOUNT}/Messages/{MESSAGE}/Media/{file}")
    };
    let urls = FILES.map(|(file, ..)| at(file));
    let mms = [
        ("MessageSid", MESSAGE),
        ("From", ANN),
        ("To", NUMBER),
        ("Body", "look"),
        ("NumMedia", "3"),
        ("MediaUrl0", &urls[0]),
        ("MediaContentType0", FILES[0].1),
        ("MediaUrl1", &urls[1]),
        ("MediaContentType1", FILES[1].1),
        ("MediaUrl2", &urls[2]),
        ("MediaContentType2", FILES[2].1),
    ];
    assert_eq!(post_signed(&stage.hook(), &mms).await.0, 200);
    let event = heard(&mut socket).await;
    assert!(event["text"].as_str().unwrap().starts_with("look\n[photo"), "{event:#}");
    assert_eq!(
        (&event["message_type"], &event["media_types"]),
        (&json!("photo"), &json!(FILES.map(|it| it.1)))
    );
    let read = by_twilio(&api, MESSAGE).await;
    for (number, (_, media_type, bytes)) in FILES.into_iter().enumerate() {
        let url = event["media_urls"][number].as_str().unwrap();
        let answer = fetch_file(url, &stage.gateway).await;
        assert_eq!(answer.headers()["content-type"], media_type);
        assert_eq!(answer.bytes().await.unwrap(), bytes, "as it was");
        assert_eq!(fetch_file(url, &other).await.status(), StatusCode::NOT_FOUND, "meant for one");
        assert_eq!((&read[number]["type"], content(&read[number])), (&json!(media_type), bytes.to_vec()));
    }
    stage.close();
}
