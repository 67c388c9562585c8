//! One example of everything on the wire, read with strangers among the keys.

use angelia_contract::{Action, ConnectorFrame, GatewayFrame};
use serde_json::{Map, Value, json};

use crate::support::Dice;

/// Frames of a gateway other than `outbound`.
pub(crate) fn gateway_examples() -> Vec<Value> {
    vec![
        json!({"type": "hello", "platform": "discord", "botId": "b1", "command_manifest": [
            {"name": "model", "description": "Pick one", "options": [{"name": "name", "type": 3}]}
        ]}),
        json!({"type": "interrupt", "session_key": "agent:main:discord:dm:1", "reason": null}),
        json!({"type": "interrupt", "session_key": "agent:main:discord:dm:1", "reason": "stop"}),
        json!({"type": "going_idle"}),
        json!({"type": "inbound_ack", "bufferId": "7"}),
    ]
}

/// One action of every operation, every field set.
pub(crate) fn action_examples() -> Vec<Value> {
    let meta = json!({"notify": true, "scope_id": "900", "format_hints": {"rich_blocks": true}});
    vec![
        json!({"op": "send", "chat_id": "111", "content": "hi", "reply_to": "1001", "metadata": meta}),
        json!({"op": "edit", "chat_id": "111", "message_id": "5", "content": "hi ▉", "metadata": meta}),
        json!({"op": "typing", "chat_id": "111", "content": "", "metadata": meta}),
        json!({"op": "follow_up", "session_key": "agent:main:discord:dm:1",
               "kind": "discord.interaction_token", "content": "hi", "metadata": meta}),
        json!({"op": "get_chat_info", "chat_id": "111"}),
        json!({"op": "send_media", "chat_id": "111", "media_kind": "image", "source_url": "https://x/y",
               "content": "", "filename": "y.png", "reply_to": "1001", "metadata": meta}),
        json!({"op": "prompt", "chat_id": "111", "prompt_kind": "approval", "prompt_id": "abc.def",
               "content": "Run?", "options": [{"id": "once", "label": "Once", "style": "primary"},
               {"id": "deny", "label": "No"}], "timeout_s": 300.0, "reply_to": "1001", "metadata": meta}),
        json!({"op": "react", "chat_id": "111", "message_id": "5", "emoji": "👀", "remove": true, "metadata": meta}),
        json!({"op": "thread_create", "chat_id": "111", "thread_name": "plan", "message_id": "5", "metadata": meta}),
        json!({"op": "thread_rename", "chat_id": "111", "message_id": "222", "thread_name": "plan b",
               "only_if_current_name": "plan", "only_if_connector_created": true, "metadata": meta}),
        json!({"op": "draft", "chat_id": "111", "draft_id": 3, "content": "so far", "final": true, "metadata": meta}),
        json!({"op": "task_card", "chat_id": "111", "card_id": "turn:1", "chunks": [{"id": "1", "title": "Read",
               "status": "done", "details": "a file", "output": "ok"}], "metadata": meta}),
        json!({"op": "task_card_stop", "chat_id": "111", "card_id": "turn:1", "metadata": meta}),
        json!({"op": "delete", "chat_id": "111", "message_id": "5", "metadata": meta}),
    ]
}

/// Outbound frames around [`action_examples`].
pub(crate) fn outbound_examples() -> Vec<Value> {
    let wrap = |action| json!({"type": "outbound", "requestId": "00ff", "action": action, "platform": "discord", "botId": "b1"});
    action_examples().into_iter().map(wrap).collect()
}

/// An event with every key there is.
pub(crate) fn full_event() -> Value {
    json!({
        "text": "hello", "message_type": "text", "message_id": "1001", "reply_to_message_id": "1000",
        "media_urls": ["https://x/y"], "media": [{"url": "https://x/y", "mime": "image/png", "filename": "y.png"}],
        "context": [{"text": "before", "source": {"user_name": "bob", "user_id": "43"}}], "context_error": false,
        "reply_to": {"text": "what?", "author": "bob", "is_own": false},
        "prompt_response": {"prompt_id": "p", "option_id": "once", "label": "Once", "prompt_message_id": "5"},
        "source": {
            "platform": "discord", "chat_id": "111", "chat_type": "group", "chat_name": "ops / #general",
            "chat_topic": null, "user_id": "42", "user_name": "ann", "thread_id": null,
            "scope_id": "900", "guild_id": "900", "message_id": "1001", "user_display_name": "Ann",
            "user_handle": "ann#1", "user_id_alt": "u-42", "chat_id_alt": "c-111", "parent_chat_id": "110",
            "profile": "coder", "is_bot": false, "message_is_edit": false, "one_to_one_verified": true,
            "auto_thread_created": true, "auto_thread_initial_name": "plan", "prospective_thread_id": "333"
        }
    })
}

/// Frames of a connector.
pub(crate) fn connector_examples() -> Vec<Value> {
    let minimal = json!({
        "text": "hello", "message_type": "text", "message_id": "1001", "reply_to_message_id": null,
        "media_urls": [], "media": [],
        "source": {"platform": "discord", "chat_id": "111", "chat_type": "group", "chat_name": "ops / #general",
            "chat_topic": null, "user_id": "42", "user_name": "ann", "user_display_name": "Ann",
            "thread_id": null, "scope_id": "900", "guild_id": "900", "message_id": "1001"}
    });
    vec![
        json!({"type": "descriptor", "descriptor": {
            "contract_version": 1, "platform": "discord", "label": "Discord", "max_message_length": 2000,
            "supports_draft_streaming": false, "supports_edit": true, "supports_threads": true,
            "markdown_dialect": "discord", "len_unit": "utf16", "emoji": "🎮", "platform_hint": "short",
            "pii_safe": true, "supports_context": true, "supported_ops": ["send", "edit"],
            "supports_inchannel_continuable": true, "supports_block_formatting": true}}),
        json!({"type": "inbound", "event": minimal, "bufferId": "opaque"}),
        json!({"type": "inbound", "event": full_event(), "bufferId": "7", "platform": "discord", "botId": "b1"}),
        json!({"type": "outbound_result", "requestId": "00ff", "result": {
            "success": true, "message_id": "5", "error": "e", "thread_id": "t", "auto_thread_name": "n",
            "code": "c", "chat_info": {"name": "ops", "type": "group"}}}),
        json!({"type": "interrupt_inbound", "session_key": "agent:main:discord:dm:1", "chat_id": "1"}),
        json!({"type": "passthrough_forward", "bufferId": "8", "platform": "discord", "botId": "b1", "forward": {
            "platform": "discord", "botId": "b1", "method": "POST", "path": "/i", "headers": [["a", "b"]],
            "bodyB64": "e30=", "profile": "coder"}}),
        json!({"type": "going_idle_ack"}),
    ]
}

/// Whether `whole` says everything that `part` says.
fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|found| covers(found, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(w, p)| covers(w, p))
        }
        (whole, part) => whole == part,
    }
}

/// Adds a stranger to every object, at every level.
fn with_strangers(value: &Value, dice: &mut Dice) -> Value {
    match value {
        Value::Object(map) => {
            let mut out: Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), with_strangers(value, dice))).collect();
            let stranger = match dice.below(4) {
                0 => json!(null),
                1 => json!({"deep": [1, {"er": true}]}),
                2 => json!(1.5e300),
                _ => json!(["a", null]),
            };
            out.insert(format!("x_{}", dice.below(1_000)), stranger);
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(|item| with_strangers(item, dice)).collect(),
        scalar => scalar.clone(),
    }
}

fn written(line: &str) -> Value {
    assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
    serde_json::from_str(line).unwrap()
}

#[test]
fn examples_survive_a_round_trip_exactly() {
    for example in gateway_examples().into_iter().chain(outbound_examples()) {
        let frame = GatewayFrame::parse(example.to_string().as_bytes()).unwrap();
        assert_eq!(written(&frame.to_line()), example);
    }
    for example in connector_examples() {
        let frame = ConnectorFrame::parse(example.to_string().as_bytes()).unwrap();
        assert_eq!(written(&frame.to_line()), example);
    }
}

/// Every operation with a typed body.
const KNOWN_OPS: [&str; 14] = [
    "send",
    "edit",
    "typing",
    "follow_up",
    "get_chat_info",
    "send_media",
    "prompt",
    "react",
    "thread_create",
    "thread_rename",
    "draft",
    "task_card",
    "task_card_stop",
    "delete",
];

#[test]
fn every_operation_is_typed() {
    let examples = action_examples();
    assert_eq!(examples.len(), KNOWN_OPS.len());
    for (example, op) in examples.into_iter().zip(KNOWN_OPS) {
        let action = Action::from_value(example);
        assert!(!matches!(action, Action::Other { .. } | Action::Unreadable { .. }), "{action:?}");
        assert_eq!(action.op(), op);
        assert_eq!(action.chat_id().is_some(), op != "follow_up");
        assert_eq!(action.metadata().is_some(), op != "get_chat_info");
    }
}

#[test]
fn strangers_are_tolerated_everywhere() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        for example in gateway_examples().into_iter().chain(outbound_examples()) {
            let strange = with_strangers(&example, &mut dice);
            let frame = GatewayFrame::parse(strange.to_string().as_bytes()).unwrap();
            assert!(!matches!(frame, GatewayFrame::Unknown { .. }));
            assert!(covers(&written(&frame.to_line()), &example), "{strange}");
        }
        for example in connector_examples() {
            let strange = with_strangers(&example, &mut dice);
            let frame = ConnectorFrame::parse(strange.to_string().as_bytes()).unwrap();
            let again = written(&frame.to_line());
            assert!(covers(&again, &example), "{strange}");
            if let ConnectorFrame::Inbound(_) = frame {
                assert_eq!(again["event"], strange["event"], "strangers survive in events");
            }
        }
    }
}

#[test]
fn unknown_and_unreadable_are_told_apart() {
    let read = |action: Value| {
        let line = json!({"type": "outbound", "requestId": "r", "action": action}).to_string();
        match GatewayFrame::parse(line.as_bytes()).unwrap() {
            GatewayFrame::Outbound(outbound) => {
                assert_eq!(outbound.request_id, "r");
                outbound.action
            }
            other => panic!("{other:?}"),
        }
    };
    let other = read(json!({"op": "dance", "chat_id": 5, "speed": 2}));
    assert_eq!((other.op(), other.chat_id()), ("dance", Some("5")));
    for broken in [json!(null), json!([1]), json!("send"), json!({}), json!({"op": 3})] {
        assert!(matches!(read(broken), Action::Unreadable { op: None, .. }));
    }
    for broken in [
        json!({"op": "send"}),
        json!({"op": "send", "chat_id": {}, "content": "x"}),
        json!({"op": "send", "chat_id": "1", "content": ["x"]}),
        json!({"op": "send", "chat_id": "1", "metadata": "x"}),
        json!({"op": "draft", "chat_id": "1", "draft_id": "x"}),
    ] {
        let op = broken["op"].as_str().unwrap().to_owned();
        let action = read(broken);
        assert!(matches!(action, Action::Unreadable { .. }), "{action:?}");
        assert_eq!(action.op(), op);
    }
    let missing = GatewayFrame::parse(br#"{"type":"outbound","requestId":"r"}"#).unwrap();
    assert!(matches!(missing, GatewayFrame::Outbound(o) if matches!(o.action, Action::Unreadable { .. })));
    assert!(GatewayFrame::parse(br#"{"type":"outbound","action":{}}"#).is_err());
}

#[test]
fn python_peculiarities_are_read() {
    let line = br#"{"type": "outbound", "requestId": 7, "requestId": "r", "action": {"op": "send",
        "chat_id": 12345678901234567890, "content": "a\ud800b", "reply_to": null,
        "metadata": {"thread_ts": NaN, "scope_id": -Infinity, "score": NaN}}, "platform": null}"#;
    let GatewayFrame::Outbound(outbound) = GatewayFrame::parse(line).unwrap() else {
        panic!("another frame")
    };
    assert_eq!(outbound.request_id, "r");
    assert_eq!(outbound.platform, None);
    let Action::Send { chat_id, content, reply_to, metadata } = outbound.action else {
        panic!("another action")
    };
    assert_eq!((chat_id.as_str(), content.as_str()), ("12345678901234567890", "a\u{fffd}b"));
    assert_eq!(reply_to, None);
    assert_eq!(metadata["scope_id"], Value::Null);
    assert!(!metadata.contains_key("score"), "nobody reads it");
    let hello = GatewayFrame::parse(br#"{"type":"hello","platform":null,"command_manifest":5}"#).unwrap();
    assert!(matches!(hello, GatewayFrame::Hello(h) if h.platform == "relay" && h.bot_id.is_empty()));
    let unknown = GatewayFrame::parse(br#"{"type":"dance"}"#).unwrap();
    assert_eq!(unknown.to_line(), "{\"type\":\"dance\"}\n");
}
