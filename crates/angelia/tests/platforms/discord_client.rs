//! The stand-in for Discord is one that discord.py accepts.

use std::path::Path;
use std::time::Duration;

use angelia_testkit::discord::{FakeDiscord, oracle_python};
use angelia_testkit::process::{Process, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

pub(super) const SOON: Duration = Duration::from_secs(60);

/// discord.py as a bot that tells what it sees.
pub(super) struct Client {
    process: Process,
    _folder: TempDir,
}

impl Client {
    fn start(discord: &FakeDiscord, tokens: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/python/discord_client.py");
        let mut command = Command::new(oracle_python());
        command.arg(script).args([discord.url(), discord.gateway_url()]).args(tokens);
        let process = Process::spawn("discord.py", command, folder.path().join("client.log"));
        Self { process, _folder: folder }
    }

    pub(super) async fn ready(discord: &FakeDiscord) -> Self {
        let client = Self::start(discord, &[discord.token()]);
        client.told("ready").await;
        client
    }

    /// What it told so far of one kind of event.
    fn events(&self, event: &str) -> Vec<Value> {
        let text = self.process.log_text();
        let told = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        told.filter(|line| line["event"] == event).collect()
    }

    /// The first event of a kind.
    pub(super) async fn told(&self, event: &str) -> Value {
        eventually(event, SOON, || self.events(event).into_iter().next()).await
    }

    /// The message it saw with this text.
    async fn saw(&self, content: &str) -> Value {
        let found = || self.events("message").into_iter().find(|seen| seen["content"] == content);
        eventually(content, SOON, found).await
    }

    /// The texts it saw that start so, in the order it saw them.
    fn texts(&self, start: &str) -> Vec<String> {
        let seen = self.events("message").into_iter();
        let texts = seen.filter_map(|message| message["content"].as_str().map(str::to_owned));
        texts.filter(|text| text.starts_with(start)).collect()
    }
}

pub(super) async fn discord(options: Value) -> (FakeDiscord, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (FakeDiscord::start(folder.path(), &options).await, folder)
}

fn numbered(start: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{start}{number}")).collect()
}

#[tokio::test]
async fn a_client_logs_in_and_hears_guild_thread_and_person() {
    let (discord, _folder) = discord(json!({})).await;
    let ann = discord.user("ann").await;
    let guild = discord.guild("Harbour").await;
    let quay = discord.channel(&guild.id, "quay").await;
    let client = Client::ready(&discord).await;
    let ready = client.told("ready").await;
    assert_eq!(ready["user"], discord.bot_id());
    assert_eq!(ready["guilds"], json!(["Harbour"]));

    let said = discord.mention(&quay, &ann, "in the guild").await;
    let seen = client.saw(&format!("<@{}> in the guild", discord.bot_id())).await;
    assert_eq!(seen["kind"], "TextChannel");
    assert_eq!(seen["guild"], "Harbour");
    assert_eq!(seen["author"], "ann");
    assert_eq!(seen["mentioned"], true);

    let thread = discord.thread(&quay, "ropes", &ann, Some(&said)).await;
    assert_eq!(thread, said, "a thread from a message has that message's id");
    discord.say(&thread, &ann, "in the thread").await;
    let seen = client.saw("in the thread").await;
    assert_eq!(seen["kind"], "Thread");
    assert_eq!(seen["parent"], "quay");
    assert_eq!(seen["channel"], thread);

    let dm = discord.dm(&ann).await;
    let ask = json!({ "channel": dm, "author": ann, "content": "in private",
        "attachments": [{ "filename": "map.png", "size": 10 }] });
    discord.make("say", ask).await;
    let seen = client.saw("in private").await;
    assert_eq!(seen["kind"], "DMChannel");
    assert_eq!(seen["guild"], Value::Null);
    assert_eq!(seen["attachments"], json!(["map.png"]));
}

#[tokio::test]
async fn a_client_replies_sends_edits_types_and_reads_back() {
    let (discord, _folder) = discord(json!({})).await;
    let ann = discord.user("ann").await;
    let guild = discord.guild("Harbour").await;
    let quay = discord.channel(&guild.id, "quay").await;
    let dm = discord.dm(&ann).await;
    let client = Client::ready(&discord).await;

    let asked = discord.say(&quay, &ann, "reply here I am").await;
    let messages = discord.until_messages(&quay, SOON, |all| all.iter().any(|one| one.own)).await;
    let reply = messages.iter().find(|one| one.own).unwrap();
    assert_eq!(reply.content, "here I am");
    assert_eq!(reply.reference.as_deref(), Some(asked.as_str()));
    assert_eq!(reply.allowed_mentions["parse"], json!([]));

    discord.say(&dm, &ann, "send hello").await;
    let messages = discord.until_messages(&dm, SOON, |all| all.iter().any(|one| one.own)).await;
    assert_eq!(messages[1].content, "hello");
    assert_eq!(messages[1].reference, None);

    discord.say(&dm, &ann, "edit half|whole").await;
    discord
        .until_messages(&dm, SOON, |all| all.iter().any(|one| one.content == "whole" && one.edits == 1))
        .await;

    discord.say(&dm, &ann, "type").await;
    let typing = |state: &Value| state["rest"]["typing"][&dm] == 1;
    discord.until_state(SOON, typing).await;

    // More than one page, so the client has to ask for what comes after.
    discord.say_many(&quay, &ann, "line {n}", 150).await;
    discord.say(&quay, &ann, "history").await;
    let read = client.told("history").await;
    let mut expected = vec!["reply here I am".to_owned(), "here I am".to_owned()];
    expected.extend(numbered("line ", 150));
    expected.push("history".to_owned());
    assert_eq!(read["contents"], json!(expected));

    discord.say(&quay, &ann, &format!("send {}", "x".repeat(1990))).await;
    discord
        .until_messages(&quay, SOON, |all| all.iter().any(|one| one.own && one.content.len() == 1990))
        .await;
    assert_eq!(discord.count("/rest/not_built").await, 0);
    assert_eq!(discord.count("/rest/unreadable").await, 0);
    let foreign =
        discord.requests(0).await.into_iter().filter(|request| {
            request.channel.as_deref().is_some_and(|channel| channel != quay && channel != dm)
        });
    assert_eq!(foreign.count(), 0);
}

#[tokio::test]
async fn a_dropped_client_resumes_and_loses_nothing() {
    let (discord, _folder) = discord(json!({ "heartbeat_interval": 1000 })).await;
    let ann = discord.user("ann").await;
    let guild = discord.guild("Harbour").await;
    let quay = discord.channel(&guild.id, "quay").await;
    let client = Client::ready(&discord).await;
    discord.say_many(&quay, &ann, "before {n}", 20).await;
    client.saw("before 19").await;

    // Cut, closed with a code, asked to come back: each time people go on writing.
    let ways = [
        ("cut", "gateway/close", json!({})),
        ("closed", "gateway/close", json!({ "code": 4000 })),
        ("asked", "gateway/reconnect", json!({})),
    ];
    for (done, (start, order, ask)) in ways.into_iter().enumerate() {
        discord.order(order, ask).await;
        discord.say_many(&quay, &ann, &format!("{start} {{n}}"), 100).await;
        client.saw(&format!("{start} 99")).await;
        assert_eq!(client.texts(start), numbered(&format!("{start} "), 100));
        discord.until_state(SOON, |state| state["gateway"]["resumes"] == done + 1).await;
    }
    assert_eq!(discord.count("/gateway/identifies").await, 1);
    assert_eq!(discord.count("/gateway/resume_failures").await, 0);
    assert_eq!(client.events("ready").len(), 1);
    // Heartbeats report what was seen, and the stand-in forgets no more than that.
    let settled = |state: &Value| {
        let session = &state["gateway"]["sessions"][0];
        session["reported"].as_u64() == session["seq"].as_u64() && session["kept"] == 0
    };
    discord.until_state(SOON, settled).await;
}

#[tokio::test]
async fn a_client_whose_session_is_gone_starts_a_new_one() {
    let options = json!({ "heartbeat_interval": 1000, "identify_seconds": 0.1 });
    let (discord, _folder) = discord(options).await;
    let ann = discord.user("ann").await;
    let guild = discord.guild("Harbour").await;
    let quay = discord.channel(&guild.id, "quay").await;
    let client = Client::ready(&discord).await;
    discord.refuse_resumes(1, None).await;
    discord.close_gateway(None).await;
    discord.say(&quay, &ann, "nobody hears this").await;
    eventually("a second READY", SOON, || (client.events("ready").len() == 2).then_some(())).await;
    discord.say(&quay, &ann, "after").await;
    client.saw("after").await;
    assert!(client.texts("nobody").is_empty(), "a new session repeats nothing");
    assert_eq!(discord.count("/gateway/resume_failures").await, 1);
    assert_eq!(discord.count("/gateway/identifies").await, 2);
}

#[tokio::test]
async fn a_limited_client_is_told_so_and_waits() {
    let (discord, _folder) = discord(json!({ "limit_global": 3 })).await;
    let ann = discord.user("ann").await;
    let guild = discord.guild("Harbour").await;
    let mut channels = Vec::new();
    for number in 0..8 {
        channels.push(discord.channel(&guild.id, &format!("quay-{number}")).await);
    }
    let client = Client::ready(&discord).await;
    discord.say(&channels[0], &ann, "wide ahoy").await;
    let wide = client.told("wide").await;
    assert!(wide["seconds"].as_f64().unwrap() > 1.0, "8 sends at 3 a second: {wide}");
    assert!(discord.count("/rest/limited_by/global").await > 0);
    for channel in &channels {
        let own = discord.answers(channel).await;
        assert_eq!(own.iter().map(|one| one.content.as_str()).collect::<Vec<_>>(), ["ahoy"]);
    }
}

#[tokio::test]
async fn a_client_with_a_wrong_token_is_turned_away() {
    let (discord, _folder) = discord(json!({})).await;
    let client = Client::start(&discord, &["wrong"]);
    client.told("login_failed").await;
    assert_eq!(discord.requests(0).await[0].status, Some(401));
    let client = Client::start(&discord, &[discord.token(), "wrong"]);
    assert_eq!(client.told("closed").await["code"], 4004);
}
