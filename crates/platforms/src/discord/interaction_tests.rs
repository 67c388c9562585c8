use super::*;
use serde_json::json;

fn body(kind: u64, data: Value) -> Value {
    json!({
        "id": "900", "type": kind, "application_id": "77", "token": "aW50ZXI_-.x=aW50ZXI", "channel_id": "111",
        "member": {"nick": "Annie", "user": {"id": "42", "username": "ann"}}, "data": data,
        "message": {"id": "31"},
    })
}

fn read(kind: u64, data: Value) -> Interaction {
    Interaction::read(&body(kind, data)).ok().unwrap()
}

#[test]
fn a_command_says_its_name_and_what_follows() {
    let say = |data: Value| read(COMMAND, data).text();
    assert_eq!(say(json!({"name": "new"})), "/new");
    assert_eq!(
        say(json!({"name": "model", "options": [
            {"name": "set", "type": 1, "options": [
                {"name": "which", "value": "big one"}, {"name": "n", "value": 3}, {"name": "x", "value": true},
            ]},
        ]})),
        "/model set big one 3 true"
    );
    assert_eq!(say(json!({"name": "odd", "options": [{"name": "a", "value": {}}, 7]})), "/odd");
}

#[test]
fn what_is_asked_stands_alone() {
    let asked = |options: Value| read(COMMAND, json!({"name": ASK, "options": options})).text();
    assert_eq!(asked(json!([{"name": "question", "type": 3, "value": "why?"}])), "why?");
    assert_eq!(asked(json!([{"name": "question", "value": "/new"}])), "/new");
    assert_eq!(asked(json!([])), "/ask");
}

#[test]
fn the_press_of_a_prompt_is_its_answer() {
    let pressed = read(COMPONENT, json!({"custom_id": "hp1:ab12.0f:once", "component_type": 2}));
    assert_eq!(pressed.text(), "/once");
    let response = pressed.prompt_response().unwrap();
    assert_eq!((&*response.prompt_id, &*response.option_id), ("ab12.0f", "once"));
    assert_eq!(response.prompt_message_id.as_deref(), Some("31"));
    assert_eq!(pressed.deferral(), Deferral::Update);
    let long = format!("hp1:{}:{}", "a".repeat(32), "b".repeat(32));
    for foreign in ["hp1:", "hp1:a", "hp1::b", "hp1:a:", "hp1:a:b:c", "hp1:a b:c", "other", &long] {
        let pressed = read(COMPONENT, json!({"custom_id": foreign}));
        assert_eq!(pressed.text(), foreign);
        assert!(pressed.prompt_response().is_none(), "{foreign}");
    }
    let menu = read(COMPONENT, json!({"custom_id": "size", "values": ["s", "xl"]}));
    assert_eq!(menu.text(), "size s xl");
    let spoof = read(COMMAND, json!({"name": "x", "custom_id": "hp1:a:b"}));
    assert!(spoof.prompt_response().is_none(), "only a press answers a prompt");
}

#[test]
fn a_form_is_a_line_for_each_field() {
    let form = read(
        FORM,
        json!({"custom_id": "f", "components": [
            {"type": 1, "components": [{"type": 4, "custom_id": "name", "value": "Ann"}]},
            {"type": 18, "component": {"type": 3, "custom_id": "size", "values": ["s", "m"]}},
            {"type": 1, "components": [{"type": 4, "custom_id": "empty", "value": ""}]},
        ]}),
    );
    assert_eq!(form.text(), "name=Ann\nsize=s,m");
    assert_eq!(form.deferral(), Deferral::Message);
    assert_eq!(read(FORM, json!({"custom_id": "f"})).text(), "f");
}

#[test]
fn who_where_and_with_what_has_to_be_told() {
    let without = |key: &str| {
        let mut body = body(COMMAND, json!({"name": "new"}));
        body.as_object_mut().unwrap().remove(key);
        Interaction::read(&body)
    };
    for key in ["id", "type", "application_id", "token", "channel_id", "member"] {
        assert!(without(key).is_err(), "{key}");
    }
    assert!(without("message").is_ok() && without("data").is_ok());
    let with = |key: &str, value: Value| {
        let mut body = body(COMMAND, json!({"name": "new"}));
        body[key] = value;
        Interaction::read(&body)
    };
    for token in ["/", "?", "#", "%2e", " ", "é", ":", "\\", "\n"] {
        assert!(with("token", json!(format!("0123456789abcdef{token}"))).is_err(), "{token}");
    }
    for token in [".".repeat(20), "x".repeat(MIN_TOKEN - 1), "x".repeat(MAX_TOKEN + 1)] {
        assert!(with("token", json!(token)).is_err(), "{token}");
    }
    for (key, value) in [("id", "x"), ("application_id", "7/8"), ("channel_id", "01")] {
        let why = with(key, json!(value)).err().unwrap();
        assert!(!why.contains(value), "{why}");
    }
    assert!(with("type", json!(9)).is_err());
    let number = with("id", json!(901)).ok().unwrap();
    assert_eq!(number.id.0, "901");
}

#[test]
fn a_private_chat_names_its_person_and_others_are_company() {
    let dm = |context: u64| {
        let channel = json!({"id": "555", "type": 1});
        let body = json!({
            "id": "900", "type": 2, "application_id": "77", "token": "a-token-of-discord", "channel": channel,
            "user": {"id": "42", "username": "ann"}, "context": context, "data": {"name": "new"},
        });
        Interaction::read(&body).ok().unwrap()
    };
    assert_eq!(dm(1).channel.0.unwrap().kind, DM);
    assert_eq!(dm(2).channel.0.unwrap().kind, GROUP_DM);
    assert_eq!((&*dm(1).said.channel_id, &*dm(1).said.author.id), ("555", "42"));
    assert_eq!(dm(1).credential().expose(), "77/a-token-of-discord");
}
