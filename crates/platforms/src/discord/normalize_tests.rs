use super::*;
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_core::directory::{Chat, KnownChat};
use serde_json::{Value, json};
use std::sync::Arc;

const WRITING: Writing<'static> = Writing { own_id: "77", source_flags: false, is_edit: false };

fn message(extra: Value) -> Message {
    let mut value = json!({
        "id": "1001", "channel_id": "111", "content": "hello",
        "author": {"id": "42", "username": "ann", "global_name": "Ann"},
    });
    value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn known(chat: Chat) -> Arc<KnownChat> {
    Arc::new(chat.into())
}

fn named(id: &str, kind: ChatKind, name: &str, scope: Option<&str>) -> Chat {
    Chat { name: Some(name.into()), scope: scope.map(str::to_owned), ..Chat::new(id, kind) }
}

fn guild(id: &str) -> Option<Arc<KnownChat>> {
    Some(known(named(&format!("guild:{id}"), ChatKind::Scope, "ops", Some(id))))
}

fn channel(scope: &str) -> Spot {
    let chat =
        Chat { topic: Some("all of it".into()), ..named("111", ChatKind::Group, "general", Some(scope)) };
    Spot { chat: known(chat), parent: None, guild: guild(scope) }
}

fn thread() -> Spot {
    let chat = Chat { parent: Some("111".into()), ..named("222", ChatKind::Thread, "plan", Some("900")) };
    let parent = known(named("111", ChatKind::Group, "general", Some("900")));
    Spot { chat: known(chat), parent: Some(parent), guild: guild("900") }
}

fn dm() -> Spot {
    let chat = Chat { person: Some("42".into()), ..Chat::new("555", ChatKind::Dm) };
    Spot { chat: known(chat), parent: None, guild: None }
}

fn event_of(message: &Message, spot: &Spot) -> Event {
    event(message, spot, message.content.as_deref().unwrap_or_default(), WRITING)
}

/// What published gateways file these under.
#[test]
fn session_keys_are_the_gateways_own() {
    let key = |author: &str, spot: Spot| {
        let message = message(json!({"author": {"id": author}}));
        session_key(&event_of(&message, &spot).source, &KeyOptions::default(), Rules::Published)
    };
    for (author, spot, expected) in [
        ("42", channel("900"), "agent:main:discord:group:111:42"),
        ("43", channel("900"), "agent:main:discord:group:111:43"),
        ("42", channel("901"), "agent:main:discord:group:111:42"),
        ("42", thread(), "agent:main:discord:thread:222:222"),
        ("43", thread(), "agent:main:discord:thread:222:222"),
        ("42", dm(), "agent:main:discord:dm:555"),
    ] {
        assert_eq!(key(author, spot), expected);
    }
}

#[test]
fn the_source_says_where_and_who() {
    let nick = message(json!({"member": {"nick": "Annie"}}));
    let source = serde_json::to_value(event_of(&nick, &channel("900")).source).unwrap();
    assert_eq!(
        source,
        json!({
            "platform": "discord", "chat_id": "111", "chat_type": "group", "chat_name": "ops / #general",
            "chat_topic": "all of it", "user_id": "42", "user_name": "Annie", "user_display_name": "Annie",
            "user_handle": "ann", "thread_id": null, "scope_id": "900", "guild_id": "900", "message_id": "1001",
        })
    );
    let source = event_of(&message(json!({})), &thread()).source;
    assert_eq!((source.chat_id.as_str(), source.thread_id.as_deref()), ("222", Some("222")));
    assert_eq!(source.parent_chat_id.as_deref(), Some("111"));
    assert_eq!(source.chat_name.as_deref(), Some("ops / #general / plan"));
    assert_eq!((source.user_name.as_deref(), source.user_handle.as_deref()), (Some("Ann"), Some("ann")));
    let nameless = message(json!({"author": {"id": "42", "username": "ann"}, "member": {"nick": ""}}));
    let source = event_of(&nameless, &channel("900")).source;
    assert_eq!((source.user_name.as_deref(), source.user_handle.as_deref()), (Some("ann"), Some("ann")));
    let source = event_of(&message(json!({})), &dm()).source;
    assert_eq!((source.chat_type.as_str(), source.chat_name.as_deref()), ("dm", Some("Ann")));
    assert_eq!((source.scope_id, source.is_bot), (None, None));
}

#[test]
fn a_post_is_about_what_its_forum_is() {
    let below = |kind: ChatKind, own: Option<&str>| {
        let parent = Chat { topic: Some("how to ask".into()), ..named("111", kind, "help", Some("900")) };
        let post = Chat { topic: own.map(str::to_owned), ..thread().chat.chat.clone() };
        let spot = Spot { chat: known(post), parent: Some(known(parent)), guild: guild("900") };
        event_of(&message(json!({})), &spot).source.chat_topic
    };
    assert_eq!(below(ChatKind::Forum, None).as_deref(), Some("how to ask"));
    assert_eq!(below(ChatKind::Forum, Some("own")).as_deref(), Some("own"));
    assert_eq!(below(ChatKind::Group, None), None, "beside a channel there is talk of other things");
}

#[test]
fn flags_are_written_only_if_the_operator_says_so() {
    let writing = Writing { source_flags: true, is_edit: true, ..WRITING };
    let by_webhook = message(json!({"webhook_id": "5"}));
    let source = event(&by_webhook, &dm(), "hello", writing).source;
    assert_eq!((source.is_bot, source.message_is_edit), (Some(true), Some(true)));
}

#[test]
fn an_answer_comes_with_what_it_answers() {
    let answer = message(json!({
        "type": 19, "message_reference": {"message_id": "990"},
        "referenced_message": {"id": "990", "content": "x".repeat(900), "author": {"id": "77", "username": "angelia"}},
    }));
    let event = event_of(&answer, &channel("900"));
    assert_eq!(event.reply_to_message_id.as_deref(), Some("990"));
    let reply_to = event.reply_to.unwrap();
    assert_eq!(reply_to.text.unwrap().chars().count(), angelia_core::context::LINE_CHARS);
    assert_eq!((reply_to.author.as_deref(), reply_to.is_own), (Some("angelia"), true));
    for quoted in ["/link s3cret", "<@77> /link s3cret", " <@!77>/link@bot s3cret"] {
        let answer = message(json!({
            "type": 19, "message_reference": {"message_id": "990"},
            "referenced_message": {"id": "990", "content": quoted, "author": {"id": "5", "username": "ann"}},
        }));
        assert_eq!(event_of(&answer, &channel("900")).reply_to.unwrap().text, None, "{quoted}");
    }
    let picture = json!({"url": "https://cdn/x", "filename": "x.png", "content_type": "image/png"});
    let answer = message(json!({
        "type": 19, "message_reference": {"message_id": "990"},
        "referenced_message": {"id": "990", "content": "look", "author": {"id": "5"}, "attachments": [picture]},
    }));
    let quoted = event_of(&answer, &channel("900")).reply_to.unwrap().text;
    assert_eq!(quoted.as_deref(), Some("look\n[photo x.png]"));
    let gone =
        message(json!({"type": 19, "message_reference": {"message_id": "990"}, "referenced_message": null}));
    let event = event_of(&gone, &channel("900"));
    assert_eq!((event.reply_to_message_id.as_deref(), event.reply_to), (Some("990"), None));
}

#[test]
fn files_are_named_by_kind() {
    let with = |content: &str, flags: u64, mime: &str| {
        let file = json!({"url": "https://cdn/x", "filename": "x", "content_type": mime, "size": 7});
        event_of(&message(json!({"content": content, "flags": flags, "attachments": [file]})), &dm())
    };
    for (flags, mime, kind) in [
        (0, "image/png", "photo"),
        (0, "video/mp4", "video"),
        (0, "audio/ogg", "audio"),
        (IS_VOICE, "audio/ogg", "voice"),
        (0, "text/plain; charset=utf-8", "document"),
        (0, "", "document"),
    ] {
        assert_eq!(with("", flags, mime).message_type, kind, "{mime}");
    }
    assert_eq!(with("", IS_VOICE, "audio/ogg").text, "[voice message]");
    assert_eq!(with("", 0, "image/png").text, "[photo x]");
    assert_eq!(with("/stop", 0, "image/png").text, "/stop", "a bare command stays one");
    let event = with("look", 0, "image/png");
    assert_eq!(event.text, "look\n[photo x]");
    assert!(event.media_urls.is_empty(), "they are written when it goes");
    let media = serde_json::to_value(&event.media[0]).unwrap();
    assert_eq!(
        media,
        json!({
            "url": "https://cdn/x", "mime": "image/png", "filename": "x", "kind": "photo", "size": 7,
            "angelia_file": {"at": "https://cdn/x"}
        })
    );
    assert_eq!(with("/new", 0, "image/png").message_type, "command");
}

#[test]
fn what_only_happened_is_not_said() {
    for kind in [0, 19, 20, 23] {
        assert!(is_said(&message(json!({"type": kind}))), "{kind}");
    }
    for kind in [6, 7, 8, 18, 21] {
        assert!(!is_said(&message(json!({"type": kind}))), "{kind}");
    }
    assert!(is_empty(&message(json!({"content": " \n"}))));
    assert!(!is_empty(&message(json!({"content": "", "attachments": [{"url": "https://cdn/x"}]}))));
}

#[test]
fn what_is_said_without_words_is_put_into_words() {
    let said = |extra: Value| {
        let mut wordless = json!({"content": ""});
        wordless.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let mut message = message(wordless);
        spell_out(&mut message);
        let event = event_of(&message, &dm());
        (event.text, event.message_type, event.media.len())
    };
    let sticker = said(json!({"sticker_items": [{"id": "1", "name": "wave"}]}));
    assert_eq!(sticker, ("[sticker wave]".into(), "sticker".into(), 0));
    let drawn = said(
        json!({"sticker_items": [{"id": "1", "name": "wave", "format_type": 1}, {"id": "2", "name": "lottie", "format_type": 3}]}),
    );
    assert_eq!(drawn, ("[sticker wave] [sticker lottie]".into(), "sticker".into(), 1));
    let poll = said(json!({"poll": {"question": {"text": "when?"}, "answers": []}}));
    assert_eq!(poll, ("[poll: when?]".into(), "text".into(), 0));
    let picture = json!({"url": "https://cdn/x", "content_type": "image/png"});
    let forwarded =
        json!({"message_snapshots": [{"message": {"content": "look", "attachments": [picture]}}]});
    assert_eq!(said(forwarded), ("look\n[photo]".into(), "photo".into(), 1));
    let own_words = json!({"content": "hi", "sticker_items": [{"name": "wave"}]});
    assert_eq!(said(own_words), ("hi".into(), "text".into(), 0));
    let mut embed = message(json!({"content": "", "embeds": [{"title": "x"}]}));
    spell_out(&mut embed);
    assert!(is_empty(&embed), "left to whoever knows whether it is meant for the bot");
}

#[test]
fn only_an_answer_answers() {
    let with = |reference: Value| {
        let answered = json!({"id": "990", "content": "x", "author": {"id": "77"}});
        let message = message(json!({"message_reference": reference, "referenced_message": answered}));
        event_of(&message, &channel("900")).reply_to_message_id
    };
    assert_eq!(with(json!({"message_id": "990", "channel_id": "111", "type": 0})).as_deref(), Some("990"));
    assert_eq!(with(json!({"message_id": "990", "channel_id": "112"})), None, "another channel");
    assert_eq!(with(json!({"message_id": "990", "type": 1})), None, "forwarded");
}
