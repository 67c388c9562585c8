//! Members of a company and an agent, through an app on WeCom.

use super::wecom_stage::{SOON, Stage, heard, heard_text, quiet, send};
use angelia_core::own_words::{Language, OwnWords};
use serde_json::{Value, json};

#[tokio::test]
async fn what_a_member_writes_is_answered() {
    let stage = Stage::new("talk").await;
    stage.route("acme", "wecom:main", &["--allow", "any"]).await;
    let mut socket = stage.join(&stage.gateway).await;
    let wecom = &stage.wecom;

    let id = wecom.say("Ann", "hello <b> & 你好 😀").await;
    let event = heard(&mut socket).await;
    assert_eq!((&event["text"], &event["message_id"]), (&json!("hello <b> & 你好 😀"), &json!(id)));
    let source = &event["source"];
    assert_eq!(
        (&source["platform"], &source["chat_type"], &source["chat_id"], &source["user_id"]),
        (&json!("wecom"), &json!("dm"), &json!("Ann"), &json!("Ann"))
    );
    let sent = send(&mut socket, "Ann", "hello yourself").await;
    assert!(sent["success"] == true && sent["message_id"].is_string(), "{sent}");
    assert_eq!(wecom.texts("Ann").await, ["hello yourself"]);

    // Two honest answers that say the same are two.
    assert_eq!(send(&mut socket, "Ann", "ok").await["success"], true);
    assert_eq!(send(&mut socket, "Ann", "ok").await["success"], true);
    assert_eq!(wecom.texts("Ann").await, ["hello yourself", "ok", "ok"]);

    // A long one is cut by bytes, and nothing of it is lost.
    let long = "长文本，一句话。".repeat(300);
    assert_eq!(send(&mut socket, "Ann", &long).await["success"], true);
    let until = async || loop {
        let texts = wecom.texts("Ann").await;
        if texts.iter().skip(3).map(String::len).sum::<usize>() >= long.len() {
            return texts;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let texts = tokio::time::timeout(SOON, until()).await.expect("all of it");
    assert_eq!(texts[3..].concat(), long);
    assert!(texts[3..].len() > 3 && texts.iter().all(|text| text.len() <= 2048));

    // What WeCom has not.
    let edit = json!({ "op": "edit", "chat_id": "Ann", "message_id": sent["message_id"], "content": "x" });
    assert_eq!(socket.ask(edit).await["success"], false);
    let info = socket.ask(json!({ "op": "get_chat_info", "chat_id": "Ann" })).await;
    assert_eq!(info["chat_info"], json!({ "name": "Ann", "type": "dm" }), "{info}");

    assert_eq!(wecom.state().await["fetched"], 1, "one token for everything");
    assert_eq!(stage.bot().await["health"]["state"], "up");
    let checked = stage.connector.command(&["bot", "check"]).await;
    let bot = &checked["bots"][0];
    assert_eq!(bot["identity"], format!("Angelia ({})", wecom.id()), "{checked}");
    assert!(bot.to_string().contains("/webhooks/wecom/main"), "{checked}");
    stage.close().await;
}

#[tokio::test]
async fn nobody_is_written_to_who_did_not_write_first() {
    let mut stage = Stage::new("strangers").await;
    stage.route("acme", "wecom:main", &["--allow", "any"]).await;
    let other = stage.connector.gateway("other", "gw-other").await;
    stage.route("other", "wecom:main/bob", &[]).await;
    let (mut acme, mut socket) = (stage.join(&stage.gateway).await, stage.join(&other).await);
    for user in ["Ann", "bob", "@all", "Ann|bob", "ann", "nobody"] {
        let sent = send(&mut acme, user, "hello?").await;
        assert_eq!(
            (&sent["success"], &sent["code"]),
            (&json!(false), &json!("egress_declined")),
            "{user}: {sent}"
        );
    }
    stage.wecom.say("Ann", "hello").await;
    assert_eq!(heard_text(&mut acme).await, "hello");
    stage.wecom.say("bob", "mine").await;
    assert_eq!(heard_text(&mut socket).await, "mine");
    assert_eq!(send(&mut acme, "Ann", "hi").await["success"], true);
    assert_eq!(send(&mut acme, "bob", "hi").await["success"], false);
    assert_eq!(send(&mut socket, "bob", "hi").await["success"], true);
    assert_eq!(send(&mut socket, "Ann", "hi").await["success"], false);
    assert_eq!(send(&mut acme, "ANN", "hi").await["success"], false, "the same person to WeCom only");
    let called: Vec<Value> = stage.wecom.log().await;
    let written: Vec<&Value> = called.iter().filter(|call| call["method"] == "message/send").collect();
    assert_eq!(written.len(), 2, "{written:?}");

    // Who wrote is known after a restart too.
    stage.connector.stop(SOON).await;
    stage.connector.restart().await;
    let mut acme = stage.join(&stage.gateway).await;
    assert_eq!(send(&mut acme, "Ann", "again").await["success"], true);
    assert_eq!(send(&mut acme, "nobody", "again").await["code"], "egress_declined");
    stage.close().await;
}

#[tokio::test]
async fn a_code_gives_a_chat_away_once() {
    let stage = Stage::new("links").await;
    let other = stage.connector.gateway("other", "gw-other").await;
    let made = stage.connector.command(&["route", "code", "--tenant", "other"]).await;
    let link = format!("/link {}", made["code"].as_str().unwrap());
    // Posted twice: the answer to the first did not arrive.
    for _ in 0..2 {
        let said = stage.wecom.say_with(&json!({ "from": "Ann", "text": link, "id": "77001" })).await;
        assert_eq!(said[0]["attempts"][0]["status"], 200);
    }
    stage.wecom.wait_for_text("Ann", "Linked", SOON).await;
    let routes = stage.connector.command(&["route", "list"]).await;
    let route =
        routes["routes"].as_array().unwrap().iter().find(|it| it["place"] == "wecom:main/Ann").unwrap();
    assert_eq!((&route["tenant"], &route["allow"]), (&json!("other"), &json!(["Ann"])));
    let mut socket = stage.join(&other).await;
    stage.wecom.say("Ann", "hello").await;
    assert_eq!(heard_text(&mut socket).await, "hello", "the code was for nobody");
    quiet(&mut socket).await;
    assert_eq!(stage.wecom.texts("Ann").await.len(), 1, "answered once");
    stage.close().await;
}

#[tokio::test]
async fn tokens_end_and_wecom_fails() {
    let mut stage = Stage::new("trouble").await;
    stage.route("acme", "wecom:main", &["--allow", "any"]).await;
    let mut socket = stage.join(&stage.gateway).await;
    let wecom = &stage.wecom;
    for person in ["Ann", "bob"] {
        wecom.say(person, "hello").await;
        heard(&mut socket).await;
    }
    assert_eq!(send(&mut socket, "Ann", "one").await["success"], true);
    assert_eq!(wecom.state().await["fetched"], 1);

    // Ended before its time: fetched anew, once for all who noticed.
    wecom.expire_token().await;
    for (number, user) in [(1, "Ann"), (2, "bob")] {
        let action = json!({ "op": "send", "chat_id": user, "content": "two" });
        socket.send(&json!({ "type": "outbound", "requestId": number.to_string(), "action": action })).await;
    }
    for _ in 0..2 {
        assert_eq!(socket.frame().await["result"]["success"], true);
    }
    assert_eq!(wecom.state().await["fetched"], 2);
    assert_eq!(wecom.texts("Ann").await, ["one", "two"]);

    // Busy is not done: tried again.
    wecom.fault(&json!({ "method": "message/send", "errcode": -1 })).await;
    assert_eq!(send(&mut socket, "Ann", "three").await["success"], true);
    // Done and not told is not repeated.
    wecom.fault(&json!({ "method": "message/send", "action": "perform_and_drop" })).await;
    let lost = send(&mut socket, "Ann", "four").await;
    assert_eq!(lost["success"], false, "{lost}");
    assert_eq!(wecom.texts("Ann").await, ["one", "two", "three", "four"]);
    // Refused is told, with what can be done.
    for person in [json!({ "id": "Ann", "visible": false }), json!({ "id": "Ann", "licensed": false })] {
        wecom.person_with(&person).await;
        let refused = send(&mut socket, "Ann", "five").await;
        let why = refused["error"].as_str().unwrap();
        assert!(refused["success"] == false && why.contains("administrator"), "{refused}");
    }
    assert_eq!(wecom.texts("Ann").await.len(), 4);
    assert_eq!(wecom.state().await["dropped"], 0);

    // What an operator has to do is told there too, however much is heard.
    wecom.fault(&json!({ "method": "message/send", "errcode": 60020 })).await;
    assert_eq!(send(&mut socket, "bob", "six").await["success"], false);
    wecom.say("bob", "still there?").await;
    heard(&mut socket).await;
    let health = stage.bot().await["health"].clone();
    assert_eq!(health["state"], "stopped", "{health}");
    assert!(health["why"].as_str().unwrap().contains("Trusted IPs"), "{health}");
    assert_eq!(send(&mut socket, "bob", "seven").await["success"], true);
    assert_eq!(stage.bot().await["health"]["state"], "up");

    // Nor is it well with a token that is good for nothing.
    stage.connector.stop(SOON).await;
    stage.wecom.fault(&json!({ "method": "agent/get", "errcode": 60020, "times": 99 })).await;
    stage.connector.restart().await;
    let stopped = async || while stage.bot().await["health"]["state"] != "stopped" {};
    tokio::time::timeout(SOON, stopped()).await.expect("it says that it cannot speak");
    stage.close().await;
}

#[tokio::test]
async fn what_a_full_inbox_cannot_take_is_refused_and_whoever_wrote_is_told() {
    let mut stage = Stage::new("full").await;
    stage.route("acme", "wecom:main", &["--allow", "any"]).await;
    stage.connector.stop(SOON).await;
    stage.connector.restart_with(&[("ANGELIA_INBOX__MAX_ENTRIES", "2")]).await;
    for text in ["one", "two"] {
        stage.wecom.say("Ann", text).await;
    }
    let said = stage.wecom.say_with(&json!({ "from": "bob", "text": "three", "id": "77003" })).await;
    let attempts = said[0]["attempts"].as_array().unwrap();
    assert!(attempts.len() > 1 && attempts.iter().all(|it| it["status"] == 503), "it is repeated: {said:?}");
    stage.wecom.wait_for_text("bob", "not taken", SOON).await;
    assert_eq!(stage.wecom.texts("bob").await.len(), 1, "once, however often it was posted");
    assert_eq!(stage.bot().await["health"]["state"], "up", "the app is well");
    let mut socket = stage.join(&stage.gateway).await;
    for text in ["one", "two"] {
        assert_eq!(heard_text(&mut socket).await, text, "nothing that was acknowledged went");
    }
    stage.wecom.say_with(&json!({ "from": "bob", "text": "three", "id": "77003" })).await;
    assert_eq!(heard_text(&mut socket).await, "three");
    stage.close().await;
}

#[tokio::test]
async fn who_writes_before_there_is_an_agent_is_told_so() {
    let stage = Stage::with("first", "[notices]\naway_after = \"1s\"\n").await;
    stage.connector.command(&["tenant", "create", "new"]).await;
    stage.route("new", "wecom:main", &["--allow", "any"]).await;
    stage.wecom.say("Ann", "anybody?").await;
    stage.wecom.wait_for_text("Ann", OwnWords::NoAgentYet.text(Language::English), SOON).await;
    let first = stage.connector.gateway("new", "first").await;
    assert_eq!(heard_text(&mut stage.join(&first).await).await, "anybody?", "kept, as was said");
    stage.close().await;
}
