//! From what people write to what waits in the inbox.

use super::world::{SOON, World, texts};
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_core::admission::DropReason;
use angelia_core::egress::{Bot, Target, Whereabouts};
use angelia_core::store::{DirectoryStore, JournalStore, StreamStore};
use angelia_platforms::Platform;
use serde_json::json;

#[tokio::test]
async fn guild_thread_and_dm_reach_the_inbox_under_their_keys() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let channel = fake.channel(&guild.id, "general").await;
    let chatter = fake.say(&channel, &ann, "nobody in particular").await;
    fake.mention(&channel, &ann, "/new").await;
    let thread = fake.thread(&channel, "plan", &ann, None).await;
    fake.mention(&thread, &ann, "in the thread").await;
    fake.say(&thread, &ann, "goes on").await;
    let dm = fake.dm(&ann).await;
    fake.say(&dm, &ann, "in private").await;
    let events = world.until_events(4).await;
    assert_eq!(texts(&events), ["/new", "in the thread", "goes on", "in private"]);
    let keys: Vec<String> = events
        .iter()
        .map(|event| session_key(&event.source, &KeyOptions::default(), Rules::Published))
        .collect();
    assert_eq!(
        keys,
        [
            format!("agent:main:discord:group:{channel}:{ann}"),
            format!("agent:main:discord:thread:{thread}:{thread}"),
            format!("agent:main:discord:thread:{thread}:{thread}"),
            format!("agent:main:discord:dm:{dm}"),
        ]
    );
    let source = &events[1].source;
    assert_eq!(source.chat_name.as_deref(), Some("ops / #general / plan"));
    assert_eq!(source.parent_chat_id.as_deref(), Some(channel.as_str()));
    assert_eq!(source.scope_id.as_deref(), Some(guild.id.as_str()));
    assert_eq!(*world.door.dropped.lock().unwrap(), [(chatter, DropReason::NotAddressed)]);
}

#[tokio::test]
async fn a_post_inherits_what_its_forum_is_about() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let topics = ["forum", "text"]
        .map(|kind| json!({"guild": guild.id, "name": kind, "kind": kind, "topic": "how to ask"}));
    for (number, channel) in topics.into_iter().enumerate() {
        let parent = fake.make("channel", channel).await;
        let below = fake.thread(&parent, "a question", &ann, None).await;
        fake.mention(&below, &ann, "why?").await;
        let source = world.until_events(number + 1).await.pop().unwrap().source;
        assert_eq!((source.chat_type.as_str(), source.parent_chat_id.as_deref()), ("thread", Some(&*parent)));
        assert_eq!(source.chat_topic.as_deref(), (number == 0).then_some("how to ask"));
    }
}

#[tokio::test]
async fn what_addresses_the_bot_and_what_does_not() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let channel = fake.channel(&guild.id, "general").await;
    let other = fake.other_bot("other").await;
    let by_role = json!({"channel": channel, "author": ann, "content": "role", "mention_role": guild.role});
    fake.make("say", by_role).await;
    fake.mention(&channel, &other, "from a bot").await;
    let target = Target::chat(&channel);
    world.until_events(1).await;
    world.bot().tell(&target, "my own words").await.unwrap();
    let own = fake.answers(&channel).await.remove(0).id;
    fake.make("say", json!({"channel": channel, "author": ann, "content": "answer", "reply_to": own})).await;
    let files = json!([{"filename": "a.png", "size": 5, "content_type": "image/png"}]);
    let file =
        json!({"channel": channel, "author": ann, "content": "", "mention_bot": true, "attachments": files});
    fake.make("say", file).await;
    let events = world.until_events(3).await;
    assert_eq!(events[0].text, "role");
    let reply_to = events[1].reply_to.as_ref().unwrap();
    assert_eq!((reply_to.text.as_deref(), reply_to.is_own), (Some("my own words"), true));
    assert_eq!(events[1].reply_to_message_id.as_deref(), Some(own.as_str()));
    assert_eq!((events[2].message_type.as_str(), events[2].text.as_str()), ("photo", "[photo a.png]"));
    assert_eq!(events[2].media[0].filename.as_deref(), Some("a.png"));
    let dropped = world.door.dropped.lock().unwrap();
    assert_eq!(dropped.iter().map(|(_, reason)| *reason).collect::<Vec<_>>(), [DropReason::BotNotAllowed]);
}

#[tokio::test]
async fn an_edit_changes_what_waits_and_brings_nothing_new() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let ann = fake.user("ann").await;
    let dm = fake.dm(&ann).await;
    let message = fake.say(&dm, &ann, "frist").await;
    world.until_events(1).await;
    fake.order("edit", json!({"channel": dm, "message": message, "content": "first"})).await;
    fake.say(&dm, &ann, "second").await;
    assert_eq!(texts(&world.until_events(2).await), ["first", "second"]);
}

#[tokio::test]
async fn what_was_deleted_is_not_for_anybody_any_more() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let channel = fake.channel(&guild.id, "general").await;
    let thread = fake.thread(&channel, "plan", &ann, None).await;
    let mut said = Vec::new();
    for text in ["one", "two", "three", "four"] {
        said.push(fake.mention(&thread, &ann, text).await);
    }
    world.until_events(4).await;
    fake.delete(&thread, &said[0]).await;
    let many = json!({"ids": [said[1], said[3], "5"], "channel_id": thread, "guild_id": guild.id});
    fake.order("emit", json!({"event": "MESSAGE_DELETE_BULK", "payload": many, "guild": guild.id})).await;
    let odd = json!({"ids": 7});
    fake.order("emit", json!({"event": "MESSAGE_DELETE", "payload": odd, "guild": guild.id})).await;
    world.until("the odd one is in quarantine", |world| world.count("quarantined") == 1).await;
    assert_eq!(texts(&world.until_events(1).await), ["three"]);
    let traces = world.ports.records.explain(&said[0]).await.unwrap();
    assert_eq!(traces[0].outcome.as_deref(), Some("withdrawn: it was deleted where it was written"));
}

#[tokio::test]
async fn one_odd_event_makes_nobody_deaf() {
    let mut world = World::new(json!({})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    world.fake.mangle(json!({"event": "GUILD_CREATE", "drop": ["nsfw_level", "roles", "channels"]})).await;
    world.start();
    world.until("the bot hears", |world| world.count("identifies") == 1).await;
    let fake = &world.fake;
    fake.mangle(json!({"event": "MESSAGE_CREATE", "set": {"content": {"rich": true}}})).await;
    fake.say(&channel, &ann, "unreadable").await;
    fake.mangle(json!({"event": "MESSAGE_CREATE", "drop": ["channel_id"]})).await;
    fake.say(&channel, &ann, "nowhere").await;
    fake.mangle(
        json!({"event": "MESSAGE_CREATE", "drop": ["timestamp", "mention_everyone", "author.username"]}),
    )
    .await;
    fake.mention(&channel, &ann, "heard").await;
    let lost = json!({"id": "5", "channel_id": "999", "author": {"id": ann}, "content": "in no channel"});
    fake.order("emit", json!({"event": "MESSAGE_CREATE", "payload": lost})).await;
    world.until("all three are in quarantine", |world| world.count("quarantined") == 3).await;
    let events = world.until_events(1).await;
    assert_eq!(events[0].text, "heard");
    assert_eq!(events[0].source.chat_name.as_deref(), Some("ops / #general"), "fetched, not guessed");
    let kept = world.ports.records.quarantine(Some(&world.key()), 10).await.unwrap();
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(kept[0].why.contains("10003"), "newest first: {kept:?}");
    assert!(kept.iter().all(|kept| kept.what.starts_with("MESSAGE_CREATE ") && !kept.why.contains("rich")));
}

#[tokio::test]
async fn a_chat_nobody_knows_is_asked_for_before_its_message_is_read() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let ann = fake.user("ann").await;
    let dm = fake.dm(&ann).await;
    fake.fault(json!({"path": format!("^/?channels/{dm}$"), "status": 503, "count": 1})).await;
    fake.say(&dm, &ann, "first").await;
    fake.say(&dm, &ann, "second").await;
    let events = world.until_events(2).await;
    assert_eq!(texts(&events), ["first", "second"]);
    assert!(events.iter().all(|event| event.source.chat_type == "dm"));
    let known = world.ports.records.chat(&world.key(), &dm).await.unwrap().unwrap();
    assert_eq!(known.chat.person.as_deref(), Some(ann.as_str()));
    let asked = fake.requests(0).await;
    let asked = asked.iter().filter(|request| request.path.ends_with(&format!("channels/{dm}"))).count();
    assert_eq!(asked, 2, "once refused, once answered, then known");
}

#[tokio::test]
async fn a_link_is_used_up_and_never_delivered() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let channel = fake.channel(&guild.id, "general").await;
    let thread = fake.thread(&channel, "plan", &ann, None).await;
    fake.mention(&thread, &ann, "/link c0de").await;
    let told =
        fake.until_messages(&thread, SOON, |messages| messages.iter().any(|message| message.own)).await;
    let answer = told.iter().find(|message| message.own).unwrap();
    assert_eq!(answer.content, format!("discord:{}/{channel} administrator: false", guild.id));
    let dm = fake.dm(&ann).await;
    fake.say(&dm, &ann, "/link c0de").await;
    fake.until_messages(&dm, SOON, |messages| messages.iter().any(|message| message.own)).await;
    let linked = world.door.linked.lock().unwrap().clone();
    assert_eq!(linked[1].place.to_string(), format!("discord:dm:{ann}"));
    assert!(linked[1].private && linked[0].code.matches("c0de"));
    assert!(world.events().await.is_empty());
    assert_eq!(world.door.dropped.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn targets_are_where_the_directory_says() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let (channel, other) = (fake.channel(&guild.id, "a").await, fake.channel(&guild.id, "b").await);
    let thread = fake.thread(&channel, "plan", &ann, None).await;
    let dm = fake.dm(&ann).await;
    let bot = world.bot();
    let at = |chat: &str, thread: Option<&str>| Target {
        chat_id: chat.into(),
        thread_id: thread.map(str::to_owned),
    };
    world.until("the thread is known", |_| bot.places(&at(&thread, None)) != Whereabouts::Unknown).await;
    let places =
        |places: &[&str]| Whereabouts::Places(places.iter().map(|place| place.to_string()).collect());
    let guild = &guild.id;
    let in_thread = places(&[&format!("{guild}/{thread}"), &format!("{guild}/{channel}"), guild, "*"]);
    assert_eq!(bot.places(&at(&thread, Some(&thread))), in_thread);
    assert_eq!(bot.places(&at(&channel, Some(&thread))), in_thread);
    assert_eq!(bot.places(&at(&other, Some(&thread))), Whereabouts::Nowhere);
    assert_eq!(bot.places(&at(&thread, Some(&channel))), Whereabouts::Nowhere);
    assert_eq!(bot.places(&at(&format!("0{channel}"), None)), Whereabouts::Nowhere);
    assert_eq!(bot.places(&at(&channel, None)), places(&[&format!("{guild}/{channel}"), guild, "*"]));
    let private = at(&dm, None);
    bot.recall(&private).await.unwrap();
    assert_eq!(bot.places(&private), Whereabouts::Unknown);
    bot.look_up(&private).await.unwrap();
    assert_eq!(bot.places(&private), places(&[&format!("dm:{ann}"), "*"]));
    let nowhere = at("999", None);
    bot.look_up(&nowhere).await.unwrap();
    assert_eq!(bot.places(&nowhere), Whereabouts::Unknown);
    let info = bot.chat_info(&at(&channel, Some(&thread))).await.unwrap().chat_info.unwrap();
    assert_eq!((info.name.as_str(), info.chat_type.as_str()), ("plan", "thread"));
    fake.order("kick", json!({"guild": guild})).await;
    world.until("the guild is forgotten", |_| bot.places(&at(&channel, None)) == Whereabouts::Unknown).await;
    assert!(world.ports.records.chat(&world.key(), &thread).await.unwrap().is_none());
}
