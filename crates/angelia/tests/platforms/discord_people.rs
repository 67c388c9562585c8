//! Codes that people type, checks that operators make, and what the connector says itself.

use super::discord_stage::{SOON, Stage, bot};
use angelia_core::own_words::{Language, OwnWords};
use angelia_testkit::discord::Message;
use serde_json::{Value, json};

impl Stage {
    async fn code(&self, args: &[&str]) -> String {
        let made = self.connector.command(&[&["route", "code", "--tenant", "acme"], args].concat()).await;
        made["code"].as_str().unwrap_or_else(|| panic!("no code in {made}")).to_owned()
    }

    /// Whose a place is.
    async fn owner(&self, place: &str) -> Option<Value> {
        let routes = self.connector.command(&["route", "list"]).await;
        routes["routes"].as_array().unwrap().iter().find(|route| route["place"] == place).cloned()
    }

    /// Waits for the connector's answer to a message.
    async fn answer_to(&self, chat: &str, message: &str) -> String {
        let is_it = |one: &Message| one.own && one.reference.as_deref() == Some(message);
        let all = self.discord.until_messages(chat, SOON, |all| all.iter().any(is_it)).await;
        all.into_iter().find(is_it).unwrap().content
    }
}

#[tokio::test]
async fn a_code_is_for_administrators_and_for_people_in_private() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, ann, .. } = &stage;
    let mut agent = stage.agent().await;
    let made = discord.order("guild", json!({ "name": "Elsewhere" })).await;
    let (guild, owner) = (made["id"].as_str().unwrap(), made["owner"].as_str().unwrap());
    let lobby = discord.channel(guild, "lobby").await;
    let place = format!("discord:{guild}/{lobby}");

    let code = stage.code(&["--allow", "any"]).await;
    let typed = discord.mention(&lobby, ann, &format!("/link {code}")).await;
    let said = stage.answer_to(&lobby, &typed).await;
    assert!(said.contains("administrator"), "{said}");
    assert!(stage.owner(&place).await.is_none());
    assert_eq!(stage.drop_of(&typed).await["reason"], "consumed");

    let typed = discord.mention(&lobby, owner, &format!("/link {code}")).await;
    let said = stage.answer_to(&lobby, &typed).await;
    assert!(said.starts_with("Linked"), "{said}");
    assert_eq!(stage.owner(&place).await.unwrap()["tenant"], "acme");
    discord.mention(&lobby, ann, "hello from here").await;
    agent.takes("hello from here").await;

    let bob = discord.user("bob").await;
    let dm = discord.dm(&bob).await;
    let code = stage.code(&[]).await;
    let typed = discord.say(&dm, &bob, &format!("/link {code}")).await;
    assert!(stage.answer_to(&dm, &typed).await.starts_with("Linked"));
    discord.say(&dm, &bob, "and from me").await;
    agent.takes("and from me").await;
    let route = stage.owner(&format!("discord:dm:{bob}")).await.unwrap();
    assert_eq!((&route["tenant"], &route["allow"]), (&json!("acme"), &json!([bob])), "{route}");
    assert!(!stage.log().contains(&code), "no code in the log");
}

#[tokio::test]
async fn a_check_tells_what_a_bot_can_and_what_to_do() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let findings = |text: &str| -> Value {
        let told: Value = serde_json::from_str(text).unwrap();
        told["bots"][0].clone()
    };
    let (code, told, _) = stage.angelia(&["bot", "check", "--json"]).await;
    let good = findings(&told);
    assert_eq!((code, &good["usable"]), (0, &json!(true)), "{told}");
    assert!(good["identity"].as_str().unwrap().contains(stage.discord.bot_id()), "{told}");
    assert!(told.contains("Message Content") && told.contains("999 of 1000"), "{told}");

    stage.discord.set(json!({ "privileged": [] })).await;
    let (code, told, error) = stage.angelia(&["bot", "check", "--json"]).await;
    let bad = findings(&told);
    let finding = bad["findings"].as_array().unwrap().iter().find(|one| one["verdict"] == "bad").unwrap();
    assert!(finding["next"].as_str().unwrap().contains("Privileged Gateway Intents"), "{told}");
    assert_eq!((code, &bad["usable"]), (1, &json!(false)), "{told}{error}");

    let text = std::fs::read_to_string(stage.config()).unwrap();
    let wrong = bot(stage.folder(), &stage.discord, "MTIz.wrong.hunter2");
    assert!(text.contains(&wrong), "the same lines, with another token in the file");
    let (code, told, error) = stage.angelia(&["bot", "check"]).await;
    assert_eq!(code, 1, "{told}{error}");
    assert!(told.contains("does not accept the token") && told.contains("Reset Token"), "{told}");
    assert!(!format!("{told}{error}").contains("hunter2"), "{told}{error}");
}

#[tokio::test]
async fn people_are_told_once_why_nothing_answers() {
    let notices =
        "[notices]\nhint = \"Nobody lives here.\"\naway_after = \"1s\"\naway_text = \"Away, kept.\"";
    let stage = Stage::with(json!({ "identify_seconds": 0 }), notices).await;
    stage.until_session().await;
    let Stage { discord, quay, ann, .. } = &stage;
    let elsewhere = discord.guild("Elsewhere").await;
    let lobby = discord.channel(&elsewhere.id, "lobby").await;
    let said = |text: &'static str| move |one: &Message| one.own && one.content == text;
    let hinted = said("Nobody lives here.");

    let chatter = discord.say(&lobby, ann, "just talking").await;
    stage.drop_of(&chatter).await;
    discord.mention(&lobby, ann, "anybody?").await;
    discord.until_messages(&lobby, SOON, |all| all.iter().any(hinted)).await;
    for _ in 0..2 {
        let again = discord.mention(&lobby, ann, "hello?").await;
        stage.drop_of(&again).await;
    }
    // Another place is told too, and after it the first one again would have been.
    let bob = discord.user("bob").await;
    let dm = discord.dm(&bob).await;
    discord.say(&dm, &bob, "anybody?").await;
    discord.until_messages(&dm, SOON, |all| all.iter().any(hinted)).await;
    assert_eq!(discord.answers(&lobby).await.len(), 1);

    // No agent is there: the person is told, once, and the channel is not.
    let dm = discord.dm(ann).await;
    let away = said("Away, kept.");
    let first = discord.say(&dm, ann, "are you there?").await;
    discord.mention(quay, ann, "and here?").await;
    discord.say(&dm, ann, "really?").await;
    let told = discord.until_messages(&dm, SOON, |all| all.iter().any(away)).await;
    let notice = told.iter().find(|one| away(one)).unwrap();
    assert_eq!(notice.reference.as_deref(), Some(first.as_str()), "{told:#?}");
    let mut agent = stage.agent().await;
    for text in ["are you there?", "and here?", "really?"] {
        agent.takes(text).await;
    }
    stage.until_waiting(0).await;
    drop(agent);
    // Another outage is another word.
    discord.say(&dm, ann, "gone again?").await;
    let twice = |all: &[Message]| all.iter().filter(|one| away(one)).count() == 2;
    discord.until_messages(&dm, SOON, twice).await;
    assert!(discord.answers(quay).await.is_empty(), "channels are not told by default");
}

#[tokio::test]
async fn who_writes_before_there_is_an_agent_is_told_so() {
    let options = json!({ "identify_seconds": 0 });
    let stage = Stage::with(options, "[notices]\naway_after = \"1s\"\n").await;
    stage.until_session().await;
    let Stage { discord, ann, .. } = &stage;
    stage.connector.command(&["tenant", "create", "new"]).await;
    let guild = discord.guild("New").await;
    let lobby = discord.channel(&guild.id, "lobby").await;
    stage.route("new", &["--allow", "any"], &format!("discord:{}", guild.id)).await;
    let bob = discord.user("bob").await;
    stage.route("new", &[], &format!("discord:dm:{bob}")).await;
    let none_yet = OwnWords::NoAgentYet.text(Language::English);
    let asked = discord.mention(&lobby, ann, "anybody?").await;
    assert_eq!(stage.answer_to(&lobby, &asked).await, none_yet, "also in company, where it was meant");
    let dm = discord.dm(&bob).await;
    let asked = discord.say(&dm, &bob, "and for me?").await;
    assert_eq!(stage.answer_to(&dm, &asked).await, none_yet);
    let first = stage.connector.gateway("new", "first").await;
    let mut agent = stage.agent_of(&first).await;
    agent.takes("anybody?").await;
    agent.takes("and for me?").await;
}
