//! A gateway on one node, its bot on another: everything it may ask for is done there.

use super::stage::{
    AT_ONCE, BUSY, SECOND, SOON, Stage, TAKEN_OVER, bot, lease, setup, telegram, timed, until,
};
use angelia_testkit::socket::Socket;
use angelia_testkit::telegram::FakeTelegram;
use serde_json::{Value, json};
use std::time::Duration;

/// Node 0 reads the bot; the agent is on node 1.
struct Apart {
    stage: Stage,
    telegram: FakeTelegram,
    ann: i64,
    agent: Socket,
}

impl Apart {
    async fn new(story: &str) -> Self {
        let (telegram, folder) = telegram(&format!("{story}-telegram")).await;
        let cluster = setup(story).lines(&bot(&telegram, &folder)).start(2).await;
        cluster.until_held(&lease(&telegram), &[0], SOON).await;
        let stage = Stage::on(cluster).await;
        let ann = telegram.person("Ann").await;
        let place = format!("telegram:{ann}");
        stage.cluster[0].command(&["route", "add", "--tenant", "acme", &place]).await;
        let mut agent = Socket::dial(&stage.cluster[1].url(), &stage.gateway).await.expect("let in");
        agent.hello("telegram", &telegram.bot_id().to_string()).await;
        assert_eq!(agent.frame().await["type"], "descriptor");
        telegram.say(ann, ann, "question").await;
        assert_eq!(agent.take_text().await, "question");
        Self { stage, telegram, ann, agent }
    }

    fn action(&self, op: &str, content: &str) -> Value {
        json!({ "op": op, "chat_id": self.ann.to_string(), "content": content })
    }

    async fn send(&mut self, text: &str) -> Value {
        let action = self.action("send", text);
        self.agent.ask(action).await
    }
}

#[tokio::test]
async fn what_an_agent_asks_for_is_done_by_the_node_with_the_bot() {
    let mut apart = Apart::new("replies").await;
    let mut typing = apart.action("typing", "");
    // Empty words would take it away.
    typing.as_object_mut().unwrap().remove("content");
    let typing = timed("typing through another node", SECOND + BUSY, apart.agent.ask(typing)).await;
    assert_eq!(typing["success"], true, "{typing}");
    apart.telegram.first_actions(apart.ann, SOON).await;

    let sent = timed("a reply through another node", SECOND + BUSY, apart.send("answer")).await;
    assert_eq!(sent["success"], true, "{sent}");
    assert_eq!(apart.telegram.bot_texts(apart.ann).await, ["answer"]);

    let mut edit = apart.action("edit", "better");
    edit["message_id"] = sent["message_id"].clone();
    let edited = timed("an edit through another node", SECOND + BUSY, apart.agent.ask(edit)).await;
    assert_eq!(edited["success"], true, "{edited}");
    assert_eq!(apart.telegram.bot_texts(apart.ann).await, ["better"]);

    let info = json!({ "op": "get_chat_info", "chat_id": apart.ann.to_string() });
    let info = timed("get_chat_info through another node", SECOND + BUSY, apart.agent.ask(info)).await;
    assert_eq!(info["chat_info"], json!({ "name": "Ann", "type": "dm" }), "{info}");
    for number in 0..20 {
        let text = format!("line {number}");
        assert_eq!(apart.send(&text).await["success"], true);
    }
    let texts = apart.telegram.bot_texts(apart.ann).await;
    let wanted: Vec<String> =
        std::iter::once("better".into()).chain((0..20).map(|n| format!("line {n}"))).collect();
    assert_eq!(texts, wanted, "in order, each once");
    apart.telegram.assert_no_violations().await;
    apart.stage.cluster.assert_never_panicked();
}

#[tokio::test]
async fn a_node_that_has_nothing_to_do_with_an_answer_hears_nothing_of_it() {
    const RECEIVED: &str = "angelia_bus_counts_total{what=\"received\"}";
    const ANSWERS: u64 = 40;
    let mut apart = Apart::new("replies-idle").await;
    apart.stage.cluster.add().await;
    let idle = apart.stage.cluster.len() - 1;
    let before = apart.stage.cluster[idle].counter(RECEIVED).await;
    for number in 0..ANSWERS {
        let typing = apart.action("typing", "");
        apart.agent.ask(typing).await;
        assert_eq!(apart.send(&format!("line {number}")).await["success"], true);
    }
    let heard = apart.stage.cluster[idle].counter(RECEIVED).await - before;
    println!("cluster: an idle node hears {heard} messages of {ANSWERS} answers");
    // Of leases and of who is known all nodes hear.
    assert!(heard < ANSWERS / 4, "{heard}");
}

#[tokio::test]
async fn replies_go_on_without_redis() {
    let mut apart = Apart::new("replies-deaf").await;
    apart.stage.without_redis().await;
    for number in 0..3 {
        let text = format!("line {number}");
        // There by a poll, and back by one.
        let sent =
            timed("a reply through another node, without Redis", 2 * SECOND + BUSY, apart.send(&text)).await;
        assert_eq!(sent["success"], true, "{sent}");
    }
    let info = json!({ "op": "get_chat_info", "chat_id": apart.ann.to_string() });
    timed("get_chat_info without Redis", Duration::from_secs(5) + BUSY, apart.agent.ask(info)).await;
    assert_eq!(apart.telegram.bot_texts(apart.ann).await, ["line 0", "line 1", "line 2"]);
}

#[tokio::test]
async fn what_waited_for_a_killed_node_is_sent_by_the_next_one() {
    let mut apart = Apart::new("replies-killed").await;
    assert_eq!(apart.send("before").await["success"], true);
    // A node that dies between a call and its note of it leaves a call of which nobody knows.
    let noted = "SELECT count(*) FROM actions WHERE state = 'sent'";
    until("the call is noted", SOON, async || apart.stage.cluster.sql(noted).await == "1").await;
    apart.stage.cluster.kill(0).await;
    let sent =
        timed("a reply after a kill -9 of the bot's node", TAKEN_OVER + BUSY + AT_ONCE, apart.send("after"))
            .await;
    assert_eq!(sent["success"], true, "{sent}");
    assert_eq!(apart.telegram.bot_texts(apart.ann).await, ["before", "after"], "each once");
}
