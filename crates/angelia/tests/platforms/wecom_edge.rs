//! Callbacks: taken once, and only WeCom's.

use super::wecom_stage::{Stage, heard, heard_text, quiet};
use angelia_engines::inspect::Inspect;
use serde_json::json;

#[tokio::test]
async fn a_callback_counts_once_and_only_if_it_is_wecoms() {
    let stage = Stage::new("edge").await;
    stage.route("acme", "wecom:main", &["--allow", "any"]).await;
    let mut socket = stage.join(&stage.gateway).await;
    let wecom = &stage.wecom;
    for _ in 0..3 {
        let said = wecom.say_with(&json!({ "from": "Ann", "text": "once", "id": "880001" })).await;
        assert_eq!(
            (&said[0]["attempts"][0]["status"], &said[0]["attempts"][0]["body"]),
            (&json!(200), &json!(""))
        );
    }
    assert_eq!(heard_text(&mut socket).await, "once");
    quiet(&mut socket).await;

    // Strangers, and what was changed on its way.
    let message = |id: &str, agent: &str| {
        format!(
            "<xml><ToUserName>x</ToUserName><FromUserName>Ann</FromUserName><CreateTime>1</CreateTime>\
             <MsgType>text</MsgType><Content>forged</Content><MsgId>{id}</MsgId><AgentID>{agent}</AgentID></xml>"
        )
    };
    let plain = message("880002", "1000002");
    let now = angelia_testkit::socket::now();
    let laughs = "<!DOCTYPE xml [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\">]><xml><Encrypt>&b;</Encrypt></xml>";
    let refused = [
        json!({ "plain": plain, "signature": "0".repeat(40) }),
        json!({ "plain": plain, "signature": "" }),
        json!({ "plain": plain, "token": "another" }),
        json!({ "plain": plain, "key": "A".repeat(43) }),
        json!({ "plain": plain, "corp_id": "wwanother" }),
        json!({ "plain": plain, "timestamp": now - 400 }),
        json!({ "plain": plain, "timestamp": now + 400 }),
        json!({ "plain": plain, "body": "<xml><Encrypt>AAAA</Encrypt></xml>" }),
        json!({ "plain": plain, "body": "<xml></xml>" }),
        json!({ "plain": plain, "body": "{}" }),
        json!({ "plain": plain, "body": laughs }),
        json!({ "plain": plain, "body": "<xml>".repeat(1000) }),
        json!({ "plain": message("880003", "1000003") }),
    ];
    for ask in &refused {
        assert_eq!(wecom.post(ask).await, [401], "{ask}");
    }
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for query in ["", "?msg_signature=a&timestamp=1&nonce=2&echostr=AAAA"] {
        let url = format!("{}{query}", stage.hook());
        assert_eq!(http.get(&url).send().await.unwrap().status(), 401);
        assert_eq!(http.post(&url).body("<xml/>").send().await.unwrap().status(), 401);
    }
    assert_eq!(wecom.post(&json!({ "plain": plain, "body": "x".repeat(300 * 1024) })).await, [413]);
    assert_eq!(stage.counted("refused_signatures").await, refused.len() as u64 + 4);
    // Those that WeCom signed at another time point to a wrong clock.
    assert_eq!(stage.counted("stale_signatures").await, 2);
    assert_eq!(stage.log().matches("see this server's clock").count(), 1, "said once an hour");
    assert_eq!(stage.bot().await["quarantined"], 0, "not even set aside");
    quiet(&mut socket).await;

    // What is WeCom's and cannot be read is kept: it would not come better.
    assert_eq!(wecom.post(&json!({ "plain": "<xml><MsgType>text</MsgType>" })).await, [200]);
    assert_eq!(stage.bot().await["quarantined"], 1);
    stage.close().await;
}

#[tokio::test]
async fn what_is_no_text_is_told_and_what_is_not_committed_is_posted_again() {
    let stage = Stage::new("sorts").await;
    stage.route("acme", "wecom:main", &["--allow", "any"]).await;
    let mut socket = stage.join(&stage.gateway).await;
    let wecom = &stage.wecom;

    // Somebody opens the app, and presses a button twice in a second; one is posted again.
    for (event, key) in
        [("subscribe", ""), ("enter_agent", ""), ("view", "https://x.test"), ("click", "/new")]
    {
        let attempts =
            wecom.event(&json!({ "from": "Ann", "event": event, "key": key, "at": 1_700_000_000 })).await;
        assert_eq!(attempts[0]["status"], 200, "{event}");
    }
    for key in ["/new", "help"] {
        wecom.event(&json!({ "from": "Ann", "event": "click", "key": key, "at": 1_700_000_000 })).await;
    }
    for text in ["/new", "help"] {
        assert_eq!(heard_text(&mut socket).await, text);
    }
    let image = json!({ "PicUrl": "http://p.test/1", "MediaId": "media-hunter2" });
    wecom.say_with(&json!({ "from": "Ann", "type": "image", "fields": image })).await;
    let event = heard(&mut socket).await;
    let (text, gone) = event["text"].as_str().unwrap().split_once('\n').unwrap();
    assert_eq!((text, &event["message_type"]), ("[photo]", &json!("photo")));
    assert!(gone.contains("WeCom does not have it any more"), "nor does it know this one: {gone}");

    // The store does not commit: WeCom hears it each time.
    let stopped = Inspect::of(&stage.folder.join("data")).stop_commits();
    let late = json!({ "from": "bob", "text": "late", "id": "990001" });
    let said = wecom.say_with(&late).await;
    let attempts = said[0]["attempts"].as_array().unwrap();
    assert!(attempts.len() == 3 && attempts.iter().all(|attempt| attempt["status"] == 503), "{attempts:?}");
    drop(stopped);
    assert_eq!(wecom.say_with(&late).await[0]["attempts"][0]["status"], 200);
    assert_eq!(heard_text(&mut socket).await, "late");
    quiet(&mut socket).await;
    stage.close().await;
}
