//! Files that agents send arrive byte for byte, as what they are, in the order of their chat.

use super::discord_stage;
use super::sms_stage;
use super::telegram_stage::{SOON, Stage};
use super::wecom_stage;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Socket, upload_file};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
/// Two pages of Ogg: the second says that two and a half seconds came before its end.
const OGG: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead OggS\0\x04\xc0\xd4\x01\0\0\0\0\0 and the end";
const PDF: &[u8] = b"%PDF-1.7\nall that was said";
const MP3: &[u8] = b"ID3\x04\0\0 a song";
const MP4: &[u8] = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41";

/// What every test sends: its kind, its name, its type, its bytes.
const FILES: [(&str, &str, &str, &[u8]); 6] = [
    ("image", "chart.png", "image/png", PNG),
    ("voice", "answer.ogg", "audio/ogg", OGG),
    ("audio", "song.mp3", "audio/mpeg", MP3),
    ("video", "film.mp4", "video/mp4", MP4),
    ("document", "report.pdf", "application/pdf", PDF),
    // Said to be a picture, and none.
    ("image", "page.html", "text/html", b"<!doctype html><script>alert(1)</script>"),
];

fn send_media(chat: &str, kind: &str, url: &str, caption: &str) -> Value {
    json!({
        "op": "send_media", "chat_id": chat, "media_kind": kind, "source_url": url, "content": caption,
        "reply_to": null, "metadata": {}
    })
}

async fn sends(socket: &mut Socket, action: Value) -> String {
    let sent = socket.ask(action).await;
    assert_eq!(sent["success"], true, "{sent}");
    sent["message_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn telegram_gets_every_kind_as_what_it_is() {
    let stage = Stage::new("files-out").await;
    stage.route_all().await;
    let (telegram, url) = (&stage.telegram, stage.connector.url());
    let ann = telegram.person("Ann").await;
    telegram.say(ann, ann, "hello").await;
    let mut socket = stage.join().await;
    super::telegram_stage::heard(&mut socket).await;
    let chat = ann.to_string();
    let shown = ["photo", "voice", "audio", "video", "document", "document"];
    for ((kind, name, media_type, bytes), shown) in FILES.into_iter().zip(shown) {
        let reference = upload_file(&url, &stage.gateway, (name, media_type), bytes).await;
        let id = sends(&mut socket, send_media(&chat, kind, &reference, "**look**")).await;
        let messages = telegram.messages(ann).await;
        let number = json!(id.parse::<i64>().unwrap());
        let message = messages.iter().find(|it| it["message_id"] == number).unwrap();
        assert_eq!((&message["text"], &message["entities"][0]["type"]), (&json!("look"), &json!("bold")));
        let file = match &message["raw"][shown] {
            Value::Array(sizes) => sizes.last().unwrap().clone(),
            file => file.clone(),
        };
        assert_eq!(file["file_size"], bytes.len(), "{kind}: {message:#}");
        if shown == "document" {
            assert_eq!(file["file_name"], name);
        }
        let sent = telegram.file(file["file_id"].as_str().unwrap()).await;
        assert_eq!(sent, bytes, "{kind} arrives as it was");
    }
    // A caption that does not fit is said behind the file.
    let reference = upload_file(&url, &stage.gateway, ("chart.png", "image/png"), PNG).await;
    let long = "word ".repeat(300);
    sends(&mut socket, send_media(&chat, "image", &reference, &long)).await;
    let after = telegram.messages(ann).await;
    let [file, text] = &after[after.len() - 2..] else { panic!("two messages") };
    assert!(file["raw"]["photo"].is_array() && file["text"].is_null(), "{file}");
    assert_eq!(text["text"], long.trim_end());
    stage.close().await;
}

#[tokio::test]
async fn what_is_not_the_senders_or_not_public_is_not_sent() {
    let stage = Stage::new("files-out-refused").await;
    stage.route_all().await;
    let url = stage.connector.url();
    let ann = stage.telegram.person("Ann").await;
    stage.telegram.say(ann, ann, "hello").await;
    let mut socket = stage.join().await;
    super::telegram_stage::heard(&mut socket).await;
    let other: Credentials = stage.connector.gateway("acme", "gw-other").await;
    let foreign = upload_file(&url, &other, ("a.png", "image/png"), PNG).await;
    for (source, why) in [
        (foreign, "no such file"),
        (format!("{url}/relay/media/00000000000000000000000000000000"), "no such file"),
        (format!("{url}/livez"), "refused"),
        ("http://169.254.169.254/latest/meta-data".to_owned(), "refused"),
        ("file:///etc/passwd".to_owned(), "refused"),
    ] {
        let told = socket.ask(send_media(&ann.to_string(), "document", &source, "")).await;
        let error = told["error"].as_str().unwrap_or_default();
        assert!(told["success"] == false && error.contains(why), "{source}: {told}");
    }
    assert!(stage.telegram.messages(ann).await.iter().all(|message| message["by_bot"] == false));
    stage.close().await;
}

#[tokio::test]
async fn discord_gets_attachments_and_recordings() {
    let stage = discord_stage::Stage::listening(json!({})).await;
    let dm = stage.discord.dm(&stage.ann).await;
    stage.discord.say(&dm, &stage.ann, "hello").await;
    let mut agent = stage.agent().await;
    agent.takes("hello").await;
    let url = stage.connector.url();
    for (kind, name, media_type, bytes) in FILES {
        let reference = upload_file(&url, &stage.acme, (name, media_type), bytes).await;
        let answer = agent.ask(send_media(&dm, kind, &reference, "look")).await;
        assert_eq!(answer["success"], true, "{answer}");
        let id = answer["message_id"].as_str().unwrap();
        let messages = stage.discord.messages(&dm).await;
        let message = messages.iter().find(|it| it.id == id).unwrap();
        let [(called, at)] = &message.files[..] else { panic!("one file: {message:?}") };
        let is_voice = kind == "voice";
        assert_eq!((called.as_str(), message.voice), (name, is_voice), "{message:?}");
        // A recording has no words beside it: they are said behind it.
        assert_eq!(message.content, if is_voice { "" } else { "look" });
        let there = reqwest::get(at).await.unwrap();
        assert_eq!(there.bytes().await.unwrap(), bytes, "{kind} arrives as it was");
    }
    let messages = stage.discord.messages(&dm).await;
    let of_agent: Vec<_> = messages.iter().filter(|message| message.own).collect();
    assert_eq!((of_agent.len(), of_agent[2].content.as_str()), (7, "look"));
    stage.discord.say(&dm, &stage.ann, "more").await;
    agent.takes("more").await;
    // What is too large for Discord is a link.
    let large: &'static [u8] = Box::leak([PNG, &vec![7; 11 * 1024 * 1024]].concat().into_boxed_slice());
    let reference = upload_file(&url, &stage.acme, ("large.png", "image/png"), large).await;
    let answer = agent.ask(send_media(&dm, "image", &reference, "all of it")).await;
    assert_eq!(answer["success"], true, "{answer}");
    let messages = stage.discord.messages(&dm).await;
    let text = messages.last().unwrap().content.as_str();
    let link = text.rsplit(": ").next().unwrap();
    assert!(text.starts_with("all of it\nlarge.png (image/png, 11.5 MB): http"), "{text}");
    assert_eq!(reqwest::get(link).await.unwrap().bytes().await.unwrap(), large);
}

#[tokio::test]
async fn wecom_gets_pictures_and_files() {
    let stage = wecom_stage::Stage::new("files-out").await;
    stage.route("acme", "wecom:*", &["--allow", "any"]).await;
    stage.wecom.say("Ann", "hello").await;
    let mut socket = stage.join(&stage.gateway).await;
    wecom_stage::heard(&mut socket).await;
    let url = stage.connector.url();
    let shown = ["image", "file", "file", "video", "file", "file"];
    for ((kind, name, media_type, bytes), shown) in FILES.into_iter().zip(shown) {
        let reference = upload_file(&url, &stage.gateway, (name, media_type), bytes).await;
        sends(&mut socket, send_media("Ann", kind, &reference, "")).await;
        let messages = stage.wecom.messages("Ann").await;
        let message = messages.last().unwrap();
        assert_eq!(message["type"], shown, "{kind}");
        let file = stage.wecom.file(message["content"].as_str().unwrap()).await;
        assert_eq!((&file["name"], &file["content"]), (&json!(name), &json!(STANDARD.encode(bytes))));
    }
    let reference = upload_file(&url, &stage.gateway, ("report.pdf", "application/pdf"), PDF).await;
    sends(&mut socket, send_media("Ann", "document", &reference, "as you asked")).await;
    stage.wecom.wait_for_text("Ann", "as you asked", SOON).await;
    let messages = stage.wecom.messages("Ann").await;
    assert_eq!(messages.last().unwrap()["content"], "as you asked", "behind the file");
    stage.close().await;
}

#[tokio::test]
async fn a_phone_gets_a_link() {
    const ANN: &str = "+15550199";
    let stage = sms_stage::Stage::new("files-out").await;
    stage.route("sms:*").await;
    stage.twilio.text(ANN, "hello").await;
    let mut socket = stage.join().await;
    sms_stage::heard(&mut socket).await;
    let url = stage.connector.url();
    let reference = upload_file(&url, &stage.gateway, ("report.pdf", "application/pdf"), PDF).await;
    sends(&mut socket, send_media(ANN, "document", &reference, "here it is")).await;
    stage.twilio.wait_for_text(ANN, "report.pdf", SOON).await;
    let texts = stage.twilio.sent_to(ANN).await;
    let text = texts.into_iter().map(|(_, text)| text).find(|text| text.contains("report.pdf")).unwrap();
    let link = text.rsplit(": ").next().unwrap();
    assert!(text.starts_with("here it is\nreport.pdf (application/pdf, 26 B): http"), "{text}");
    assert_eq!(reqwest::get(link).await.unwrap().bytes().await.unwrap(), PDF);
}
