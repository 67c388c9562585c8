//! People of the web chat: how they come in, what their page is told, how they go.

use super::world::World;
use futures_util::StreamExt;
use reqwest::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

impl World {
    /// A request of the web chat's API: its status and answer.
    pub(crate) async fn chat(&self, key: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let url = format!("{}/chat/api/{path}", self.connector.url());
        let request = match body {
            Some(body) => self.http.post(url).json(&body),
            None => self.http.get(url),
        };
        let answer = request.bearer_auth(key).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Sees the room `lab` as its page does.
    async fn look_on(&self, key: &str) -> Followed {
        let url = format!("{}/chat/api/rooms/lab/events?html=1", self.connector.url());
        let answer = self.http.get(url).bearer_auth(key).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        Followed { stream: answer.bytes_stream().boxed(), text: String::new() }
    }
}

struct Followed {
    stream: futures_util::stream::BoxStream<'static, reqwest::Result<axum::body::Bytes>>,
    text: String,
}

impl Followed {
    /// Everything up to the first of these words; `None` if the stream ends before.
    async fn until(&mut self, word: &str) -> Option<String> {
        let reading = async {
            loop {
                if let Some(end) = self.text.find(word) {
                    return Some(self.text.drain(..end + word.len()).collect());
                }
                let chunk = self.stream.next().await?.ok()?;
                self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        };
        tokio::time::timeout(SOON, reading).await.unwrap_or_else(|_| panic!("no {word} in {}", self.text))
    }
}

#[tokio::test]
async fn a_link_signs_in_until_it_is_revoked() {
    let world = World::new().await;
    let made = world.connector.command(&["webchat", "invite", "--room", "lab", "--user", "bob"]).await;
    let key = made["key"].as_str().unwrap();
    assert_eq!(made["link"], format!("{}/chat#{key}", world.connector.url()));
    let (status, me) = world.chat(key, "me", None).await;
    assert_eq!(status, 200, "{me}");
    let expected = json!({
        "room": "lab", "user": "bob", "private": false, "guest": false, "alone": false,
        "agent": { "connected": false }, "guide": null,
    });
    assert_eq!(me, expected);
    let (mut bobs, mut anns) = (world.look_on(key).await, world.look_on(&world.key).await);
    for stream in [&mut bobs, &mut anns] {
        stream.until("event: agent").await.unwrap();
    }

    world.connector.command(&["webchat", "revoke", "--room", "lab", "--user", "bob"]).await;
    assert_eq!(bobs.until("anything").await, None, "his stream ends at once");
    assert_eq!(world.chat(key, "me", None).await.0, 401);
    assert_eq!(world.chat(key, "rooms/lab/messages", Some(json!({ "text": "hi" }))).await.0, 401);
    assert_eq!(world.chat(&world.key, "me", None).await.0, 200, "hers is another");
    let people = world.connector.command(&["webchat", "list", "--room", "lab"]).await;
    let left: Vec<_> = people["people"].as_array().unwrap().iter().map(|it| it["user"].clone()).collect();
    assert_eq!(left, ["ann"]);
    let audited = world.connector.audited("webchat.revoke").await;
    assert_eq!(audited.len(), 1, "{audited:?}");
}

#[tokio::test]
async fn who_follows_a_room_sees_the_agent_come_write_and_go() {
    let world = World::new().await;
    let mut stream = world.look_on(&world.key).await;
    stream.until(r#"data: {"connected":false}"#).await.unwrap();
    let mut socket = world.join().await;
    stream.until(r#"data: {"connected":true}"#).await.unwrap();
    world.post("hello").await;
    socket.take_text().await;
    let said = socket.ask(json!({ "op": "send", "chat_id": "web-lab", "content": "**hi** <b>" })).await;
    let id = said["message_id"].as_str().unwrap();
    let line = stream.until("\n\n").await.map(drop);
    assert!(line.is_some());
    let html = stream.until(r#""html":"<p><strong>hi</strong> &lt;b&gt;</p>"#).await.unwrap();
    assert!(html.contains(id), "{html}");
    socket.close().await;
    stream.until(r#"data: {"connected":false}"#).await.unwrap();
}

#[tokio::test]
async fn nobody_comes_in_uninvited_unless_a_room_is_open() {
    let mut world = World::new().await;
    assert_eq!(world.chat("", "open", None).await, (200, json!({ "rooms": [] })));
    let (status, refused) = world.chat("", "rooms/lab/enter", Some(json!({}))).await;
    assert_eq!(status, 403, "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("angelia webchat invite"), "{refused}");

    world.restart_with("[webchat]\nopen_rooms = [\"plaza\"]\n").await;
    assert_eq!(world.chat("", "open", None).await.1, json!({ "rooms": ["plaza"] }));
    assert_eq!(world.chat("", "rooms/lab/enter", Some(json!({}))).await.0, 403, "another room");
    let (status, entered) = world.chat("", "rooms/plaza/enter", Some(json!({ "name": "ann" }))).await;
    assert_eq!((status, &entered["user"]), (201, &json!("guest-ann")), "{entered}");
    let key = entered["key"].as_str().unwrap();
    let (_, me) = world.chat(key, "me", None).await;
    assert_eq!((&me["guest"], &me["room"]), (&json!(true), &json!("plaza")), "{me}");
    assert_eq!(world.chat(key, "rooms/lab/messages", None).await.0, 401, "no other room");
    assert_eq!(world.chat("", "rooms/plaza/enter", Some(json!({ "name": "ANN" }))).await.0, 409);
    assert_eq!(world.chat("", "rooms/plaza/enter", Some(json!({ "name": "a b" }))).await.0, 400);
    let mut socket = world.join().await;
    world.chat(key, "rooms/plaza/messages", Some(json!({ "text": "@agent hello" }))).await;
    assert_eq!(socket.take_text().await, "hello");
    // Strangers are heard in measure: what they say fills the inbox of others too.
    let mut statuses = Vec::new();
    for n in 0..12 {
        let body = json!({ "text": format!("@agent {n}") });
        statuses.push(world.chat(key, "rooms/plaza/messages", Some(body)).await.0);
    }
    assert_eq!((statuses[10], statuses[11]), (201, 429), "{statuses:?}");
    let link = json!({ "text": "/link 123" });
    assert_eq!(world.chat(key, "rooms/plaza/messages", Some(link)).await.0, 429, "whatever they say");
    assert_eq!(world.chat(key, "rooms/plaza/interrupt", Some(json!({}))).await.0, 429, "or do");
    assert_eq!(world.chat(&world.key, "rooms/lab/messages", Some(json!({ "text": "hi" }))).await.0, 201);
}

#[tokio::test]
async fn what_an_agent_took_back_is_told_to_whoever_saw_it() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let say = json!({ "op": "send", "chat_id": "web-lab", "content": "long ".repeat(2_000) });
    let id = socket.ask(say).await["message_id"].as_str().unwrap().to_owned();
    let seen = world.lines().await;
    assert_eq!(seen.len(), 2, "two pieces");
    let edit = json!({ "op": "edit", "chat_id": "web-lab", "message_id": id, "content": "short" });
    assert_eq!(socket.ask(edit).await["success"], true);
    let after = format!("rooms/lab/messages?after={}", seen[1]["id"]);
    let (_, later) = world.chat(&world.key, &after, None).await;
    let texts: Vec<_> = later["messages"].as_array().unwrap().iter().map(|it| it["text"].clone()).collect();
    assert_eq!(texts, ["short", ""], "{later}");
    assert_eq!(world.lines().await.len(), 1, "whoever begins does not hear of it");
}

#[tokio::test]
async fn the_page_is_there_and_runs_nothing_but_its_own() {
    let world = World::new().await;
    let client =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let root = client.get(world.connector.url()).send().await.unwrap();
    assert_eq!((root.status().as_u16(), root.headers()[LOCATION].to_str().unwrap()), (307, "chat"));
    let page = client.get(format!("{}/chat", world.connector.url())).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    let missing = client.get(format!("{}/chat/app/no.js", world.connector.url())).send().await.unwrap();
    assert_eq!(missing.status(), 404);
}
