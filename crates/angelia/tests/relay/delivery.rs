//! From a post to an acknowledged frame.

use super::interrupt::join_as;
use super::world::World;
use angelia_testkit::socket::Next;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Long enough for whatever should happen at once, on a busy machine too.
const SOON: Duration = Duration::from_secs(20);

impl World {
    async fn follow(&self, room: &str, key: &str) -> reqwest::Response {
        let url = format!("{}/chat/api/rooms/{room}/events", self.connector.url());
        self.http.get(url).bearer_auth(key).send().await.unwrap()
    }
}

#[tokio::test]
async fn a_frame_carries_what_gateways_need() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let id = world.post("hello").await;
    let frame = socket.frame().await;
    assert_eq!((&frame["platform"], &frame["botId"]), (&"webchat".into(), &"webchat".into()));
    assert!(frame["bufferId"].is_string());
    let event = &frame["event"];
    assert_eq!(event["message_id"], json!(id));
    let source = event["source"].as_object().unwrap();
    for key in
        ["platform", "chat_id", "chat_type", "chat_name", "user_id", "user_name", "thread_id", "chat_topic"]
    {
        assert!(source.contains_key(key), "{key}");
    }
    assert_eq!(source["chat_id"], "web-lab");
    assert_eq!(source["user_id"], "ann");
    assert!(!source.contains_key("is_bot"), "off the wire by default");
}

#[tokio::test]
async fn eight_frames_wait_for_acks_and_no_more() {
    let world = World::new().await;
    for n in 0..20 {
        world.post(&format!("m{n}")).await;
    }
    let mut socket = world.join().await;
    let mut frames = Vec::new();
    while let Next::Frame(frame) = socket.next(Duration::from_millis(500)).await {
        frames.push(frame);
    }
    assert_eq!(frames.len(), 8);
    socket.ack(&frames[3]).await;
    let mut more = Vec::new();
    while let Next::Frame(frame) = socket.next(Duration::from_millis(500)).await {
        more.push(frame);
    }
    assert_eq!(more.len(), 4, "a later ack settles all before it");
    let texts: Vec<_> = frames.iter().chain(&more).map(|f| f["event"]["text"].clone()).collect();
    let expected: Vec<_> = (0..12).map(|n| json!(format!("m{n}"))).collect();
    assert_eq!(texts, expected);
    world.until_waiting(16).await;
}

#[tokio::test]
async fn a_repeated_post_is_the_same_message() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let body = json!({ "text": "once", "client_id": "c1" });
    let first = world.post_as(&world.key, "lab", &body).await;
    let second = world.post_as(&world.key, "lab", &body).await;
    assert_eq!(first["message_id"], second["message_id"]);
    assert_eq!(socket.take_text().await, "once");
    assert_eq!(socket.next(Duration::from_millis(300)).await, Next::Silence);
    assert_eq!(world.lines().await.len(), 1);
}

#[tokio::test]
async fn the_author_is_the_holder_of_the_key() {
    let world = World::new().await;
    let url = format!("{}/chat/api/rooms/lab/messages", world.connector.url());
    let other = format!("{}/chat/api/rooms/other/messages", world.connector.url());
    let post =
        |url: &str, key: &str, body: &str| world.http.post(url).bearer_auth(key).body(body.to_owned()).send();
    let status = |answer: Result<reqwest::Response, reqwest::Error>| answer.unwrap().status().as_u16();
    assert_eq!(status(post(&url, "wrong", r#"{"text":"x"}"#).await), 401);
    assert_eq!(status(post(&other, &world.key, r#"{"text":"x"}"#).await), 401, "a key opens one room");
    assert_eq!(status(post(&url, &world.key, r#"{"text":"x","author":"eve"}"#).await), 400);
    assert_eq!(status(post(&url, &world.key, r#"{"text":"  "}"#).await), 400);
    assert_eq!(status(post(&url, &world.key, "nonsense").await), 400);
    let long = json!({ "text": "x".repeat(9_000) }).to_string();
    assert_eq!(status(post(&url, &world.key, &long).await), 400);
    assert_eq!(world.lines().await.len(), 0);
    // Last, because the server hangs up on whoever sends too much.
    let huge = json!({ "text": "x".repeat(200_000) }).to_string();
    assert_eq!(status(post(&url, &world.key, &huge).await), 413);
}

/// Sends the beginning of a body and no more; answers the status.
async fn send_half(world: &World, line: &str, key: &str) -> String {
    let address = world.connector.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-length: 60000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    timeout(SOON, stream.read_exact(&mut answer)).await.expect("an answer without the body").unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn strangers_are_turned_away_before_their_body_and_nobody_sends_it_for_ever() {
    let world = World::new().await;
    let id = world.post("mine").await;
    let post = "POST /chat/api/rooms/lab/messages";
    let put = format!("PUT /chat/api/rooms/lab/messages/{id}");
    let mut known = pin!(send_half(&world, post, &world.key));
    let strangers = async {
        for line in [post, &put] {
            assert_eq!(send_half(&world, line, "wrong").await, "HTTP/1.1 401", "{line}");
        }
    };
    tokio::select! {
        biased;
        answer = &mut known => panic!("strangers were waited for as long: {answer}"),
        () = strangers => {}
    }
    assert_eq!(known.await, "HTTP/1.1 408");
    assert_eq!(world.lines().await.len(), 1);
}

#[tokio::test]
async fn nobody_takes_all_the_seats_of_the_event_streams() {
    let world = World::new().await;
    let bob = world.invite("lab", "bob").await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(world.follow("lab", &world.key).await);
        assert_eq!(streams.last().unwrap().status(), 200);
    }
    let refused = world.follow("lab", &world.key).await;
    assert_eq!(refused.status(), 429);
    let why: Value = refused.json().await.unwrap();
    assert!(why["error"].as_str().unwrap().contains("close one"), "{why}");
    assert_eq!(world.follow("lab", &bob).await.status(), 200, "others have their own");
    streams.pop();
    let freed = async {
        while world.follow("lab", &world.key).await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(SOON, freed).await.expect("a seat that was left is free");
}

#[tokio::test]
async fn the_streams_of_a_room_end_with_its_tenant() {
    let world = World::new().await;
    world.connector.gateway("acme", "gw-acme").await;
    let args = ["webchat", "invite", "--room", "den", "--user", "zoe", "--tenant", "acme"];
    let made = world.connector.command(&args).await;
    let key = made["key"].as_str().unwrap();
    let mut den = world.follow("den", key).await.bytes_stream();
    let mut lab = world.follow("lab", &world.key).await.bytes_stream();
    world.post_as(key, "den", &json!({ "text": "anybody?" })).await;
    assert!(den.next().await.unwrap().is_ok(), "it is live");
    let (status, answer) =
        world.admin("POST", "/admin/tenants/acme/remove", Some(json!({ "confirm": "acme" }))).await;
    assert_eq!(status, 200, "{answer}");
    let ended = async { while den.next().await.is_some() {} };
    timeout(SOON, ended).await.expect("the room is gone, and so are its streams");
    assert_eq!(world.follow("den", key).await.status(), 401);
    world.post("still here").await;
    let shown = async {
        while let Some(Ok(shown)) = lab.next().await {
            if String::from_utf8_lossy(&shown).contains("still here") {
                return true;
            }
        }
        false
    };
    assert!(timeout(SOON, shown).await.expect("another room"));
}

#[tokio::test]
async fn an_invitation_tells_what_its_route_opens() {
    let world = World::new().await;
    world.connector.gateway("acme", "gw-acme").await;
    let invite = async |args: &[&str]| {
        world.connector.command(&[&["webchat", "invite", "--user", "zoe"], args].concat()).await
    };
    let made = invite(&["--room", "den", "--tenant", "acme"]).await;
    let route = &made["route"];
    assert_eq!((&route["place"], &route["tenant"]), (&json!("webchat:den"), &json!("acme")), "{made}");
    assert_eq!((&route["allow"], &route["free"]), (&json!(["any"]), &json!(true)), "{made}");
    let made = invite(&["--tenant", "acme"]).await;
    assert_eq!(made["route"]["allow"], json!(["zoe"]), "{made}");
    assert_eq!(invite(&["--room", "den"]).await["route"], Value::Null, "nothing was asked for");
}

#[tokio::test]
async fn a_restart_keeps_what_was_not_acknowledged() {
    let mut world = World::new().await;
    let mut socket = world.join().await;
    world.post("acked").await;
    world.post("open").await;
    let (acked, open) = (socket.frame().await, socket.frame().await);
    socket.ack(&acked).await;
    world.until_waiting(1).await;
    world.restart_with("").await;
    world.post("later").await;
    let mut socket = world.join().await;
    let again = socket.frame().await;
    assert_eq!(again["bufferId"], open["bufferId"]);
    socket.ack(&again).await;
    assert_eq!(socket.take_text().await, "later");
}

#[tokio::test]
async fn text_leaves_the_store_when_its_entry_settles() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let id = world.post("hello").await;
    assert_eq!(socket.take_text().await, "hello");
    world.until_waiting(0).await;
    let entries = world.connector.command(&["inbox", "show"]).await;
    assert_eq!(entries["entries"], json!([]));
    let story = world.connector.command(&["explain", &id]).await;
    let message = &story["messages"][0];
    for leg in ["received_at", "appended_at", "pushed_at", "settled_at"] {
        assert!(message[leg].is_i64(), "{leg} in {story}");
    }
    assert_eq!(message["outcome"], "acknowledged");
    assert!(!story.to_string().contains("hello"), "the journal holds no text");
}

#[tokio::test]
async fn beyond_the_quota_a_post_is_refused_and_nothing_that_was_taken_goes() {
    let mut world = World::new().await;
    world.restart_with("[inbox]\nmax_entries = 5\n").await;
    for n in 0..5 {
        world.post(&format!("m{n}")).await;
    }
    let post = || {
        let url = format!("{}/chat/api/rooms/lab/messages", world.connector.url());
        let body = json!({ "text": "m5", "client_id": "five" });
        world.http.post(url).bearer_auth(&world.key).json(&body).send()
    };
    let refused = post().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    let told: Value = refused.json().await.unwrap();
    assert!(told["error"].as_str().unwrap().contains("nothing was written"), "{told}");
    assert_eq!(world.lines().await.len(), 5, "nor is it a line of the room");
    let inboxes = world.connector.command(&["inbox", "list"]).await;
    let inbox = &inboxes["inboxes"][0];
    assert_eq!((&inbox["waiting"], &inbox["gaps"]), (&json!(5), &json!([])), "{inboxes}");
    let mut socket = world.join().await;
    for n in 0..5 {
        assert_eq!(socket.take_text().await, format!("m{n}"));
    }
    world.until_waiting(0).await;
    assert_eq!(post().await.unwrap().status(), 201, "the same post, later");
    assert_eq!(socket.take_text().await, "m5");
}

#[tokio::test]
async fn source_flags_are_written_only_on_request() {
    let mut world = World::new().await;
    world.restart_with("[relay]\nsource_flags = true\n").await;
    let mut socket = world.join().await;
    world.post("hello").await;
    let frame = socket.frame().await;
    assert_eq!(frame["event"]["source"]["is_bot"], false, "{frame}");
    assert_eq!(frame["event"]["source"]["message_is_edit"], false);
}

#[tokio::test]
async fn message_text_and_secrets_are_never_logged() {
    let mut world = World::new().await;
    world.restart_with("[log]\nlevel = \"trace\"\n").await;
    let mut socket = world.join().await;
    world.post("canary-person-7d1f").await;
    socket.take_text().await;
    socket.ask(json!({"op": "send", "chat_id": "web-lab", "content": "canary-agent-7d1f"})).await;
    socket.send_text("canary-broken-7d1f\n{\"type\":\"canary-type-7d1f\"}\n".into()).await;
    world.until_waiting(0).await;
    world.connector.stop(Duration::from_secs(10)).await;
    let log = world.connector.log_text();
    assert!(log.contains("ready"), "there is a log to look into");
    for canary in ["canary-", &world.key, &world.gateway.secret] {
        assert!(!log.contains(canary), "{canary} is in the log");
    }
}

#[tokio::test]
async fn a_peer_that_never_acknowledges_is_settled_by_pongs() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(world.post(&format!("m{n}")).await);
        socket.frame().await;
    }
    // It has 45 s for its first acknowledgement; reading answers the pings meanwhile.
    assert_eq!(socket.next(Duration::from_secs(44)).await, Next::Silence);
    assert_eq!(world.waiting().await, 3);
    let story = world.connector.command(&["explain", &ids[0]]).await;
    assert!(story["messages"][0]["pushed_at"].is_i64(), "a frame in flight is told of: {story}");
    let _ = socket.next(Duration::from_secs(8)).await;
    world.until_waiting(0).await;
    let status = world.connector.command(&["status"]).await;
    assert_eq!(status["gateways"][0]["acknowledges"], "silent", "{status}");
}

#[tokio::test]
async fn a_chat_just_answered_is_left_alone_for_a_moment() {
    let world = World::new().await;
    let wait = async |agent: &str| {
        let mut socket = join_as(&world, agent).await;
        world.post("question").await;
        socket.take_text().await;
        let answer =
            json!({"op": "send", "chat_id": "web-lab", "content": "answer", "metadata": {"notify": true}});
        socket.ask(answer).await;
        let answered = Instant::now();
        world.post("next").await;
        assert_eq!(socket.take_text().await, "next");
        let waited = answered.elapsed();
        socket.close().await;
        waited
    };
    let published = wait("Python/3.11 websockets/15.0.1").await;
    assert!(published >= Duration::from_millis(200), "published gateways would park it: {published:?}");
    // A busy machine makes everybody wait; a rule does so every time.
    let mut ours = Vec::new();
    while ours.iter().all(|waited| *waited >= Duration::from_millis(200)) {
        assert!(ours.len() < 10, "ours do not park it: {ours:?}");
        ours.push(wait("angelia-gateway/0.1").await);
    }
}
