//! Too much of anything is refused where it is read, and can be answered.

use angelia_contract::action::{MAX_ID, MAX_REST, MAX_SESSION_KEY, MAX_TEXT};
use angelia_contract::frame::{MAX_HELLO, glimpse};
use angelia_contract::line::MAX_GATEWAY_LINE;
use angelia_contract::{Action, FrameError, GatewayFrame, LineBuffer, LineError};
use serde_json::{Value, json};

use crate::examples::action_examples;

fn read(frame: &Value) -> Result<GatewayFrame, FrameError> {
    GatewayFrame::parse(frame.to_string().as_bytes())
}

/// The action of an outbound; its request id is always there.
fn action(action: Value) -> Action {
    match read(&json!({"type": "outbound", "requestId": "r7", "action": action})).unwrap() {
        GatewayFrame::Outbound(outbound) => {
            assert_eq!(outbound.request_id, "r7");
            outbound.action
        }
        other => panic!("{other:?}"),
    }
}

/// Why an action can only be refused.
fn refused(value: Value) -> String {
    match action(value) {
        Action::Unreadable { op: Some(_), reason } => reason,
        other => panic!("{} of {} bytes is taken", other.op(), other.size()),
    }
}

#[test]
fn every_text_of_every_action_has_a_bound() {
    let mut bounded = 0;
    for example in action_examples() {
        for (key, value) in example.as_object().unwrap() {
            if key == "op" || !value.is_string() {
                continue;
            }
            let max = match key.as_str() {
                "content" => MAX_TEXT,
                "session_key" => MAX_SESSION_KEY,
                "source_url" => 2048,
                _ => MAX_ID,
            };
            let with = |length| {
                let mut changed = example.clone();
                changed[key] = "x".repeat(length).into();
                changed
            };
            assert!(!matches!(action(with(max)), Action::Unreadable { .. }), "{key} of {max} bytes");
            let why = refused(with(max + 1));
            assert!(why.contains(&max.to_string()), "{key}: {why}");
            assert!(why.len() < 200, "what was sent is not repeated");
            bounded += 1;
        }
    }
    assert!(bounded > 35, "only {bounded} fields were tried");
}

#[test]
fn an_op_that_is_too_long_is_no_op() {
    let op = |length: usize| action(json!({"op": "x".repeat(length), "chat_id": "1"}));
    assert!(matches!(op(MAX_ID), Action::Other { .. }), "nobody knows it, but it can be named");
    match op(MAX_ID + 1) {
        Action::Unreadable { op: None, reason } => assert!(reason.contains(&MAX_ID.to_string()), "{reason}"),
        other => panic!("an op of {} bytes is taken", other.op().len()),
    }
}

#[test]
fn hints_are_reduced_to_those_the_contract_names() {
    let junk = "x".repeat(1 << 20);
    let sent = action(json!({"op": "send", "chat_id": "1", "content": "hi", "metadata": {
        "notify": true, "thread_id": 7, "padding": junk, "more": [[junk], {"a": junk}]}}));
    let kept: Vec<_> = sent.metadata().unwrap().keys().cloned().collect();
    assert_eq!(kept, ["notify", "thread_id"]);
    assert!(sent.size() < 200, "{}", sent.size());
    for length in [MAX_ID + 1, 6 * MAX_ID, 1 << 20] {
        let long = "x".repeat(length);
        let why = refused(json!({"op": "send", "chat_id": "1", "metadata": {"thread_id": long}}));
        assert!(why.contains("metadata.thread_id") && why.len() < 200, "{why}");
    }
    let longest = "x".repeat(MAX_ID);
    let sent = action(json!({"op": "send", "chat_id": "1", "metadata": {"thread_id": longest}}));
    assert_eq!(sent.metadata().unwrap()["thread_id"], longest);
}

/// A short text can be a large tree, which nobody would have counted.
#[test]
fn a_hint_is_a_word_a_number_or_a_flag() {
    let send = |value: Value| json!({"op": "send", "chat_id": "1", "metadata": {"thread_id": value}});
    let hint = |value: Value| action(send(value)).metadata().unwrap().get("thread_id").cloned();
    for scalar in [json!("7"), json!(7), json!(-7), json!(7.5), json!(true), Value::Null] {
        assert_eq!(hint(scalar.clone()), Some(scalar));
    }
    let tree = json!(vec![json!({"": 0}); 400]);
    for shape in [tree.clone(), json!({"a": tree}), json!([]), json!({})] {
        assert!(refused(send(shape)).contains("metadata.thread_id"), "it is not the absence of a thread");
    }
    let formats =
        |value: Value| action(json!({"op": "send", "chat_id": "1", "metadata": {"format_hints": value}}));
    let kept = formats(json!({"rich_blocks": true, "tree": tree}));
    assert_eq!(kept.metadata().unwrap()["format_hints"], json!({"rich_blocks": true}));
    let many: serde_json::Map<String, Value> = (0..17).map(|n| (n.to_string(), n.into())).collect();
    assert!(matches!(formats(many.into()), Action::Unreadable { .. }));
    assert!(matches!(formats(json!({"k".repeat(MAX_ID + 1): 1})), Action::Unreadable { .. }));
}

#[test]
fn a_list_of_another_shape_is_not_repeated() {
    let junk = "\u{200b}".repeat(50_000);
    for options in [json!([junk]), json!([{"id": [junk]}]), json!({"id": junk})] {
        let prompt = json!({"op": "prompt", "chat_id": "1", "prompt_kind": "clarify", "prompt_id": "p",
            "options": options});
        let why = refused(prompt);
        assert!(why.len() < 200, "{} bytes", why.len());
    }
}

#[test]
fn whoever_gave_an_id_is_told_what_is_wrong_beside_it() {
    let long = "x".repeat(MAX_ID + 1);
    for named in [json!({"platform": long}), json!({"botId": long}), json!({"platform": ["x"]})] {
        let mut frame =
            json!({"type": "outbound", "requestId": "r7", "action": {"op": "send", "chat_id": "1"}});
        frame.as_object_mut().unwrap().extend(named.as_object().unwrap().clone());
        match read(&frame).unwrap() {
            GatewayFrame::Outbound(outbound) => {
                assert_eq!(outbound.request_id, "r7");
                let Action::Unreadable { op, reason } = outbound.action else { panic!("it is taken") };
                assert!(op.as_deref() == Some("send") && reason.len() < 200, "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn lists_and_the_whole_have_bounds() {
    let buttons = |count: usize, label: usize| {
        let options: Vec<_> =
            (0..count).map(|n| json!({"id": n.to_string(), "label": "x".repeat(label)})).collect();
        json!({"op": "prompt", "chat_id": "1", "prompt_kind": "clarify", "prompt_id": "p", "options": options})
    };
    assert!(!matches!(action(buttons(64, 20)), Action::Unreadable { .. }));
    assert!(refused(buttons(65, 1)).contains("64 items"));
    assert!(refused(buttons(64, MAX_REST / 8)).contains("too long"));
    assert!(refused(buttons(64, MAX_REST / 64)).contains(&MAX_REST.to_string()));
    let mut both = buttons(40, MAX_REST / 64);
    both["content"] = "x".repeat(MAX_TEXT).into();
    assert!(!matches!(action(both), Action::Unreadable { .. }));
}

#[test]
fn an_envelope_has_bounds_too() {
    let long = "x".repeat(MAX_ID + 1);
    let too_large = |frame: Value| matches!(read(&frame), Err(FrameError::TooLarge { .. }));
    assert!(too_large(json!({"type": long})));
    assert!(too_large(json!({"type": "outbound", "requestId": long, "action": {}})));
    assert!(too_large(json!({"type": "inbound_ack", "bufferId": long})));
    let key = "k".repeat(MAX_SESSION_KEY + 1);
    assert!(too_large(json!({"type": "interrupt", "session_key": key})));
    let stop = read(&json!({"type": "interrupt", "session_key": "k", "reason": key})).unwrap();
    assert!(matches!(stop, GatewayFrame::Interrupt(stop) if stop.reason.is_none()));
}

#[test]
fn a_hello_is_never_refused_for_its_size() {
    let hello = |frame: Value| match read(&frame).unwrap() {
        GatewayFrame::Hello(hello) => hello,
        other => panic!("{other:?}"),
    };
    let many: Vec<_> = (0..5_000).map(|n| json!({"name": format!("command-{n}")})).collect();
    let large =
        hello(json!({"type": "hello", "platform": "discord", "botId": "b", "command_manifest": many}));
    assert_eq!((large.platform.as_str(), large.bot_id.as_str()), ("discord", "b"));
    assert_eq!(large.command_manifest, Some(Vec::new()), "it has one, but not here");
    let named =
        hello(json!({"type": "hello", "platform": "p".repeat(7 << 20), "botId": "b".repeat(1 << 20)}));
    assert_eq!((named.platform.as_str(), named.bot_id.as_str()), ("relay", ""));
}

#[test]
fn what_is_too_long_to_be_read_can_still_be_answered() {
    let begins = |line: String, max: usize| {
        let errors: Vec<_> = LineBuffer::new(max).push(line.as_bytes()).collect();
        match errors.into_iter().next().unwrap() {
            Err(LineError::TooLong { begins, .. }) => begins,
            other => panic!("{other:?}"),
        }
    };
    let content = "x".repeat(MAX_GATEWAY_LINE);
    let send = format!(
        r#"{{"type": "outbound", "requestId": "r7", "action": {{"op": "send", "content": "{content}"}}}}"#
    );
    let seen = glimpse(&begins(send, MAX_GATEWAY_LINE)).unwrap();
    assert_eq!((seen.kind.as_str(), seen.request_id.as_deref()), ("outbound", Some("r7")));
    let hello = format!(
        r#"{{"type": "hello", "platform": "discord", "botId": "b1", "command_manifest": ["{content}"]}}"#
    );
    let seen = glimpse(&begins(hello, MAX_HELLO)).unwrap();
    assert_eq!(
        (seen.kind.as_str(), seen.platform.as_deref(), seen.bot_id.as_deref()),
        ("hello", Some("discord"), Some("b1"))
    );
    assert_eq!(glimpse(b"[[[["), None);
    assert_eq!(glimpse(br#"{"action": {"#), None);
}
