//! Text messages, with a Twilio that others wrote.

use super::sms_stage::{QUIET, SOON, Stage, answer, heard};
use angelia_core::own_words::{Language, OwnWords};
use angelia_testkit::socket::Next;
use angelia_testkit::twilio::{NUMBER, form_urlencoded, post_signed, post_with};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const ANN: &str = "+15550199";
const BOB: &str = "+15550198";

#[tokio::test]
async fn an_sms_is_answered_by_sms() {
    let stage = Stage::new("talk").await;
    stage.route(&format!("sms:{NUMBER}")).await;
    let mut socket = stage.join().await;
    let twilio = &stage.twilio;

    let asked = twilio.text(ANN, "What's up, Doc? 😀").await;
    let event = heard(&mut socket).await;
    let source = &event["source"];
    assert_eq!((&event["text"], &event["message_id"]), (&json!("What's up, Doc? 😀"), &json!(asked)));
    assert_eq!((&source["platform"], &source["chat_type"]), (&json!("sms"), &json!("dm")));
    assert_eq!((&source["chat_id"], &source["user_id"]), (&json!(ANN), &json!(ANN)));
    let result = answer(&mut socket, &event, "Nothing much.").await;
    let sent = result["message_id"].as_str().unwrap_or_else(|| panic!("not sent: {result}"));
    assert_eq!(twilio.sent_to(ANN).await, [(sent.to_owned(), "Nothing much.".to_owned())]);

    // What the network says of it does not go back, whatever the order.
    for status in ["sending", "delivered", "sent"] {
        twilio.status(sent, status).await;
    }
    // A receipt may be earlier than the commit of what it is for, and waits for that.
    eventually("the receipt", async || {
        stage.explain(&asked).await["messages"][0]["replies"][0]["receipt"] == "delivered"
    })
    .await;

    // Long texts are cut; what cannot be done says so.
    let result = answer(&mut socket, &event, &"word ".repeat(400)).await;
    assert_eq!(result["success"], true, "{result}");
    eventually("the second part", async || twilio.sent_to(ANN).await.len() == 3).await;
    let parts = twilio.sent_to(ANN).await.split_off(1);
    assert!(parts.iter().all(|(_, text)| text.chars().count() <= 1600));
    assert_eq!(
        parts.iter().map(|(_, text)| text.as_str()).collect::<String>(),
        "word ".repeat(400).trim_end()
    );
    let edit = json!({ "op": "edit", "chat_id": ANN, "message_id": sent, "content": "x" });
    assert_eq!(socket.ask(edit).await["success"], false);
    let info = socket.ask(json!({ "op": "get_chat_info", "chat_id": ANN })).await;
    assert_eq!(info["chat_info"], json!({ "name": ANN, "type": "dm" }), "{info}");

    // Whoever never wrote is not written to.
    let cold = socket.ask(json!({ "op": "send", "chat_id": BOB, "content": "buy this" })).await;
    assert_eq!(cold["code"], "egress_declined", "{cold}");
    assert!(twilio.sent_to(BOB).await.is_empty());

    let check = stage.connector.command(&["bot", "check", "main"]).await;
    assert!(check.to_string().contains("messages are posted to"), "{check}");
    stage.close();
}

#[tokio::test]
async fn only_what_twilio_signed_is_taken_and_once() {
    let stage = Stage::new("edge").await;
    stage.route(&format!("sms:{NUMBER}")).await;
    let mut socket = stage.join().await;
    let hook = stage.hook();

    let sid = stage.twilio.text(ANN, "hello").await;
    assert_eq!(heard(&mut socket).await["text"], "hello");
    let form =
        [("MessageSid", sid.as_str()), ("From", ANN), ("To", NUMBER), ("Body", "hello"), ("Extra", "")];
    let (status, kind, text) = post_signed(&hook, &form).await;
    assert_eq!((status, kind.as_str(), text.as_str()), (200, "text/xml", "<Response/>"), "a repetition");

    // Strangers, and what was signed for somewhere else.
    let body = form_urlencoded(&[("MessageSid", "SM1"), ("From", ANN), ("To", NUMBER), ("Body", "forged")]);
    let elsewhere = angelia_testkit::twilio::signature("http://127.0.0.1:1/webhooks/sms/main", &body).await;
    for signature in [None, Some(""), Some("AAAAAAAAAAAAAAAAAAAAAAAAAAA="), Some(elsewhere.as_str())] {
        assert_eq!(post_with(&hook, body.clone(), signature).await.0, 401, "{signature:?}");
        assert_eq!(
            post_with(&format!("{hook}/status"), body.clone(), signature).await.0,
            401,
            "{signature:?}"
        );
    }
    assert_eq!(stage.bot().await["health"]["counts"]["refused_signatures"], 8);

    // Somebody else's number, and a message that nobody can read.
    let other = [("MessageSid", "SM2"), ("From", ANN), ("To", "+15550111"), ("Body", "not for us")];
    for _ in 0..2 {
        assert_eq!(post_signed(&hook, &other).await.0, 200);
    }
    assert_eq!(stage.log().matches("messages to another number").count(), 1, "said once an hour");
    let (from, to) = (format!("whatsapp:{ANN}"), format!("whatsapp:{NUMBER}"));
    let whatsapp = [("MessageSid", "SM4"), ("From", &*from), ("To", &*to), ("Body", "another way")];
    assert_eq!(post_signed(&hook, &whatsapp).await.0, 200);
    assert_eq!(post_signed(&hook, &[("From", ANN), ("Body", "no id")]).await.0, 200);
    let bot = stage.bot().await;
    let counts = &bot["health"]["counts"];
    assert_eq!(
        (&bot["quarantined"], &counts["not_ours"], &counts["other_channels"]),
        (&json!(1), &json!(2), &json!(1))
    );

    // What is not committed is not acknowledged, and can be posted again.
    let late = [("MessageSid", "SM3"), ("From", ANN), ("To", NUMBER), ("Body", "late")];
    let stopped = stage.disk().stop_commits();
    assert_eq!(post_signed(&hook, &late).await.0, 503);
    drop(stopped);
    assert_eq!(post_signed(&hook, &late).await.0, 200);
    assert_eq!(heard(&mut socket).await["text"], "late");

    // Pictures are listed; a query belongs to the address.
    let picture = "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM1/Media/ME1";
    let mms = [
        ("MessageSid", "MM1"),
        ("From", ANN),
        ("To", NUMBER),
        ("Body", ""),
        ("NumMedia", "1"),
        ("MediaUrl0", picture),
        ("MediaContentType0", "image/jpeg"),
    ];
    assert_eq!(post_signed(&format!("{hook}?from=twilio"), &mms).await.0, 200);
    let event = heard(&mut socket).await;
    let text = event["text"].as_str().unwrap();
    assert!(text.starts_with("[photo]\n[file.jpg is not here: Twilio"), "there is no such file: {text}");
    assert_eq!((&event["message_type"], &event["media"]), (&json!("photo"), &json!([])));

    // Words for the network reach no agent, and say so.
    for word in ["STOP", " stop ", "HELP", "Start"] {
        let sid = stage.twilio.text(ANN, word).await;
        let story = stage.explain(&sid).await;
        assert_eq!(story["drops"][0]["reason"], "carrier_keyword", "{word}: {story}");
    }
    stage.twilio.text(ANN, "please don't stop").await;
    assert_eq!(heard(&mut socket).await["text"], "please don't stop");
    assert_eq!(socket.next(QUIET).await, Next::Silence);
    stage.close();
}

#[tokio::test]
async fn what_came_while_the_server_was_down_is_read_back_once() {
    let mut stage = Stage::new("readback").await;
    // Nobody has the number yet: that reaches nobody, now and later.
    let unrouted = stage.twilio.text(BOB, "anybody?").await;
    assert_eq!(stage.explain(&unrouted).await["drops"][0]["reason"], "no_route");
    let other = stage.connector.gateway("other", "gw-other").await;
    let code = stage.connector.command(&["route", "code", "--tenant", "other"]).await;
    stage.twilio.text(BOB, &format!("/link {}", code["code"].as_str().unwrap())).await;
    stage.twilio.wait_for_text(BOB, "Linked", SOON).await;
    stage.route(&format!("sms:{NUMBER}")).await;
    stage.twilio.text(ANN, "before").await;
    let mut socket = stage.join().await;
    assert_eq!(heard(&mut socket).await["text"], "before");

    stage.connector.stop(SOON).await;
    for text in ["one", "two", "stop", "three"] {
        stage.twilio.text(ANN, text).await;
    }
    stage.twilio.text(BOB, "for the other").await;
    stage.connector.restart().await;
    let (mut socket, mut theirs) = (stage.join().await, stage.join_as(&other).await);
    for text in ["one", "two", "three"] {
        assert_eq!(heard(&mut socket).await["text"], text);
    }
    let event = heard(&mut theirs).await;
    assert_eq!((&event["text"], &event["source"]["user_id"]), (&json!("for the other"), &json!(BOB)));
    stage.until_heard().await;
    assert_eq!(socket.next(QUIET).await, Next::Silence, "each once");
    assert_eq!(theirs.next(QUIET).await, Next::Silence, "what reached nobody stays there");
    assert_eq!(stage.twilio.sent_to(BOB).await.len(), 1, "a code is answered once");
    assert_eq!(stage.bot().await["health"]["counts"]["read_back"], 4);

    let sent = answer(&mut theirs, &event, "here").await;
    assert_eq!(sent["success"], true, "{sent}");
    stage.close();
}

async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}: not within {SOON:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn who_writes_before_there_is_an_agent_is_told_so() {
    let stage = Stage::with("first", "[notices]\naway_after = \"1s\"\n").await;
    stage.connector.command(&["tenant", "create", "new"]).await;
    let place = format!("sms:{NUMBER}");
    stage.connector.command(&["route", "add", "--tenant", "new", "--allow", "any", &place]).await;
    stage.twilio.text(ANN, "anybody?").await;
    stage.twilio.wait_for_text(ANN, OwnWords::NoAgentYet.text(Language::English), SOON).await;
    let first = stage.connector.gateway("new", "first").await;
    assert_eq!(heard(&mut stage.join_as(&first).await).await["text"], "anybody?", "kept, as was said");
    stage.close();
}
