//! What people send besides text reaches their agent byte for byte, and nobody else.

use super::discord_stage;
use super::readers::{Chat, by_wechatpy, content as bytes_of};
use super::telegram_stage::{SOON, Stage, heard};
use super::wecom_stage;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Next, fetch_file};
use axum::body::Bytes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use serde_json::{Value, json};

/// A picture, a recording and a document, as their first bytes tell.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
const OGG: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead";
const PDF: &[u8] = b"%PDF-1.7\nall that was said";
const MP4: &[u8] = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41";

fn content(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// What a gateway gets by the references of an event: its type, and its bytes.
async fn fetched(event: &Value, gateway: &Credentials) -> Vec<(String, Bytes)> {
    let mut files = Vec::new();
    for url in event["media_urls"].as_array().unwrap() {
        let answer = fetch_file(url.as_str().unwrap(), gateway).await;
        assert_eq!(answer.status(), StatusCode::OK, "{event:#}");
        let media_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
        files.push((media_type, answer.bytes().await.unwrap()));
    }
    files
}

#[tokio::test]
async fn every_kind_that_telegram_has_reaches_the_agent() {
    let stage = Stage::new("files").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let other = stage.connector.gateway("acme", "gw-other").await;
    let mut socket = stage.join().await;
    let mut sent = Vec::new();
    for (what, bytes, kind, media_type) in [
        ("photo", PNG, "photo", "image/png"),
        ("voice", OGG, "voice", "audio/ogg"),
        ("audio", b"ID3\x04\0\0 a song".as_slice(), "audio", "audio/mpeg"),
        ("video", MP4, "video", "video/mp4"),
        ("video_note", MP4, "video", "video/mp4"),
        ("animation", MP4, "video", "video/mp4"),
        ("sticker", b"RIFF\x10\0\0\0WEBPVP8 ".as_slice(), "sticker", "image/webp"),
        ("document", PDF, "document", "application/pdf"),
    ] {
        let said =
            json!({ "chat": ann, "from": ann, what: { "content": content(bytes) }, "caption": "look" });
        sent.push((stage.telegram.say_with(&said).await.message, what, bytes));
        let event = heard(&mut socket).await;
        assert_eq!(event["message_type"], kind, "{what}");
        assert!(event["text"].as_str().unwrap().starts_with("look\n["), "{what}: {event:#}");
        assert_eq!(event["media_types"], json!([media_type]), "{what}");
        assert_eq!(event["media"][0]["mime"], media_type, "{what}");
        let url = event["media_urls"][0].as_str().unwrap();
        assert!(
            url.starts_with(&format!("{}/relay/media/", stage.connector.url())),
            "as it was dialled: {url}"
        );
        assert_eq!(
            fetched(&event, &stage.gateway).await,
            [(media_type.to_owned(), Bytes::from_static(bytes))]
        );
        assert_eq!(
            fetch_file(url, &other).await.status(),
            StatusCode::NOT_FOUND,
            "it was not meant for others"
        );
    }
    let read = Chat::of_telegram(&stage.telegram, ann).await;
    for (message, what, bytes) in sent {
        let [(kind, _, there)] = &read.files(&message.to_string())[..] else { panic!("one file: {read:#?}") };
        assert_eq!((*kind, &there[..]), (what, bytes), "a client of others' gets the same");
    }
    stage.close().await;
}

#[tokio::test]
async fn what_telegram_does_not_hand_out_is_said_to_both_sides() {
    let stage = Stage::new("files-large").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let mut socket = stage.join().await;
    let large =
        json!({ "chat": ann, "from": ann, "video": { "file_size": 21_000_000 }, "caption": "our trip" });
    stage.telegram.say_with(&large).await;
    let event = heard(&mut socket).await;
    let text = event["text"].as_str().unwrap();
    assert!(text.starts_with("our trip\n[video") && text.contains("20 MB"), "{text}");
    assert_eq!((&event["media_urls"], &event["media"]), (&json!([]), &json!([])));
    stage.telegram.wait_for_text(ann, "larger than can be passed on", SOON).await;
    stage.close().await;
}

#[tokio::test]
async fn a_gateway_that_fetches_nothing_gets_a_link() {
    let stage = Stage::new("files-link").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let mut socket = stage.join_as_older().await;
    let said =
        json!({ "chat": ann, "from": ann, "document": { "content": content(PDF) }, "caption": "sign this" });
    stage.telegram.say_with(&said).await;
    let event = heard(&mut socket).await;
    assert_eq!(event["media_urls"], json!([]), "it would take them for paths");
    let text = event["text"].as_str().unwrap();
    let line = text.lines().last().unwrap();
    let (about, link) = line.split_once(": ").unwrap_or_else(|| panic!("no link: {text}"));
    assert_eq!(about, "notes.pdf (application/pdf, 26 B)", "{text}");
    assert!(link.starts_with(&format!("{}/media/", stage.connector.url())), "{link}");
    let answer = reqwest::get(link).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers()["content-disposition"].to_str().unwrap().starts_with("attachment"));
    assert_eq!(answer.bytes().await.unwrap(), PDF);
    let told = async |link: &str| {
        let answer = reqwest::get(link).await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let (status, words) = told(&format!("{}/media/nothing", stage.connector.url())).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let mut changed = link.to_owned();
    let last = changed.pop().unwrap();
    changed.push(if last == 'A' { 'Q' } else { 'A' });
    assert_eq!(told(&changed).await, (status, words), "one that was changed is none");
    stage.close().await;
}

#[tokio::test]
async fn files_that_wait_for_a_turn_go_together() {
    let stage = Stage::new("files-held").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    for number in 0..3_u8 {
        let bytes = [PNG, &[number]].concat();
        let photo = json!({ "chat": ann, "from": ann, "photo": { "content": content(&bytes) } });
        stage.telegram.say_with(&photo).await;
    }
    stage.telegram.say(ann, ann, "what are these?").await;
    let mut socket = stage.join().await;
    let mut files = Vec::new();
    let mut text = String::new();
    while !text.contains("what are these?") {
        let event = heard(&mut socket).await;
        text = event["text"].as_str().unwrap().to_owned();
        files.extend(fetched(&event, &stage.gateway).await);
    }
    let last: Vec<u8> = files.iter().map(|(_, bytes)| *bytes.last().unwrap()).collect();
    assert_eq!(last, [0, 1, 2], "all of them, in order, before the question");
    stage.close().await;
}

#[tokio::test]
async fn an_album_is_one_event() {
    let stage = Stage::new("files-album").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let mut socket = stage.join().await;
    for number in 0..4_u8 {
        let bytes = [PNG, &[number]].concat();
        let mut photo =
            json!({ "chat": ann, "from": ann, "photo": { "content": content(&bytes) }, "album": 7 });
        if number == 0 {
            photo["caption"] = "our trip".into();
        }
        stage.telegram.say_with(&photo).await;
    }
    stage.telegram.say(ann, ann, "nice?").await;
    let event = heard(&mut socket).await;
    let text = event["text"].as_str().unwrap();
    assert!(text.starts_with("our trip\n[photo") && text.matches("[photo").count() == 4, "{text}");
    assert_eq!(event["message_type"], "photo");
    let files = fetched(&event, &stage.gateway).await;
    let last: Vec<u8> = files.iter().map(|(_, bytes)| *bytes.last().unwrap()).collect();
    assert_eq!(last, [0, 1, 2, 3], "all of them, in order");
    assert_eq!(heard(&mut socket).await["text"], "nice?", "what was said behind it comes behind it");
    stage.close().await;
}

#[tokio::test]
async fn attachments_and_recordings_of_discord_reach_the_agent() {
    let stage = discord_stage::Stage::listening(json!({})).await;
    let ann = &stage.ann;
    let dm = stage.discord.dm(ann).await;
    let pictures = json!({ "channel": dm, "author": ann, "content": "look", "attachments": [
        { "filename": "map.png", "content": content(PNG), "content_type": "image/png" },
        { "filename": "song.ogg", "content": content(OGG), "content_type": "audio/ogg" },
        { "filename": "really a picture.txt", "content": content(PNG), "content_type": "text/plain" },
    ] });
    let voice = json!({ "channel": dm, "author": ann, "attachments": [
        { "filename": "voice-message.ogg", "content": content(OGG), "content_type": "audio/ogg", "duration": 2.5 },
    ] });
    let sticker =
        json!({ "channel": dm, "author": ann, "stickers": [{ "name": "wave", "content": content(PNG) }] });
    let files = |files: &[(&str, &'static [u8])]| -> Vec<(String, Bytes)> {
        files.iter().map(|(kind, bytes)| ((*kind).to_owned(), Bytes::from_static(bytes))).collect()
    };
    let mut agent = stage.agent().await;
    stage.discord.make("say", pictures).await;
    let event = agent.takes("look\n[photo map.png] [audio song.ogg] [document really a picture.txt]").await;
    let expected = files(&[("image/png", PNG), ("audio/ogg", OGG), ("image/png", PNG)]);
    assert_eq!(fetched(&event, &stage.acme).await, expected);
    let all = event.to_string();
    assert!(!all.contains("/attachments/") && !all.contains("angelia_file"), "only our own addresses: {all}");
    stage.discord.make("say", voice).await;
    let event = agent.takes("[voice message]").await;
    assert_eq!(event["message_type"], "voice");
    assert_eq!(fetched(&event, &stage.acme).await, files(&[("audio/ogg", OGG)]));
    stage.discord.make("say", sticker).await;
    let event = agent.takes("[sticker wave]").await;
    assert_eq!(event["message_type"], "sticker");
    assert_eq!(fetched(&event, &stage.acme).await, files(&[("image/png", PNG)]));
    let read = Chat::of_discord(&stage.discord, &dm).await;
    let seen: Vec<_> = read.all_files().into_iter().map(|(kind, _, bytes)| (kind, bytes)).collect();
    let expected =
        [("image/png", PNG), ("audio/ogg", OGG), ("text/plain", PNG), ("voice", OGG), ("sticker", PNG)];
    assert_eq!(seen, expected.map(|(kind, bytes)| (kind, bytes.to_vec())), "discord.py gets the same");
}

#[tokio::test]
async fn pictures_recordings_and_files_of_wecom_reach_the_agent() {
    let stage = wecom_stage::Stage::new("files").await;
    stage.route("acme", "wecom:*", &["--allow", "any"]).await;
    let mut socket = stage.join(&stage.gateway).await;
    for (kind, name, media_type, bytes, message_type) in [
        ("image", "a.png", "image/png", PNG, "photo"),
        ("voice", "a.amr", "audio/amr", b"#!AMR\n hello".as_slice(), "voice"),
        ("video", "a.mp4", "video/mp4", MP4, "video"),
        ("file", "minutes.pdf", "application/pdf", PDF, "document"),
    ] {
        let file = json!({ "name": name, "media_type": media_type, "content": content(bytes) });
        let said =
            stage.wecom.say_with(&json!({ "from": "Ann", "type": kind, "file": file })).await.remove(0);
        let event = wecom_stage::heard(&mut socket).await;
        assert_eq!(event["message_type"], message_type, "{event:#}");
        assert_eq!(
            fetched(&event, &stage.gateway).await,
            [(media_type.to_owned(), Bytes::from_static(bytes))]
        );
        assert_eq!(event["media"][0]["filename"], name);
        let asked = json!({ "callbacks": [said["plain"]], "read": [said["media_id"]] });
        let read = by_wechatpy(&stage.wecom, "Ann", &asked).await;
        assert_eq!((&read["read"][0]["name"], bytes_of(&read["read"][0])), (&json!(name), bytes.to_vec()));
        // It knows no callbacks about files.
        let understood = json!({ "type": kind, "media_id": said["media_id"] });
        assert!(kind == "file" || read["callbacks"][0] == understood, "{read}");
    }
    stage.wecom.say_with(&json!({ "from": "Ann", "type": "image" })).await;
    let event = wecom_stage::heard(&mut socket).await;
    assert_eq!((&event["text"], &event["media_urls"]), (&json!("[photo]"), &json!([])), "it names no file");
    assert!(matches!(socket.next(std::time::Duration::from_millis(100)).await, Next::Silence));
    stage.close().await;
}
