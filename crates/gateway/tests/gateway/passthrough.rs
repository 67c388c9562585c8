//! Forwarded requests and Discord interactions.

use std::time::Duration;

use angelia_contract::{ConnectorFrame, KeyOptions, PassthroughForward, PromptResponse, Rules, session_key};
use angelia_gateway::{Agent, Conversation, Event, GatewayHandle, interaction_event};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::{Peer, Server, run, run_turns, soon};

fn forward(platform: &str, body: Vec<u8>) -> PassthroughForward {
    PassthroughForward {
        platform: platform.to_owned(),
        bot_id: "bot1".to_owned(),
        method: "POST".to_owned(),
        path: "/hook".to_owned(),
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body,
        profile: None,
    }
}

async fn pass(peer: &mut Peer, forward: PassthroughForward, buffer_id: &str) {
    let frame = ConnectorFrame::PassthroughForward {
        forward,
        buffer_id: Some(buffer_id.to_owned()),
        platform: None,
        bot_id: None,
    };
    peer.send(&frame).await;
}

/// Hands forwarded requests to the test.
struct Hooked(mpsc::Sender<PassthroughForward>);

impl Agent for Hooked {
    async fn on_event(&self, _: Event, _: Conversation) {}

    async fn on_passthrough(&self, forward: PassthroughForward, _: GatewayHandle) {
        self.0.send(forward).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_arrives_byte_for_byte() {
    let server = Server::start().await;
    let (requests, mut received) = mpsc::channel(8);
    let (_handle, _running) = run(server.builder(), Hooked(requests));
    let mut peer = server.greet().await;
    let bytes: Vec<u8> = (0..=255).collect();
    pass(&mut peer, forward("twilio", bytes.clone()), "b1").await;
    assert_eq!(peer.ack().await, "b1");
    assert_eq!(soon(received.recv()).await.unwrap(), forward("twilio", bytes));
    // Not an interaction: the agent sees Discord's other requests as well.
    pass(&mut peer, forward("discord", b"{\"type\":1}".to_vec()), "b2").await;
    assert_eq!(soon(received.recv()).await.unwrap().body, b"{\"type\":1}");
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_does_not_want_is_dropped_and_acknowledged() {
    let server = Server::start().await;
    let (handle, _running, mut turns) = run_turns(server.builder());
    let mut peer = server.greet().await;
    pass(&mut peer, forward("twilio", b"a=b".to_vec()), "b1").await;
    assert_eq!(peer.ack().await, "b1");
    pass(&mut peer, forward("discord", b"\xff{".to_vec()), "b2").await;
    assert_eq!(peer.ack().await, "b2");
    peer.send_raw("{\"type\":\"passthrough_forward\",\"forward\":{\"bodyB64\":\"*\"},\"bufferId\":\"b3\"}\n")
        .await;
    assert_eq!(peer.ack().await, "b3");
    assert_eq!(handle.stats().malformed, 1);
    let interaction = json!({"type": 2, "id": "77", "channel_id": "111", "guild_id": "900",
        "member": {"user": {"id": "42"}}, "data": {"name": "help"}});
    pass(&mut peer, forward("discord", interaction.to_string().into_bytes()), "b4").await;
    assert_eq!(peer.ack().await, "b4");
    let (event, conversation) = soon(turns.recv()).await.unwrap();
    assert_eq!((event.text.as_str(), event.message_id.as_deref()), ("/help", Some("77")));
    assert_eq!(conversation.session_key(), "agent:main:discord:group:111:42");
    let moment = Duration::from_millis(50);
    assert!(timeout(moment, turns.recv()).await.is_err());
}

fn converted(body: &Value) -> Option<Event> {
    interaction_event(&forward("discord", body.to_string().into_bytes()))
}

fn said(kind: u64, data: &Value) -> Option<(String, String)> {
    let body = json!({"type": kind, "id": "77", "channel_id": "111", "guild_id": "900",
        "member": {"user": {"id": "42"}}, "data": data});
    converted(&body).map(|event| (event.message_type, event.text))
}

#[test]
fn interactions_say_what_their_kind_says() {
    for (kind, data, message_type, text) in [
        (2, json!({"name": "help"}), "command", "/help"),
        (
            2,
            json!({"name": "model", "options": [
                {"name": "set", "type": 1, "options": [
                    {"name": "name", "type": 3, "value": "big one"},
                    {"name": "size", "type": 4, "value": 7},
                    {"name": "fast", "type": 5, "value": true}]}]}),
            "command",
            "/model set big one 7 true",
        ),
        (3, json!({"custom_id": "hp1:a1b2c3.00ff00ff:once"}), "command", "/once"),
        (3, json!({"custom_id": "vote"}), "text", "vote"),
        (3, json!({"custom_id": "hp1:only-one-part"}), "text", "hp1:only-one-part"),
        (3, json!({"custom_id": "hp1:a b:c"}), "text", "hp1:a b:c"),
        (3, json!({"custom_id": "pick", "component_type": 3, "values": ["x", "y"]}), "text", "pick x y"),
        (
            5,
            json!({"custom_id": "form", "components": [
                {"type": 1, "components": [{"type": 4, "custom_id": "name", "value": "Ann"}]},
                {"type": 18, "component": {"type": 4, "custom_id": "why", "value": "a\nb"}},
                {"type": 18, "component": {"type": 3, "custom_id": "how", "values": ["1", "2"]}}]}),
            "text",
            "name=Ann\nwhy=a\nb\nhow=1,2",
        ),
    ] {
        assert_eq!(said(kind, &data), Some((message_type.into(), text.into())), "{data}");
    }
    for (kind, data) in [(1, json!({})), (4, json!({"name": "help"})), (2, json!({})), (3, json!([]))] {
        assert_eq!(said(kind, &data), None, "{kind} {data}");
    }
}

#[test]
fn a_press_answers_its_prompt() {
    let body = json!({"type": 3, "id": "77", "channel_id": "111", "guild_id": "900",
        "member": {"user": {"id": "42"}}, "message": {"id": "m5"},
        "data": {"custom_id": "hp1:a1b2c3.00ff00ff:always", "component_type": 2}});
    let expected = PromptResponse {
        prompt_id: "a1b2c3.00ff00ff".into(),
        option_id: "always".into(),
        prompt_message_id: Some("m5".into()),
        ..PromptResponse::default()
    };
    assert_eq!(converted(&body).unwrap().prompt_response, Some(expected));
}

#[test]
fn an_interaction_comes_from_where_a_message_would() {
    let key = |body: &Value| {
        let event = converted(body).unwrap();
        assert_eq!(event.source.platform, "discord");
        assert_eq!(event.source.message_id, event.message_id);
        session_key(&event.source, &KeyOptions::default(), Rules::Newer)
    };
    let data = json!({"name": "x"});
    let ann = json!({"id": "42", "username": "ann", "global_name": "Ann"});
    let room = json!({"type": 2, "id": "1", "channel_id": "111", "guild_id": "900",
        "channel": {"type": 0, "name": "general", "parent_id": "5"},
        "member": {"nick": "Annie", "user": ann}, "data": data});
    assert_eq!(key(&room), "agent:main:discord:group:111:42");
    let source = converted(&room).unwrap().source;
    assert_eq!(source.scope_id.as_deref(), Some("900"));
    assert_eq!((source.user_name.as_deref(), source.user_handle.as_deref()), (Some("Annie"), Some("ann")));
    assert_eq!(source.user_display_name.as_deref(), Some("Annie"));
    assert_eq!(source.chat_name.as_deref(), Some("general"));
    assert_eq!((source.thread_id, source.parent_chat_id), (None, None));

    let dm = json!({"type": 2, "id": "1", "channel_id": "555", "channel": {"type": 1},
        "user": ann, "data": data});
    assert_eq!(key(&dm), "agent:main:discord:dm:555");
    let source = converted(&dm).unwrap().source;
    assert_eq!(source.user_name.as_deref(), Some("Ann"));

    let thread = json!({"type": 2, "id": "1", "channel_id": "222", "guild_id": "900",
        "channel": {"type": 11, "parent_id": "111"}, "member": {"user": ann}, "data": data});
    assert_eq!(key(&thread), "agent:main:discord:thread:222:222");
    let source = converted(&thread).unwrap().source;
    assert_eq!(source.parent_chat_id.as_deref(), Some("111"));
}
