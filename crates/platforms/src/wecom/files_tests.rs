//! Files, between an app and a WeCom that answers oddly.

use super::{Config, Wecom};
use crate::kit::upload::tests::picture;
use crate::platform::{Delivery, Earlier, Outcome, Platform, Progress, Reach};
use angelia_contract::action::Action;
use angelia_core::egress::Target;
use angelia_core::error::Kind;
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use angelia_core::store::ActionId;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

type Asked = Arc<Mutex<Vec<String>>>;

/// Answers calls, and a question for a file with a page that never ends.
async fn serve(State(asked): State<Asked>, request: Request) -> Response {
    let method = request.uri().path().trim_start_matches("/cgi-bin/").to_owned();
    let answer = match method.as_str() {
        "gettoken" => json!({ "errcode": 0, "access_token": "hunter2", "expires_in": 7200 }),
        "media/get" => {
            asked.lock().push(method);
            let page = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'<'; 1_024])));
            return Response::new(Body::from_stream(page));
        }
        "media/upload" => json!({ "errcode": 0, "media_id": "M1" }),
        _ => json!({ "errcode": 0, "msgid": "W1" }),
    };
    asked.lock().push(method);
    Response::new(Body::from(answer.to_string()))
}

/// Counts what it is asked, and lets so many further calls through.
struct Counted(AtomicUsize, usize);

impl Progress for Counted {
    fn first_part(&self, _message_id: &str) {}

    fn next_call(&self) -> BoxFuture<'_, bool> {
        let may = self.0.fetch_add(1, Ordering::Relaxed) < self.1;
        Box::pin(async move { may })
    }

    fn pause(&self, _reach: Reach, _pause: Duration) {}

    fn still_allowed(&self) -> bool {
        // Whoever has no call left was sent away.
        self.1 > 0
    }
}

async fn app() -> (Arc<Wecom>, Asked, TempDir) {
    let _ = angelia_testkit::webchat::http_client();
    let asked = Asked::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api_url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(serve).with_state(asked.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path(), Default::default(), Arc::new(LocalBus::default()));
    let config = Config {
        corp_id: "ww1".into(),
        agent_id: "1".into(),
        name: "main".into(),
        secret: Secret::new("hunter2"),
        callback_token: Secret::new("hunter2"),
        encoding_aes_key: Secret::new("hunter2hunter2hunter2hunter2hunter2hunter2h"),
        api_url: Some(api_url),
    };
    (Wecom::new(config, Ports::of(&Arc::new(store.unwrap()))).unwrap(), asked, folder)
}

async fn shows(app: &Wecom, further: usize) -> (Outcome, usize) {
    let progress = Arc::new(Counted(AtomicUsize::new(0), further));
    let action = Action::SendMedia {
        chat_id: "ann".into(),
        media_kind: "image".into(),
        source_url: String::new(),
        content: "look".into(),
        reply_to: None,
        filename: None,
        metadata: Default::default(),
    };
    let delivery = Delivery {
        id: ActionId(1),
        received_at: angelia_core::clock::wall(),
        target: Target::chat("ann"),
        action,
        answer: None,
        file: Some(picture("acme", Some(b"\x89PNG\r\n\x1a\n"))),
        earlier: Earlier::Nothing,
        progress: progress.clone(),
    };
    (app.deliver(delivery).await, progress.0.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_page_in_the_place_of_a_file_is_not_read_to_its_end() {
    let (app, ..) = app().await;
    let fetched = tokio::time::timeout(Duration::from_secs(10), app.fetch_file("M1")).await;
    let error = fetched.expect("it is not read to its end").err().unwrap();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
}

#[tokio::test]
async fn every_call_of_a_file_asks_and_none_is_made_for_whoever_may_not() {
    let (app, asked, _folder) = app().await;
    let (sent, further) = shows(&app, 9).await;
    assert!(matches!(sent, Outcome::Sent { .. }), "{sent:?}");
    let calls = ["gettoken", "media/upload", "message/send", "message/send"];
    assert_eq!((std::mem::take(&mut *asked.lock()), further), (calls.map(str::to_owned).to_vec(), 2));
    let (sent, _) = shows(&app, 1).await;
    assert!(matches!(sent, Outcome::Refused { .. }), "{sent:?}");
    assert_eq!(std::mem::take(&mut *asked.lock()), calls[1..3], "the caption was not theirs to say any more");
    let (sent, further) = shows(&app, 0).await;
    assert!(matches!(sent, Outcome::Refused { .. }), "{sent:?}");
    assert_eq!((asked.lock().len(), further), (0, 0), "not even the file is uploaded");
}
