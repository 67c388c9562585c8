//! Interactions as gateways are given them: passed on as they came, or as events.

use super::discord_stage::{SOON, Stage};
use super::discord_talk::key;
use super::interactions_stage::{PUBLISHED, Peer, at_ease};
use angelia_gateway::{ActionResult, CallError, Conversation, Event, Gateway, GatewayHandle};
use angelia_testkit::connector::Credentials;
use angelia_testkit::discord::Interaction;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

const KIND: &str = "discord.interaction_token";

/// One turn of an agent, and what came of its answer.
type Turn = (Event, String, Result<ActionResult, CallError>);

/// An agent written with the gateway half: every event is answered by `follow_up`.
fn agent(stage: &Stage, credentials: &Credentials) -> (GatewayHandle, mpsc::Receiver<Turn>) {
    let gateway = Gateway::builder(stage.connector.url())
        .id(&credentials.gateway_id)
        .secret(&credentials.secret)
        .identity("discord", stage.discord.bot_id())
        .build()
        .unwrap();
    let handle = gateway.handle();
    let (turns, taken) = mpsc::channel(16);
    tokio::spawn(gateway.run(move |event: Event, conversation: Conversation| {
        let turns = turns.clone();
        async move {
            let key = conversation.session_key().to_owned();
            let text = format!("re: {}", event.text);
            let result = conversation.gateway().follow_up(&key, KIND, &text).await;
            let _ = turns.send((event, key, result)).await;
        }
    }));
    (handle, taken)
}

async fn next(turns: &mut mpsc::Receiver<Turn>) -> Turn {
    timeout(SOON, turns.recv()).await.expect("a turn in time").expect("a gateway that runs")
}

fn refused(called: Result<ActionResult, CallError>) -> ActionResult {
    match called {
        Err(CallError::Refused(result)) => *result,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn the_gateway_half_answers_what_is_passed_on() {
    let stage = Stage::posted_to(at_ease(), "", "", &[]).await;
    let Stage { discord, quay, ann, .. } = &stage;
    let (handle, mut turns) = agent(&stage, &stage.acme);
    let beta = stage.connector.gateway("beta", "gw-beta").await;
    let (other, mut none) = agent(&stage, &beta);
    let dm = discord.dm(ann).await;
    let thread = discord.thread(quay, "ropes", ann, None).await;
    for chat in [quay, &dm, &thread] {
        let asked = discord.slash(chat, ann, "status", json!({ "of": "the tide" })).await;
        let (event, key, result) = next(&mut turns).await;
        assert_eq!(
            (event.text.as_str(), event.message_id.as_deref()),
            ("/status the tide", Some(&*asked.id))
        );
        assert_eq!(event.source.chat_id, *chat);
        let result = result.unwrap();
        assert!(result.success, "{result:?}");
        stage.until_says(&asked.id, "re: /status the tide").await;

        // To others it is as if it had never been, and what they say goes nowhere.
        let foreign = refused(other.follow_up(&key, KIND, "mine").await);
        assert_eq!(foreign, refused(other.follow_up("agent:main:discord:dm:1", KIND, "mine").await));
        assert_eq!(foreign.error.as_deref(), Some("there is no capability for this session"));
        assert_eq!(discord.interaction(&asked.id).await.followups, []);
    }
    assert!(handle.descriptors()["discord"].offers("follow_up"), "what works is offered");
    // A press: its answer is a message of its own, and its event says what was chosen.
    let shown = stage.button(quay, "May I?", "hp1:tide7:once").await;
    let pressed = discord.press(quay, ann, &shown, "hp1:tide7:once").await;
    let (event, _, result) = next(&mut turns).await;
    assert!(result.unwrap().success);
    let response = event.prompt_response.unwrap();
    assert_eq!((response.prompt_id.as_str(), response.option_id.as_str()), ("tide7", "once"));
    let is_answered = |one: &Interaction| one.followups.len() == 1;
    discord.until_interaction(&pressed.id, SOON, is_answered).await;
    assert!(none.try_recv().is_err(), "beta's gateway heard nothing");
}

impl Stage {
    /// Changes how interactions are given to gateways, and starts anew.
    async fn reconfigured(&mut self, from: &str, to: &str) {
        self.stop().await;
        let config = std::fs::read_to_string(self.config()).unwrap();
        let (from, to) = (format!("interactions = \"{from}\""), format!("interactions = \"{to}\""));
        assert!(config.contains(&from), "{config}");
        std::fs::write(self.config(), config.replace(&from, &to)).unwrap();
        self.connector.restart().await;
    }

    async fn asks(&self, text: &str) -> Interaction {
        self.discord.slash(&self.quay, &self.ann, "tell", json!({ "what": text })).await
    }
}

#[tokio::test]
async fn an_interaction_is_given_in_the_form_its_gateway_keeps() {
    let mut stage = Stage::posted_to(at_ease(), "", "interactions = \"auto\"", &[]).await;
    stage.discord.mention(&stage.quay, &stage.ann, "hello").await;
    let mut old = stage.published().await;
    let written = old.event().await;
    let asked = stage.asks("one").await;
    let event = old.takes(&asked, "/tell one").await;
    assert_eq!(event["message_type"], "command");
    assert_eq!(key(&written), key(&event), "{event:#}");
    old.close().await;

    // Whoever tells its commands knows what to do with a request, whatever it is made of.
    let mut new = stage.peer(&stage.acme, PUBLISHED, true).await;
    let asked = stage.asks("two").await;
    let (forward, body) = new.forward().await;
    assert_eq!(
        (&forward["platform"], &forward["botId"], &forward["method"], &forward["path"]),
        (&json!("discord"), &json!(stage.discord.bot_id()), &json!("POST"), &json!("/webhooks/discord/main"))
    );
    let headers = forward["headers"].to_string().to_lowercase();
    assert!(headers.contains("content-type") && !headers.contains("signature"), "{headers}");
    assert_eq!((&body["id"], &body["data"]["options"][0]["value"]), (&json!(asked.id), &json!("two")));
    assert_eq!(body.get("token"), None, "{body:#}");
    // A published gateway that reads it files it under this, and names no person.
    for (key, text) in [
        (key(&event), "by its conversation"),
        (format!("agent:main:relay:group:{}:{}", stage.quay, stage.ann), "by what others call it"),
    ] {
        let answer = json!({ "op": "follow_up", "session_key": key, "kind": KIND, "content": text });
        let told = new.ask(answer).await;
        assert_eq!(told["success"], true, "{told}");
    }
    let said = stage.until_says(&asked.id, "by its conversation").await;
    assert_eq!(said.followups.len(), 1, "{said:#?}");
    a_stop_overtakes_a_full_window(&stage, &mut new).await;
    new.close().await;

    stage.reconfigured("auto", "event").await;
    let mut other = stage.peer(&stage.acme, "test", true).await;
    let asked = stage.asks("three").await;
    other.takes(&asked, "/tell three").await;
    other.close().await;
    stage.reconfigured("event", "passthrough").await;
    let mut old = stage.published().await;
    let asked = stage.asks("four").await;
    assert_eq!(old.forward().await.1["id"], json!(asked.id));
}

/// A request that nobody acknowledges overtakes the window as well, if it stops a turn.
/// The window is full for as long as nobody reads.
async fn a_stop_overtakes_a_full_window(stage: &Stage, peer: &mut Peer) {
    for _ in 0..14 {
        stage.asks("more").await;
    }
    let stop = stage.discord.slash(&stage.quay, &stage.ann, "stop", json!({})).await;
    let mut ids = Vec::new();
    for _ in 0..15 {
        ids.push(peer.forward().await.1["id"].clone());
    }
    let place = ids.iter().position(|id| *id == json!(stop.id));
    assert_eq!(place, Some(12), "behind what was under way, before what waited");
}
