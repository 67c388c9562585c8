//! The rules that clients are tested against, each seen from a bare socket.

use futures_util::{SinkExt, StreamExt};
use reqwest::Method;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::*;

mod interactions;

const PATIENCE: Duration = Duration::from_secs(20);

/// GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES.
const MESSAGES: u64 = 1 | 1 << 9 | 1 << 12;
const MESSAGE_CONTENT: u64 = 1 << 15;
const GUILD_MEMBERS: u64 = 1 << 1;

async fn fake(name: &str, options: Value) -> FakeDiscord {
    let folder = std::env::temp_dir().join(format!("angelia-discord-{}-{name}", std::process::id()));
    FakeDiscord::start(&folder, &options).await
}

/// A gateway connection by hand.
struct Shard {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Shard {
    async fn dial(discord: &FakeDiscord) -> Self {
        let url = format!("{}/?v=10&encoding=json", discord.gateway_url());
        let (stream, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        let mut shard = Self { stream };
        assert_eq!(shard.next().await["op"], 10);
        shard
    }

    async fn identified(discord: &FakeDiscord, intents: u64, shard: [u32; 2]) -> (Self, Value) {
        let mut dialled = Self::dial(discord).await;
        dialled.send(identify(discord.token(), intents, shard)).await;
        let ready = dialled.next().await;
        assert_eq!(ready["t"], "READY");
        (dialled, ready["d"].clone())
    }

    async fn resumed(discord: &FakeDiscord, session: &str, seq: u64) -> Self {
        let mut dialled = Self::dial(discord).await;
        let d = json!({ "token": discord.token(), "session_id": session, "seq": seq });
        dialled.send(json!({ "op": 6, "d": d })).await;
        dialled
    }

    async fn send(&mut self, frame: Value) {
        self.stream.send(Frame::text(frame.to_string())).await.unwrap();
    }

    async fn frame(&mut self) -> Option<Frame> {
        timeout(PATIENCE, self.stream.next()).await.expect("a frame in time")?.ok()
    }

    async fn next(&mut self) -> Value {
        let frame = self.frame().await;
        let Some(Frame::Text(text)) = frame else { panic!("a frame, not {frame:?}") };
        serde_json::from_str(&text).unwrap()
    }

    /// The next message that comes; everything before it is passed over.
    async fn message(&mut self) -> (u64, String) {
        loop {
            let frame = self.next().await;
            if frame["t"] == "MESSAGE_CREATE" {
                return (frame["s"].as_u64().unwrap(), text(&frame["d"], "content"));
            }
        }
    }

    /// The code it is closed with.
    async fn closed(&mut self) -> u16 {
        loop {
            match self.frame().await {
                Some(Frame::Close(Some(frame))) => return frame.code.into(),
                Some(_) => {}
                None => panic!("closed without a code"),
            }
        }
    }
}

fn identify(token: &str, intents: u64, shard: [u32; 2]) -> Value {
    let properties = json!({ "os": "linux", "browser": "test", "device": "test" });
    json!({ "op": 2, "d": { "token": token, "intents": intents, "shard": shard, "properties": properties } })
}

/// A call of the API as the bot: status, headers, body.
async fn call(
    discord: &FakeDiscord,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (u16, reqwest::header::HeaderMap, Value) {
    let url = format!("{}/api/v10{path}", discord.url());
    let mut ask = http_client().request(method, url);
    ask = ask.header("Authorization", format!("Bot {}", discord.token()));
    ask = ask.header("User-Agent", "DiscordBot (https://example.org, 1)");
    if let Some(body) = body {
        ask = ask.json(&body);
    }
    let answer = ask.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, headers, answer.json().await.unwrap_or_default())
}

/// A guild with a channel and a person: (guild, channel, person).
async fn place(discord: &FakeDiscord) -> (Guild, String, String) {
    let guild = discord.guild("Harbour").await;
    let channel = discord.channel(&guild.id, "quay").await;
    (guild, channel, discord.user("ann").await)
}

#[tokio::test]
async fn what_was_reported_is_forgotten_and_the_rest_is_replayed() {
    let discord = fake("resume", json!({ "session_life": 2, "identify_seconds": 0 })).await;
    let (_, channel, ann) = place(&discord).await;
    let (mut shard, ready) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    assert_eq!(ready["resume_gateway_url"], discord.gateway_url());
    let session = text(&ready, "session_id");
    let mut seen = Vec::new();
    for _ in 0..4 {
        discord.mention(&channel, &ann, "ahoy").await;
        seen.push(shard.message().await.0);
    }
    shard.send(json!({ "op": 1, "d": seen[1] })).await;
    assert_eq!(shard.next().await["op"], 11);
    drop(shard);
    // What was written while nobody listened is kept too.
    discord.mention(&channel, &ann, "while away").await;

    let mut early = Shard::resumed(&discord, &session, seen[0]).await;
    assert_eq!(early.next().await, json!({ "op": 9, "t": null, "s": null, "d": false }));
    let mut shard = Shard::resumed(&discord, &session, seen[1]).await;
    for seq in [seen[2], seen[3], seen[3] + 1] {
        assert_eq!(shard.message().await.0, seq);
    }
    assert_eq!(shard.next().await["t"], "RESUMED");
    let state = discord.state().await;
    assert_eq!(state["gateway"]["sessions"][0]["reported"], seen[1]);

    drop(shard);
    discord.until_state(PATIENCE, |state| state["gateway"]["sessions"] == json!([])).await;
    let mut late = Shard::resumed(&discord, &session, seen[3]).await;
    assert_eq!(late.next().await["op"], 9, "the session has outlived its time");

    let (_shard, ready) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    let session = text(&ready, "session_id");
    let mut ahead = Shard::resumed(&discord, &session, 10_000).await;
    assert_eq!(ahead.closed().await, 4007);
    let mut again = Shard::resumed(&discord, &session, 1).await;
    assert_eq!(again.next().await["op"], 9, "who counts wrong starts anew");
}

#[tokio::test]
async fn a_polite_goodbye_ends_the_session() {
    let discord = fake("goodbye", json!({ "identify_seconds": 0 })).await;
    for (code, survives) in [(1000, false), (1001, false), (4000, true)] {
        let (mut shard, ready) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
        let bye = CloseFrame { code: code.into(), reason: "".into() };
        shard.stream.send(Frame::Close(Some(bye))).await.unwrap();
        discord.until_state(PATIENCE, |state| state["gateway"]["sockets"] == 0).await;
        let mut again = Shard::resumed(&discord, &text(&ready, "session_id"), 1).await;
        let answer = again.next().await;
        assert_eq!(answer["t"] == "RESUMED", survives, "after {code}: {answer}");
    }
    let closes = &discord.state().await["gateway"]["client_closes"];
    assert_eq!(closes.as_array().unwrap()[..1], [json!(1000)]);
    assert!(closes.to_string().contains("4000"), "{closes}");
}

#[tokio::test]
async fn whatever_breaks_the_rules_is_closed_with_its_code() {
    let discord = fake("codes", json!({ "identify_seconds": 0 })).await;
    let token = discord.token();
    let first = [
        (identify("wrong", MESSAGES, [0, 1]), 4004),
        (identify(token, MESSAGES, [1, 1]), 4010),
        (identify(token, 1 << 40, [0, 1]), 4013),
        (identify(token, GUILD_MEMBERS, [0, 1]), 4014),
        (json!({ "op": 3, "d": {} }), 4003),
        (json!({ "no": "op" }), 4002),
        (json!({ "op": 1, "d": "x".repeat(5000) }), 4002),
    ];
    for (frame, code) in first {
        let mut shard = Shard::dial(&discord).await;
        shard.send(frame.clone()).await;
        assert_eq!(shard.closed().await, code, "{frame}");
    }
    let (mut shard, _) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    shard.send(identify(&format!("Bot {token}"), MESSAGES, [0, 1])).await;
    assert_eq!(shard.closed().await, 4005);
    let (mut shard, _) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    shard.send(json!({ "op": 99, "d": null })).await;
    assert_eq!(shard.closed().await, 4001);
    let (mut shard, _) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    for _ in 0..120 {
        shard.send(json!({ "op": 1, "d": null })).await;
    }
    assert_eq!(shard.closed().await, 4008);
}

#[tokio::test]
async fn shards_share_the_guilds_and_wait_their_turn() {
    let discord = fake("shards", json!({ "max_concurrency": 2, "shards": 2 })).await;
    let (_, _, bot) = call(&discord, Method::GET, "/gateway/bot", None).await;
    assert_eq!((&bot["shards"], &bot["session_start_limit"]["max_concurrency"]), (&json!(2), &json!(2)));
    let ann = discord.user("ann").await;
    let mut channels = Vec::new();
    for number in 0..2 {
        let guild = discord.make("guild", json!({ "name": "g", "shard": [number, 2] })).await;
        channels.push(discord.channel(&guild, "quay").await);
    }
    let (mut zero, ready) = Shard::identified(&discord, MESSAGES, [0, 2]).await;
    assert_eq!(ready["guilds"].as_array().unwrap().len(), 1);
    assert_eq!(ready["shard"], json!([0, 2]));
    let (mut one, _) = Shard::identified(&discord, MESSAGES, [1, 2]).await;
    discord.mention(&channels[1], &ann, "one").await;
    discord.mention(&channels[0], &ann, "zero").await;
    let dm = discord.dm(&ann).await;
    discord.say(&dm, &ann, "private").await;
    discord.mention(&channels[1], &ann, "again").await;
    assert!(zero.message().await.1.ends_with("zero"));
    assert!(zero.message().await.1.ends_with("private"));
    assert!(one.message().await.1.ends_with("one"));
    assert!(one.message().await.1.ends_with("again"));

    let mut eager = Shard::dial(&discord).await;
    eager.send(identify(discord.token(), MESSAGES, [0, 2])).await;
    assert_eq!(eager.next().await["op"], 9, "one identify in five seconds");
    assert_eq!(discord.count("/gateway/identifies_refused").await, 1);
}

#[tokio::test]
async fn what_the_bot_may_not_see_it_is_not_shown() {
    let discord = fake("sight", json!({ "identify_seconds": 0, "limits": false })).await;
    let (guild, channel, ann) = place(&discord).await;
    let hidden = json!({ "guild": guild.id, "name": "cellar", "hidden": true });
    let hidden = discord.make("channel", hidden).await;
    let (mut blind, _) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    let (mut reader, _) = Shard::identified(&discord, MESSAGES | MESSAGE_CONTENT, [0, 1]).await;
    discord.say(&hidden, &ann, "secret").await;
    discord.say(&channel, &ann, "chatter").await;
    let dm = discord.dm(&ann).await;
    discord.say(&dm, &ann, "private").await;
    discord.mention(&channel, &ann, "to you").await;
    let addressed = format!("<@{}> to you", discord.bot_id());
    for (shard, chatter) in [(&mut blind, ""), (&mut reader, "chatter")] {
        assert_eq!(shard.message().await.1, chatter);
        assert_eq!(shard.message().await.1, "private");
        assert_eq!(shard.message().await.1, addressed);
    }
    let elsewhere = discord.make("guild", json!({ "name": "foreign", "bot": false })).await;
    let foreign = discord.channel(&elsewhere, "quay").await;
    let refused = [
        (format!("/channels/{hidden}"), 403, 50001),
        (format!("/channels/{foreign}"), 403, 50001),
        ("/channels/1234567".to_owned(), 404, 10003),
        (format!("/guilds/{elsewhere}"), 404, 10004),
        (format!("/channels/{channel}/messages/1234567"), 404, 10008),
        (format!("/guilds/{}/members?limit=5", guild.id), 403, 50001),
    ];
    for (path, status, code) in refused {
        let (got, _, body) = call(&discord, Method::GET, &path, None).await;
        assert_eq!((got, body["code"].as_u64()), (status, Some(code)), "{path}: {body}");
    }
    let (_, _, roles) = call(&discord, Method::GET, &format!("/guilds/{}/roles", guild.id), None).await;
    let managed = roles.as_array().unwrap().iter().find(|role| role["managed"] == true).unwrap();
    assert_eq!(
        (text(managed, "id"), text(&managed["tags"], "bot_id")),
        (guild.role, discord.bot_id().into())
    );
    let named = discord.requests(0).await.into_iter().filter(|request| request.ids.contains(&foreign));
    assert_eq!(named.count(), 1, "the log names a foreign chat once it was asked for");
}

#[tokio::test]
async fn messages_are_taken_and_refused_as_discord_does() {
    let discord = fake("messages", json!({ "limits": false })).await;
    let (_, channel, ann) = place(&discord).await;
    let path = format!("/channels/{channel}/messages");
    let post = async |body: Value| call(&discord, Method::POST, &path, Some(body)).await;
    let once = json!({ "content": "once", "nonce": "n-1", "enforce_nonce": true });
    let (_, _, first) = post(once.clone()).await;
    let (status, _, second) = post(once.clone()).await;
    assert_eq!((status, &second["id"]), (200, &first["id"]), "a repeated nonce is its first message");
    discord.set(json!({ "nonce_life": 0 })).await;
    let (_, _, third) = post(once).await;
    assert_ne!(third["id"], first["id"], "a nonce is remembered for its time only");

    assert_eq!(post(json!({ "content": "é".repeat(2000) })).await.0, 200);
    let (status, _, body) = post(json!({ "content": "é".repeat(2001) })).await;
    assert_eq!((status, body["code"].as_u64()), (400, Some(50035)));
    assert_eq!(post(json!({ "content": " " })).await.2["code"], 50006);

    let gone = discord.say(&channel, &ann, "soon gone").await;
    discord.delete(&channel, &gone).await;
    let reply = |fail: bool| {
        let reference = json!({ "message_id": gone, "fail_if_not_exists": fail });
        json!({ "content": "late", "message_reference": reference, "allowed_mentions": { "parse": [] } })
    };
    assert_eq!(post(reply(true)).await.2["code"], 50035);
    assert_eq!(post(reply(false)).await.0, 200);
    let last = discord.answers(&channel).await.pop().unwrap();
    assert_eq!((last.content.as_str(), last.reference), ("late", None));
    assert_eq!(last.allowed_mentions, json!({ "parse": [] }));

    let theirs = discord.say(&channel, &ann, "mine").await;
    let edit = Some(json!({ "content": "yours" }));
    let (status, _, body) = call(&discord, Method::PATCH, &format!("{path}/{theirs}"), edit).await;
    assert_eq!((status, body["code"].as_u64()), (403, Some(50005)));

    let ids = discord.say_many(&channel, &ann, "{n}", 10).await;
    let (_, _, page) = call(&discord, Method::GET, &format!("{path}?after={}&limit=3", ids[1]), None).await;
    let page: Vec<_> = page.as_array().unwrap().iter().map(|one| text(one, "content")).collect();
    assert_eq!(page, ["4", "3", "2"], "the next ones, newest first");
}

#[tokio::test]
async fn limits_are_told_before_and_when_they_are_met() {
    let discord = fake("limits", json!({ "limit_post": [2, 1] })).await;
    let (_, channel, _) = place(&discord).await;
    let path = format!("/channels/{channel}/messages");
    let body = Some(json!({ "content": "x" }));
    for left in ["1", "0"] {
        let (status, headers, _) = call(&discord, Method::POST, &path, body.clone()).await;
        assert_eq!((status, headers["x-ratelimit-remaining"].to_str().unwrap()), (200, left));
    }
    let (status, headers, refusal) = call(&discord, Method::POST, &path, body.clone()).await;
    assert_eq!(status, 429);
    assert_eq!(headers["x-ratelimit-scope"], "user");
    assert_eq!(refusal["global"], false);
    sleep(Duration::from_secs_f64(refusal["retry_after"].as_f64().unwrap())).await;
    assert_eq!(call(&discord, Method::POST, &path, body.clone()).await.0, 200, "who waits as told is let in");
    assert_eq!(discord.count("/rest/limited").await, 1);

    discord.fault(json!({ "path": "/messages$", "status": 429, "html": "" })).await;
    let (status, headers, _) = call(&discord, Method::POST, &path, body.clone()).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (429, "text/html; charset=utf-8"));
    let before = discord.answers(&channel).await.len();
    discord.fault(json!({ "path": "/messages$", "perform": true, "how": "drop" })).await;
    let url = format!("{}/api/v10{path}", discord.url());
    let ask = http_client().post(url).json(&body).header("User-Agent", "DiscordBot (x, 1)");
    let cut = ask.header("Authorization", format!("Bot {}", discord.token())).send().await;
    assert!(cut.is_err(), "no answer came");
    assert_eq!(discord.answers(&channel).await.len(), before + 1, "and yet it was done");
}

#[tokio::test]
async fn faults_happen_when_they_are_ordered() {
    let discord = fake("faults", json!({ "identify_seconds": 0 })).await;
    let (guild, channel, ann) = place(&discord).await;
    discord
        .mangle(json!({ "event": "MESSAGE_CREATE", "set": { "content": 42 }, "drop": ["author.id"] }))
        .await;
    let (mut shard, _) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    assert_eq!(shard.next().await["d"]["nsfw_level"], 0);
    discord.mention(&channel, &ann, "spoiled").await;
    let spoiled = shard.next().await;
    assert_eq!((&spoiled["d"]["content"], &spoiled["d"]["author"]["id"]), (&json!(42), &Value::Null));
    discord.mention(&channel, &ann, "whole").await;
    assert!(shard.message().await.1.ends_with("whole"), "only the next event is spoiled");
    discord.mangle(json!({ "event": "GUILD_CREATE", "drop": ["nsfw_level"] })).await;
    let (mut second, _) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    let lacking = second.next().await;
    assert_eq!((&lacking["t"], lacking["d"].get("nsfw_level")), (&json!("GUILD_CREATE"), None));

    discord.order("gateway/heartbeat", json!({})).await;
    assert_eq!(shard.next().await["op"], 1);
    discord.order("kick", json!({ "guild": guild.id })).await;
    assert_eq!(shard.next().await["t"], "GUILD_DELETE");
    let (status, _, body) = call(&discord, Method::GET, &format!("/channels/{channel}"), None).await;
    assert_eq!((status, body["code"].as_u64()), (403, Some(50001)));

    drop(second);
    discord.zombify(false).await;
    shard.send(json!({ "op": 1, "d": null })).await;
    discord.until_state(PATIENCE, |state| state["gateway"]["heartbeats"] == 1).await;
    discord.invalidate(false).await;
    assert_eq!(shard.next().await["op"], 9, "the heartbeat before was not acknowledged");

    discord.refuse_connections(60.0, true).await;
    assert!(tokio_tungstenite::connect_async(discord.gateway_url()).await.is_err());
    let url = format!("{}/api/v10/gateway", discord.url());
    assert!(http_client().get(url).send().await.is_err());
    discord.order("fault/clear", json!({})).await;
    Shard::dial(&discord).await;
}
