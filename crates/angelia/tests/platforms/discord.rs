//! The whole way: somebody writes on Discord, a gateway gets it, answers, and the answer is there.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};
use tempfile::TempDir;

struct World {
    fake: FakeDiscord,
    connector: Connector,
    credentials: Credentials,
    _folder: TempDir,
}

impl World {
    /// A server with a bot, a tenant to whom one guild belongs, and its gateway.
    async fn new(options: Value) -> (Self, String) {
        let folder = tempfile::tempdir().unwrap();
        let fake = FakeDiscord::start(&folder.path().join("fake"), &options).await;
        let guild = fake.guild("ops").await;
        let token = folder.path().join("token");
        fs::write(&token, fake.token()).unwrap();
        let lines = format!(
            "[[bots]]\nplatform = \"discord\"\nid = \"{}\"\nname = \"main\"\ntoken = {{ file = {:?} }}\n\
             api_url = \"{}\"\ngateway_url = \"{}\"\n",
            fake.bot_id(),
            token.display().to_string(),
            fake.url(),
            fake.gateway_url()
        );
        let binary = Path::new(env!("CARGO_BIN_EXE_angelia"));
        let connector = Connector::start_with(binary, &folder.path().join("server"), &lines).await;
        let credentials = connector.gateway("acme", "gw").await;
        for place in [format!("discord:{}", guild.id), "discord:*".to_owned()] {
            connector.command(&["route", "add", "--tenant", "acme", "--allow", "any", &place]).await;
        }
        (Self { fake, connector, credentials, _folder: folder }, guild.id)
    }

    async fn socket(&self) -> Socket {
        let mut socket = Socket::dial(&self.connector.url(), &self.credentials).await.unwrap();
        socket.hello("discord", self.fake.bot_id()).await;
        let descriptor = socket.frame().await;
        assert_eq!(
            (&descriptor["type"], &descriptor["descriptor"]["platform"]),
            (&json!("descriptor"), &json!("discord"))
        );
        socket
    }
}

/// The next event, acknowledged.
async fn heard(socket: &mut Socket) -> Value {
    delivered(socket).await["event"].clone()
}

/// The same with all of its frame.
async fn delivered(socket: &mut Socket) -> Value {
    let frame = socket.frame().await;
    assert_eq!(frame["type"], "inbound", "{frame}");
    socket.ack(&frame).await;
    frame
}

fn answer(event: &Value, content: &str) -> Value {
    let source = &event["source"];
    json!({
        "op": "send", "chat_id": source["chat_id"], "content": content, "reply_to": event["message_id"],
        "metadata": {"thread_id": source["thread_id"]},
    })
}

#[tokio::test]
async fn guild_thread_and_dm_are_answered_where_they_were_written() {
    let (world, guild) = World::new(json!({})).await;
    let (fake, mut socket) = (&world.fake, world.socket().await);
    let ann = fake.user("ann").await;
    let channel = fake.channel(&guild, "general").await;
    let thread = fake.thread(&channel, "plan", &ann, None).await;
    let dm = fake.dm(&ann).await;
    for (place, kind) in [(&channel, "group"), (&thread, "thread"), (&dm, "dm")] {
        let asked = fake.mention(place, &ann, "what now?").await;
        let event = heard(&mut socket).await;
        assert_eq!((&event["text"], &event["source"]["chat_type"]), (&json!("what now?"), &json!(kind)));
        let result = socket.ask(answer(&event, &format!("this, in a {kind}"))).await;
        assert_eq!(result["success"], true, "{result}");
        let answers = fake.answers(place).await;
        assert_eq!((answers.len(), answers[0].content.as_str()), (1, format!("this, in a {kind}").as_str()));
        assert_eq!(Some(&answers[0].id), result["message_id"].as_str().map(str::to_owned).as_ref());
        assert_eq!(answers[0].reference.as_ref(), Some(&asked));
    }
    let foreign = fake.make("guild", json!({"name": "foreign", "bot": false})).await;
    let foreign = fake.channel(&foreign, "general").await;
    let refused =
        socket.ask(json!({"op": "send", "chat_id": foreign, "content": "hi", "metadata": {}})).await;
    assert_eq!(refused["code"], "egress_declined", "{refused}");
    let written = fake.requests(0).await;
    let wrote = |request: &&angelia_testkit::discord::Request| {
        request.method != "GET" && request.ids.contains(&foreign)
    };
    assert!(written.iter().find(wrote).is_none(), "{written:?}");
}

#[tokio::test]
async fn a_killed_server_resumes_where_it_was() {
    let (mut world, guild) = World::new(json!({"limits": false})).await;
    let ann = world.fake.user("ann").await;
    let channel = world.fake.channel(&guild, "general").await;
    let thread = world.fake.thread(&channel, "plan", &ann, None).await;
    world.fake.mention(&thread, &ann, "0").await;
    let mut socket = world.socket().await;
    let first = delivered(&mut socket).await;
    assert_eq!(first["event"]["text"], "0");
    // What was delivered so far, and as which entry.
    let mut entries = HashMap::from([("0".to_owned(), first["bufferId"].clone())]);
    for round in 1..4 {
        world.fake.say_many(&thread, &ann, &format!("{round}-{{n}}"), 25).await;
        world.connector.kill().await;
        world.fake.say(&thread, &ann, &format!("{round}-down")).await;
        world.connector.restart().await;
        socket = world.socket().await;
        let expected: Vec<String> =
            (0..25).map(|n| format!("{round}-{n}")).chain([format!("{round}-down")]).collect();
        let mut got: Vec<String> = Vec::new();
        while got.len() < expected.len() {
            let frame = delivered(&mut socket).await;
            let text = frame["event"]["text"].as_str().unwrap().to_owned();
            assert!(frame["bufferId"].is_string(), "{frame}");
            assert_eq!(frame["event"]["source"]["chat_type"], "thread", "known without a new greeting");
            match entries.get(&text) {
                // Its acknowledgement was on its way when the server was killed:
                // then it comes before anything new, and is the same entry.
                Some(entry) => {
                    assert_eq!(*entry, frame["bufferId"], "{text} is there twice");
                    assert!(got.is_empty(), "{text} comes again on the same socket");
                }
                None => {
                    entries.insert(text.clone(), frame["bufferId"].clone());
                    got.push(text);
                }
            }
        }
        assert_eq!(got, expected);
    }
    let status = world.connector.stop(Duration::from_secs(20)).await;
    assert!(status.success(), "{status}");
    let closes = world.fake.state().await["gateway"]["client_closes"].clone();
    assert_eq!(closes.as_array().and_then(|closes| closes.last()), Some(&json!(4000)), "{closes}");
    world.fake.say(&thread, &ann, "after the end").await;
    world.connector.restart().await;
    let mut socket = world.socket().await;
    let last = loop {
        let frame = delivered(&mut socket).await;
        let text = frame["event"]["text"].as_str().unwrap().to_owned();
        match entries.get(&text) {
            Some(entry) => assert_eq!(*entry, frame["bufferId"], "{text} is there twice"),
            None => break text,
        }
    };
    assert_eq!(last, "after the end");
    assert_eq!(world.fake.count("/gateway/identifies").await, 1);
}
