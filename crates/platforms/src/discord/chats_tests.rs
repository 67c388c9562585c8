use super::*;
use serde_json::json;

fn lesson_of(event: &str, data: Value) -> Result<Lesson, String> {
    lesson(event, &data.to_string(), "77").map(Option::unwrap)
}

fn find<'a>(lesson: &'a Lesson, id: &str) -> Option<&'a Chat> {
    lesson.chats.iter().find(|chat| chat.chat_id == id)
}

#[test]
fn a_guild_teaches_its_channels_threads_and_own_roles() {
    let lesson = lesson_of(
        "GUILD_CREATE",
        json!({
            "id": "900", "name": "ops",
            "roles": [{"id": "900"}, {"id": "501", "tags": {"bot_id": "77"}}, {"id": "502", "tags": {"bot_id": "78"}}],
            "channels": [
                {"id": "900", "type": 0, "name": "general", "topic": "", "parent_id": "300"},
                {"id": "300", "type": 4, "name": "Text"},
                {"id": "112", "type": 99, "name": "new"},
                {"id": "400", "type": 15, "name": "help", "topic": "how to ask"},
                {"id": "401", "type": 16, "name": "pictures"},
                {"type": 0}, null,
            ],
            "threads": [{"id": "222", "type": 11, "name": "plan", "parent_id": "900"}, {"id": "223", "type": 11}],
        }),
    )
    .unwrap();
    let guild = find(&lesson, "guild:900").unwrap();
    assert_eq!((guild.kind, guild.name.as_deref()), (ChatKind::Scope, Some("ops")));
    assert_eq!(guild.roles, ["501"]);
    let general = find(&lesson, "900").unwrap();
    assert_eq!((general.kind, general.parent.as_deref()), (ChatKind::Group, None), "a category is no parent");
    assert_eq!((general.scope.as_deref(), general.topic.as_deref()), (Some("900"), None));
    let thread = find(&lesson, "222").unwrap();
    assert_eq!((thread.kind, thread.parent.as_deref()), (ChatKind::Thread, Some("900")));
    let forum = find(&lesson, "400").unwrap();
    assert_eq!((forum.kind, forum.topic.as_deref()), (ChatKind::Forum, Some("how to ask")));
    assert_eq!(find(&lesson, "401").unwrap().kind, ChatKind::Forum);
    assert_eq!(lesson.chats.len(), 5, "what is not understood is not guessed: {:?}", lesson.chats);
}

#[test]
fn leaving_is_told_from_an_outage() {
    let left = lesson_of("GUILD_DELETE", json!({"id": "900"})).unwrap();
    assert_eq!(left.gone, Some(Gone::Guild("900".into())));
    let outage = json!({"id": "900", "unavailable": true});
    assert_eq!(lesson_of("GUILD_DELETE", outage.clone()).unwrap(), Lesson::default());
    assert_eq!(lesson_of("GUILD_CREATE", outage).unwrap(), Lesson::default());
}

#[test]
fn the_person_of_a_dm_is_not_the_bot() {
    let channel = json!({"id": "555", "type": 1, "recipients": [
        {"id": "77", "username": "angelia"}, {"id": "42", "username": "ann", "global_name": "Ann"},
    ]});
    let channel: Channel = serde_json::from_value(channel).unwrap();
    let dm = chat(&channel, None, "77").unwrap();
    assert_eq!((dm.kind, dm.person.as_deref(), dm.name.as_deref()), (ChatKind::Dm, Some("42"), Some("Ann")));
}

#[test]
fn roles_come_and_go() {
    let made = lesson_of(
        "GUILD_ROLE_CREATE",
        json!({"guild_id": "9", "role": {"id": "5", "tags": {"bot_id": "77"}}}),
    );
    let own = OwnRole { guild: "9".into(), role: "5".into(), is_own: true };
    assert_eq!(made.unwrap().role, Some(own));
    let gone = lesson_of("GUILD_ROLE_DELETE", json!({"guild_id": "9", "role_id": "5"}));
    assert!(!gone.unwrap().role.unwrap().is_own);
}

#[test]
fn what_cannot_be_read_says_why_without_its_text() {
    let why = lesson_of("GUILD_CREATE", json!({"name": "secret"})).unwrap_err();
    assert!(!why.contains("secret"), "{why}");
    assert!(lesson_of("CHANNEL_CREATE", json!({"id": "1"})).is_err());
}
