//! Files that are long in coming: the chat they are of keeps its order, and who sent one that does not
//! come is told once.

use super::telegram_stage::{SOON, Stage, heard};
use angelia_testkit::process::until;
use angelia_testkit::socket::Next;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

fn photo(chat: i64) -> Value {
    json!({ "chat": chat, "from": chat, "photo": { "content": STANDARD.encode(PNG) }, "caption": "look" })
}

#[tokio::test]
async fn what_is_said_behind_a_picture_waits_for_it_however_many_others_wait() {
    let stage = Stage::new("files-waiting").await;
    stage.route_all().await;
    let mut people = Vec::new();
    for name in ["Ann", "Bea", "Cleo", "Dora", "Eve"] {
        people.push(stage.telegram.person(name).await);
    }
    let eve = people[4];
    let mut socket = stage.join().await;
    // As many as are asked for at a time, and no answer to any of them.
    stage.telegram.hang_next("getFile", 4).await;
    for person in &people {
        stage.telegram.say_with(&photo(*person)).await;
    }
    stage.telegram.say(eve, eve, "what is this?").await;
    stage.until_heard().await;
    // Fixed pause: nothing of Eve's may come before its turn, and there is nothing to wait for.
    if let Next::Frame(frame) = socket.next(Duration::from_secs(2)).await {
        panic!("something came before the files that are first: {frame}");
    }
    stage.telegram.clear_faults().await;
    let mut of_eve = Vec::new();
    while of_eve.len() < 2 {
        let event = heard(&mut socket).await;
        if event["source"]["chat_id"] == *eve.to_string() {
            of_eve.push((
                event["text"].as_str().unwrap().to_owned(),
                event["media_urls"].as_array().map_or(0, Vec::len),
            ));
        }
    }
    assert!(of_eve[0].0.starts_with("look") && of_eve[0].1 == 1, "{of_eve:?}");
    assert_eq!(of_eve[1], ("what is this?".to_owned(), 0));
    stage.close().await;
}

#[tokio::test]
async fn who_sent_too_large_a_file_is_told_once_however_often_its_message_goes() {
    let stage = Stage::new("files-told-once").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let large = json!({ "chat": ann, "from": ann, "caption": "our trip", "video": { "content": "", "file_size": 21_000_000 } });
    stage.telegram.say_with(&large).await;
    for _ in 0..2 {
        // It is not acknowledged, so the next socket gets it too.
        let mut socket = stage.join().await;
        let frame = socket.frame().await;
        assert!(frame["event"]["text"].as_str().unwrap().contains("20 MB"), "{frame}");
        socket.close().await;
    }
    let told = async || !stage.telegram.bot_texts(ann).await.is_empty();
    until("Ann is told", SOON, told).await;
    let mut socket = stage.join().await;
    let event = heard(&mut socket).await;
    assert!(event["text"].as_str().unwrap().starts_with("our trip"));
    // What is asked for now is answered behind anything else that was to be said.
    let said = json!({ "op": "send", "chat_id": ann.to_string(), "content": "well", "metadata": {} });
    assert_eq!(socket.ask(said).await["success"], true);
    let texts = stage.telegram.bot_texts(ann).await;
    assert_eq!(texts.len(), 2, "{texts:?}");
    stage.close().await;
}
