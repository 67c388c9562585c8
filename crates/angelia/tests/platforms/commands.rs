//! Commands: what the gateways of a bot declare is what people see when they type a slash, and
//! what an operator added to it reaches an agent as words.

use super::discord_stage::Stage as Discord;
use super::interactions_stage::at_ease;
use super::telegram_stage::Stage as Telegram;
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::discord::{FakeDiscord, oracle_python};
use angelia_testkit::process::{output, until};
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::telegram::Aiogram;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

const SOON: Duration = Duration::from_secs(60);
/// The names of the commands of a bot for which none are configured.
const USUAL: [&str; 5] = ["ask", "new", "stop", "status", "help"];

/// A gateway that tells its commands.
async fn dial(
    connector: &Connector,
    credentials: &Credentials,
    (platform, bot): (&str, &str),
    manifest: Option<Value>,
) -> Socket {
    let mut socket = Socket::dial(&connector.url(), credentials).await.expect("let in");
    let mut hello = json!({ "type": "hello", "platform": platform, "botId": bot });
    if let Some(manifest) = manifest {
        hello["command_manifest"] = manifest;
    }
    socket.send(&hello).await;
    assert_eq!(socket.frame().await["type"], "descriptor");
    socket
}

/// The next frame for an agent; acknowledged.
async fn given(socket: &mut Socket) -> Value {
    match socket.next(SOON).await {
        Next::Frame(frame) => {
            socket.ack(&frame).await;
            frame
        }
        other => panic!("awaited a frame, got {other:?}"),
    }
}

fn model(option: &str) -> Value {
    json!({ "name": "model", "description": "Choose a model", "options": [
        { "type": 3, "name": option, "description": "which", "choices": [{ "name": "Fast", "value": "f" }] },
    ] })
}

fn named(name: &str) -> Value {
    json!({ "name": name, "description": format!("Does {name}") })
}

/// The commands of an application, as discord.py reads them; registers some before, if told to.
async fn read(discord: &FakeDiscord, first: Option<Value>) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/python/discord_commands.py");
    let mut command = Command::new(oracle_python());
    command.arg(script).args([discord.url(), discord.token()]).args(first.map(|it| it.to_string()));
    let done = output("discord.py", command, SOON).await;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

fn names(commands: &[Value], key: &str) -> BTreeSet<String> {
    commands.iter().map(|it| it[key].as_str().unwrap().to_owned()).collect()
}

fn these(names: &[&str], more: &[&str]) -> BTreeSet<String> {
    names.iter().chain(more).map(|name| (*name).to_owned()).collect()
}

impl Discord {
    /// How often commands were registered.
    async fn registrations(&self) -> usize {
        self.calls(0, "PUT", "/commands").await
    }

    async fn until_shown(&self, more: &[&str]) -> Vec<Value> {
        let wanted = these(&USUAL, more);
        until("the commands", SOON, async || names(&read(&self.discord, None).await, "name") == wanted).await;
        read(&self.discord, None).await
    }

    async fn declares(&self, credentials: &Credentials, manifest: Value) -> Socket {
        dial(&self.connector, credentials, ("discord", self.discord.bot_id()), Some(manifest)).await
    }
}

#[tokio::test]
async fn on_discord_the_gateways_of_two_tenants_have_one_list() {
    let mut stage = Discord::listening(at_ease()).await;
    let elsewhere = json!([
        { "type": 1, "name": "poll", "description": "Of another program" },
        { "type": 3, "name": "Report this" },
    ]);
    read(&stage.discord, Some(elsewhere)).await;
    let beta = stage.connector.gateway("beta", "gw-beta").await;
    let stranger = stage.connector.gateway("gamma", "gw-gamma").await;
    let docks = stage.discord.guild("Docks").await;
    stage.route("beta", &["--allow", "any"], &format!("discord:{}", docks.id)).await;
    let before = stage.registrations().await;

    let acmes = json!([model("name"), named("new"), named("Not A Name"), named("link")]);
    let _acme = stage.declares(&stage.acme, acmes.clone()).await;
    let _beta = stage.declares(&beta, json!([model("which"), named("zoo")])).await;
    // It says that it fronts the bot; but nobody reaches it there.
    let _gamma = stage.declares(&stranger, json!([named("spam")])).await;
    let shown = stage.until_shown(&["model", "zoo", "poll", "Report this"]).await;
    let find = |name: &str| shown.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(find("new")["description"], "Begin a new conversation", "as the operator has it");
    let args = json!([{ "name": "args", "type": 3, "required": false, "choices": [] }]);
    assert_eq!(find("model")["options"], args, "they do not agree on what follows");
    assert_eq!(find("Report this")["type"], 3, "what is in menus is left alone");

    let told = stage.connector.command(&["bot", "commands", "show"]).await;
    let bot = &told["bots"][0];
    let all = bot["commands"].as_array().unwrap();
    assert!(all.iter().all(|it| it["change"] == "same"), "{told:#}");
    let zoo = all.iter().find(|it| it["name"] == "zoo").unwrap();
    assert_eq!((&zoo["own"], &zoo["by"]), (&json!(false), &json!(["beta/gw-beta"])));
    assert_eq!((&bot["elsewhere"], &bot["left_out"][0]["name"]), (&json!(["poll"]), &json!("link")));

    // Whoever is revoked takes its own along, and what was in doubt is clear again.
    stage.connector.command(&["gateway", "revoke", "--tenant", "beta", "gw-beta"]).await;
    let shown = stage.until_shown(&["model", "poll", "Report this"]).await;
    let model = shown.iter().find(|it| it["name"] == "model").unwrap();
    assert_eq!(
        (&model["options"][0]["name"], &model["options"][0]["choices"]),
        (&json!("name"), &json!(["Fast"]))
    );
    let made = stage.registrations().await;
    assert!((2..=4).contains(&(made - before)), "{made}");

    // The same after a restart is nothing new: what comes next is the only change.
    stage.stop().await;
    let calls = stage.last_call().await;
    stage.connector.restart().await;
    let _acme = stage.declares(&stage.acme, acmes.clone()).await;
    let mut more = acmes.as_array().unwrap().clone();
    // Fixed pause: longer than a list has to stay the same to be registered.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let looked = stage.calls(calls, "GET", "/commands").await;
    assert_eq!((looked, stage.registrations().await), (0, made), "nobody was asked or told anything");
    more.push(named("later"));
    let _acme = stage.declares(&stage.acme, more.into()).await;
    stage.until_shown(&["model", "later", "poll", "Report this"]).await;
    assert_eq!(stage.registrations().await, made + 1);
}

#[tokio::test]
async fn a_manifest_that_discord_refuses_keeps_nobody_elses_commands_away() {
    let stage = Discord::listening(at_ease()).await;
    let refusal = json!({ "message": "Invalid Form Body", "code": 50035 });
    stage
        .discord
        .fault(json!({ "path": "/commands$", "method": "PUT", "status": 400, "json": refusal }))
        .await;
    let before = stage.registrations().await;
    // Discord would refuse it as it is, and refuses the first list whatever is in it.
    let odd = json!({ "name": "odd", "description": "d", "options": [
        { "type": 2, "name": "empty", "description": "no commands below it" },
        { "type": 2, "name": "group", "description": "g", "options": [
            { "type": 3, "name": "stray", "description": "no command" },
            { "type": 1, "name": "run", "description": "r", "options": [
                { "type": 4, "name": "n", "description": "d", "choices": [
                    { "name": "One", "value": 1 }, { "name": "One", "value": 2 }, { "name": "Uno", "value": 1 },
                ] },
            ] },
        ] },
    ] });
    let _agent = stage.declares(&stage.acme, json!([odd.clone()])).await;
    stage.until_shown(&[]).await;
    assert_eq!(stage.registrations().await, before + 2, "and again with what the operator wants");
    // The next list is tried as a whole, and taken: what Discord refuses was left out of it.
    let _agent = stage.declares(&stage.acme, json!([odd, named("zoo")])).await;
    stage.until_shown(&["odd", "zoo"]).await;
    assert_eq!(stage.registrations().await, before + 3);
}

#[tokio::test]
async fn an_operator_sees_the_difference_before_anything_is_registered() {
    let stage = Discord::built(at_ease(), "", |_| "gateway_commands = \"push\"\n".into(), &[]).await;
    stage.until_session().await;
    read(&stage.discord, Some(json!([{ "type": 1, "name": "poll", "description": "Of another program" }])))
        .await;
    let before = stage.registrations().await;
    let _agent = stage.declares(&stage.acme, json!([named("zoo")])).await;
    until("the manifest", SOON, async || {
        stage.angelia(&["bot", "commands"]).await.1.contains("+ /zoo  Does zoo  (acme/gw-acme)")
    })
    .await;
    let (code, told, _) = stage.angelia(&["bot", "commands"]).await;
    assert_eq!(code, 0, "{told}");
    for line in
        ["+ /ask <question>  Ask the agent something  (configured)", "from elsewhere: /poll; they stay"]
    {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(stage.registrations().await, before, "looking changes nothing");
    let (code, told, _) = stage.angelia(&["bot", "commands", "push"]).await;
    assert!(code == 0 && told.contains("+ /zoo") && told.contains("- /poll"), "{told}");
    stage.until_shown(&["zoo"]).await;
    let (_, told, _) = stage.angelia(&["bot", "commands", "diff"]).await;
    assert!(!told.contains("+ /") && !told.contains("- /") && told.contains("  /zoo"), "{told}");
    assert_eq!(stage.registrations().await, before + 1);
    assert_eq!(stage.connector.audited("bot.commands").await.len(), 1);
}

#[tokio::test]
async fn on_discord_a_command_of_the_operators_own_goes_as_words() {
    let own = "commands = [\"ask <question>: Ask\", \"tell <what>: Tell\", \"new: Begin anew\"]\n";
    let stage = Discord::posted_to(at_ease(), "", own, &[]).await;
    stage.until_session().await;
    let (discord, quay, ann) = (&stage.discord, &stage.quay, &stage.ann);
    let mut agent = stage.declares(&stage.acme, json!([named("new")])).await;
    for (name, options, text) in [
        ("ask", json!({ "question": "what is up" }), "what is up"),
        ("tell", json!({ "what": "a story" }), "tell a story"),
    ] {
        let asked = discord.slash(quay, ann, name, options).await;
        let frame = given(&mut agent).await;
        assert_eq!(frame["type"], "inbound", "{frame}");
        let event = &frame["event"];
        assert_eq!((&event["text"], &event["message_type"]), (&json!(text), &json!("text")), "{event:#}");
        assert_eq!(event["message_id"], json!(asked.id));
    }
    // What it knows it gets as it was, and so what nobody configured.
    for name in ["new", "odd"] {
        discord.slash(quay, ann, name, json!({})).await;
        assert_eq!(given(&mut agent).await["type"], "passthrough_forward");
    }
    discord.mention(quay, ann, "/tell me more").await;
    assert_eq!(given(&mut agent).await["event"]["text"], "tell me more", "typed, too");
}

#[tokio::test]
async fn on_telegram_the_list_has_underscores_and_leads_back() {
    let stage = Telegram::new("commands").await;
    let aiogram = Aiogram::start(&stage.folder, &stage.telegram).await;
    let botfathers = json!({ "commands": [{ "command": "poll", "description": "Made with @BotFather" }] });
    aiogram.call("set_my_commands", botfathers).await.unwrap();
    stage.route_all().await;
    let (ann, bot) = (stage.telegram.person("Ann").await, stage.telegram.bot_id().to_string());
    let manifest = json!([named("new"), named("set-model"), named("start")]);
    let mut agent = dial(&stage.connector, &stage.gateway, ("telegram", &bot), Some(manifest)).await;
    let wanted = these(&USUAL, &["set_model", "poll"]);
    let shown = async || {
        let shown = aiogram.call("get_my_commands", json!({})).await.unwrap();
        shown.as_array().unwrap().clone()
    };
    until("Telegram's list", SOON, async || names(&shown().await, "command") == wanted).await;
    let own = shown().await.into_iter().find(|it| it["command"] == "ask").unwrap();
    assert_eq!(own["description"], "Ask the agent something");

    for (typed, text) in [
        ("/set_model fast", "/set-model fast"),
        ("/ask what is up", "what is up"),
        ("/status", "status"),
        ("/new", "/new"),
        ("/unknown thing", "/unknown thing"),
    ] {
        stage.telegram.say(ann, ann, typed).await;
        let event = given(&mut agent).await["event"].clone();
        assert_eq!(event["text"], text, "{event:#}");
        // The next one begins anew.
        let done = json!({ "op": "send", "chat_id": ann.to_string(), "content": "Done.",
            "reply_to": event["message_id"], "metadata": { "notify": true } });
        assert_eq!(agent.ask(done).await["success"], true);
    }
    let group = stage.telegram.group("lab", &[ann]).await;
    stage.telegram.say(group, ann, &format!("/ask@{} in company", stage.telegram.username())).await;
    assert_eq!(given(&mut agent).await["event"]["text"], "in company");
    agent.close().await;

    // One that tells nothing is given what was typed, but for what no gateway knows.
    let beta = stage.connector.gateway("beta", "gw-beta").await;
    let bob = stage.telegram.person("Bob").await;
    stage.route("beta", bob, &[]).await;
    let mut old = dial(&stage.connector, &beta, ("telegram", &bot), None).await;
    for (typed, text) in [("/ask and now", "and now"), ("/status", "/status")] {
        stage.telegram.say(bob, bob, typed).await;
        assert_eq!(given(&mut old).await["event"]["text"], text);
    }
    stage.telegram.assert_no_violations().await;
}

#[tokio::test]
async fn a_list_that_is_too_long_for_telegram_is_shown_as_far_as_it_goes() {
    let stage = Telegram::new("commands-many").await;
    let aiogram = Aiogram::start(&stage.folder, &stage.telegram).await;
    stage.route_all().await;
    let bot = stage.telegram.bot_id().to_string();
    let wordy = |n: usize| json!({ "name": format!("gateway-{n:02}"), "description": "words ".repeat(30) });
    let manifest: Vec<Value> = (0..90).map(wordy).collect();
    let agent = dial(&stage.connector, &stage.gateway, ("telegram", &bot), Some(manifest.into())).await;
    let read = async || {
        let all = aiogram.call("get_my_commands", json!({})).await.unwrap();
        names(all.as_array().unwrap(), "command")
    };
    until("Telegram's list", SOON, async || !read().await.is_empty()).await;
    let shown = read().await;
    assert!(shown.is_superset(&these(&USUAL, &["gateway_00", "gateway_50"])), "{shown:?}");
    assert!(!shown.contains("gateway_89"), "{shown:?}");
    let told = stage.connector.command(&["bot", "commands", "show"]).await;
    let left_out = told["bots"][0]["left_out"].as_array().unwrap();
    assert!(left_out.iter().all(|it| it["why"].as_str().unwrap().contains("bytes")), "{told:#}");
    assert_eq!(left_out.len() + shown.len(), 90 + USUAL.len());
    agent.close().await;
}
