//! Interactions of the stand-in are ones that discord.py and
//! discord-interactions accept.

use std::path::Path;
use std::time::Duration;

use angelia_testkit::discord::{FakeDiscord, oracle_python};
use angelia_testkit::process::{Process, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::discord_client::{Client, SOON, discord};

#[tokio::test]
async fn a_client_answers_commands_presses_and_forms_over_the_gateway() {
    let (discord, _folder) = discord(json!({})).await;
    let ann = discord.user("ann").await;
    let guild = discord.guild("Harbour").await;
    let quay = discord.channel(&guild.id, "quay").await;
    let client = Client::ready(&discord).await;
    discord.say(&quay, &ann, "sync").await;
    assert_eq!(client.told("synced").await["names"], json!(["echo", "late", "form"]));

    let echo = discord.slash(&quay, &ann, "echo", json!({ "text": "ahoy" })).await;
    let done = |one: &angelia_testkit::discord::Interaction| {
        one.followups.first().is_some_and(|more| more.content.as_deref() == Some("and much more"))
    };
    let echo = discord.until_interaction(&echo.id, SOON, done).await;
    assert_eq!((echo.state.as_str(), echo.content.as_deref()), ("answered", Some("echo ahoy")));
    assert_eq!(echo.answer["type"], 5);
    let seen = client.told("echo").await;
    assert_eq!(
        (&seen["user"], &seen["channel"], &seen["may_write"]),
        (&json!("ann"), &json!("quay"), &json!(true))
    );
    assert_eq!((&seen["id"], &seen["locale"]), (&json!(echo.id), &json!("en-US")));

    let typed = discord.autocomplete(&quay, &ann, "echo", "text", "ah").await;
    let typed = discord.until_interaction(&typed.id, SOON, |one| one.state == "answered").await;
    assert_eq!(typed.choices, json!([{ "name": "ah!", "value": "ah" }]));

    discord.say(&quay, &ann, "button").await;
    let messages =
        discord.until_messages(&quay, SOON, |all| all.iter().any(|one| one.content == "here")).await;
    let button = &messages.iter().find(|one| one.content == "here").unwrap().id;
    let press = discord.press(&quay, &ann, button, "press").await;
    let press = discord.until_interaction(&press.id, SOON, |one| one.edits == 1).await;
    assert_eq!((press.answer["type"].as_u64(), press.content.as_deref()), (Some(6), Some("pressed by ann")));
    assert_eq!(press.message.as_ref(), Some(button), "the message itself changed");

    let form = discord.slash(&quay, &ann, "form", json!({})).await;
    let form = discord.until_interaction(&form.id, SOON, |one| one.state == "answered").await;
    assert_eq!(form.modal["custom_id"], "form");
    let sent = discord.submit(&quay, &ann, "form", json!({ "what": "salt" })).await;
    let sent = discord.until_interaction(&sent.id, SOON, |one| one.state == "answered").await;
    assert_eq!((sent.content.as_deref(), sent.ephemeral), (Some("thanks for salt"), true));

    discord.set(json!({ "interaction_deadline": 0.3 })).await;
    let late = discord.slash(&quay, &ann, "late", json!({})).await;
    assert_eq!(client.told("too_late").await["code"], 10062);
    assert_eq!(discord.interaction(&late.id).await.state, "failed");
    assert_eq!(discord.count("/rest/not_built").await, 0);
    assert_eq!(discord.count("/rest/unreadable").await, 0);
}

/// An endpoint made of discord-interactions and discord.py.
struct Endpoint {
    process: Process,
    _folder: TempDir,
}

impl Endpoint {
    async fn start(discord: &FakeDiscord) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/python/interactions_endpoint.py");
        let mut command = Command::new(oracle_python());
        command.arg(script).args([discord.url(), discord.token(), discord.public_key()]);
        let process = Process::spawn("the endpoint", command, folder.path().join("endpoint.log"));
        let endpoint = Self { process, _folder: folder };
        let ready = eventually("the endpoint", SOON, || endpoint.events("ready").pop()).await;
        discord.set_interactions_url(ready["url"].as_str()).await;
        endpoint
    }

    fn events(&self, event: &str) -> Vec<Value> {
        let text = self.process.log_text();
        let told = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        told.filter(|line| line["event"] == event).collect()
    }
}

#[tokio::test]
async fn a_foreign_endpoint_accepts_what_is_posted_and_nothing_else() {
    let (discord, _folder) = discord(json!({})).await;
    let ann = discord.user("ann").await;
    let guild = discord.guild("Harbour").await;
    let quay = discord.channel(&guild.id, "quay").await;
    let dm = discord.dm(&ann).await;
    let endpoint = Endpoint::start(&discord).await;
    let ping = discord.ping().await;
    assert_eq!((&ping["accepted"], &ping["forged_status"]), (&json!(true), &json!(401)));

    for (place, in_guild) in [(&quay, json!(guild.id)), (&dm, Value::Null)] {
        let ask = json!({ "channel": place, "user": ann, "name": "defer", "locale": "de",
            "options": { "text": "grüße 🌊", "n": 3, "who": { "user": ann } } });
        let asked = discord.interact("slash", ask).await;
        assert_eq!((asked.via.as_str(), asked.status), ("http", Some(200)));
        let done = discord.until_interaction(&asked.id, SOON, |one| !one.followups.is_empty()).await;
        assert_eq!((done.state.as_str(), done.content.as_deref()), ("answered", Some("done")));
        let seen = endpoint.events("interaction").pop().unwrap();
        assert_eq!(
            (&seen["user"], &seen["guild"], &seen["locale"]),
            (&json!("ann"), &in_guild, &json!("de"))
        );
        assert_eq!(seen["options"], json!({ "text": "grüße 🌊", "n": 3, "who": ann }));
        for tamper in ["body", "signature", "timestamp"] {
            let refused = discord.repost(&asked.id, json!({ "tamper": tamper })).await;
            assert_eq!(refused["status"], 401, "{tamper}");
        }
        assert_eq!(discord.repost(&asked.id, json!({})).await["status"], 200);
    }

    let whisper = discord.slash(&quay, &ann, "whisper", json!({})).await;
    let whisper = discord.until_interaction(&whisper.id, SOON, |one| one.state == "answered").await;
    assert_eq!((whisper.ephemeral, whisper.content.as_deref()), (true, Some("for you")));
    assert_eq!(discord.slash(&quay, &ann, "now", json!({})).await.content.as_deref(), Some("at once"));
    let typed = discord.autocomplete(&quay, &ann, "defer", "text", "g").await;
    assert_eq!(typed.choices[0]["value"], "1");

    // What Discord does not take leaves the person with nothing.
    for raw in [
        json!({ "answer": "{\"type\":6}" }),
        json!({ "answer": "{\"type\":5,\"data\":{\"flags\":4}}" }),
        json!({ "answer": "{\"type\":5}", "media": "text/plain" }),
        json!({ "answer": "{\"type\":5}", "status": 201 }),
        json!({ "answer": "nothing" }),
    ] {
        let failed = discord.slash(&quay, &ann, "raw", raw.clone()).await;
        assert_eq!((failed.state.as_str(), failed.message), ("failed", None), "{raw}");
    }
    discord.set(json!({ "interaction_deadline": 0.5 })).await;
    let slow = discord.slash(&quay, &ann, "slow", json!({})).await;
    assert_eq!((slow.state.as_str(), slow.status), ("failed", None));
    assert!(slow.took.unwrap() >= Duration::from_millis(500));
}
