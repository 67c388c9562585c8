//! No credential of a platform is ever seen where it does not belong.
//!
//! A server at its chattiest is used in every way that involves an interaction,
//! with a provider that answers and one that fails. Then everything it wrote,
//! said or showed is searched for what acts as the bot.

use super::discord_stage::{SOON, Stage, binary};
use super::interactions;
use super::interactions_stage::{Peer, at_ease, send};
use angelia_engines::store::sqlite::{DATABASE, DATABASE_FILES};
use angelia_testkit::canary::{Aviary, files_below};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use serde_json::{Value, json};
use std::path::Path;

/// What is no secret and must be found, or the search finds nothing.
const CONTROL: &str = "the canary sings of the tide";

/// Bots of other platforms, each with its secrets.
const OTHERS: [(&str, &[(&str, &str)]); 2] = [
    (
        "platform = \"sms\"\nid = \"+15550100\"\naccount_sid = \"ACcanary\"\nsigning_key = \"webhooks_1\"",
        &[
            ("auth_token", "canary-twilio-token-0123456789abcdef"),
            ("signing_secret", "canary-twilio-shared-0123456789abcdef"),
        ],
    ),
    (
        "platform = \"wecom\"\nid = \"wwcanary/1000002\"\nname = \"corp\"",
        &[
            ("secret", "canary-wecom-secret-0123456789abcdef"),
            ("callback_token", "canaryWecomCallbackToken"),
            ("encoding_aes_key", "canaryWecomKey0123456789abcdefghijklmnopqrs"),
        ],
    ),
];

/// The lines that configure the others; their secrets are in files and planted.
fn others(folder: &Path, birds: &mut Aviary) -> String {
    let mut lines = String::new();
    for (of_bot, secrets) in OTHERS {
        lines += &format!("[[bots]]\n{of_bot}\napi_url = \"http://127.0.0.1:9\"\n");
        for (key, secret) in secrets {
            let file = folder.join(key);
            std::fs::write(&file, secret).unwrap();
            lines += &format!("{key} = {{ file = {file:?} }}\n");
            plant(birds, key, secret);
        }
    }
    lines
}

/// Notes a secret, also as it looks in the middle of something encoded.
fn plant(birds: &mut Aviary, what: &str, secret: &str) {
    birds.plant(what, secret);
    for shift in 0..3 {
        let encoded = BASE64_STANDARD_NO_PAD.encode([&b"..."[..shift], secret.as_bytes()].concat());
        // The first and the last characters depend on what is around.
        birds.plant(&format!("{what} encoded"), &encoded[4..encoded.len() - 4]);
    }
}

#[tokio::test]
async fn no_credential_of_a_platform_is_seen() {
    let mut birds = Aviary::default();
    let files = tempfile::tempdir().unwrap();
    let lines = format!("[log]\nlevel = \"trace\"\n{}", others(files.path(), &mut birds));
    let mut stage = Stage::posted_to(at_ease(), &lines, "", &[]).await;
    stage.until_session().await;
    stories(&stage, &mut birds).await;
    failures(&stage, &mut birds).await;
    operator(&stage, files.path(), &mut birds).await;
    see_files(&stage, &mut birds, "running");
    stage.stop().await;
    see_files(&stage, &mut birds, "stopped");
    birds.see("log", stage.log());

    plant(&mut birds, "bot token", stage.discord.token());
    plant(&mut birds, "gateway secret", &stage.acme.secret);
    let tokens = stage.discord.interactions().await;
    assert!(tokens.len() >= 20, "{}", tokens.len());
    for interaction in &tokens {
        plant(&mut birds, &format!("token of {} ({})", interaction.id, interaction.name), &interaction.token);
    }
    println!("{} secrets searched for in {} places", birds.secrets.len(), birds.seen.len());
    for (place, word) in [
        ("log", stage.discord.bot_id()),
        ("metrics", stage.discord.bot_id()),
        ("frame", "what is the tide?"),
        ("body", CONTROL),
        ("command", stage.discord.bot_id()),
        (&format!("running/{DATABASE}"), CONTROL),
        ("backup", CONTROL),
    ] {
        assert!(birds.holds(place, word), "{word:?} is not found in {place}");
    }
    let escaped = birds.escaped();
    assert!(escaped.is_empty(), "{escaped:#?}");
    let body = json!({ "id": "1", "token": tokens[0].token }).to_string();
    birds.see("planted", BASE64_STANDARD_NO_PAD.encode(body));
    assert_eq!(birds.escaped().len(), 1, "the search finds what is hidden");
}

fn see_peer(birds: &mut Aviary, peer: &Peer) {
    for frame in &peer.seen {
        birds.see("frame", frame.as_str());
    }
}

/// Everything that goes well, to a gateway that gets events and one that gets requests.
async fn stories(stage: &Stage, birds: &mut Aviary) {
    let mut peer = stage.published().await;
    for via in ["http", "gateway"] {
        interactions::a_command_is_answered_in_its_place(stage, &mut peer, via).await;
        interactions::a_press_leaves_its_message(stage, &mut peer, via).await;
        interactions::a_form_is_a_message_and_typing_is_none(stage, &mut peer, via).await;
        interactions::whoever_reaches_nobody_is_told(stage, &mut peer, via).await;
    }
    interactions::only_discord_is_believed_and_only_once(stage, &mut peer).await;
    see_peer(birds, &peer);
    peer.close().await;
    let mut peer = stage.peer(&stage.acme, "test", true).await;
    stage.discord.slash(&stage.quay, &stage.ann, "tell", json!({ "what": CONTROL })).await;
    let (_, body) = peer.forward().await;
    birds.see("body", body.to_string());
    see_peer(birds, &peer);
    peer.close().await;
}

/// Everything that goes wrong at the provider.
async fn failures(stage: &Stage, birds: &mut Aviary) {
    let Stage { discord, quay, ann, .. } = stage;
    let mut peer = stage.published().await;
    for fault in [
        json!({ "how": "status", "status": 500, "count": 2 }),
        json!({ "how": "status", "status": 401, "count": 1 }),
        json!({ "how": "status", "status": 404, "json": { "code": 10015 }, "count": 1 }),
        json!({ "how": "drop", "count": 2 }),
        json!({ "how": "delay", "seconds": 1, "count": 1 }),
    ] {
        let asked = discord.slash(quay, ann, "tell", json!({ "what": "me" })).await;
        peer.takes(&asked, "/tell me").await;
        let mut fault = fault;
        fault["path"] = json!("/webhooks/.*");
        discord.fault(fault).await;
        peer.ask(send(quay, "whatever comes", Some(&asked.id), true)).await;
        discord.order("fault/clear", json!({})).await;
    }
    discord.fault(json!({ "path": "/interactions/.*", "how": "status", "status": 500, "count": 2 })).await;
    let called = json!({ "via": "gateway", "channel": quay, "user": ann, "name": "tell" });
    let called = discord.interact("slash", called).await;
    peer.takes(&called, "/tell").await;
    discord.until_interaction(&called.id, SOON, |one| one.state == "deferred").await;
    // Nobody can read these: they are put aside as they came.
    for via in ["http", "gateway"] {
        let spoiled =
            json!({ "via": via, "channel": quay, "user": ann, "name": "tell", "set": { "type": 77 } });
        discord.interact("slash", spoiled).await;
    }
    stage.until_bot(|bot| bot["quarantined"].as_u64() >= Some(2)).await;
    let key = format!("agent:main:discord:group:{quay}:{ann}");
    for kind in ["discord.interaction_token", "discord.nothing"] {
        let answer = json!({ "op": "follow_up", "session_key": key, "kind": kind, "content": "x" });
        peer.ask(answer).await;
    }
    see_peer(birds, &peer);
    peer.close().await;
    let http = reqwest::Client::new();
    for path in
        ["discord/main", "discord/other", "wecom/corp", "wecom/corp?msg_signature=x&timestamp=1&nonce=2"]
    {
        let url = format!("{}/webhooks/{path}", stage.connector.url());
        for request in [http.get(&url), http.post(&url).body("{}")] {
            let answer = request.send().await.unwrap();
            birds.see("answer", format!("{:?}", answer.headers()) + &answer.text().await.unwrap());
        }
    }
}

/// Everything an operator can have shown. Something is left waiting.
async fn operator(stage: &Stage, folder: &Path, birds: &mut Aviary) {
    let asked = stage.discord.slash(&stage.quay, &stage.ann, "tell", json!({ "what": CONTROL })).await;
    assert_eq!(asked.state, "deferred");
    let backup = folder.join("backup.db").display().to_string();
    let commands: [&[&str]; 12] = [
        &["bot", "list"],
        &["bot", "check"],
        &["bot", "commands", "push"],
        &["bot", "commands", "show"],
        &["bot", "quarantine", "list"],
        &["status"],
        &["inbox", "list"],
        &["inbox", "show"],
        &["audit", "list", "--limit", "1000"],
        &["explain", &asked.id],
        &["config", "print"],
        &["backup", &backup],
    ];
    for args in commands {
        let mut command = std::process::Command::new(binary());
        command.arg("--config").arg(stage.config()).args(args).arg("--json");
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        birds.see(&format!("command {}", args.join(" ")), [output.stdout, output.stderr].concat());
    }
    for interaction in stage.discord.interactions().await {
        let (_, told, _) = stage.angelia(&["explain", &interaction.id, "--json"]).await;
        birds.see("command explain", told);
    }
    birds.see("backup", std::fs::read(&backup).unwrap());
    birds.see("metrics", stage.connector.metrics().await);
}

/// Everything in the data directory but the files that hold secrets as they are.
fn see_files(stage: &Stage, birds: &mut Aviary, when: &str) {
    let mut seen: Vec<Value> = Vec::new();
    for path in files_below(&stage.folder().join("data")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name != "master.key" && name != "admin-token" {
            birds.see(&format!("{when}/{name}"), std::fs::read(&path).unwrap());
            seen.push(json!(name));
        }
    }
    assert!(when != "running" || seen.contains(&json!(DATABASE_FILES[1])), "{seen:?}");
}
