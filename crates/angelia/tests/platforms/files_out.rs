//! Files that agents send arrive byte for byte, as what they are, in the order of their chat.

use super::discord_stage;
use super::readers::{Chat, by_twilio, by_wechatpy, content};
use super::sms_stage;
use super::telegram_stage::{SOON, Stage};
use super::wecom_stage;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Socket, upload_file};
use angelia_testkit::twilio::{NUMBER, form_urlencoded, post_with, signature};
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
/// Two pages of Ogg: the second says that two and a half seconds came before its end.
const OGG: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead OggS\0\x04\xc0\xd4\x01\0\0\0\0\0 and the end";
const PDF: &[u8] = b"%PDF-1.7\nall that was said";
const MP3: &[u8] = b"ID3\x04\0\0 a song";
const AMR: &[u8] = b"#!AMR\n a few words";
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
    let mut sent = Vec::new();
    for (kind, name, media_type, bytes) in FILES {
        let reference = upload_file(&url, &stage.gateway, (name, media_type), bytes).await;
        sent.push(sends(&mut socket, send_media(&chat, kind, &reference, "**look**")).await);
    }
    let read = Chat::of_telegram(telegram, ann).await;
    for ((id, shown), (_, name, _, bytes)) in sent.iter().zip(shown).zip(FILES) {
        // Pictures and recordings have no names there.
        let name = Some(name).filter(|_| !["photo", "voice"].contains(&shown));
        assert_eq!(read.files(id), [(shown, name, bytes.to_vec())], "as it was");
        assert_eq!(read.message(id)["html"], "<b>look</b>");
    }
    // A caption that does not fit is said behind the file.
    let reference = upload_file(&url, &stage.gateway, ("chart.png", "image/png"), PNG).await;
    let long = "word ".repeat(300);
    sends(&mut socket, send_media(&chat, "image", &reference, &long)).await;
    telegram.wait_for_text(ann, "word word", SOON).await;
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
    let mut sent = Vec::new();
    for (kind, name, media_type, bytes) in FILES {
        let reference = upload_file(&url, &stage.acme, (name, media_type), bytes).await;
        let answer = agent.ask(send_media(&dm, kind, &reference, "look")).await;
        assert_eq!(answer["success"], true, "{answer}");
        sent.push(answer["message_id"].as_str().unwrap().to_owned());
    }
    let read = Chat::of_discord(&stage.discord, &dm).await;
    for (id, (kind, name, _, bytes)) in sent.iter().zip(FILES) {
        let [(shown, called, there)] = &read.files(id)[..] else { panic!("one file: {read:#?}") };
        assert_eq!((*called, &there[..], *shown == "voice"), (Some(name), bytes, kind == "voice"));
        // A recording has no words beside it: they are said behind it.
        assert_eq!(read.message(id)["text"], if kind == "voice" { "" } else { "look" });
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
    let files = FILES.into_iter().chain([("voice", "answer.amr", "audio/amr", AMR)]);
    for (kind, name, media_type, bytes) in files.clone() {
        let reference = upload_file(&url, &stage.gateway, (name, media_type), bytes).await;
        sends(&mut socket, send_media("Ann", kind, &reference, "")).await;
    }
    let messages = stage.wecom.messages("Ann").await;
    let shown: Vec<_> = messages.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(shown, ["image", "file", "file", "video", "file", "file", "voice"]);
    let ids: Vec<_> = messages.iter().map(|message| &message["content"]).collect();
    let read = by_wechatpy(&stage.wecom, "Ann", &json!({ "read": ids })).await;
    for ((_, name, _, bytes), file) in files.zip(read["read"].as_array().unwrap()) {
        assert_eq!((&file["name"], content(file)), (&json!(name), bytes.to_vec()), "as it was");
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

#[tokio::test]
async fn a_phone_gets_a_picture_where_twilio_can_fetch_it() {
    const ANN: &str = "+15550199";
    // Twilio fetches over https only; here nobody goes there.
    const PUBLIC: &str = "https://angelia.example";
    let stage = sms_stage::Stage::known_as("picture-out", PUBLIC).await;
    stage.route("sms:*").await;
    let text = form_urlencoded(&[("MessageSid", "SM1"), ("From", ANN), ("To", NUMBER), ("Body", "hello")]);
    let signed = signature(&format!("{PUBLIC}/webhooks/sms/main"), &text).await;
    assert_eq!(post_with(&stage.hook(), text, Some(&signed)).await.0, 200);
    let mut socket = stage.join().await;
    sms_stage::heard(&mut socket).await;
    let url = stage.connector.url();
    let reference = upload_file(&url, &stage.gateway, ("chart.png", "image/png"), PNG).await;
    let id = sends(&mut socket, send_media(ANN, "image", &reference, "here it is")).await;
    assert_eq!(stage.twilio.sent_to(ANN).await, [(id.clone(), "here it is".to_owned())], "and no link in it");
    let files = by_twilio(&stage.twilio.url(), &id).await;
    let [file] = &files[..] else { panic!("one file: {files:?}") };
    let way = file["uri"].as_str().unwrap().strip_prefix(PUBLIC).unwrap();
    let answer = reqwest::get(format!("{url}{way}")).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "image/png");
    assert_eq!(answer.bytes().await.unwrap(), PNG);
    stage.close();
}
