use super::*;
use serde_json::json;

fn message(value: Value) -> Result<Message, serde_json::Error> {
    serde_json::from_value(value)
}

#[test]
fn a_message_needs_only_what_routing_needs() {
    let bare = json!({"id": "1", "channel_id": 2, "author": {"id": "3"}});
    let read = message(bare.clone()).unwrap();
    assert_eq!((&*read.id, &*read.channel_id, &*read.author.id), ("1", "2", "3"));
    for field in ["id", "channel_id", "author"] {
        let mut lacking = bare.clone();
        lacking.as_object_mut().unwrap().remove(field);
        assert!(message(lacking).is_err(), "{field}");
    }
    assert!(message(json!({"id": "", "channel_id": "2", "author": {"id": "3"}})).is_err());
    assert!(message(json!({"id": "1", "channel_id": "2", "author": {}})).is_err());
}

#[test]
fn odd_fields_are_taken_for_absent() {
    let odd = message(json!({
        "id": "1", "channel_id": "2", "content": "hi",
        "author": {"id": "3", "username": 7, "bot": "no"},
        "member": "none", "type": "zero", "flags": null, "mentions": {"id": "9"},
        "mention_roles": [5, null, "6"],
        "attachments": [{"url": "https://x/a.png", "size": "big"}, {"filename": "lost"}, 3],
        "referenced_message": {"content": "no id"}, "message_reference": [],
        "a_new_field": {"deep": [1]},
    }))
    .unwrap();
    assert_eq!(odd.content.as_deref(), Some("hi"));
    assert_eq!(odd.mention_roles.0, ["5", "6"].map(|id| Id(id.into())));
    assert_eq!(odd.attachments.len(), 1);
    assert!(odd.attachments[0].size.is_none() && odd.member.is_none() && odd.kind.is_none());
    assert!(odd.referenced_message.is_none() && odd.mentions.is_empty());
}

#[test]
fn a_text_that_cannot_be_read_is_no_silence() {
    let with = |content: Value| {
        message(json!({"id": "1", "channel_id": "2", "author": {"id": "3"}, "content": content}))
    };
    assert!(with(json!({"rich": true})).is_err());
    assert!(with(json!(5)).is_err());
    assert_eq!(with(Value::Null).unwrap().content, None);
}

#[test]
fn one_channel_does_not_hide_the_others_of_its_guild() {
    let guild: Guild = serde_json::from_value(json!({
        "id": 900, "name": "ops", "channels": [{"id": "1", "type": 0}, {"type": 0}, "odd"], "roles": null,
    }))
    .unwrap();
    let read = |value: &Value| serde_json::from_value::<Channel>(value.clone()).is_ok();
    assert_eq!(guild.channels.iter().filter(|channel| read(channel)).count(), 1);
    assert!(guild.roles.is_none() && guild.threads.is_empty());
}
