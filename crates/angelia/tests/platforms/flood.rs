//! Twenty agents stream their answers through one bot at the provider's real
//! limits: nothing is refused, every answer ends whole, and nobody's share
//! depends on how loud the others are.

use super::shared_stage::{
    Call, Kind, SOON, Stage, discord_bot, discord_calls, hears, outbound, telegram_bot, telegram_calls,
};
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::telegram::{FakeTelegram, Options};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

const AGENTS: usize = 20;
/// Chats in which the greedy agent streams at once.
const GREEDY: usize = 20;
/// Agents whose chat is a group; Telegram lets less through there.
const IN_GROUPS: usize = 6;
/// How often an agent shows how far it is.
const EVERY: Duration = Duration::from_millis(150);
const STREAM: Duration = Duration::from_secs(15);
/// What an agent writes behind a text that grows.
const CURSOR: &str = " ▉";
/// How long the last text may take; a machine that is busy takes most of it.
const FINAL_WITHIN: Duration = Duration::from_secs(10);

/// The provider and the people on it.
enum Provider {
    Discord(FakeDiscord),
    Telegram(FakeTelegram),
}

#[derive(Clone, Debug)]
struct Chat {
    id: String,
    place: String,
    group: bool,
}

struct Agent {
    name: String,
    socket: Socket,
    chats: Vec<Chat>,
}

/// What came of one answer.
#[derive(Debug)]
struct Answer {
    chat: Chat,
    agent: usize,
    text: String,
    /// From the request for the last text to its result.
    took: Duration,
}

impl Provider {
    fn name(&self) -> &'static str {
        match self {
            Self::Discord(_) => "discord",
            Self::Telegram(_) => "telegram",
        }
    }

    fn bot(&self) -> String {
        match self {
            Self::Discord(discord) => discord.bot_id().to_owned(),
            Self::Telegram(telegram) => telegram.bot_id().to_string(),
        }
    }

    fn config(&self, folder: &Path) -> String {
        match self {
            Self::Discord(discord) => discord_bot(folder, "main", discord),
            Self::Telegram(telegram) => telegram_bot(folder, "main", telegram),
        }
    }

    /// The chats of every agent; the first one's are many.
    async fn chats(&self) -> Vec<Vec<Chat>> {
        let count = |agent: usize| if agent == 0 { GREEDY } else { 1 };
        let mut all = Vec::new();
        let guild = match self {
            Self::Discord(discord) => discord.guild("Harbour").await.id,
            Self::Telegram(_) => String::new(),
        };
        for agent in 0..AGENTS {
            let mut chats = Vec::new();
            for number in 0..count(agent) {
                let name = format!("a{agent}-{number}");
                let (id, place, group) = match self {
                    Self::Discord(discord) => {
                        let id = discord.channel(&guild, &name).await;
                        (id.clone(), format!("discord:{guild}/{id}"), false)
                    }
                    Self::Telegram(telegram) => {
                        let group = agent >= AGENTS - IN_GROUPS;
                        let mut id = telegram.person(&name).await;
                        if group {
                            id = telegram.supergroup(&name, &[id]).await;
                        }
                        (id.to_string(), format!("telegram:{id}"), group)
                    }
                };
                chats.push(Chat { id, place, group });
            }
            all.push(chats);
        }
        all
    }

    /// Somebody asks something in a chat.
    async fn ask_in(&self, chat: &Chat, asker: &str) {
        match self {
            Self::Discord(discord) => drop(discord.say(&chat.id, asker, "go on").await),
            Self::Telegram(telegram) => {
                let id = chat.id.parse().unwrap();
                // In a private chat the person is the chat.
                let from = if chat.group { asker.parse().unwrap() } else { id };
                telegram.say(id, from, "go on").await;
            }
        }
    }

    async fn asker(&self) -> String {
        match self {
            Self::Discord(discord) => discord.user("ann").await,
            Self::Telegram(telegram) => telegram.user("ann").await.to_string(),
        }
    }

    /// Everything that was written through the bot so far.
    async fn writes(&self) -> Vec<Call> {
        let calls = match self {
            Self::Discord(discord) => discord_calls(discord, 0).await,
            Self::Telegram(telegram) => telegram_calls(telegram, 0).await,
        };
        calls.into_iter().filter(|call| matches!(call.kind, Kind::Send | Kind::Edit)).collect()
    }

    /// How often the provider said "too many".
    async fn refused(&self) -> u64 {
        match self {
            Self::Discord(discord) => discord.count("/rest/limited").await,
            Self::Telegram(telegram) => telegram.state().await["too_many"].as_u64().unwrap(),
        }
    }

    /// What the bot has standing in a chat.
    async fn standing(&self, chat: &Chat) -> Vec<String> {
        match self {
            Self::Discord(discord) => {
                discord.answers(&chat.id).await.into_iter().map(|message| message.content).collect()
            }
            Self::Telegram(telegram) => telegram.bot_texts(chat.id.parse().unwrap()).await,
        }
    }
}

/// The answer to `request`, or of any request if there is none; what people say
/// meanwhile is taken.
fn result(frame: &Value) -> Option<(&str, &Value)> {
    (frame["type"] == "outbound_result").then(|| (frame["requestId"].as_str().unwrap(), &frame["result"]))
}

impl Agent {
    /// Reads what comes until `deadline`; every answer has to be a good one.
    async fn read_until(&mut self, deadline: Instant, mut answered: impl FnMut(&str, &Value) -> bool) {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.socket.next(left).await {
                Next::Frame(frame) => {
                    let Some((request, result)) = result(&frame) else { continue };
                    assert_eq!(result["success"], true, "{} {request}: {result}", self.name);
                    if answered(request, result) {
                        return;
                    }
                }
                Next::Silence => return,
                other => panic!("{}: {other:?}", self.name),
            }
        }
    }

    /// Streams an answer into each of `chats` at once.
    async fn stream(&mut self, index: usize, chats: usize, words: &str) -> Vec<Answer> {
        let chats = self.chats[..chats].to_vec();
        let grown = |chat: &Chat, step: usize| format!("{words} in {}{}", chat.id, " word".repeat(step));
        for (number, chat) in chats.iter().enumerate() {
            let content = grown(chat, 0) + CURSOR;
            let send = json!({ "op": "send", "chat_id": chat.id, "content": content });
            self.socket.send(&outbound(&format!("s{number}"), &send)).await;
        }
        let mut messages: BTreeMap<usize, String> = BTreeMap::new();
        self.read_until(Instant::now() + SOON, |request, result| {
            let number = request.strip_prefix('s').unwrap().parse().unwrap();
            let message = result["message_id"].as_str().unwrap_or_else(|| panic!("{request}: {result}"));
            messages.insert(number, message.to_owned());
            messages.len() == chats.len()
        })
        .await;
        assert_eq!(messages.len(), chats.len(), "{}: every answer begins", self.name);
        let edit = |number: usize, content: String| json!({ "op": "edit", "chat_id": chats[number].id, "message_id": messages[&number], "content": content });
        let (begun, mut step) = (Instant::now(), 0);
        while begun.elapsed() < STREAM {
            step += 1;
            for (number, chat) in chats.iter().enumerate() {
                let edit = edit(number, grown(chat, step) + CURSOR);
                self.socket.send(&outbound(&format!("e{step}"), &edit)).await;
            }
            let next = begun + EVERY * u32::try_from(step).unwrap();
            self.read_until(next, |_, _| false).await;
            sleep_until(next).await;
        }
        let mut asked = Vec::new();
        for (number, chat) in chats.iter().enumerate() {
            let text = grown(chat, step) + " and that is all.";
            self.socket.send(&outbound(&format!("f{number}"), &edit(number, text.clone()))).await;
            asked.push((text, Instant::now(), None));
        }
        let mut open = chats.len();
        self.read_until(Instant::now() + SOON, |request, _| {
            if let Some(number) = request.strip_prefix('f') {
                let (_, at, took) = &mut asked[number.parse::<usize>().unwrap()];
                *took = Some(at.elapsed());
                open -= 1;
            }
            open == 0
        })
        .await;
        let answers = chats.into_iter().zip(asked).map(|(chat, (text, _, took))| {
            let took = took.unwrap_or_else(|| panic!("no answer to the last text in {}", chat.id));
            Answer { chat, agent: index, text, took }
        });
        answers.collect()
    }
}

/// Everybody streams, the first agent into `greedy` chats; answers what came of it.
async fn flood(
    provider: &Provider,
    agents: &mut [Agent],
    greedy: usize,
    words: &str,
) -> (Vec<Answer>, Vec<Call>) {
    let before = provider.writes().await.len();
    let streams = agents.iter_mut().enumerate().map(|(index, agent)| {
        let chats = if index == 0 { greedy } else { 1 };
        agent.stream(index, chats, words)
    });
    let answers: Vec<Answer> = join_all(streams).await.into_iter().flatten().collect();
    let writes = provider.writes().await.split_off(before);
    for Answer { chat, text, .. } in &answers {
        let standing = provider.standing(chat).await;
        let of_now: Vec<_> = standing.iter().filter(|text| text.starts_with(words)).collect();
        assert_eq!(of_now, [text], "one answer, whole");
        let last = writes.iter().rfind(|call| call.chat == chat.id).unwrap();
        assert_eq!(last.text.as_ref(), Some(text), "nothing came after the last text");
    }
    (answers, writes)
}

/// Least, middle and most.
fn spread<T: Copy + PartialOrd>(values: impl Iterator<Item = T>) -> (T, T, T) {
    let mut all: Vec<T> = values.collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    (all[0], all[all.len() / 2], all[all.len() - 1])
}

/// The most calls within any second.
fn busiest_second(writes: &[Call]) -> usize {
    let within = |from: f64| writes.iter().filter(|call| call.at >= from && call.at < from + 1.0).count();
    writes.iter().map(|call| within(call.at)).max().unwrap_or_default()
}

/// Prints and answers the calls of some answers: least, middle, most.
fn tell(label: &str, answers: &[&Answer], writes: &[Call]) -> (usize, usize, usize) {
    let of = |answer: &&Answer| writes.iter().filter(|call| call.chat == answer.chat.id).count();
    let calls = spread(answers.iter().map(of));
    let (_, middle, longest) = spread(answers.iter().map(|answer| answer.took.as_secs_f64()));
    println!(
        "{label:<28} {:>5} {:>6} {:>6} {:>6} {middle:>9.2} {longest:>8.2}",
        answers.len(),
        calls.0,
        calls.1,
        calls.2
    );
    assert!(longest < FINAL_WITHIN.as_secs_f64(), "{label}: the last text took {longest:.2} s");
    calls
}

async fn agents(stage: &Stage, provider: &Provider) -> Vec<Agent> {
    let chats = provider.chats().await;
    let (name, bot) = (provider.name(), provider.bot());
    if let Provider::Discord(discord) = provider {
        hears(discord).await;
    }
    let made = futures_util::stream::iter(chats.into_iter().enumerate()).map(|(index, chats)| {
        let bot = &bot;
        async move {
            let tenant = format!("t{index}");
            let socket = stage.agent(&tenant, &format!("g{index}"), name, bot).await;
            for chat in &chats {
                stage.route(&tenant, None, &chat.place).await;
            }
            Agent { name: tenant, socket, chats }
        }
    });
    let mut agents: Vec<Agent> = made.buffered(4).collect().await;
    let asker = provider.asker().await;
    for agent in &mut agents {
        for chat in &agent.chats {
            provider.ask_in(chat, &asker).await;
        }
        for _ in 0..agent.chats.len() {
            assert_eq!(agent.socket.take_text().await, "go on");
        }
    }
    agents
}

async fn flood_through(provider: Provider) {
    let stage = Stage::new(|folder| provider.config(folder)).await;
    let mut agents = agents(&stage, &provider).await;
    println!(
        "{:<28} {:>5} {:>6} {:>6} {:>6} {:>9} {:>8}",
        provider.name(),
        "chats",
        "least",
        "middle",
        "most",
        "last p50",
        "max s"
    );
    let (answers, writes) = flood(&provider, &mut agents, 1, "alike").await;
    let mut alone = BTreeMap::new();
    for group in [false, true] {
        let of: Vec<&Answer> = answers.iter().filter(|answer| answer.chat.group == group).collect();
        if !of.is_empty() {
            let calls = tell(if group { "20 alike, groups" } else { "20 alike" }, &of, &writes);
            assert!(calls.2 <= 2 * calls.0, "shares are fair: {calls:?}");
            alone.insert(group, calls);
        }
    }
    let busiest = busiest_second(&writes);
    let refused = provider.refused().await;
    println!("{} calls, at most {busiest} in a second, {refused} refused", writes.len());
    assert_eq!(refused, 0, "the provider refused nothing");

    let (answers, writes) = flood(&provider, &mut agents, GREEDY, "greed").await;
    let greedy: Vec<&Answer> = answers.iter().filter(|answer| answer.agent == 0).collect();
    tell("one greedy, its chats", &greedy, &writes);
    for group in [false, true] {
        let modest = |answer: &&Answer| answer.agent != 0 && answer.chat.group == group;
        let of: Vec<&Answer> = answers.iter().filter(modest).collect();
        if !of.is_empty() {
            let calls = tell(if group { "19 modest, groups" } else { "19 modest" }, &of, &writes);
            assert!(calls.2 <= 2 * calls.0, "shares are fair: {calls:?}");
            // The first flood found every group rested.
            assert!(group || 4 * calls.0 >= 3 * alone[&group].0, "greed costs others: {calls:?} {alone:?}");
        }
    }
    let busiest = busiest_second(&writes);
    let refused = provider.refused().await;
    println!("{} calls, at most {busiest} in a second, {refused} refused", writes.len());
    assert_eq!(refused, 0, "the provider refused nothing");
}

#[tokio::test]
async fn twenty_agents_stream_through_one_discord_bot() {
    let folder = tempfile::tempdir().unwrap();
    let discord = FakeDiscord::start(folder.path(), &json!({})).await;
    flood_through(Provider::Discord(discord)).await;
}

#[tokio::test]
async fn twenty_agents_stream_through_one_telegram_bot() {
    let folder = tempfile::tempdir().unwrap();
    let telegram = FakeTelegram::start(folder.path(), &Options::default()).await;
    flood_through(Provider::Telegram(telegram)).await;
}
