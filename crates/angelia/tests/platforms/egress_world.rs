//! Places on both stand-ins, the agents that may or may not write there, and
//! what an agent can name.

use super::shared_stage::{
    Call, SOON, Stage, discord_bot, discord_calls, hears, telegram_bot, telegram_calls,
};
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::socket::Socket;
use angelia_testkit::telegram::{FakeTelegram, Options};
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;

/// Small and repeatable; the seed is in the test.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

/// A tenant, and one of its gateways if the route names one.
pub(super) type Owner = (&'static str, Option<&'static str>);

pub(super) const GATEWAYS: [Owner; 4] =
    [("acme", Some("a1")), ("acme", Some("a2")), ("bolt", Some("b1")), ("cusp", Some("c1"))];

pub(super) struct Agent {
    pub(super) tenant: &'static str,
    pub(super) gateway: &'static str,
    pub(super) socket: Socket,
}

/// A chat of the bots.
#[derive(Clone, Debug)]
pub(super) struct Chat {
    pub(super) platform: &'static str,
    pub(super) id: String,
    /// The channel of a thread.
    pub(super) parent: Option<String>,
    /// What covers it, the most specific first.
    pub(super) places: Vec<String>,
    /// The topics of a forum.
    pub(super) topics: Vec<i64>,
    /// Whether the server saw it. Else it has to look it up, as often as it may.
    pub(super) seen: bool,
}

/// Both stand-ins, and who lives there.
pub(super) struct World {
    pub(super) discord: FakeDiscord,
    pub(super) telegram: FakeTelegram,
    pub(super) chats: Vec<Chat>,
    /// Well-formed ids of chats that the bots do not see.
    pub(super) unseen: Vec<String>,
    _folder: TempDir,
}

impl World {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let discord = FakeDiscord::start(folder.path(), &json!({})).await;
        let telegram = FakeTelegram::start(folder.path(), &Options::default()).await;
        let mut world = Self { discord, telegram, chats: Vec::new(), unseen: Vec::new(), _folder: folder };
        world.people_discord().await;
        world.people_telegram().await;
        world
    }

    fn add(&mut self, platform: &'static str, id: &str, parent: Option<&str>, places: &[String]) -> usize {
        let all = places.iter().map(String::as_str).chain(["*"]);
        let places = all.map(|place| format!("{platform}:{place}")).collect();
        let parent = parent.map(str::to_owned);
        self.chats.push(Chat { platform, id: id.to_owned(), parent, places, topics: Vec::new(), seen: true });
        self.chats.len() - 1
    }

    async fn people_discord(&mut self) {
        let ann = self.discord.user("ann").await;
        for name in ["Harbour", "Hills"] {
            let guild = self.discord.guild(name).await.id;
            for number in 0..4 {
                let channel = self.discord.channel(&guild, &format!("c{number}")).await;
                let own = format!("{guild}/{channel}");
                self.add("discord", &channel, None, &[own.clone(), guild.clone()]);
                if number < 2 {
                    let thread = self.discord.thread(&channel, "talk", &ann, None).await;
                    let places = [format!("{guild}/{thread}"), own, guild.clone()];
                    self.add("discord", &thread, Some(&channel), &places);
                }
            }
        }
        let guild = self.discord.make("guild", json!({ "name": "Elsewhere", "bot": false })).await;
        self.unseen.push(self.discord.channel(&guild, "far").await);
        for name in ["bob", "cid", "dan"] {
            let person = self.discord.user(name).await;
            let dm = self.discord.dm(&person).await;
            self.add("discord", &dm, None, &[format!("dm:{person}")]);
        }
        let never_met = self.discord.user("eve").await;
        let dm = self.discord.dm(&never_met).await;
        let added = self.add("discord", &dm, None, &[format!("dm:{never_met}")]);
        self.chats[added].seen = false;
    }

    async fn people_telegram(&mut self) {
        for number in 0..8 {
            let person = self.telegram.person(&format!("p{number}")).await;
            self.add("telegram", &person.to_string(), None, &[person.to_string()]);
        }
        let ann = self.telegram.user("ann").await;
        for number in 0..3 {
            for chat in [
                self.telegram.group(&format!("g{number}"), &[ann]).await,
                self.telegram.supergroup(&format!("s{number}"), &[ann]).await,
            ] {
                self.add("telegram", &chat.to_string(), None, &[chat.to_string()]);
            }
        }
        for name in ["f0", "f1"] {
            let forum = self.telegram.forum(name, &[ann]).await;
            let topics =
                vec![self.telegram.topic(forum, ann, "t").await, self.telegram.topic(forum, ann, "u").await];
            let added = self.add("telegram", &forum.to_string(), None, &[forum.to_string()]);
            self.chats[added].topics = topics;
        }
        // Somebody who never wrote to the bot.
        self.unseen.push(self.telegram.user("eve").await.to_string());
    }

    /// Lets the server see every chat; nobody owns any yet.
    pub(super) async fn be_seen(&self) {
        hears(&self.discord).await;
        let zed = self.discord.user("zed").await;
        for chat in self.chats.iter().filter(|chat| chat.seen) {
            if chat.platform == "telegram" {
                let id = chat.id.parse().unwrap();
                let from = if id > 0 { id } else { self.telegram.user("zed").await };
                self.telegram.say(id, from, "hello").await;
                continue;
            }
            let person = chat.places[0].strip_prefix("discord:dm:").unwrap_or(&zed);
            self.discord.say(&chat.id, person, "hello").await;
        }
        self.telegram.wait_for_state("all is read", SOON, |state| state["pending"] == 0).await;
        let dms = self.chats.iter().filter(|chat| chat.seen && chat.places[0].contains(":dm:")).count();
        let deadline = Instant::now() + SOON;
        // A private chat is known once Discord was asked for it.
        while discord_calls(&self.discord, 0).await.iter().filter(|call| call.status == 200).count() < dms {
            assert!(Instant::now() < deadline, "the direct messages were not seen");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) async fn calls(&self, since: (u64, usize)) -> Vec<Call> {
        let mut calls = discord_calls(&self.discord, since.0).await;
        calls.extend(telegram_calls(&self.telegram, since.1).await);
        calls
    }

    /// Where the logs end now.
    pub(super) async fn now(&self) -> (u64, usize) {
        let requests = self.discord.requests(0).await;
        (requests.last().map_or(0, |request| request.n), self.telegram.log().await.len())
    }

    /// An id that means no chat, or none that the bots see.
    pub(super) fn nowhere(&self, dice: &mut Dice) -> String {
        let chat = dice.pick(&self.chats).id.clone();
        let other = dice.pick(&self.chats).id.clone();
        match dice.roll(16) {
            0..=3 => dice.pick(&self.unseen).clone(),
            4 | 5 => format!("{}", 1_400_000_000_000_000_000_u64 + dice.roll(40) as u64),
            6 => format!("-100{}", 1_500_000_000 + dice.roll(20)),
            7 => format!("0{chat}"),
            8 => format!(" {chat}"),
            9 => format!("+{chat}"),
            10 => format!("{chat}/messages/{other}"),
            11 => format!("{chat}?x={other}"),
            12 => format!("../{chat}"),
            13 => format!("<#{chat}>"),
            14 => format!("{chat}.0"),
            _ => (*dice.pick(&["", "0", "-", "@ann", "web-r1", "99999999999999999999", "-0", "null"]))
                .to_owned(),
        }
    }

    /// Metadata as an honest agent sends it, and as a lying one does.
    pub(super) fn metadata(&self, dice: &mut Dice, chat: &str) -> Value {
        let (own, foreign) =
            (self.chats.iter().find(|known| known.id == chat), dice.pick(&self.chats).clone());
        let thread = self.chats.iter().find(|known| known.parent.as_deref() == Some(chat));
        match (dice.roll(8), own, thread) {
            (0, ..) => json!({ "notify": true }),
            (1, ..) => json!({
                "scope_id": foreign.places.last(), "guild_id": foreign.places[0], "user_id": "42",
                "chat_id": foreign.id, "channel_id": foreign.id, "tenant": "acme", "parent_chat_id": foreign.id,
            }),
            (2, ..) => json!({ "thread_id": foreign.id }),
            (3, ..) => json!({ "thread_id": self.nowhere(dice) }),
            (4..=6, Some(own), _) if !own.topics.is_empty() => {
                let topic = *dice.pick(&[own.topics[0], own.topics[1], 1]);
                json!({ "thread_id": if dice.roll(2) == 0 { json!(topic) } else { json!(topic.to_string()) } })
            }
            (4..=6, _, Some(thread)) => json!({ "thread_id": thread.id }),
            _ => Value::Null,
        }
    }
}

pub(super) async fn agents(stage: &Stage, world: &World) -> Vec<Agent> {
    let mut agents = Vec::new();
    for (tenant, gateway) in GATEWAYS {
        let gateway = gateway.unwrap();
        let socket = stage.agent(tenant, gateway, "discord", world.discord.bot_id()).await;
        agents.push(Agent { tenant, gateway, socket });
    }
    agents
}

pub(super) async fn stage_of(world: &World) -> Stage {
    let bots = |folder: &std::path::Path| {
        discord_bot(folder, "dora", &world.discord) + &telegram_bot(folder, "tom", &world.telegram)
    };
    Stage::new(bots).await
}
