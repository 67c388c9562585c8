//! `thread_create` and `thread_rename`: threads of Discord and topics of Telegram, in the agent's own
//! places, and renamed only as far as nobody else named them.

use super::discord_client::Client;
use super::discord_stage::{Agent, Stage as Discord};
use super::interactions_stage::at_ease;
use super::readers::Chat;
use super::telegram_stage::{Stage as Telegram, heard};
use angelia_testkit::telegram::Aiogram;
use serde_json::{Value, json};

/// At ease, and quick to say how far it has read, which heartbeats tell.
fn quick() -> Value {
    json!({ "identify_seconds": 0, "limits": false, "heartbeat_interval": 1_000 })
}

fn create(chat: &str, name: &str, message: Option<&str>) -> Value {
    json!({ "op": "thread_create", "chat_id": chat, "thread_name": name, "message_id": message, "metadata": {} })
}

/// A rename under a condition.
fn rename(chat: &str, thread: &str, name: &str, condition: Value) -> Value {
    let mut action = json!({
        "op": "thread_rename", "chat_id": chat, "message_id": thread, "thread_name": name, "metadata": {},
    });
    action.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
    action
}

fn created() -> Value {
    json!({ "only_if_connector_created": true })
}

fn thread_of(result: &Value) -> String {
    assert_eq!(result["success"], true, "{result}");
    result["thread_id"].as_str().unwrap_or_else(|| panic!("no thread: {result}")).to_owned()
}

fn why(result: &Value) -> &str {
    assert_eq!(result["success"], false, "{result}");
    result["error"].as_str().unwrap()
}

#[tokio::test]
async fn on_discord_an_agent_opens_threads_and_goes_on_there() {
    let stage = Discord::listening(at_ease()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    let mut agent = stage.agent().await;
    let asked = discord.mention(quay, &stage.ann, "let us plan").await;
    agent.takes("let us plan").await;
    let plan = thread_of(&agent.ask(create(quay, " the\nplan ", Some(&asked))).await);
    assert_eq!(plan, asked, "a thread has the id of its message");
    assert_eq!(thread_of(&agent.ask(create(quay, "the plan", Some(&asked))).await), plan, "it has one");
    let ideas = thread_of(&agent.ask(create(quay, "ideas", None)).await);
    let threads = [(plan.clone(), "the plan".to_owned()), (ideas.clone(), "ideas".to_owned())];
    assert_eq!(discord.threads(quay).await, threads);
    agent.sends(&plan, "here it is").await;
    assert_eq!(discord.answers(&plan).await.last().unwrap().content, "here it is");
    // It was begun with this agent: nobody has to mention it there.
    discord.say(&plan, &stage.ann, "and then?").await;
    let event = agent.takes("and then?").await;
    assert_eq!(
        (&event["source"]["chat_id"], &event["source"]["parent_chat_id"]),
        (&json!(plan), &json!(quay))
    );
    // What a thread was opened from is a person's: the ledger knows it as no message of the agent's.
    let taken =
        agent.ask(json!({ "op": "delete", "chat_id": quay, "message_id": asked, "metadata": {} })).await;
    assert!(why(&taken).contains("no such message of yours"), "{taken}");
    let shown = Chat::of_discord(discord, quay).await;
    assert_eq!(shown.threads(), [(&*plan, "the plan"), (&*ideas, "ideas")], "{shown:#?}");
    assert_eq!(Chat::of_discord(discord, &plan).await.own_texts(), ["here it is"]);
}

#[tokio::test]
async fn on_discord_what_cannot_have_threads_says_so() {
    let stage = Discord::listening(quick()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    let mut agent = stage.agent().await;
    assert!(why(&agent.ask(create(quay, " \n", None)).await).contains("needs a name"));
    let inside = discord.thread(quay, "talk", &stage.ann, None).await;
    stage.until_reported().await;
    assert!(why(&agent.ask(create(&inside, "deeper", None)).await).contains("no threads below"));
    let dm = discord.dm(&stage.ann).await;
    discord.say(&dm, &stage.ann, "hi").await;
    agent.takes("hi").await;
    assert!(why(&agent.ask(create(&dm, "us", None)).await).contains("have no threads"));
    discord.order("forbid", json!({ "channel": quay, "what": "create_public_threads" })).await;
    assert!(why(&agent.ask(create(quay, "plan", None)).await).contains("Create Public Threads"));
    let foreign = discord.guild("Elsewhere").await;
    let lane = discord.channel(&foreign.id, "lane").await;
    stage.until_reported().await;
    let declined = agent.ask(create(&lane, "mine", None)).await;
    assert!(
        why(&declined).contains("egress_declined") || declined["code"] == "egress_declined",
        "{declined}"
    );
    assert_eq!(discord.threads(&lane).await, []);
    let declined = agent.ask(rename(quay, &lane, "mine", json!({}))).await;
    assert_eq!(declined["success"], false, "{declined}");
}

/// Waits until a thread of the directory has a name: of a person's rename the bot is told.
async fn until_renamed(stage: &Discord, agent: &mut Agent, thread: &str, name: &str) {
    stage.until_reported().await;
    let info = agent.ask(json!({ "op": "get_chat_info", "chat_id": thread })).await;
    assert_eq!(info["chat_info"]["name"], name, "{info}");
}

#[tokio::test]
async fn on_discord_a_thread_is_renamed_until_a_person_names_it() {
    let stage = Discord::listening(quick()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    let mut agent = stage.agent().await;
    let thread = thread_of(&agent.ask(create(quay, "new", None)).await);
    let name = async || discord.threads(quay).await.pop().unwrap().1;
    // By its channel and by itself, as gateways write it.
    assert_eq!(agent.ask(rename(quay, &thread, "the harbour", created())).await["success"], true);
    assert_eq!(name().await, "the harbour");
    assert_eq!(agent.ask(rename(&thread, &thread, "the old harbour", created())).await["success"], true);
    assert_eq!(name().await, "the old harbour", "a name of its own is still the connector's");
    let stale = agent.ask(rename(quay, &thread, "x", json!({ "only_if_current_name": "the harbour" }))).await;
    assert!(why(&stale).contains("another name"), "{stale}");
    let current = json!({ "only_if_current_name": "the old harbour" });
    assert_eq!(agent.ask(rename(quay, &thread, "ships", current)).await["success"], true);
    discord.order("rename", json!({ "channel": thread, "name": "Ann's own" })).await;
    until_renamed(&stage, &mut agent, &thread, "Ann's own").await;
    assert!(why(&agent.ask(rename(quay, &thread, "x", created())).await).contains("stays"));
    assert_eq!(name().await, "Ann's own");
    let others = discord.thread(quay, "Bob's", &stage.ann, None).await;
    stage.until_reported().await;
    assert!(why(&agent.ask(rename(quay, &others, "x", created())).await).contains("did not open"));
    assert!(why(&agent.ask(rename(quay, quay, "x", json!({}))).await).contains("only threads"));
}

#[tokio::test]
async fn on_discord_a_third_name_in_ten_minutes_holds_up_nothing() {
    let stage = Discord::listening(json!({ "identify_seconds": 0 })).await;
    let mut agent = stage.agent().await;
    let thread = thread_of(&agent.ask(create(&stage.quay, "one", None)).await);
    for name in ["two", "three"] {
        assert_eq!(agent.ask(rename(&stage.quay, &thread, name, json!({}))).await["success"], true);
    }
    let often = agent.ask(rename(&stage.quay, &thread, "four", json!({}))).await;
    assert!(why(&often).contains("so often"), "{often}");
    agent.sends(&thread, "still here").await;
}

#[tokio::test]
async fn on_discord_threads_and_their_guard_outlive_the_server() {
    let mut stage = Discord::listening(at_ease()).await;
    let quay = stage.quay.clone();
    let thread = thread_of(&stage.agent().await.ask(create(&quay, "new", None)).await);
    stage.connector.kill().await;
    stage.connector.restart().await;
    let mut agent = stage.agent().await;
    assert_eq!(agent.ask(rename(&quay, &thread, "newer", created())).await["success"], true);
    agent.sends(&thread, "again").await;
    assert_eq!(stage.discord.threads(&quay).await, [(thread, "newer".to_owned())]);
}

#[tokio::test]
async fn on_telegram_an_agent_opens_and_renames_topics() {
    let stage = Telegram::new("threads").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let lab = stage.telegram.managed_forum("Lab", &[ann]).await;
    let plain = stage.telegram.supergroup("Plain", &[ann]).await;
    let (chat, mut agent) = (lab.to_string(), stage.join().await);
    for group in [lab, plain] {
        stage.telegram.say(group, ann, &stage.to_bot("hello")).await;
        heard(&mut agent).await;
    }
    let topic = thread_of(&agent.ask(create(&chat, " the\nplan ", None)).await);
    let number: i64 = topic.parse().unwrap();
    assert_eq!(stage.telegram.topics(lab).await, [(number, "the plan".to_owned())]);
    let metadata = json!({ "thread_id": topic });
    let sent = agent
        .ask(json!({ "op": "send", "chat_id": chat, "content": "here it is", "metadata": metadata }))
        .await;
    assert_eq!(sent["success"], true, "{sent}");
    stage.telegram.say_in(lab, number, ann, "and then?").await;
    let event = heard(&mut agent).await;
    assert_eq!(event["text"], "and then?", "nobody has to mention it there: {event}");
    assert_eq!(
        (&event["source"]["chat_type"], &event["source"]["thread_id"]),
        (&json!("forum"), &json!(topic))
    );
    assert_eq!(agent.ask(rename(&chat, &topic, "the harbour", created())).await["success"], true);
    assert_eq!(agent.ask(rename(&chat, &topic, "ships", created())).await["success"], true);
    let shown = Chat::of_telegram(&stage.telegram, lab).await;
    assert_eq!(shown.threads(), [(&*topic, "ships")], "{shown:#?}");
    assert_eq!(shown.containing("here it is")["topic"], topic);
    stage.telegram.rename_topic(lab, number, ann, "Ann's own").await;
    stage.telegram.say_in(lab, number, ann, "renamed").await;
    assert_eq!(heard(&mut agent).await["text"], "renamed");
    assert!(why(&agent.ask(rename(&chat, &topic, "x", created())).await).contains("stays"));
    assert!(why(&agent.ask(rename(&chat, "1", "x", json!({}))).await).contains("only threads"));
    let refused = agent.ask(create(&plain.to_string(), "plan", None)).await;
    assert!(why(&refused).contains("no topics"), "{refused}");
    let private = agent.ask(create(&ann.to_string(), "plan", None)).await;
    assert_eq!(private["success"], false, "{private}");
    stage.telegram.assert_no_violations().await;
}

#[tokio::test]
async fn aiogram_opens_and_renames_topics() {
    let folder = super::telegram_stage::folder("topics-aiogram");
    let telegram =
        angelia_testkit::telegram::FakeTelegram::start(&folder, &super::telegram_stage::unlimited()).await;
    let bot = Aiogram::start(&folder, &telegram).await;
    let ann = telegram.person("Ann").await;
    let lab = telegram.managed_forum("Lab", &[ann]).await;
    let topic = bot.call("create_forum_topic", json!({ "chat_id": lab, "name": "plan" })).await.unwrap();
    let thread = &topic["message_thread_id"];
    assert_eq!(topic["name"], "plan", "{topic}");
    let renamed = json!({ "chat_id": lab, "message_thread_id": thread, "name": "ships" });
    bot.call("edit_forum_topic", renamed.clone()).await.unwrap();
    assert!(bot.call("edit_forum_topic", renamed).await.unwrap_err().message.contains("TOPIC_NOT_MODIFIED"));
    let forum = telegram.forum("Others'", &[ann]).await;
    let refused =
        bot.call("create_forum_topic", json!({ "chat_id": forum, "name": "plan" })).await.unwrap_err();
    assert!(refused.message.contains("not enough rights"), "{refused:?}");
    assert_eq!(telegram.topics(lab).await, [(thread.as_i64().unwrap(), "ships".to_owned())]);
}

#[tokio::test]
async fn discord_py_opens_and_renames_threads() {
    let (discord, _folder) = super::discord_client::discord(json!({ "identify_seconds": 0 })).await;
    let guild = discord.guild("Harbour").await;
    let quay = discord.channel(&guild.id, "quay").await;
    let ann = discord.user("ann").await;
    let client = Client::ready(&discord).await;
    let asked = discord.say(&quay, &ann, "open plan").await;
    let opened = client.told("opened").await;
    assert_eq!((&opened["id"], &opened["parent"]), (&json!(asked), &json!("quay")), "{opened}");
    assert_eq!(discord.threads(&quay).await, [(asked, "plan again".to_owned())]);
}
