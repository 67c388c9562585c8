//! Files while things break: what is sent once, what is in doubt, and which secrets are seen.

use super::discord_stage;
use super::mms;
use super::sms_stage;
use super::telegram_stage::{SOON, Stage, heard, unlimited};
use super::wecom_stage;
use angelia_core::own_words::{Language, OwnWords};
use angelia_testkit::canary::{Aviary, files_below};
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::socket::{Next, Socket, upload_file};
use angelia_testkit::twilio::{ACCOUNT, AUTH_TOKEN, NUMBER, post_signed};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
/// How a process ends itself.
const SIGABRT: i32 = 6;
/// What a chat hears of a message in doubt.
const TOLD: &str = OwnWords::InDoubt.text(Language::English);
/// Fixed pause: so long something is awaited that must not come, and that nothing would tell of.
const A_WHILE: Duration = Duration::from_millis(500);

async fn reference(connector: &Connector, gateway: &Credentials) -> String {
    upload_file(&connector.url(), gateway, ("chart.png", "image/png"), PNG).await
}

fn picture(chat: &str, url: &str, reply_to: &str) -> Value {
    json!({
        "op": "send_media", "chat_id": chat, "media_kind": "image", "source_url": url, "content": "look",
        "reply_to": reply_to, "metadata": {}
    })
}

/// Starts the server so that it ends itself as it begins to send.
async fn let_die(connector: &mut Connector) {
    connector.kill().await;
    connector.restart_with(&[("ANGELIA_FAIL", "action_sending@1")]).await;
}

/// Asks for a picture, on which the server ends itself, and starts it again.
async fn dies_of(connector: &mut Connector, socket: &mut Socket, action: Value) {
    socket.send(&json!({ "type": "outbound", "requestId": "r", "action": action })).await;
    let status = connector.died(SOON).await.expect("the point was passed");
    assert_eq!(status.signal(), Some(SIGABRT), "{status}");
    connector.restart().await;
}

/// Waits until `explain` says this of the answer to a message.
async fn until_reply(connector: &Connector, message: &str, state: &str) {
    let deadline = Instant::now() + SOON;
    loop {
        let told = connector.command(&["explain", message]).await["messages"][0]["replies"][0].clone();
        if told["state"] == state {
            return;
        }
        assert!(Instant::now() < deadline, "not {state}: {told:#}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_death_while_a_picture_is_sent_leaves_one_where_the_provider_can_tell() {
    let mut stage = discord_stage::Stage::listening(json!({})).await;
    let dm = stage.discord.dm(&stage.ann).await;
    let asked = stage.discord.say(&dm, &stage.ann, "hello").await;
    stage.agent().await.takes("hello").await;
    let url = reference(&stage.connector, &stage.acme).await;
    let_die(&mut stage.connector).await;
    let mut agent = stage.agent().await;
    dies_of(&mut stage.connector, &mut agent.socket, picture(&dm, &url, &asked)).await;
    until_reply(&stage.connector, &asked, "sent").await;
    sleep(A_WHILE).await;
    let shown = stage.discord.answers(&dm).await;
    assert_eq!(
        shown.iter().map(|one| (one.content.as_str(), one.files.len())).collect::<Vec<_>>(),
        [("look", 1)]
    );
    assert_eq!(shown[0].reference.as_deref(), Some(asked.as_str()));

    // The web chat is the connector itself.
    let person = stage.connector.person("acme", "lab", "bob").await;
    let asked = person.say("hello").await;
    let mut socket = join_rooms(&stage.connector, &stage.acme).await;
    assert_eq!(heard(&mut socket).await["text"], "hello");
    let_die(&mut stage.connector).await;
    let mut socket = join_rooms(&stage.connector, &stage.acme).await;
    dies_of(&mut stage.connector, &mut socket, picture("web-lab", &url, &asked)).await;
    until_reply(&stage.connector, &asked, "sent").await;
    person.wait_for_answer("look", SOON).await;
    sleep(A_WHILE).await;
    assert_eq!(person.answers(), ["look"], "once");
}

async fn join_rooms(connector: &Connector, gateway: &Credentials) -> Socket {
    let mut socket = Socket::dial(&connector.url(), gateway).await.expect("let in");
    socket.hello("relay", "").await;
    assert_eq!(socket.frame().await["type"], "descriptor");
    socket
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_death_while_a_picture_is_sent_is_said_where_nobody_can_tell() {
    let mut stage = Stage::new("files-death").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let asked = stage.telegram.say(ann, ann, "hello").await.message.to_string();
    assert_eq!(heard(&mut stage.join().await).await["text"], "hello");
    let url = reference(&stage.connector, &stage.gateway).await;
    let_die(&mut stage.connector).await;
    let mut socket = stage.join().await;
    dies_of(&mut stage.connector, &mut socket, picture(&ann.to_string(), &url, &asked)).await;
    until_reply(&stage.connector, &asked, "ambiguous").await;
    stage.telegram.wait_for_text(ann, TOLD, SOON).await;
    sleep(A_WHILE).await;
    let shown = stage.telegram.messages(ann).await;
    let own: Vec<_> = shown.iter().filter(|one| one["by_bot"] == true).collect();
    assert!(own.len() == 1 && own[0]["text"] == TOLD, "{own:#?}");
    stage.close().await;

    let mut stage = wecom_stage::Stage::new("files-death").await;
    stage.route("acme", "wecom:*", &["--allow", "any"]).await;
    let asked = stage.wecom.say("Ann", "hello").await;
    wecom_stage::heard(&mut stage.join(&stage.gateway).await).await;
    let url = reference(&stage.connector, &stage.gateway).await;
    let_die(&mut stage.connector).await;
    let mut socket = stage.join(&stage.gateway).await;
    dies_of(&mut stage.connector, &mut socket, picture("Ann", &url, &asked)).await;
    until_reply(&stage.connector, &asked, "ambiguous").await;
    stage.wecom.wait_for_text("Ann", TOLD, SOON).await;
    sleep(A_WHILE).await;
    assert_eq!(stage.wecom.texts("Ann").await, [TOLD]);
    stage.close().await;

    const ANN: &str = "+15550199";
    let mut stage = sms_stage::Stage::new("files-death").await;
    stage.route("sms:*").await;
    let asked = stage.twilio.text(ANN, "hello").await;
    sms_stage::heard(&mut stage.join().await).await;
    let url = reference(&stage.connector, &stage.gateway).await;
    let_die(&mut stage.connector).await;
    let mut socket = stage.join().await;
    dies_of(&mut stage.connector, &mut socket, picture(ANN, &url, &asked)).await;
    until_reply(&stage.connector, &asked, "ambiguous").await;
    stage.twilio.wait_for_text(ANN, TOLD, SOON).await;
    sleep(A_WHILE).await;
    let texts: Vec<_> = stage.twilio.sent_to(ANN).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [TOLD]);
    stage.close();
}

/// Everything that a connector wrote is seen; what somebody was given is seen besides.
fn look_around(birds: &mut Aviary, connector: &Connector, folder: &Path, given: &[Value]) {
    birds.see("log", connector.whole_log());
    for path in files_below(&folder.join("data")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name != "master.key" && name != "admin-token" {
            birds.see(&format!("data/{name}"), std::fs::read(&path).unwrap());
        }
    }
    given.iter().for_each(|event| birds.see("event", event.to_string()));
}

const CHATTY: &str = "[log]\nlevel = \"trace\"\n";

#[tokio::test]
async fn no_token_is_seen_when_files_of_telegram_do_not_come() {
    let stage = Stage::with("files-canary", &unlimited(), "", CHATTY).await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let mut socket = stage.join().await;
    let mut given = Vec::new();
    for (method, action, comes) in [
        ("download", json!({ "action": "answer", "status": 404, "body": {} }), false),
        (
            "getFile",
            json!({ "action": "answer", "status": 400, "body": { "ok": false, "error_code": 400,
            "description": "Bad Request: invalid file_id" } }),
            false,
        ),
        ("download", json!({ "action": "cut" }), true),
        ("download", json!({ "action": "drop" }), true),
        ("download", json!({ "action": "answer", "status": 500, "body": "oops" }), true),
    ] {
        let mut fault = action.clone();
        fault["method"] = method.into();
        stage.telegram.fault_with(&fault).await;
        let file = json!({ "content": STANDARD.encode(PNG) });
        stage
            .telegram
            .say_with(&json!({ "chat": ann, "from": ann, "document": file, "caption": "the tide" }))
            .await;
        let event = heard(&mut socket).await;
        let text = event["text"].as_str().unwrap();
        assert_eq!(text.contains("is not here"), !comes, "{action}: {text}");
        given.push(event);
    }
    let mut birds = Aviary::default();
    birds.plant("the bot's token", stage.telegram.token());
    birds.plant("its secret part", stage.telegram.token().split_once(':').unwrap().1);
    look_around(&mut birds, &stage.connector, &stage.folder, &given);
    assert!(birds.holds("data/", "the tide") && birds.holds("log", "a file is fetched again"));
    assert_eq!(birds.escaped(), [""; 0]);
    stage.close().await;
}

#[tokio::test]
async fn no_token_is_seen_when_files_of_wecom_do_not_come() {
    let stage = wecom_stage::Stage::new("files-canary").await;
    stage.route("acme", "wecom:*", &["--allow", "any"]).await;
    let mut socket = stage.join(&stage.gateway).await;
    let (mut given, mut birds) = (Vec::new(), Aviary::default());
    for (fault, comes) in [
        (json!({ "errcode": 40007 }), false),
        (Value::Null, true),
        (json!({ "status": 404, "body": "no such page" }), true),
        (json!({ "action": "cut" }), true),
        (json!({ "action": "drop" }), true),
    ] {
        let mut asked = fault.clone();
        if asked.is_null() {
            // The token ends before its time.
            stage.wecom.expire_token().await;
        } else {
            asked["method"] = "media/get".into();
            stage.wecom.fault(&asked).await;
        }
        let file =
            json!({ "name": "tide.pdf", "media_type": "application/pdf", "content": STANDARD.encode(PNG) });
        stage.wecom.say_with(&json!({ "from": "Ann", "type": "file", "file": file })).await;
        let event = wecom_stage::heard(&mut socket).await;
        let text = event["text"].as_str().unwrap();
        assert_eq!(text.contains("is not here"), !comes, "{fault}: {text}");
        given.push(event);
    }
    for token in stage.wecom.state().await["tokens"].as_array().unwrap() {
        birds.plant("an access token", token.as_str().unwrap());
    }
    assert!(birds.secrets.len() >= 2, "one was replaced");
    birds.plant("the app's secret", stage.wecom.secret());
    look_around(&mut birds, &stage.connector, &stage.folder, &given);
    assert!(birds.holds("data/", "tide.pdf") && birds.holds("log", "a file is fetched again"));
    assert_eq!(birds.escaped(), [""; 0]);
    stage.close().await;
}

#[tokio::test]
async fn no_token_is_seen_when_files_of_discord_do_not_come() {
    let stage = discord_stage::Stage::with(json!({}), CHATTY).await;
    stage.until_session().await;
    let dm = stage.discord.dm(&stage.ann).await;
    let mut agent = stage.agent().await;
    let (mut given, mut birds) = (Vec::new(), Aviary::default());
    for (fault, comes) in [
        (json!({ "status": 404, "count": 9 }), false),
        (json!({ "how": "cut" }), true),
        (json!({ "how": "drop" }), true),
        (json!({ "status": 500 }), true),
    ] {
        let mut asked = fault.clone();
        asked["path"] = "^/attachments/".into();
        stage.discord.fault(asked).await;
        let file = json!({ "filename": "tide.png", "content": STANDARD.encode(PNG) });
        let said =
            json!({ "channel": dm, "author": stage.ann, "content": "the tide", "attachments": [file] });
        stage.discord.make("say", said).await;
        let event = agent.take().await;
        let text = event["text"].as_str().unwrap();
        assert_eq!(text.contains("is not here"), !comes, "{fault}: {text}");
        given.push(event);
        stage.discord.order("fault/clear", json!({})).await;
    }
    birds.plant("the bot's token", stage.discord.token());
    look_around(&mut birds, &stage.connector, stage.folder(), &given);
    assert!(birds.holds("data/", "the tide") && birds.holds("log", "a file is fetched again"));
    assert_eq!(birds.escaped(), [""; 0]);
    // Whoever has the signature of an address has the file; no agent gets it.
    for (_, at) in stage.discord.messages(&dm).await.into_iter().flat_map(|message| message.files) {
        let signed = at.split("hm=").nth(1).unwrap().trim_end_matches('&').to_owned();
        assert!(given.iter().all(|event| !event.to_string().contains(&signed)));
    }
}

#[tokio::test]
async fn no_token_is_seen_when_files_of_text_messages_do_not_come() {
    const ANN: &str = "+15550199";
    let mut api = String::new();
    let stage = sms_stage::Stage::behind("files-canary", async |behind: &str| {
        api = mms::with_files(behind).await;
        api.clone()
    });
    let stage = stage.await;
    stage.route("sms:*").await;
    let mut socket = stage.join().await;
    let mut given = Vec::new();
    for (number, (file, comes)) in
        [("MEgone", false), ("MEcut", true), ("MEbusy", true)].into_iter().enumerate()
    {
        let message = format!("MM{number:032}");
        let at = format!(
            "https://api.twilio.com/2010-04-01/Accounts/{ACCOUNT}/Messages/{}/Media/{file}",
            mms::MESSAGE
        );
        let mms = [
            ("MessageSid", message.as_str()),
            ("From", ANN),
            ("To", NUMBER),
            ("Body", "the tide"),
            ("NumMedia", "1"),
            ("MediaUrl0", &at),
            ("MediaContentType0", "image/png"),
        ];
        assert_eq!(post_signed(&stage.hook(), &mms).await.0, 200);
        let event = sms_stage::heard(&mut socket).await;
        let text = event["text"].as_str().unwrap();
        assert_eq!(text.contains("is not here"), !comes, "{file}: {text}");
        given.push(event);
    }
    let mut birds = Aviary::default();
    birds.plant("the auth token", AUTH_TOKEN);
    birds.plant("its credential", &STANDARD.encode(format!("{ACCOUNT}:{AUTH_TOKEN}")));
    look_around(&mut birds, &stage.connector, &stage.folder, &given);
    assert!(birds.holds("data/", "the tide") && birds.holds("log", "a file is fetched again"));
    assert_eq!(birds.escaped(), [""; 0]);
    assert!(matches!(socket.next(Duration::from_millis(100)).await, Next::Silence));
    stage.close();
}
