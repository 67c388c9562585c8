//! Files that agents name by a URL: fetched before anybody's turn is taken, through the guard, and not
//! for ever.

use super::readers::Chat;
use super::telegram_stage::{SOON, Stage, folder, heard, unlimited};
use angelia_testkit::process::until;
use angelia_testkit::telegram::FakeTelegram;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
const ALLOWED: &str = "[media]\nsource_networks = [\"127.0.0.1/32\"]\n";

/// A server with files, some of which it never hands out.
struct Source {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Source {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, count.fetch_add(1, Ordering::AcqRel)));
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    async fn until_asked(&self, times: usize) {
        let asked = async || self.asked.load(Ordering::Acquire) >= times;
        until("the source is asked", SOON, asked).await;
    }
}

/// Answers one request; of all there were, it is the one after `before`.
async fn answer(mut stream: TcpStream, before: usize) {
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => head.extend_from_slice(&buffer[..read]),
        }
    }
    let head = String::from_utf8(head).unwrap();
    let whole = format!("200 OK\r\ncontent-type: image/png\r\ncontent-length: {}", PNG.len());
    let (answer, body) = match head.split(' ').nth(1).unwrap() {
        "/never" => return std::future::pending().await,
        // Of a server that stands still, and is well again.
        "/later.png" if before == 0 => return std::future::pending().await,
        "/chart.png?x=1" | "/later.png" => (whole, PNG),
        "/moved" => ("302 Found\r\nlocation: /chart.png?x=1\r\ncontent-length: 0".into(), &b""[..]),
        "/inside" => {
            ("302 Found\r\nlocation: http://169.254.169.254/key\r\ncontent-length: 0".into(), &b""[..])
        }
        "/large" => ("200 OK\r\ncontent-length: 26214401".into(), &b""[..]),
        "/half" => ("200 OK\r\ncontent-length: 100".into(), &b"ten bytes "[..]),
        _ => ("404 Not Found\r\ncontent-length: 0".into(), &b""[..]),
    };
    let _ = stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await;
    let _ = stream.write_all(body).await;
}

fn send_media(chat: i64, url: &str) -> Value {
    json!({
        "op": "send_media", "chat_id": chat.to_string(), "media_kind": "image", "source_url": url,
        "content": "look", "reply_to": null, "metadata": {}
    })
}

async fn stage(story: &str) -> Stage {
    let folder = folder(story);
    let telegram = FakeTelegram::start(&folder, &unlimited()).await;
    Stage::around(telegram, folder, "", ALLOWED).await
}

#[tokio::test]
async fn what_is_behind_a_url_is_sent_if_it_may_be_had() {
    let (stage, source) = (stage("file-sources").await, Source::start().await);
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    stage.telegram.say(ann, ann, "hello").await;
    let mut socket = stage.join().await;
    heard(&mut socket).await;
    for path in ["chart.png?x=1", "moved"] {
        let sent = socket.ask(send_media(ann, &source.url(path))).await;
        assert_eq!(sent["success"], true, "{path}: {sent}");
        let read = Chat::of_telegram(&stage.telegram, ann).await;
        let [(kind, _, bytes)] = &read.files(sent["message_id"].as_str().unwrap())[..] else { panic!() };
        assert_eq!((*kind, &**bytes), ("photo", PNG));
    }
    for (path, why) in [
        ("inside", "refused: the address is not public"),
        ("large", "25 MiB"),
        ("half", "broke off"),
        ("none", "HTTP status 404"),
    ] {
        let told = socket.ask(send_media(ann, &source.url(path))).await;
        let error = told["error"].as_str().unwrap_or_default();
        assert!(told["success"] == false && error.contains(why), "{path}: {told}");
    }
    // Nobody listens there: it is tried once more, and then what comes next in the chat is said.
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let told = socket.ask(send_media(ann, &format!("http://{nobody}/a.png"))).await;
    assert!(told["error"].as_str().unwrap().contains("nobody answers"), "{told}");
    let said = json!({ "op": "send", "chat_id": ann.to_string(), "content": "well", "metadata": {} });
    assert_eq!(socket.ask(said).await["success"], true);
    stage.close().await;
}

#[tokio::test]
async fn a_source_that_never_answers_holds_up_its_own_chat_alone() {
    let (stage, source) = (stage("file-sources-never").await, Source::start().await);
    stage.route_all().await;
    let mut slow = Vec::new();
    for name in ["Ann", "Bea", "Cleo", "Dora"] {
        let person = stage.telegram.person(name).await;
        stage.telegram.say(person, person, "hello").await;
        slow.push(person);
    }
    let other = stage.connector.gateway("bolt", "gw-bolt").await;
    let eve = stage.telegram.person("Eve").await;
    stage.route("bolt", eve, &[]).await;
    stage.telegram.say(eve, eve, "hello").await;
    let (mut socket, mut bolt) = (stage.join().await, stage.join_as(&other).await);
    for _ in &slow {
        heard(&mut socket).await;
    }
    heard(&mut bolt).await;
    // More than the bot's calls at a time: none of them is taken.
    for person in &slow {
        let action = send_media(*person, &source.url("never"));
        let id = format!("r{person}");
        socket.send(&json!({ "type": "outbound", "requestId": id, "action": action })).await;
    }
    source.until_asked(slow.len()).await;
    let began = Instant::now();
    let said = json!({ "op": "send", "chat_id": eve.to_string(), "content": "hi Eve", "metadata": {} });
    assert_eq!(bolt.ask(said).await["success"], true);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "another tenant's text took {took:?}");
    stage.close().await;
}

#[tokio::test]
async fn who_dies_while_it_fetches_has_sent_nothing_and_sends_it_then() {
    let (mut stage, source) = (stage("file-sources-killed").await, Source::start().await);
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    stage.telegram.say(ann, ann, "hello").await;
    let mut socket = stage.join().await;
    heard(&mut socket).await;
    let action = send_media(ann, &source.url("later.png"));
    socket.send(&json!({ "type": "outbound", "requestId": "r1", "action": action })).await;
    source.until_asked(1).await;
    stage.connector.kill().await;
    stage.connector.restart().await;
    let sent = async || stage.telegram.messages(ann).await.len() == 2;
    until("the picture is there", SOON, sent).await;
    let messages = stage.telegram.messages(ann).await;
    assert!(messages[1]["raw"]["photo"].is_array(), "{messages:?}");
    assert_eq!(stage.connector.command(&["status"]).await["ambiguous"], json!([]));
    stage.close().await;
}
