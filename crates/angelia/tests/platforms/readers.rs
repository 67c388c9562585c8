//! What was written, as libraries read it that others wrote: discord.py fetches a channel, aiogram's
//! types say what the messages of a Telegram chat are, wechatpy uses an app, and Twilio's own library lists
//! files. A press is of a button that they found,
//! with the data they found on it; to send it is up to the stand-ins, as no bot can press.

use std::path::Path;
use std::time::Duration;

use angelia_testkit::discord::{FakeDiscord, Interaction, oracle_python};
use angelia_testkit::process::output;
use angelia_testkit::telegram::FakeTelegram;
use angelia_testkit::twilio::{ACCOUNT, AUTH_TOKEN};
use angelia_testkit::wecom::FakeWecom;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

const SOON: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// A chat at one moment.
#[derive(Debug)]
pub(super) struct Chat(Value);

impl Chat {
    /// A channel, by discord.py.
    pub(super) async fn of_discord(discord: &FakeDiscord, channel: &str) -> Self {
        Self::read("discord_reader.py", &[discord.url(), discord.token(), channel]).await
    }

    /// A chat, by aiogram's types.
    pub(super) async fn of_telegram(telegram: &FakeTelegram, chat: i64) -> Self {
        Self::read("telegram_reader.py", &[telegram.url(), telegram.token(), &chat.to_string()]).await
    }

    async fn read(script: &str, arguments: &[&str]) -> Self {
        Self(told(script, arguments).await)
    }

    fn messages(&self) -> impl Iterator<Item = &Value> {
        self.0["messages"].as_array().unwrap().iter()
    }

    /// A message by its id.
    pub(super) fn message(&self, id: &str) -> &Value {
        self.messages().find(|one| one["id"] == id).unwrap_or_else(|| panic!("no {id} in {:#}", self.0))
    }

    /// What came with a message: kind, name and bytes of each file.
    pub(super) fn files(&self, message: &str) -> Vec<(&str, Option<&str>, Vec<u8>)> {
        files_of(self.message(message))
    }

    /// The files of all messages.
    pub(super) fn all_files(&self) -> Vec<(&str, Option<&str>, Vec<u8>)> {
        self.messages().flat_map(files_of).collect()
    }

    /// The only message with this in it.
    pub(super) fn containing(&self, part: &str) -> &Value {
        let mut found = self.messages().filter(|one| one["text"].as_str().unwrap().contains(part));
        match (found.next(), found.next()) {
            (Some(one), None) => one,
            _ => panic!("not once {part:?} in {:#}", self.0),
        }
    }

    /// What the bot wrote, the oldest first.
    pub(super) fn own_texts(&self) -> Vec<&str> {
        self.messages().filter(|one| one["own"] == true).map(|one| one["text"].as_str().unwrap()).collect()
    }

    /// Its threads or topics, as (id, name).
    pub(super) fn threads(&self) -> Vec<(&str, &str)> {
        let threads = self.0["threads"].as_array().unwrap().iter();
        threads.map(|one| (one["id"].as_str().unwrap(), one["name"].as_str().unwrap())).collect()
    }

    /// Drafts that were shown, in HTML.
    pub(super) fn drafts(&self) -> Vec<&str> {
        self.0["drafts"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
    }

    /// Labels of the buttons below a message.
    pub(super) fn labels(&self, message: &str) -> Vec<&str> {
        let buttons = self.message(message)["buttons"].as_array().unwrap();
        buttons.iter().map(|one| one["label"].as_str().unwrap()).collect()
    }

    /// What the button with this label carries.
    pub(super) fn data(&self, message: &str, label: &str) -> &str {
        let buttons = self.message(message)["buttons"].as_array().unwrap();
        let found = buttons.iter().find(|one| one["label"] == label);
        found.unwrap_or_else(|| panic!("no {label:?} below {message}: {buttons:?}"))["data"].as_str().unwrap()
    }
}

fn files_of(message: &Value) -> Vec<(&str, Option<&str>, Vec<u8>)> {
    let files = message["files"].as_array().unwrap().iter();
    files.map(|file| (file["kind"].as_str().unwrap(), file["name"].as_str(), content(file))).collect()
}

/// What a client does with an app of WeCom's: see `wecom_client.py`.
pub(super) async fn by_wechatpy(wecom: &FakeWecom, user: &str, asked: &Value) -> Value {
    let id = wecom.id();
    let (company, app) = id.split_once('/').unwrap();
    told("wecom_client.py", &[wecom.url(), company, wecom.secret(), app, user, &asked.to_string()]).await
}

/// The files of messages, as Twilio's library lists them: see `twilio_reader.py`.
pub(super) async fn by_twilio(url: &str, message: &str) -> Vec<Value> {
    let told = told("twilio_reader.py", &[url, ACCOUNT, AUTH_TOKEN, message]).await;
    told[message].as_array().unwrap().clone()
}

/// The bytes of a file, which scripts print in base64.
pub(super) fn content(file: &Value) -> Vec<u8> {
    STANDARD.decode(file["content"].as_str().unwrap_or_else(|| panic!("no bytes: {file}"))).unwrap()
}

/// What a script prints.
async fn told(script: &str, arguments: &[&str]) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/python");
    let mut command = Command::new(oracle_python());
    command.arg("-B").arg(folder.join(script)).args(arguments);
    let done = output(script, command, SOON).await;
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Reads a chat until it says what it should.
pub(super) async fn until_reads(read: impl AsyncFn() -> Chat, enough: impl Fn(&Chat) -> bool) -> Chat {
    let deadline = Instant::now() + SOON;
    loop {
        let chat = read().await;
        if enough(&chat) {
            return chat;
        }
        assert!(Instant::now() < deadline, "not in time: {chat:#?}");
        sleep(POLL).await;
    }
}

/// Somebody presses the button that discord.py found below a message.
pub(super) async fn press_on_discord(
    discord: &FakeDiscord,
    via: &str,
    channel: &str,
    who: &str,
    (message, label): (&str, &str),
) -> Interaction {
    let chat = Chat::of_discord(discord, channel).await;
    let data = chat.data(message, label);
    let press = json!({ "via": via, "channel": channel, "user": who, "message": message, "custom_id": data });
    discord.interact("press", press).await
}

/// Somebody presses the button that aiogram found below a message; answers the query's id.
pub(super) async fn press_on_telegram(
    telegram: &FakeTelegram,
    chat: i64,
    who: i64,
    (message, label): (i64, &str),
) -> String {
    let read = Chat::of_telegram(telegram, chat).await;
    telegram.press_data(chat, message, who, read.data(&message.to_string(), label)).await
}
