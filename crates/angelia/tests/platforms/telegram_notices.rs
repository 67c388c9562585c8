//! What people and operators are told: hints, that an agent is away, `bot check`.

use super::telegram_stage::{POLL, SOON, Stage, bot, folder, heard, run, unlimited, whence};
use angelia_core::own_words::{Language, OwnWords};
use angelia_core::store::NoticeKind;
use angelia_engines::inspect::Inspect;
use angelia_testkit::process::eventually;
use angelia_testkit::telegram::{FakeTelegram, Options};
use serde_json::Value;
use tokio::time::{Instant, sleep};

const NOTICES: &str =
    "[notices]\nhint = \"Nobody here has an agent.\"\naway_after = \"1s\"\naway_text = \"Away.\"\n";

#[tokio::test]
async fn people_are_told_once_why_nothing_answers() {
    let stage = Stage::with("notices", &unlimited(), "", NOTICES).await;
    let telegram = &stage.telegram;
    let (ann, bob) = (telegram.person("Ann").await, telegram.person("Bob").await);
    let group = telegram.group("Team", &[ann, bob]).await;
    for text in ["hello?", "anybody?"] {
        telegram.say(bob, bob, text).await;
        telegram.say(group, bob, &stage.to_bot(text)).await;
        telegram.say(group, bob, "chatter").await;
        stage.until_heard().await;
        telegram.wait_for_text(bob, "Nobody here", SOON).await;
        telegram.wait_for_text(group, "Nobody here", SOON).await;
    }

    stage.route("acme", ann, &[]).await;
    stage.route("acme", group, &["--allow", "any"]).await;
    for text in ["one", "two"] {
        telegram.say(ann, ann, text).await;
    }
    telegram.say(group, ann, &stage.to_bot("in company")).await;
    telegram.wait_for_text(ann, "Away.", SOON).await;
    let mut socket = stage.join().await;
    for text in ["one", "two", "in company"] {
        assert_eq!(whence(&heard(&mut socket).await).0, text, "kept, as was said");
    }
    socket.close().await;
    // Once everything was fetched, the next outage is another one.
    let disk = Inspect::of(&stage.folder.join("data"));
    let over = || disk.noticed(NoticeKind::Away) == 0;
    eventually("the end of the outage", SOON, || over().then_some(())).await;
    telegram.say(ann, ann, "three").await;
    let second = async || telegram.bot_texts(ann).await.len() > 1;
    let deadline = Instant::now() + SOON;
    while !second().await {
        assert!(Instant::now() < deadline, "the second outage is told too");
        sleep(POLL).await;
    }
    assert_eq!(telegram.bot_texts(ann).await, ["Away.", "Away."], "once per outage");
    assert_eq!(telegram.bot_texts(bob).await, ["Nobody here has an agent."]);
    assert_eq!(
        telegram.bot_texts(group).await,
        ["Nobody here has an agent."],
        "groups are not told of outages"
    );
    stage.close().await;
}

#[tokio::test]
async fn an_agent_with_a_name_is_away_by_that_name() {
    let stage = Stage::with("named", &unlimited(), "", "[notices]\naway_after = \"1s\"\n").await;
    let telegram = &stage.telegram;
    let (ann, bob) = (telegram.person("Ann").await, telegram.person_speaking("Bob", "de").await);
    stage.route("acme", ann, &[]).await;
    stage.route("acme", bob, &[]).await;
    let id = stage.gateway.gateway_id.clone();
    stage.connector.command(&["gateway", "set", &id, "--display-name", "Iris"]).await;
    for person in [ann, bob] {
        telegram.say(person, person, "hello?").await;
    }
    telegram.wait_for_text(ann, "Iris is away at the moment.", SOON).await;
    telegram.wait_for_text(bob, "Iris ist gerade nicht da.", SOON).await;
    stage.close().await;
}

#[tokio::test]
async fn who_writes_before_there_is_an_agent_is_told_that_it_is_kept() {
    let lines = format!("[inbox]\nmax_entries = 3\n{NOTICES}lost_text = \"Too much.\"\n");
    let stage = Stage::with("first", &unlimited(), "", &lines).await;
    let telegram = &stage.telegram;
    let ann = telegram.person_speaking("Ann", "de-AT").await;
    stage.connector.command(&["tenant", "create", "new"]).await;
    stage.route("new", ann, &[]).await;
    for text in ["one", "two"] {
        telegram.say(ann, ann, text).await;
    }
    let none_yet = OwnWords::NoAgentYet.text(Language::German);
    telegram.wait_for_text(ann, none_yet, SOON).await;
    for text in ["three", "four"] {
        telegram.say(ann, ann, text).await;
    }
    telegram.wait_for_text(ann, "Too much.", SOON).await;
    let first = stage.connector.gateway("new", "first").await;
    let mut socket = stage.join_as(&first).await;
    for text in ["two", "three", "four"] {
        assert_eq!(whence(&heard(&mut socket).await).0, text, "kept, as was said");
    }
    assert_eq!(telegram.bot_texts(ann).await, [none_yet, "Too much."], "once each");
    stage.close().await;
}

#[tokio::test]
async fn a_group_is_told_that_there_is_no_agent_yet_in_the_language_of_who_asked() {
    let stage = Stage::with("first-group", &unlimited(), "", "[notices]\naway_after = \"1s\"\n").await;
    let telegram = &stage.telegram;
    let (ann, bob) =
        (telegram.person_speaking("Ann", "de").await, telegram.person_speaking("Bob", "fr").await);
    let group = telegram.group("Team", &[ann, bob]).await;
    stage.connector.command(&["tenant", "create", "new"]).await;
    stage.route("new", group, &["--allow", "any"]).await;
    telegram.say(group, ann, &stage.to_bot("jemand da?")).await;
    telegram.say(group, bob, "chatter").await;
    telegram.wait_for_text(group, OwnWords::NoAgentYet.text(Language::German), SOON).await;
    telegram.say(group, ann, &stage.to_bot("hallo?")).await;
    stage.until_heard().await;
    telegram.say(bob, bob, "/start").await;
    telegram.wait_for_text(bob, OwnWords::Greeting.text(Language::English), SOON).await;
    telegram.say(ann, ann, "/start").await;
    telegram.wait_for_text(ann, OwnWords::Greeting.text(Language::German), SOON).await;
    assert_eq!(telegram.bot_texts(group).await.len(), 1, "once");
    stage.close().await;
}

#[tokio::test]
async fn a_chat_that_floods_a_full_inbox_pays_for_it_and_is_told_once() {
    let lines = "[inbox]\nmax_entries = 6\n[notices]\naway = \"never\"\naway_after = \"1s\"\nlost_text = \"Too much.\"\n";
    let stage = Stage::with("losses", &unlimited(), "", lines).await;
    let telegram = &stage.telegram;
    let (ann, bob) = (telegram.person("Ann").await, telegram.person("Bob").await);
    for person in [ann, bob] {
        stage.route("acme", person, &[]).await;
    }
    for text in ["bob 1", "bob 2"] {
        telegram.say(bob, bob, text).await;
    }
    for n in 0..12 {
        telegram.say(ann, ann, &format!("ann {n}")).await;
    }
    stage.until_heard().await;
    telegram.wait_for_text(ann, "Too much.", SOON).await;
    for n in 12..16 {
        telegram.say(ann, ann, &format!("ann {n}")).await;
    }
    stage.until_heard().await;
    let inboxes = stage.connector.command(&["inbox", "list"]).await;
    let gaps = inboxes["inboxes"][0]["gaps"].as_array().unwrap();
    assert_eq!((gaps.len(), &gaps[0]["lost"]), (1, &12.into()), "{inboxes}");
    assert_eq!(gaps[0]["chat_id"], ann.to_string());
    let mut socket = stage.join().await;
    for text in ["bob 1", "bob 2", "ann 12", "ann 13", "ann 14", "ann 15"] {
        assert_eq!(whence(&heard(&mut socket).await).0, text);
    }
    assert_eq!(telegram.bot_texts(ann).await, ["Too much."], "once");
    assert!(telegram.bot_texts(bob).await.is_empty(), "who behaves hears nothing of it");
    stage.close().await;
}

#[tokio::test]
async fn a_check_says_what_a_bot_can_do_and_what_comes_next() {
    let folder = folder("check");
    let telegram = FakeTelegram::start(&folder, &Options { privacy: false, ..unlimited() }).await;
    let config = format!("[server]\ndata_dir = {:?}\n{}", folder.join("data"), bot(&telegram, &folder, ""));
    std::fs::write(folder.join("angelia.toml"), config).unwrap();
    let check = async || {
        let output = run(&folder, &["bot", "check", "--json"]).await;
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(!shown.to_string().contains("hunter2"), "{shown}");
        (output.status.code(), shown["bots"][0].clone())
    };
    let verdicts = |bot: &Value, verdict: &str| -> Vec<Value> {
        bot["findings"].as_array().unwrap().iter().filter(|one| one["verdict"] == verdict).cloned().collect()
    };

    let (code, good) = check().await;
    assert_eq!((code, &good["usable"]), (Some(0), &Value::Bool(true)), "{good}");
    assert!(good["identity"].as_str().is_some_and(|who| who.contains(telegram.username())), "{good}");
    assert_eq!((verdicts(&good, "limited").len(), verdicts(&good, "bad").len()), (0, 0), "{good}");

    telegram.privacy(true).await;
    let (code, limited) = check().await;
    assert_eq!(code, Some(0), "{limited}");
    let found = verdicts(&limited, "limited");
    assert!(found.len() == 1 && found[0]["what"].as_str().unwrap().contains("privacy mode"), "{limited}");
    assert!(found[0]["next"].as_str().unwrap().contains("/setprivacy"), "{limited}");

    telegram.replace_token("4242424242:another-another-another-another-anot").await;
    let (code, bad) = check().await;
    assert_eq!((code, &bad["usable"]), (Some(1), &Value::Bool(false)), "{bad}");
    assert!(verdicts(&bad, "bad")[0]["next"].as_str().unwrap().contains("@BotFather"), "{bad}");
    let polls = telegram.state().await["polls"].clone();
    assert_eq!(polls, 0, "a check cuts nobody off");
    telegram.assert_no_violations().await;
}
