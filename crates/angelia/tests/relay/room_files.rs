//! Files in the web chat: people send them to their room's agent, agents to the room, and nobody else
//! gets any.

use super::world::World;
use angelia_contract::token;
use angelia_gateway::{Conversation, Event, FileKind, Gateway, OutgoingFile};
use angelia_testkit::canary::files_below;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Socket, fetch_file, now, upload_file};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89 canary";
const OGG: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead";
const WEBM: &[u8] =
    b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm";
const SVG: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>";
const MIB: usize = 1024 * 1024;

impl World {
    fn room_file(&self, method: Method, room: &str, key: &str, way: &str) -> RequestBuilder {
        let url = format!("{}/chat/api/rooms/{room}/files{way}", self.connector.url());
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        http.request(method, url).bearer_auth(key)
    }

    /// Sends a file as the page does; what it is told.
    async fn send(&self, (name, media_type): (&str, &str), file: &'static [u8]) -> Value {
        let ask = self.room_file(Method::POST, "lab", &self.key, "");
        let answer =
            ask.header("X-File-Name", name).header("Content-Type", media_type).body(file).send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
        answer.json().await.unwrap()
    }

    async fn get(&self, room: &str, key: &str, id: &str) -> Response {
        self.room_file(Method::GET, room, key, &format!("/{id}")).send().await.unwrap()
    }

    async fn invited(&self, room: &str, user: &str) -> String {
        let made = self.connector.command(&["webchat", "invite", "--room", room, "--user", user]).await;
        made["key"].as_str().unwrap().to_owned()
    }

    async fn say_with(&self, text: &str, files: Value) -> Value {
        self.post_as(&self.key, "lab", &json!({ "text": text, "files": files })).await
    }

    /// The socket of a gateway as published up to 0.19.0, which fetches nothing.
    async fn join_as_older(&self) -> Socket {
        let Credentials { gateway_id, secret } = &self.gateway;
        let bearer = format!("Bearer {}", token::mint(gateway_id, secret, now(), 300));
        let agent = "Python/3.11 websockets/15.0.1";
        let mut socket = Socket::dial_with(&self.connector.url(), Some(&bearer), agent).await.unwrap();
        socket.hello("relay", "").await;
        assert_eq!(socket.frame().await["type"], "descriptor");
        socket
    }
}

async fn heard(socket: &mut Socket) -> Value {
    let frame = socket.frame().await;
    assert_eq!(frame["type"], "inbound", "{frame:#}");
    socket.ack(&frame).await;
    frame["event"].clone()
}

fn header<'a>(answer: &'a Response, name: &str) -> &'a str {
    answer.headers().get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
}

#[tokio::test]
async fn what_people_send_reaches_their_agent_byte_for_byte_and_nobody_else() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let sent = world.send(("Zo%C3%AB%27s%20map.png", "image/png"), PNG).await;
    assert_eq!((&sent["name"], &sent["kind"]), (&json!("Zoë's map.png"), &json!("image")));
    assert_eq!((&sent["type"], &sent["size"]), (&json!("image/png"), &json!(PNG.len())));
    let said = json!([{ "id": sent["id"], "alt": " a map\nof Vienna " }]);
    let posted = world.say_with("where is this?", said).await;
    let event = heard(&mut socket).await;
    assert_eq!(event["text"], "where is this?\n[photo Zoë's map.png: a map of Vienna]");
    assert_eq!((&event["message_type"], &event["media_types"]), (&json!("photo"), &json!(["image/png"])));
    let url = event["media_urls"][0].as_str().unwrap();
    assert!(url.starts_with(&format!("{}/relay/media/", world.connector.url())), "{url}");
    assert!(!event.to_string().contains(sent["id"].as_str().unwrap()), "it has a name of its own there");
    assert_eq!(fetch_file(url, &world.gateway).await.bytes().await.unwrap(), PNG);
    let sibling = world.connector.gateway("default", "sibling").await;
    assert_eq!(
        fetch_file(url, &sibling).await.status(),
        StatusCode::NOT_FOUND,
        "it was not meant for others"
    );

    let lines = world.lines().await;
    assert_eq!(lines[0]["message_id"], posted["message_id"]);
    let shown = json!([{
        "id": sent["id"], "name": "Zoë's map.png", "size": PNG.len(), "type": "image/png", "kind": "image",
        "alt": "a map of Vienna",
    }]);
    assert_eq!(lines[0]["files"], shown);
    let id = sent["id"].as_str().unwrap();
    let bob = world.invited("lab", "bob").await;
    for key in [&world.key, &bob] {
        let answer = world.get("lab", key, id).await;
        assert_eq!(header(&answer, "x-content-type-options"), "nosniff");
        assert!(header(&answer, "content-security-policy").contains("sandbox"));
        assert_eq!(answer.bytes().await.unwrap(), PNG);
    }
    let other = world.invited("den", "carl").await;
    assert_eq!(world.get("lab", &other, id).await.status(), StatusCode::UNAUTHORIZED);
    let mut told = Vec::new();
    for id in [id, "0123456789abcdef0123456789abcdef", "nonsense", "..%2F..%2Fmaster.key"] {
        let answer = world.get("den", &other, id).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "of another room: {id}");
        told.push(answer.text().await.unwrap());
    }
    assert!(told[0] == told[1], "in the same words: {told:?}");
    let holds =
        |path: &std::path::PathBuf| std::fs::read(path).unwrap().windows(6).any(|part| part == b"canary");
    assert!(!files_below(world.folder.path()).iter().any(holds), "sealed where it rests");
}

#[tokio::test]
async fn recordings_albums_and_files_without_words_are_what_they_are() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let voice = world.send(("voice.webm", "audio/webm;codecs=opus"), WEBM).await;
    assert_eq!((&voice["type"], &voice["kind"]), (&json!("audio/webm"), &json!("audio")));
    world.say_with("", json!([{ "id": voice["id"], "voice": true }])).await;
    let event = heard(&mut socket).await;
    assert_eq!((&event["message_type"], &event["text"]), (&json!("voice"), &json!("[voice voice.webm]")));
    assert_eq!(world.lines().await[0]["files"][0]["kind"], "voice");

    let (map, song) = (world.send(("a.png", "image/png"), PNG).await, world.send(("b.ogg", ""), OGG).await);
    let hostile = world.send(("cat.png", "image/png"), SVG).await;
    assert_eq!((&hostile["type"], &hostile["kind"]), (&json!("image/svg+xml"), &json!("document")));
    let files = json!([{ "id": map["id"] }, { "id": song["id"] }, { "id": hostile["id"] }]);
    world.say_with("@agent look", files).await;
    let event = heard(&mut socket).await;
    assert_eq!(event["text"], "look\n[photo a.png] [audio b.ogg] [document cat.png]");
    assert_eq!(event["media_types"], json!(["image/png", "audio/ogg", "image/svg+xml"]));
    for (url, bytes) in event["media_urls"].as_array().unwrap().iter().zip([PNG, OGG, SVG]) {
        assert_eq!(fetch_file(url.as_str().unwrap(), &world.gateway).await.bytes().await.unwrap(), bytes);
    }
    for (id, shown) in [(&map["id"], "inline"), (&song["id"], "inline"), (&hostile["id"], "attachment")] {
        let answer = world.get("lab", &world.key, id.as_str().unwrap()).await;
        assert!(header(&answer, "content-disposition").starts_with(shown), "{shown}");
    }
}

#[tokio::test]
async fn a_gateway_that_fetches_nothing_gets_a_link_to_what_was_said_in_the_room() {
    let world = World::new().await;
    let mut socket = world.join_as_older().await;
    let sent = world.send(("map.png", "image/png"), PNG).await;
    world.say_with("@agent where is this?", json!([{ "id": sent["id"] }])).await;
    let event = heard(&mut socket).await;
    assert_eq!(event["media_urls"], json!([]), "it would take them for paths");
    let text = event["text"].as_str().unwrap();
    let link = text.rsplit(": ").next().unwrap();
    assert!(link.starts_with(&format!("{}/media/", world.connector.url())), "{text}");
    assert_eq!(world.http.get(link).send().await.unwrap().bytes().await.unwrap(), PNG);
}

#[tokio::test]
async fn what_an_agent_sends_is_a_line_with_a_file_and_goes_with_it() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let url = world.connector.url();
    world.post("@agent a chart, please").await;
    heard(&mut socket).await;
    let reference = upload_file(&url, &world.gateway, ("chart.png", "image/png"), PNG).await;
    let send_media = |kind: &str, source: &str, caption: &str| {
        json!({
            "op": "send_media", "chat_id": "web-lab", "media_kind": kind, "source_url": source,
            "content": caption, "reply_to": null, "metadata": { "notify": true }
        })
    };
    let sent = socket.ask(send_media("image", &reference, "")).await;
    assert_eq!(sent["success"], true, "{sent}");
    let line = world.lines().await.pop().unwrap();
    assert_eq!((&line["message_id"], &line["text"]), (&sent["message_id"], &json!("")));
    let file = &line["files"][0];
    assert_eq!(
        (&file["name"], &file["kind"], &file["size"]),
        (&json!("chart.png"), &json!("image"), &json!(PNG.len()))
    );
    let id = file["id"].as_str().unwrap().to_owned();
    assert!(!reference.contains(&id), "the room has a name of its own for it");
    assert_eq!(world.get("lab", &world.key, &id).await.bytes().await.unwrap(), PNG);

    // A page that an agent calls a picture, with a caption of two lines of the room.
    let page = upload_file(&url, &world.gateway, ("page.png", "image/png"), SVG).await;
    let sent = socket.ask(send_media("image", &page, &"word ".repeat(2_000))).await;
    assert_eq!(sent["success"], true, "{sent}");
    let lines = world.lines().await;
    let [with_file, behind] = &lines[lines.len() - 2..] else { panic!("{lines:#?}") };
    assert_eq!(
        (&with_file["files"][0]["kind"], &with_file["message_id"]),
        (&json!("document"), &sent["message_id"])
    );
    assert!(behind["files"].is_null() && behind["text"].as_str().unwrap().trim_end().ends_with("word"));

    let delete =
        json!({ "op": "delete", "chat_id": "web-lab", "message_id": line["message_id"], "metadata": {} });
    assert_eq!(socket.ask(delete).await["success"], true);
    assert!(world.lines().await.iter().all(|it| it["message_id"] != line["message_id"]));
    let foreign = world.connector.gateway("default", "other").await;
    let foreign = upload_file(&url, &foreign, ("a.png", "image/png"), PNG).await;
    let refused = socket.ask(send_media("image", &foreign, "")).await;
    assert!(
        refused["success"] == false && refused["error"].as_str().unwrap().contains("no such file"),
        "{refused}"
    );
}

#[tokio::test]
async fn what_cannot_be_kept_or_was_never_sent_is_told() {
    let world = World::new().await;
    let post = |body: Vec<u8>| world.room_file(Method::POST, "lab", &world.key, "").body(body).send();
    if let Ok(answer) = post(vec![1; 25 * MIB + 1]).await {
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    assert_eq!(post(Vec::new()).await.unwrap().status(), StatusCode::BAD_REQUEST, "it is empty");
    let nobody = world.room_file(Method::POST, "lab", "0123456789abcdef0123456789abcdef", "");
    assert_eq!(nobody.body("a file").send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert_eq!(files_below(&world.folder.path().join("data/media")).len(), 0, "nothing of it is kept");

    let unknown = world.say_with("look", json!([{ "id": "0123456789abcdef0123456789abcdef" }])).await;
    assert!(unknown["error"].as_str().unwrap().contains("send it again"), "{unknown}");
    let sent = world.send(("a.png", "image/png"), PNG).await;
    let many: Vec<Value> = (0..9).map(|_| json!({ "id": sent["id"] })).collect();
    let refused = world.say_with("look", many.into()).await;
    assert!(refused["error"].as_str().unwrap().contains("8 files"), "{refused}");
    for odd in [json!([{ "name": "a.png" }]), json!([{ "id": "x" }]), json!(["a.png"])] {
        assert!(world.say_with("look", odd.clone()).await["error"].is_string(), "{odd}");
    }
    assert!(world.lines().await.is_empty(), "nothing was said");
}

#[tokio::test]
async fn a_file_is_for_the_tenant_whose_agent_was_to_get_it() {
    let world = World::new().await;
    let sent = world.send(("map.png", "image/png"), PNG).await;
    world.connector.command(&["tenant", "create", "bolt"]).await;
    let theirs = world.connector.gateway("bolt", "theirs").await;
    world.connector.command(&["route", "remove", "webchat:*"]).await;
    world.connector.command(&["route", "add", "--tenant", "bolt", "--allow", "any", "webchat:lab"]).await;
    let mut socket = Socket::join(&world.connector.url(), &theirs).await;
    world.say_with("@agent look", json!([{ "id": sent["id"] }])).await;
    let event = heard(&mut socket).await;
    assert_eq!((&event["media_urls"], &event["media"]), (&json!([]), &json!([])));
    let text = event["text"].as_str().unwrap();
    assert!(text.starts_with("look\n[photo map.png]\n[map.png is not here: "), "{text}");
}

#[tokio::test]
async fn an_agent_in_rust_reads_files_and_sends_them() {
    let world = World::new().await;
    let gateway = Gateway::builder(world.connector.url())
        .id(&world.gateway.gateway_id)
        .secret(&world.gateway.secret)
        .build()
        .unwrap();
    // What came goes back: of one file its bytes, of the other the file it was saved to.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.ogg");
    let answering = gateway.run(move |event: Event, conversation: Conversation| {
        let path = path.clone();
        async move {
            let files: Vec<_> = event.files().collect();
            let picture = conversation.open_file(&files[0]).await.unwrap();
            assert_eq!((picture.media_type(), picture.size()), (Some("image/png"), files[0].size));
            let bytes = picture.bytes().await.unwrap();
            let picture = OutgoingFile::bytes(files[0].name.unwrap(), bytes).caption("seen");
            conversation.send_file(picture).await.unwrap();
            conversation.open_file(&files[1]).await.unwrap().save(&path).await.unwrap();
            conversation.send_file(OutgoingFile::path(path).kind(FileKind::Voice)).await.unwrap();
        }
    });
    let telling = async {
        let picture = world.send(("a.png", "image/png"), PNG).await;
        let sound = world.send(("a.ogg", "audio/ogg"), OGG).await;
        world.say_with("two", json!([{ "id": picture["id"] }, { "id": sound["id"] }])).await;
        for _ in 0..200 {
            let lines = world.lines().await;
            if lines.len() == 3 {
                return lines;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no answers: {:?}", world.lines().await)
    };
    let lines = tokio::select! {
        lines = telling => lines,
        ended = answering => panic!("{ended:?}"),
    };
    for (line, text, name, kind, bytes) in
        [(&lines[1], "seen", "a.png", "image", PNG), (&lines[2], "", "saved.ogg", "voice", OGG)]
    {
        let file = &line["files"][0];
        assert_eq!((&line["text"], &file["name"], &file["kind"]), (&json!(text), &json!(name), &json!(kind)));
        let got = world.get("lab", &world.key, file["id"].as_str().unwrap()).await;
        assert_eq!(got.bytes().await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn a_backup_says_whether_files_are_in_it_and_brings_them_back() {
    let mut world = World::new().await;
    let sent = world.send(("a.png", "image/png"), PNG).await;
    let id = sent["id"].as_str().unwrap();
    world.say_with("look", json!([{ "id": id }])).await;
    let path = |name: &str| world.folder.path().join(name);
    let bare = world.connector.command(&["backup", path("bare.db").to_str().unwrap()]).await;
    assert_eq!((&bare["files"]["blobs"], &bare["files"]["copied"]), (&json!(1), &Value::Null));
    let whole = path("whole.db");
    let made = world.connector.command(&["backup", "--with-media", whole.to_str().unwrap()]).await;
    assert_eq!(made["files"]["copied"]["blobs"], 1);
    assert_eq!(made["files"]["copied"]["folder"], json!(path("whole.db.media")));
    let status = world.connector.command(&["status"]).await;
    assert_eq!(status["files"], json!({ "count": 1, "bytes": PNG.len(), "heavy": [] }));

    let media = path("data/media");
    world.connector.kill().await;
    std::fs::remove_dir_all(&media).unwrap();
    world.connector.restart().await;
    assert_eq!(world.get("lab", &world.key, id).await.status(), StatusCode::NOT_FOUND);
    world.connector.kill().await;
    let copied = std::process::Command::new("cp")
        .arg("-rT")
        .args([world.folder.path().join("whole.db.media"), media])
        .status();
    assert!(copied.unwrap().success());
    world.connector.restart().await;
    assert_eq!(world.get("lab", &world.key, id).await.bytes().await.unwrap(), PNG);
}
