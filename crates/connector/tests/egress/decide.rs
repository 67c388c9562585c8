//! From a frame to where it goes: against a model that only scans lists.
//!
//! The bots work with numbers and prefixes, as platforms do. The model knows
//! every chat and thread of this small world from a table, and every route
//! from a list; it shares no code with what it judges.

use angelia_contract::frame::{GatewayFrame, Outbound};
use angelia_core::admission::{Allow, Route, RouteOptions, Routes};
use angelia_core::egress::{Bot, Goal, Refusal, Sender, Target, Whereabouts, decide};
use angelia_core::inbox::{InstanceId, Quota};
use angelia_core::ports::Ports;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use angelia_platforms::webchat::{Hub, Webchat};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Worlds that are made up, and steps taken in each.
const WORLDS: u32 = 520;
const STEPS: usize = 240;
/// Frames that have to be judged in all of them.
const FRAMES: usize = 100_000;

/// Channels 1–3 are in guild 10, 4–6 in guild 20, 100 + n is a thread of
/// channel n, 90 is a private chat. The second bot is in guild 20 only.
struct Discord(&'static str);

impl Discord {
    fn places_of(&self, id: &str) -> Option<Vec<String>> {
        let number: u32 = id.parse().ok()?;
        let guild = match (self.0, number % 100) {
            ("d1", 90) if number == 90 => return Some(vec!["dm:ann".into(), "*".into()]),
            ("d1", 1..=3) => 10,
            (_, 4..=6) => 20,
            _ => return None,
        };
        let known = number < 200;
        known.then(|| vec![format!("{guild}/{}", number % 100), guild.to_string(), "*".into()])
    }
}

impl Bot for Discord {
    fn platform(&self) -> &str {
        "discord"
    }

    fn id(&self) -> &str {
        self.0
    }

    fn places(&self, target: &Target) -> Whereabouts {
        let Some(chat) = self.places_of(&target.chat_id) else { return Whereabouts::Nowhere };
        let places = match &target.thread_id {
            // What is written to is the thread, wherever it hangs.
            Some(thread) if thread.len() == 3 => self.places_of(thread),
            Some(_) => None,
            None => Some(chat),
        };
        places.map_or(Whereabouts::Nowhere, Whereabouts::Places)
    }
}

/// Chats 1–4; a thread is a topic of its chat, by number.
struct Telegram;

impl Bot for Telegram {
    fn platform(&self) -> &str {
        "telegram"
    }

    fn id(&self) -> &str {
        "t1"
    }

    fn places(&self, target: &Target) -> Whereabouts {
        let chat = target.chat_id.parse::<i64>().ok().filter(|chat| (1..=4).contains(chat));
        let topic = target.thread_id.as_ref().is_none_or(|thread| thread.parse::<u32>().is_ok());
        match chat.filter(|_| topic) {
            Some(chat) => Whereabouts::Places(vec![chat.to_string(), "*".into()]),
            None => Whereabouts::Nowhere,
        }
    }
}

const BOTS: [(&str, &str); 4] =
    [("webchat", "webchat"), ("discord", "d1"), ("discord", "d2"), ("telegram", "t1")];

/// A bot, and the places under which it reaches a chat.
type Reach = (&'static str, &'static [&'static str]);

/// Every chat there is, and which bot reaches it under which places.
const CHATS: [(&str, &[Reach]); 16] = [
    ("web-lab", &[("webchat", &["lab", "*"])]),
    ("web-den", &[("webchat", &["den", "*"])]),
    ("web-dm:ann", &[("webchat", &["dm:ann", "*"])]),
    ("web-*", &[]),
    ("web-", &[]),
    ("lab", &[]),
    ("", &[]),
    ("1", &[("d1", &["10/1", "10", "*"]), ("t1", &["1", "*"])]),
    ("2", &[("d1", &["10/2", "10", "*"]), ("t1", &["2", "*"])]),
    ("4", &[("d1", &["20/4", "20", "*"]), ("d2", &["20/4", "20", "*"]), ("t1", &["4", "*"])]),
    ("5", &[("d1", &["20/5", "20", "*"]), ("d2", &["20/5", "20", "*"])]),
    ("101", &[("d1", &["10/1", "10", "*"])]),
    ("104", &[("d1", &["20/4", "20", "*"]), ("d2", &["20/4", "20", "*"])]),
    ("90", &[("d1", &["dm:ann", "*"])]),
    ("777", &[]),
    ("d1", &[]),
];

/// What a thread makes of a chat, bot by bot.
#[derive(Clone, Copy, Debug)]
enum Thread {
    /// There is none.
    None,
    /// A Discord thread with this row of [`CHATS`]; a number, so Telegram takes it for a topic.
    Of(&'static str),
    /// A number that is no thread of Discord's.
    Topic,
    /// The chat itself, which only the web chat understands.
    Lab,
    /// Nobody's.
    Nowhere,
}

const THREADS: [(&str, Thread); 11] = [
    ("", Thread::None),
    ("null", Thread::None),
    ("\"\"", Thread::None),
    ("\"101\"", Thread::Of("101")),
    ("101", Thread::Of("101")),
    ("\"104\"", Thread::Of("104")),
    ("7", Thread::Topic),
    ("\"web-lab\"", Thread::Lab),
    ("\"x\"", Thread::Nowhere),
    ("{\"id\":\"101\"}", Thread::Nowhere),
    ("false", Thread::Nowhere),
];

const PLACES: [&str; 16] = [
    "webchat:*",
    "webchat:lab",
    "webchat:den",
    "webchat:dm:ann",
    "discord:*",
    "discord:10",
    "discord:20",
    "discord:10/1",
    "discord:10/2",
    "discord:20/4",
    "discord:dm:ann",
    "telegram:*",
    "telegram:1",
    "telegram:2",
    "telegram:4",
    "relay:*",
];
const TENANTS: [&str; 3] = ["acme", "other", "third"];
const OPS: [&str; 8] = ["send", "edit", "typing", "get_chat_info", "react", "delete", "fly", "follow_up"];
/// What a frame may claim; `relay` and `x` are no platforms here.
const CLAIMS: [&str; 6] = ["", "webchat", "discord", "telegram", "relay", "x"];

#[derive(Clone, Debug)]
struct Owner {
    tenant: &'static str,
    instance: Option<i64>,
}

#[derive(Clone, Debug)]
struct Asked {
    sender: (&'static str, i64),
    op: &'static str,
    chat: usize,
    as_number: bool,
    thread: usize,
    platform: &'static str,
    bot: &'static str,
    scope: &'static str,
}

#[derive(Clone, Debug)]
enum Step {
    Add(&'static str, Option<&'static str>, Owner),
    Move(usize, Owner),
    Remove(usize),
    Frame(Asked),
}

/// A number, taken apart choice by choice: many small choices from one draw.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        let choice = self.0 % count as u64;
        self.0 /= count as u64;
        choice as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn owner(&mut self) -> Owner {
        Owner { tenant: self.of(&TENANTS), instance: self.of(&[None, None, Some(1), Some(2), Some(3)]) }
    }

    fn asked(&mut self) -> Asked {
        Asked {
            sender: (self.of(&TENANTS), self.of(&[1, 2, 3])),
            op: self.of(&OPS),
            chat: self.below(CHATS.len()),
            as_number: self.below(2) == 0,
            // Half of the frames name no thread.
            thread: self.below(2) * self.below(THREADS.len()),
            platform: self.of(&CLAIMS),
            bot: self.of(&["", "d1", "d2", "t1", "webchat", "x"]),
            scope: self.of(&["", "lab", "10", "20", "acme", "*"]),
        }
    }

    fn step(&mut self) -> Step {
        match self.below(45) {
            0 => Step::Remove(self.below(16)),
            1 => Step::Move(self.below(16), self.owner()),
            2..=4 => {
                let bot = self.of(&[None, None, None, None, Some("d1"), Some("d2"), Some("t1"), Some("x")]);
                Step::Add(self.of(&PLACES), bot, self.owner())
            }
            _ => Step::Frame(self.asked()),
        }
    }
}

/// The routes as a list: place, bot, owner.
type List = Vec<(&'static str, Option<&'static str>, Owner)>;

/// The places under which a bot reaches a chat and thread, from the tables.
fn covered(bot: &str, chat: &str, thread: Thread) -> Option<&'static [&'static str]> {
    let row = |chat: &str| {
        let (_, reached) = CHATS.iter().find(|(id, _)| *id == chat)?;
        reached.iter().find(|(by, _)| *by == bot).map(|(_, places)| *places)
    };
    let places = row(chat)?;
    match (thread, bot) {
        (Thread::None, _) | (Thread::Of(_) | Thread::Topic, "t1") => Some(places),
        (Thread::Of(thread), "d1" | "d2") => row(thread),
        (Thread::Lab, "webchat") => (chat == "web-lab").then_some(places),
        _ => None,
    }
}

/// Whether the list gives a chat to a sender: the first place that anybody has decides.
fn is_given(list: &List, (platform, bot): (&str, &str), places: &[&str], sender: (&str, i64)) -> bool {
    for path in places {
        let here = |(place, _, _): &&(&str, Option<&str>, Owner)| *place == format!("{platform}:{path}");
        let at_place: Vec<_> = list.iter().filter(here).collect();
        let named = at_place.iter().find(|(_, named, _)| *named == Some(bot));
        if let Some((_, _, owner)) = named.or_else(|| at_place.iter().find(|(_, named, _)| named.is_none())) {
            return owner.tenant == sender.0 && owner.instance.unwrap_or(sender.1) == sender.1;
        }
    }
    false
}

/// What the model says: the bot, or nothing; `Err` if the action cannot be taken at all.
fn judged(list: &List, asked: &Asked) -> Result<Option<usize>, ()> {
    if asked.op == "follow_up" {
        return Err(());
    }
    let (chat, _) = CHATS[asked.chat];
    // This one carries no metadata, so it names no thread.
    let thread = if asked.op == "get_chat_info" { Thread::None } else { THREADS[asked.thread].1 };
    let claimed = BOTS.iter().any(|(platform, _)| *platform == asked.platform);
    let may: Vec<usize> = (0..BOTS.len())
        .filter(|index| {
            let (platform, bot) = BOTS[*index];
            let left_out = claimed && platform != asked.platform;
            let places = covered(bot, chat, thread);
            !left_out && places.is_some_and(|places| is_given(list, (platform, bot), places, asked.sender))
        })
        .collect();
    // Of several that may, the one that is named.
    let named = may.iter().find(|index| BOTS[**index].1 == asked.bot);
    Ok(named.or(may.first()).copied())
}

/// The frame as a gateway writes it.
fn frame(asked: &Asked) -> Outbound {
    let (chat, _) = CHATS[asked.chat];
    let chat_id = match chat.parse::<u64>() {
        Ok(number) if asked.as_number => json!(number),
        _ => json!(chat),
    };
    let mut metadata = json!({ "scope_id": asked.scope, "guild_id": asked.scope, "user_id": "ann" });
    let (thread, _) = THREADS[asked.thread];
    if !thread.is_empty() {
        metadata["thread_id"] = serde_json::from_str(thread).unwrap();
    }
    let action = json!({
        "op": asked.op, "chat_id": chat_id, "message_id": "m1", "content": "x", "emoji": "x",
        "session_key": "k", "kind": "discord.interaction_token", "metadata": metadata,
    });
    let mut line = json!({ "type": "outbound", "requestId": "r", "action": action });
    for (key, claim) in [("platform", asked.platform), ("botId", asked.bot)] {
        if !claim.is_empty() {
            line[key] = Value::from(claim);
        }
    }
    match GatewayFrame::parse(line.to_string().as_bytes()).unwrap() {
        GatewayFrame::Outbound(outbound) => outbound,
        other => panic!("{other:?}"),
    }
}

fn routes(list: &List) -> Routes {
    let route = |(place, bot, owner): &(&str, Option<&str>, Owner)| Route {
        place: place.parse().unwrap(),
        bot: bot.map(str::to_owned),
        tenant: owner.tenant.into(),
        instance: owner.instance.map(InstanceId),
        allow: Allow::Any,
        free: false,
        while_busy: None,
        options: RouteOptions::default(),
    };
    Routes::new(list.iter().map(route).collect())
}

fn change(list: &mut List, step: &Step) {
    match step {
        Step::Add(place, bot, owner) => {
            if !list.iter().any(|(taken, by, _)| taken == place && by == bot) {
                list.push((place, *bot, owner.clone()));
            }
        }
        Step::Move(index, owner) if *index < list.len() => list[*index].2 = owner.clone(),
        Step::Remove(index) if *index < list.len() => drop(list.remove(*index)),
        Step::Move(..) | Step::Remove(_) | Step::Frame(_) => {}
    }
}

fn check(asked: &Asked, list: &List, table: &Routes, bots: &[Arc<dyn Bot>]) -> Result<bool, TestCaseError> {
    let sender = Sender { tenant: asked.sender.0, instance: InstanceId(asked.sender.1) };
    let decision = decide(table, bots, sender, &frame(asked));
    match (judged(list, asked), decision) {
        (Ok(Some(expected)), Ok(Goal { bot, target })) => {
            prop_assert_eq!(bot, expected);
            prop_assert_eq!(target.chat_id.as_str(), CHATS[asked.chat].0);
            Ok(true)
        }
        (Ok(None), Err(Refusal::Declined)) | (Err(()), Err(Refusal::InVault)) => Ok(false),
        // What is no thread at all is not even read.
        (_, Err(Refusal::Unusable(_))) if THREADS[asked.thread].0.starts_with(['{', '[']) => Ok(false),
        (model, decision) => Err(TestCaseError::fail(format!("{model:?}, but {decision:?}: {asked:?}"))),
    }
}

#[test]
fn a_frame_goes_where_the_model_says_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path(), Quota::default(), Arc::new(LocalBus::default())).unwrap();
    let bots: Vec<Arc<dyn Bot>> = vec![
        Arc::new(Webchat::new(Ports::of(&Arc::new(store)), Arc::new(Hub::default()))),
        Arc::new(Discord("d1")),
        Arc::new(Discord("d2")),
        Arc::new(Telegram),
    ];
    let identities: Vec<_> = bots.iter().map(|bot| (bot.platform(), bot.id())).collect();
    assert_eq!(identities, BOTS);
    let (allowed, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let config =
        Config { cases: WORLDS, max_shrink_iters: 2_000, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(any::<u64>(), STEPS), |draws| {
        let mut list = List::new();
        let mut table = routes(&list);
        for draw in draws {
            let step = Draw(draw).step();
            if let Step::Frame(asked) = &step {
                let counter = if check(asked, &list, &table, &bots)? { &allowed } else { &refused };
                counter.fetch_add(1, Ordering::Relaxed);
            } else {
                change(&mut list, &step);
                table = routes(&list);
            }
        }
        Ok(())
    });
    outcome.unwrap();
    let (allowed, refused) = (allowed.into_inner(), refused.into_inner());
    assert!(allowed + refused >= FRAMES, "{allowed} and {refused}");
    assert!(allowed >= FRAMES / 50, "both ways are walked: {allowed} allowed");
}
