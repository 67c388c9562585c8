//! `route add --threads auto`: each conversation in a shared place gets a thread of its own, before
//! its agent hears of it.

use super::discord_stage::{Agent, SOON, Stage as Discord};
use super::interactions_stage::at_ease;
use super::readers::{Chat, until_reads};
use super::telegram_stage::{Stage as Telegram, heard, key};
use serde_json::{Value, json};

/// The usual stage, with threads in its channel.
async fn with_threads(options: Value) -> Discord {
    let stage = Discord::listening(options).await;
    let place = format!("discord:{}/{}", stage.guild.id, stage.quay);
    stage.route("acme", &["--allow", "any", "--threads", "auto"], &place).await;
    stage
}

/// What a gateway reads of where an event is: chat, thread, what that is below, and its kind.
fn place(event: &Value) -> [&str; 4] {
    let source = &event["source"];
    ["chat_id", "thread_id", "parent_chat_id", "chat_type"]
        .map(|name| source[name].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_conversation_on_discord_gets_a_thread_before_its_agent_hears_of_it() {
    let stage = with_threads(at_ease()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    let routes = stage.connector.command(&["route", "list"]).await;
    let routes = routes["routes"].as_array().unwrap();
    assert!(routes.iter().any(|route| route["threads"] == "auto"), "{routes:?}");
    let mut agent = stage.agent().await;
    let asked = discord.mention(quay, &stage.ann, "deploy the docs").await;
    let event = agent.takes("deploy the docs").await;
    assert_eq!(place(&event), [&*asked, &asked, quay, "thread"], "{event:#}");
    assert_eq!(key(&event), format!("agent:main:discord:thread:{asked}:{asked}"));
    let source = &event["source"];
    assert_eq!(source["auto_thread_created"], true, "{source}");
    assert_eq!(source["auto_thread_initial_name"], "deploy the docs");
    assert!(source.get("prospective_thread_id").is_none(), "{source}");
    assert_eq!(discord.threads(quay).await, [(asked.clone(), "deploy the docs".to_owned())]);
    // The agent's marks are on the message, and its answer is in the thread.
    let mark = json!({ "op": "react", "chat_id": asked, "message_id": asked, "emoji": "👀", "metadata": {} });
    assert_eq!(agent.ask(mark).await["success"], true);
    let answer = json!({ "op": "send", "chat_id": asked, "content": "done", "reply_to": asked,
        "metadata": { "thread_id": asked, "notify": true } });
    assert_eq!(agent.ask(answer).await["success"], true);
    assert_eq!(Chat::of_discord(discord, &asked).await.own_texts(), ["done"]);
    let is_marked = |chat: &Chat| chat.message(&asked)["marks"] == json!(["👀"]);
    let shown = until_reads(async || Chat::of_discord(discord, quay).await, is_marked).await;
    assert!(shown.own_texts().is_empty(), "{shown:#?}");
    // What follows needs no mention, and is the same conversation.
    discord.say(&asked, &stage.ann, "thank you").await;
    let follows = agent.takes("thank you").await;
    assert_eq!(key(&follows), key(&event));
    let rename = json!({ "op": "thread_rename", "chat_id": asked, "message_id": asked, "thread_name": "Docs",
        "only_if_connector_created": true, "metadata": {} });
    assert_eq!(agent.ask(rename).await["success"], true);
    assert_eq!(discord.threads(quay).await, [(asked, "Docs".to_owned())]);
}

#[tokio::test]
async fn only_what_begins_a_conversation_gets_a_thread() {
    let stage = with_threads(at_ease()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    let mut agent = stage.agent().await;
    discord.mention(quay, &stage.ann, "/new").await;
    assert_eq!(place(&agent.takes("/new").await), [quay, "", "", "group"], "a command is about where it is");
    let said = agent.sends(quay, "the report").await;
    let ask = json!({ "channel": quay, "author": stage.ann, "content": "thanks", "reply_to": said });
    discord.make("say", ask).await;
    assert_eq!(place(&agent.takes("thanks").await)[0], quay, "it goes on with what the agent said");
    let talk = discord.thread(quay, "talk", &stage.ann, None).await;
    discord.mention(&talk, &stage.ann, "here?").await;
    assert_eq!(place(&agent.takes("here?").await)[0], talk);
    let dm = discord.dm(&stage.ann).await;
    discord.say(&dm, &stage.ann, "alone").await;
    assert_eq!(place(&agent.takes("alone").await)[0], dm);
    assert_eq!(discord.threads(quay).await.len(), 1, "the one that Ann made");
}

#[tokio::test]
async fn two_people_at_once_get_two_threads() {
    let stage = with_threads(at_ease()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    let bob = discord.user("bob").await;
    let (one, other) =
        tokio::join!(discord.mention(quay, &stage.ann, "for Ann"), discord.mention(quay, &bob, "for Bob"));
    let mut agent = stage.agent().await;
    let (first, second) = (agent.take().await, agent.take().await);
    let mut places = [place(&first)[0], place(&second)[0]];
    places.sort_unstable();
    let mut asked = [one.as_str(), other.as_str()];
    asked.sort_unstable();
    assert_eq!(places, asked);
    assert_eq!(discord.threads(quay).await.len(), 2);
}

#[tokio::test]
async fn where_the_bot_may_not_a_conversation_stays_in_its_place() {
    let stage = with_threads(at_ease()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    discord.order("forbid", json!({ "channel": quay, "what": "create_public_threads" })).await;
    let mut agent = stage.agent().await;
    for text in ["one", "two", "three"] {
        discord.mention(quay, &stage.ann, text).await;
        let event = agent.takes(text).await;
        assert_eq!(place(&event), [quay, "", "", "group"], "{event:#}");
        assert!(event["source"].get("auto_thread_created").is_none());
    }
    let tries = stage.calls(0, "POST", "/threads").await;
    assert_eq!(tries, 1, "refusals are counted: it is not tried again for a while");
}

#[tokio::test]
async fn a_platform_that_does_not_answer_holds_a_message_for_seconds() {
    let stage = with_threads(at_ease()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    discord.fault(json!({ "path": "/threads$", "how": "hang", "seconds": 60 })).await;
    let mut agent = stage.agent().await;
    discord.mention(quay, &stage.ann, "anybody?").await;
    discord.mention(quay, &stage.ann, "/help").await;
    assert_eq!(place(&agent.takes("anybody?").await)[0], quay);
    assert_eq!(place(&agent.takes("/help").await)[0], quay, "what opens none stays behind");
    discord.mention(quay, &stage.ann, "next").await;
    assert_eq!(place(&agent.takes("next").await)[0], quay, "in order, and at once");
}

/// Ends the server when it passes a point, with a message on its way; answers that.
async fn die_at(stage: &mut Discord, point: &str) -> String {
    stage.connector.kill().await;
    stage.connector.restart_with(&[("ANGELIA_FAIL", &format!("{point}@1"))]).await;
    let asked = stage.discord.mention(&stage.quay, &stage.ann, "still there?").await;
    let ended = stage.connector.died(SOON).await.expect("the point was passed");
    assert!(!ended.success(), "{point}: {ended}");
    asked
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_crash_on_discord_opens_no_second_thread_and_loses_nothing() {
    let mut stage = with_threads(at_ease()).await;
    for (round, point) in ["opening_begun", "opening_made"].into_iter().enumerate() {
        let asked = die_at(&mut stage, point).await;
        stage.connector.restart().await;
        let mut agent = stage.agent().await;
        let event = agent.takes("still there?").await;
        assert_eq!(place(&event), [&*asked, &asked, &stage.quay, "thread"], "{point}: {event:#}");
        assert_eq!(event["source"]["auto_thread_created"], true, "{point}: the thread is the bot's own");
        assert_eq!(stage.discord.threads(&stage.quay).await.len(), round + 1, "{point}");
        agent.socket.close().await;
    }
}

#[tokio::test]
async fn what_is_edited_or_deleted_before_it_is_pushed_counts_in_its_thread_too() {
    let stage = with_threads(at_ease()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    let edited = discord.mention(quay, &stage.ann, "helo").await;
    let deleted = discord.mention(quay, &stage.ann, "never mind").await;
    stage.until_waiting(2).await;
    discord.edit(quay, &edited, &format!("<@{}> hello", discord.bot_id())).await;
    discord.delete(quay, &deleted).await;
    stage.until_waiting(1).await;
    stage.until_reported().await;
    let mut agent: Agent = stage.agent().await;
    let event = agent.takes("hello").await;
    assert_eq!(place(&event), [&*edited, &edited, quay, "thread"]);
}

#[tokio::test]
async fn a_conversation_on_telegram_gets_a_topic() {
    let stage = Telegram::new("auto-threads").await;
    let ann = stage.telegram.person("Ann").await;
    let lab = stage.telegram.managed_forum("Lab", &[ann]).await;
    let plain = stage.telegram.supergroup("Plain", &[ann]).await;
    for group in [lab, plain] {
        stage.route("acme", group, &["--allow", "any", "--threads", "auto"]).await;
    }
    let mut agent = stage.join().await;
    stage.telegram.say(lab, ann, &stage.to_bot("deploy the docs")).await;
    let event = heard(&mut agent).await;
    let [(topic, name)] = &stage.telegram.topics(lab).await[..] else { panic!("one topic") };
    assert_eq!(name, "deploy the docs");
    assert_eq!(place(&event), [&*lab.to_string(), &topic.to_string(), "", "forum"], "{event:#}");
    assert_eq!(event["source"]["chat_topic"], "deploy the docs");
    assert_eq!(event["source"]["auto_thread_created"], true);
    stage.telegram.say_in(lab, *topic, ann, "thank you").await;
    let follows = heard(&mut agent).await;
    assert_eq!((&follows["text"], key(&follows)), (&json!("thank you"), key(&event)), "nobody is mentioned");
    stage.telegram.say(plain, ann, &stage.to_bot("and here?")).await;
    let event = heard(&mut agent).await;
    assert_eq!(place(&event), [&*plain.to_string(), "", "", "group"], "a group without topics");
    stage.telegram.assert_no_violations().await;
}

#[tokio::test]
async fn on_telegram_a_bot_that_may_open_no_topics_answers_in_general() {
    let stage = Telegram::new("auto-threads-not").await;
    let ann = stage.telegram.person("Ann").await;
    let lab = stage.telegram.forum("Lab", &[ann]).await;
    stage.route("acme", lab, &["--allow", "any", "--threads", "auto"]).await;
    let mut agent = stage.join().await;
    for text in ["one", "two"] {
        stage.telegram.say(lab, ann, &stage.to_bot(text)).await;
        let event = heard(&mut agent).await;
        assert_eq!((&event["text"], place(&event)[1]), (&json!(text), ""), "{event:#}");
    }
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_crash_on_telegram_leaves_one_empty_topic_at_the_most() {
    let mut stage = Telegram::new("auto-threads-crash").await;
    let ann = stage.telegram.person("Ann").await;
    let lab = stage.telegram.managed_forum("Lab", &[ann]).await;
    stage.route("acme", lab, &["--allow", "any", "--threads", "auto"]).await;
    stage.connector.kill().await;
    stage.connector.restart_with(&[("ANGELIA_FAIL", "opening_made@1")]).await;
    stage.telegram.say(lab, ann, &stage.to_bot("still there?")).await;
    let ended = stage.connector.died(SOON).await.expect("the point was passed");
    assert!(!ended.success(), "{ended}");
    stage.connector.restart().await;
    let mut agent = stage.join().await;
    let event = heard(&mut agent).await;
    assert_eq!((&event["text"], place(&event)[1]), (&json!("still there?"), ""), "{event:#}");
    assert_eq!(stage.telegram.topics(lab).await.len(), 1, "the one that nobody writes in");
}
