//! Slash commands, buttons and forms: what the person sees of them, and who gets them.

use super::discord_stage::{SOON, Stage};
use super::discord_talk::key;
use super::interactions_stage::{Peer, at_ease};
use angelia_testkit::discord::Interaction;
use serde_json::{Value, json};

/// How an interaction reaches the bot.
const WAYS: [&str; 2] = ["http", "gateway"];

impl Stage {
    /// Somebody uses a command; it says that the bot is thinking.
    async fn thinks(&self, via: &str, channel: &str, name: &str, options: Value) -> Interaction {
        let ask =
            json!({ "via": via, "channel": channel, "user": self.ann, "name": name, "options": options });
        let asked = self.discord.interact("slash", ask).await;
        assert_eq!(asked.via, via);
        let deferred = self.discord.until_interaction(&asked.id, SOON, |one| one.state == "deferred").await;
        assert_eq!(deferred.answer, json!({ "type": 5 }));
        deferred
    }

    /// How many messages of the bot a channel shows.
    async fn shown(&self, channel: &str) -> usize {
        self.discord.answers(channel).await.len()
    }
}

/// A command, answered by whoever names it; what comes first and is for nobody
/// answers nothing, and what comes after it goes behind.
pub(crate) async fn a_command_is_answered_in_its_place(stage: &Stage, peer: &mut Peer, via: &str) {
    let Stage { discord, quay, .. } = stage;
    let asked = stage.thinks(via, quay, "ask", json!({ "question": "what is the tide?" })).await;
    let event = peer.takes(&asked, "what is the tide?").await;
    assert_eq!(event["source"]["user_id"], json!(stage.ann));
    let before = stage.shown(quay).await;

    let remark = peer.says(quay, "No home channel is set", None, false).await;
    assert_ne!(Some(&remark), asked.message.as_ref());
    assert_eq!(discord.interaction(&asked.id).await.state, "deferred", "a remark answers nobody");
    let said = peer.says(quay, "high at noon", Some(&asked.id), true).await;
    let answered = stage.until_says(&asked.id, "high at noon").await;
    assert_eq!((answered.edits, answered.followups.len(), answered.ephemeral), (1, 0, false));
    assert_eq!(answered.message, Some(said));
    let more = peer.says(quay, "and low at six", Some(&asked.id), false).await;
    let answered = discord.interaction(&asked.id).await;
    assert_eq!((answered.edits, answered.content.as_deref()), (1, Some("high at noon")));
    assert_eq!(answered.followups.len(), 1, "{answered:#?}");
    assert_eq!(
        (&answered.followups[0].id, answered.followups[0].content.as_deref()),
        (&more, Some("and low at six"))
    );
    assert_eq!(stage.shown(quay).await, before + 2, "the remark and what came later");

    let story = stage.explained(&asked.id).await;
    let replies = story["replies"].as_array().unwrap();
    let told: Vec<_> = replies.iter().map(|reply| (&reply["state"], &reply["message_id"])).collect();
    assert_eq!(
        told,
        [(&json!("sent"), &json!(answered.message)), (&json!("sent"), &json!(more))],
        "{story:#}"
    );
}

/// Answers that name nothing go to those who wait, the oldest first.
pub(crate) async fn an_answer_that_names_nothing_is_for_whoever_waits(
    stage: &Stage,
    peer: &mut Peer,
    via: &str,
) {
    let Stage { discord, quay, .. } = stage;
    let first = stage.thinks(via, quay, "status", json!({})).await;
    let event = peer.takes(&first, "/status").await;
    assert_eq!(event["message_type"], "command");
    let second = stage.thinks(via, quay, "help", json!({})).await;
    peer.takes(&second, "/help").await;

    let elsewhere = discord.mention(quay, &stage.ann, "by the way").await;
    peer.event().await;
    peer.says(quay, "yes?", Some(&elsewhere), true).await;
    assert_eq!(discord.interaction(&first.id).await.state, "deferred", "that answers another message");
    peer.says(quay, "all is well", None, true).await;
    stage.until_says(&first.id, "all is well").await;
    assert_eq!(discord.interaction(&second.id).await.state, "deferred");
    peer.says(quay, "ask me", None, true).await;
    stage.until_says(&second.id, "ask me").await;
    let before = stage.shown(quay).await;
    peer.says(quay, "nobody waits", None, true).await;
    assert_eq!(stage.shown(quay).await, before + 1);
    let story = stage.explained(&first.id).await;
    assert_eq!(story["replies"][0]["message_id"], json!(first.message), "{story:#}");
}

/// What is pressed stays as it is, and the answer is a message of its own.
pub(crate) async fn a_press_leaves_its_message(stage: &Stage, peer: &mut Peer, via: &str) {
    let Stage { discord, quay, ann, .. } = stage;
    for (custom_id, text, prompt) in
        [("hp1:tide7:once", "/once", json!(["tide7", "once"])), ("pick-me", "pick-me", json!([null, null]))]
    {
        let shown = stage.button(quay, "May I?", custom_id).await;
        let press =
            json!({ "via": via, "channel": quay, "user": ann, "message": shown, "custom_id": custom_id });
        let pressed = discord.interact("press", press).await;
        let event = peer.takes(&pressed, text).await;
        let response = &event["prompt_response"];
        assert_eq!(json!([response["prompt_id"], response["option_id"]]), prompt, "{event:#}");
        if response.is_object() {
            assert_eq!(response["prompt_message_id"], json!(shown), "{event:#}");
        }
        let deferred = discord.until_interaction(&pressed.id, SOON, |one| one.answer.is_object()).await;
        assert_eq!(deferred.answer, json!({ "type": 6 }));
        let said = peer.says(quay, "thank you", Some(&pressed.id), true).await;
        let answered = discord.until_interaction(&pressed.id, SOON, |one| !one.followups.is_empty()).await;
        assert_eq!(answered.followups.iter().map(|one| &one.id).collect::<Vec<_>>(), [&said]);
        let messages = discord.messages(quay).await;
        let pressed = messages.iter().find(|message| message.id == shown).unwrap();
        assert_eq!((pressed.content.as_str(), pressed.edits), ("May I?", 0));
    }
}

/// A form, and a field that somebody types in.
pub(crate) async fn a_form_is_a_message_and_typing_is_none(stage: &Stage, peer: &mut Peer, via: &str) {
    let Stage { discord, quay, ann, .. } = stage;
    let form = json!({ "via": via, "channel": quay, "user": ann, "custom_id": "trip", "fields": { "to": "Rhodes" } });
    let sent = discord.interact("modal", form).await;
    peer.takes(&sent, "to=Rhodes").await;
    discord.until_interaction(&sent.id, SOON, |one| one.answer == json!({ "type": 5 })).await;
    peer.says(quay, "we sail", Some(&sent.id), true).await;
    stage.until_says(&sent.id, "we sail").await;

    let typing =
        json!({ "via": via, "channel": quay, "user": ann, "name": "made-up", "option": "to", "value": "R" });
    let typed = discord.interact("autocomplete", typing).await;
    let typed = discord.until_interaction(&typed.id, SOON, |one| one.answer.is_object()).await;
    assert_eq!(typed.answer, json!({ "type": 8, "data": { "choices": [] } }));
    peer.hears_nothing().await;
}

/// Guild, thread and private chat: the conversation is the one that messages are in.
pub(crate) async fn a_command_is_part_of_the_conversation(stage: &Stage, peer: &mut Peer, via: &str) {
    let Stage { discord, quay, ann, .. } = stage;
    let thread = discord.thread(quay, "ropes", ann, None).await;
    let dm = discord.dm(ann).await;
    for chat in [quay, &thread, &dm] {
        discord.mention(chat, ann, "hello").await;
        let written = peer.event().await;
        let asked = stage.thinks(via, chat, "status", json!({})).await;
        let event = peer.takes(&asked, "/status").await;
        assert_eq!(key(&written), key(&event), "{event:#}");
        for field in
            ["chat_id", "chat_type", "thread_id", "parent_chat_id", "scope_id", "chat_name", "user_name"]
        {
            assert_eq!(written["source"][field], event["source"][field], "{field} of {event:#}");
        }
        peer.says(chat, "here", Some(&asked.id), true).await;
        stage.until_says(&asked.id, "here").await;
    }
}

/// Whoever reaches nobody is told so at once, and waits for nothing.
pub(crate) async fn whoever_reaches_nobody_is_told(stage: &Stage, peer: &mut Peer, via: &str) {
    let Stage { discord, guild, ann, .. } = stage;
    let eve = discord.user("eve").await;
    let [inner, empty] =
        [discord.channel(&guild.id, "inner").await, discord.channel(&guild.id, "empty").await];
    stage.route("acme", &["--allow", ann], &format!("discord:{}/{inner}", guild.id)).await;
    stage.connector.command(&["tenant", "create", "hollow"]).await;
    stage.connector.command(&["gateway", "create", "--tenant", "hollow", "gone"]).await;
    stage.connector.command(&["gateway", "revoke", "gone"]).await;
    stage.route("hollow", &["--allow", "any"], &format!("discord:{}/{empty}", guild.id)).await;
    let elsewhere = discord.guild("Elsewhere").await;
    let lobby = discord.channel(&elsewhere.id, "lobby").await;
    for (channel, name, words, reason) in [
        (&lobby, "status", "no agent is connected", "no_route"),
        (&inner, "status", "not among those", "author_not_allowed"),
        (&empty, "status", "not set up", "no_instance"),
        (&stage.quay, "link", "written as a message", "consumed"),
    ] {
        let ask = json!({ "via": via, "channel": channel, "user": eve, "name": name });
        let refused = discord.interact("slash", ask).await;
        let refused = discord.until_interaction(&refused.id, SOON, |one| one.state == "answered").await;
        let content = refused.content.clone().unwrap_or_default();
        assert!(refused.ephemeral && content.contains(words), "{refused:#?}");
        assert_eq!(stage.drop_of(&refused.id).await["reason"], reason);
    }
    peer.hears_nothing().await;
}

/// The same bytes once more are nothing new; old or changed ones are nobody's.
pub(crate) async fn only_discord_is_believed_and_only_once(stage: &Stage, peer: &mut Peer) {
    let Stage { discord, quay, .. } = stage;
    let pinged = discord.ping().await;
    assert_eq!((&pinged["accepted"], &pinged["forged_status"]), (&json!(true), &json!(401)), "{pinged}");
    let asked = stage.thinks("http", quay, "new", json!({})).await;
    peer.takes(&asked, "/new").await;
    let again = discord.repost(&asked.id, json!({})).await;
    assert_eq!((&again["status"], &again["body"]), (&json!(200), &json!("{\"type\":5}")), "{again}");
    assert_eq!(
        discord.repost(&asked.id, json!({ "age": 200 })).await["status"],
        200,
        "younger than five minutes"
    );
    let refused = stage.counted("refused_signatures").await;
    for change in [
        json!({ "age": 310 }),
        json!({ "age": -310 }),
        json!({ "tamper": "body" }),
        json!({ "tamper": "signature" }),
        json!({ "tamper": "timestamp" }),
    ] {
        assert_eq!(discord.repost(&asked.id, change.clone()).await["status"], 401, "{change}");
    }
    assert_eq!(stage.counted("refused_signatures").await, refused + 5);
    peer.says(quay, "a new day", Some(&asked.id), true).await;
    stage.until_says(&asked.id, "a new day").await;
    assert_eq!(discord.repost(&asked.id, json!({})).await["status"], 200);
    peer.hears_nothing().await;
    assert_eq!(discord.interaction(&asked.id).await.followups, []);
}

/// A command that stops a turn goes ahead of everything that waits; a gateway that
/// reads messages one by one is given it with the next that it takes.
async fn a_stop_overtakes(stage: &Stage, peer: &mut Peer, via: &str) {
    let Stage { quay, .. } = stage;
    let mut unanswered = Vec::new();
    for number in 0..12 {
        unanswered.push(stage.thinks(via, quay, "ask", json!({ "question": format!("q{number}") })).await);
    }
    let mut pushed = Vec::new();
    for number in 0..8 {
        let frame = peer.frame().await;
        assert_eq!(frame["event"]["text"], json!(format!("q{number}")));
        pushed.push(frame);
    }
    peer.hears_nothing().await;
    let stop = stage.thinks(via, quay, "stop", json!({})).await;
    peer.ack(&pushed[0]).await;
    peer.takes(&stop, "/stop").await;
    peer.says(quay, "stopped", Some(&stop.id), true).await;
    stage.until_says(&stop.id, "stopped").await;
    for frame in &pushed[1..] {
        peer.ack(frame).await;
    }
    for (number, asked) in unanswered.iter().enumerate().skip(8) {
        peer.takes(asked, &format!("q{number}")).await;
    }
    for asked in &unanswered {
        peer.says(quay, "never mind", Some(&asked.id), true).await;
    }
}

#[tokio::test]
async fn what_people_do_other_than_writing_is_answered_where_they_did_it() {
    let stage = Stage::posted_to(at_ease(), "", "", &[]).await;
    stage.until_session().await;
    commands_are_registered(&stage).await;
    let mut peer = stage.published().await;
    for via in WAYS {
        a_command_is_answered_in_its_place(&stage, &mut peer, via).await;
        an_answer_that_names_nothing_is_for_whoever_waits(&stage, &mut peer, via).await;
        a_press_leaves_its_message(&stage, &mut peer, via).await;
        a_form_is_a_message_and_typing_is_none(&stage, &mut peer, via).await;
        a_command_is_part_of_the_conversation(&stage, &mut peer, via).await;
        whoever_reaches_nobody_is_told(&stage, &mut peer, via).await;
        a_stop_overtakes(&stage, &mut peer, via).await;
    }
    only_discord_is_believed_and_only_once(&stage, &mut peer).await;
    assert_eq!(stage.discord.count("/rest/not_built").await, 0);
    assert_eq!(stage.discord.count("/rest/unreadable").await, 0);
}

/// What an operator does before people see commands, and what they are told.
async fn commands_are_registered(stage: &Stage) {
    stage.discord.set_interactions_url(None).await;
    let (code, told, _) = stage.angelia(&["bot", "check"]).await;
    assert_eq!(code, 0, "{told}");
    assert!(told.contains(&stage.endpoint()) && told.contains("Interactions Endpoint URL"), "{told}");
    assert!(told.contains("angelia bot commands push main"), "{told}");
    stage.discord.set_interactions_url(Some(&stage.endpoint())).await;
    let pushed = stage.connector.command(&["bot", "commands", "push"]).await;
    let shown = stage.connector.command(&["bot", "commands", "show"]).await;
    for (what, told) in [("push", &pushed), ("show", &shown)] {
        let told = told.to_string();
        for name in ["ask", "new", "stop", "status", "help"] {
            assert!(told.contains(&format!("\"{name}\"")), "{what}: {told}");
        }
    }
    let (code, told, _) = stage.angelia(&["bot", "check"]).await;
    assert!(code == 0 && told.contains(&format!("posts interactions to {}", stage.endpoint())), "{told}");
    assert!(told.contains("5 slash command(s)"), "{told}");
}
