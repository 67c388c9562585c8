//! Long texts and their changes: pieces come and go, and nothing is said twice.

use super::telegram_stage::{POLL, SOON, Stage, answer, heard, sent};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// Lines that need this many messages of their own, recognisable by their word.
fn long(word: &str, messages: usize) -> String {
    let line = format!("{word} 😀 {}", "x".repeat(80));
    let units = line.encode_utf16().count() + 2;
    vec![line; (messages * 4096 - 2000) / units].join("\n\n")
}

fn edit(chat: i64, id: i64, text: &str) -> Value {
    json!({ "op": "edit", "chat_id": chat.to_string(), "message_id": id.to_string(), "content": text })
}

#[tokio::test]
async fn texts_grow_and_shrink_by_pieces() {
    let stage = Stage::new("pieces").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let mut socket = stage.join().await;
    let ann = telegram.person("Ann").await;
    telegram.say(ann, ann, "hello").await;
    let event = heard(&mut socket).await;
    let own = async || -> Vec<(i64, String)> {
        let messages = telegram.messages(ann).await;
        let own = messages.iter().filter(|message| message["by_bot"] == true);
        own.map(|message| {
            (message["message_id"].as_i64().unwrap(), message["text"].as_str().unwrap().to_owned())
        })
        .collect()
    };
    let edits = async || -> usize {
        telegram.log().await.iter().filter(|call| call["method"] == "editMessageText").count()
    };

    let id = answer(&mut socket, &event, &long("one", 2)).await;
    // The first piece is answered for at once, the rest follows.
    let two = |messages: &Vec<(i64, String)>| messages.len() == 2;
    let first = until(&own, two).await;
    assert_eq!(first[0].0, id);
    assert!(first.iter().all(|(_, text)| text.encode_utf16().count() <= 4096));
    let whole = |pieces: &[(i64, String)]| {
        pieces.iter().flat_map(|(_, text)| text.lines()).filter(|line| !line.is_empty()).count()
    };
    assert_eq!(
        whole(&first),
        long("one", 2).lines().filter(|line| !line.is_empty()).count(),
        "nothing is lost"
    );

    sent(&socket.ask(edit(ann, id, &long("two", 3))).await);
    let grown = own().await;
    assert_eq!(grown.len(), 3);
    assert_eq!(
        grown[..2].iter().map(|one| one.0).collect::<Vec<_>>(),
        first.iter().map(|one| one.0).collect::<Vec<_>>()
    );
    assert!(grown.iter().all(|(_, text)| text.contains("two") && !text.contains("one")));

    let before = edits().await;
    sent(&socket.ask(edit(ann, id, &long("two", 3))).await);
    assert_eq!(edits().await, before, "what stands is not written again");

    sent(&socket.ask(edit(ann, id, "three")).await);
    assert_eq!(own().await, [(id, "three".to_owned())]);
    let state = telegram.state().await;
    assert_eq!(state["counts"]["deletemessage"]["200"], 2, "{state}");
    let log = telegram.log().await;
    let deleted = log.iter().filter(|call| call["method"] == "deleteMessage");
    let deleted: Vec<i64> = deleted.filter_map(|call| call["message_id"].as_i64()).collect();
    assert_eq!(deleted, [grown[2].0, grown[1].0], "from the end");

    // Somebody who forgot what stands is told so by Telegram, and that is fine.
    let same = json!({
        "ok": false, "error_code": 400,
        "description": "Bad Request: message is not modified: specified new message content and reply markup are exactly the same"
    });
    telegram.answer_next("editMessageText", 1, 400, &same).await;
    assert_eq!(sent(&socket.ask(edit(ann, id, "four")).await), id);
    let gone = socket.ask(edit(ann, 999_999, "five")).await;
    assert!(gone["error"].as_str().is_some_and(|why| why.contains("send a new one")), "{gone}");
    stage.close().await;
}

#[tokio::test]
async fn a_piece_that_somebody_deleted_is_said_again_and_no_refusal_is_passed_over() {
    let stage = Stage::new("pieces-deleted").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let mut socket = stage.join().await;
    let ann = telegram.person("Ann").await;
    telegram.say(ann, ann, "hello").await;
    let event = heard(&mut socket).await;
    let text = |end: &str| format!("{}\n\n{end}", long("one", 2));
    let id = answer(&mut socket, &event, &text("the end")).await;
    let shown = telegram.wait_for_text(ann, "the end", SOON).await;
    let second = shown["message_id"].as_i64().unwrap();
    assert!(second > id);

    telegram.delete(ann, second).await;
    sent(&socket.ask(edit(ann, id, &text("another end"))).await);
    let again = telegram.wait_for_text(ann, "another end", SOON).await["message_id"].as_i64().unwrap();
    assert!(again > second, "it is a message of its own");
    sent(&socket.ask(edit(ann, id, &text("the last end"))).await);
    let shown = telegram.wait_for_text(ann, "the last end", SOON).await;
    assert_eq!(shown["message_id"], again, "and belongs to the text from then on");

    let refusal =
        json!({ "ok": false, "error_code": 400, "description": "Bad Request: message can't be edited" });
    telegram.answer_next("editMessageText", 1, 400, &refusal).await;
    let refused = socket.ask(edit(ann, id, &text("no end"))).await;
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("can't be edited")), "{refused}");
    stage.close().await;
}

/// Looks until it is as wanted.
async fn until<T>(look: &impl AsyncFn() -> T, wanted: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        let seen = look().await;
        if wanted(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "it did not come to that");
        sleep(POLL).await;
    }
}
