//! Whatever agents ask for while routes move, no request to a provider names a
//! chat that is not the asker's. The oracle is a list of places and owners.

use super::egress_world::{Agent, Chat, Dice, GATEWAYS, Owner, World, agents, stage_of};
use super::shared_stage::{Call, Kind, SOON, Stage, outbound};
use angelia_testkit::socket::Next;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

const CASES: usize = 1_500;
const SEED: u64 = 0x5eed_4a11_0c8e;
/// What a gateway may make the connector ask its providers in a minute.
const LOOK_UPS: usize = 10;

/// The list that says what is allowed.
#[derive(Default)]
struct Model {
    routes: BTreeMap<String, Owner>,
}

impl Model {
    fn may(&self, chat: &Chat, agent: &Agent) -> bool {
        let route = chat.places.iter().find_map(|place| self.routes.get(place));
        route.is_some_and(|(tenant, gateway)| {
            *tenant == agent.tenant && gateway.is_none_or(|id| id == agent.gateway)
        })
    }

    /// Whether a frame may do what it asks for; and to whom it speaks.
    fn allows<'a>(&self, world: &'a World, frame: &Value, agent: &Agent) -> Option<&'a Chat> {
        let action = &frame["action"];
        let id = action["chat_id"].as_str()?;
        let chat = world.chats.iter().find(|chat| chat.id == id)?;
        let claims = frame["platform"].as_str().unwrap_or_default();
        if ["discord", "telegram", "webchat"].contains(&claims) && claims != chat.platform {
            return None;
        }
        let thread = &action["metadata"]["thread_id"];
        // A question about a chat names nothing but the chat.
        if action["op"] == "get_chat_info" || thread.is_null() || thread == "" {
            return self.may(chat, agent).then_some(chat);
        }
        let thread = thread.as_str().map_or_else(|| thread.to_string(), str::to_owned);
        match chat.platform {
            // A topic is wherever its chat is, if there can be such a topic.
            "telegram" => {
                let number =
                    thread.parse::<i64>().is_ok_and(|number| number > 0 && number.to_string() == thread);
                (number && self.may(chat, agent)).then_some(chat)
            }
            _ => {
                let below = |known: &&Chat| {
                    known.platform == "discord"
                        && known.id == thread
                        && (known.id == id || known.parent.as_deref() == Some(id))
                };
                world.chats.iter().find(below).filter(|known| self.may(known, agent))
            }
        }
    }
}

/// Gives a place to somebody else, or to nobody.
async fn move_place(stage: &Stage, place: &str, model: &mut Model, dice: &mut Dice) {
    if model.routes.remove(place).is_some() {
        stage.unroute(place).await;
    }
    let to = match (dice.roll(5), place.ends_with(":*")) {
        (0, _) | (1, true) => return,
        (1 | 2, false) => *dice.pick(&GATEWAYS),
        _ => (dice.pick(&GATEWAYS).0, None),
    };
    stage.route(to.0, to.1, place).await;
    model.routes.insert(place.to_owned(), to);
}

/// Where the text of a case may be written.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    In(&'static str, String),
    Nowhere,
}

/// Holds every request against what was asked for and allowed.
fn judge(calls: &[Call], wanted: &BTreeMap<String, Wanted>, typed: &BTreeMap<(String, String), usize>) {
    let mut seen_typing: BTreeMap<(String, String), usize> = BTreeMap::new();
    for call in calls {
        match call.kind {
            Kind::Send | Kind::Edit => {
                let text = call.text.as_deref().unwrap_or_default();
                assert_eq!(wanted.get(text), Some(&Wanted::In(call.platform, call.chat.clone())), "{call:?}");
            }
            Kind::Typing => {
                *seen_typing.entry((call.platform.to_owned(), call.chat.clone())).or_default() += 1;
            }
            Kind::LookUp => {}
            Kind::Other => panic!("nobody asked for {call:?}"),
        }
        let is_chat =
            |id: &str| wanted.values().any(|case| matches!(case, Wanted::In(_, chat) if chat == id));
        assert!(!call.others.iter().any(|id| is_chat(id)), "it names another chat: {call:?}");
    }
    for (chat, count) in seen_typing {
        assert!(count <= typed.get(&chat).copied().unwrap_or_default(), "typing in {chat:?} {count} times");
    }
}

/// Where a frame goes: mostly to a chat there is, for an edit mostly to a message of it.
fn target(world: &World, written: &[(String, String)], op: &str, dice: &mut Dice) -> (String, String) {
    if op == "edit" && dice.roll(3) > 0 && !written.is_empty() {
        return dice.pick(written).clone();
    }
    let message = written.get(dice.roll(written.len() + 1)).map_or("17", |(_, message)| message);
    let chat = match dice.roll(5) {
        0 => world.nowhere(dice),
        _ => dice.pick(&world.chats).id.clone(),
    };
    (chat, message.to_owned())
}

async fn asked(agent: &mut Agent, frame: &Value) -> Value {
    agent.socket.send(frame).await;
    loop {
        match agent.socket.next(SOON).await {
            Next::Frame(answer) if answer["requestId"] == frame["requestId"] => {
                return answer["result"].clone();
            }
            Next::Frame(_) => {}
            other => panic!("no answer to {frame}: {other:?}"),
        }
    }
}

/// Nobody's chats are asked for only as often as they may be.
fn judge_look_ups(calls: &[Call], took: Duration) {
    let mut asked: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.kind == Kind::LookUp) {
        *asked.entry((call.platform, &call.chat)).or_default() += 1;
    }
    let total: usize = asked.values().sum();
    println!("{total} look-ups of {} chats", asked.len());
    let minutes = 1 + usize::try_from(took.as_secs() / 60).unwrap();
    assert!(total > 0, "some chats were not known");
    assert!(total <= LOOK_UPS * GATEWAYS.len() * minutes, "{total} look-ups in {took:?}");
    let often: Vec<_> = asked.iter().filter(|(_, count)| **count > 1).collect();
    assert!(often.is_empty(), "asked for more than once an hour: {often:?}");
}

/// The run of all cases, and what has to come of them.
struct Trial {
    world: World,
    stage: Stage,
    agents: Vec<Agent>,
    model: Model,
    dice: Dice,
    places: Vec<String>,
    wanted: BTreeMap<String, Wanted>,
    /// How often typing may be shown where.
    typed: BTreeMap<(String, String), usize>,
    /// Chats and messages of them.
    written: Vec<(String, String)>,
    allowed: BTreeMap<&'static str, usize>,
    declined: BTreeMap<&'static str, usize>,
    moves: usize,
}

impl Trial {
    async fn new() -> Self {
        let world = World::new().await;
        let stage = stage_of(&world).await;
        world.be_seen().await;
        let agents = agents(&stage, &world).await;
        let (mut dice, mut model) = (Dice(SEED), Model::default());
        let places: BTreeSet<String> = world.chats.iter().flat_map(|chat| chat.places.clone()).collect();
        for place in places.iter().filter(|place| !place.ends_with(":*")) {
            move_place(&stage, place, &mut model, &mut dice).await;
        }
        let places = places.into_iter().collect();
        let (wanted, typed, written, allowed, declined, moves) = Default::default();
        Self { world, stage, agents, model, dice, places, wanted, typed, written, allowed, declined, moves }
    }

    /// A frame of a kind, with a text that no other has.
    fn frame(&mut self, case: usize, op: &str, tenant: &str) -> Value {
        let Self { world, dice, written, .. } = self;
        let (chat, message) = target(world, written, op, dice);
        let action = json!({
            "op": op, "chat_id": chat, "content": format!("{tenant} {op} {case}"), "message_id": message,
            "metadata": world.metadata(dice, &chat),
        });
        let mut frame = outbound(&format!("q{case}"), &action);
        frame["platform"] = (*dice.pick(&["discord", "telegram", "relay", "", "", "", "webchat"])).into();
        frame["botId"] = (*dice.pick(&["", world.discord.bot_id(), "b9"])).into();
        frame
    }

    async fn step(&mut self, case: usize) {
        if self.dice.roll(15) == 0 {
            let place: &String = self.dice.pick(&self.places);
            move_place(&self.stage, place, &mut self.model, &mut self.dice).await;
            self.moves += 1;
        }
        let agent = self.dice.roll(self.agents.len());
        let op = *self.dice.pick(&["send", "send", "edit", "typing", "get_chat_info"]);
        let frame = self.frame(case, op, self.agents[agent].tenant);
        let goal = self.model.allows(&self.world, &frame, &self.agents[agent]).cloned();
        let result = asked(&mut self.agents[agent], &frame).await;
        let text = frame["action"]["content"].as_str().unwrap().to_owned();
        let Some(goal) = goal else {
            self.wanted.insert(text, Wanted::Nowhere);
            *self.declined.entry(op).or_default() += 1;
            return declined(&frame, &result);
        };
        self.wanted.insert(text, Wanted::In(goal.platform, goal.id.clone()));
        // One that was never seen may not be looked up any more.
        if goal.seen || result["success"] == true {
            *self.allowed.entry(op).or_default() += 1;
            self.done(op, &frame, &result, &goal);
        }
    }

    /// What was allowed has to succeed, as far as it is there.
    fn done(&mut self, op: &str, frame: &Value, result: &Value, goal: &Chat) {
        let message = frame["action"]["message_id"].as_str().unwrap().to_owned();
        let succeeded = result["success"] == true;
        match op {
            "send" if has_topic(goal, &frame["action"]["metadata"]["thread_id"]) => {
                assert!(succeeded, "{frame} {result}");
                self.written.push((goal.id.clone(), result["message_id"].as_str().unwrap().to_owned()));
            }
            "edit" if self.written.contains(&(goal.id.clone(), message)) => {
                assert!(succeeded, "{frame} {result}");
            }
            "typing" => *self.typed.entry((goal.platform.to_owned(), goal.id.clone())).or_default() += 1,
            "get_chat_info" => assert!(succeeded, "{frame} {result}"),
            _ => {}
        }
    }
}

/// A topic that is not there is for Telegram to refuse; General always is.
fn has_topic(chat: &Chat, thread: &Value) -> bool {
    let number = thread.to_string().trim_matches('"').parse::<i64>();
    chat.platform == "discord"
        || thread.is_null()
        || thread == ""
        || number.is_ok_and(|number| number == 1 || chat.topics.contains(&number))
}

fn declined(frame: &Value, result: &Value) {
    assert_eq!(result["success"], false, "{frame} {result}");
    let words = result["error"].as_str().unwrap_or_default();
    let tells = GATEWAYS.iter().any(|(tenant, _)| words.contains(tenant));
    // A provider's words would tell whether there is such a chat.
    assert!(!tells && !words.contains("cord") && !words.contains("gram"), "it reveals nothing: {words}");
}

#[tokio::test]
async fn no_request_names_a_foreign_chat_while_routes_move() {
    println!("seed {SEED:#x}");
    let mut trial = Trial::new().await;
    let (since, begun) = (trial.world.now().await, Instant::now());
    for case in 0..CASES {
        trial.step(case).await;
    }
    let (calls, took) = (trial.world.calls(since).await, begun.elapsed());
    let Trial { wanted, typed, allowed, declined, moves, .. } = trial;
    judge(&calls, &wanted, &typed);
    judge_look_ups(&calls, took);
    let writes = calls.iter().filter(|call| matches!(call.kind, Kind::Send | Kind::Edit)).count();
    println!("allowed {allowed:?}, declined {declined:?}, {moves} routes moved, {:.1} s", took.as_secs_f64());
    println!("{} requests, {writes} of them texts", calls.len());
    assert!(allowed.values().sum::<usize>() > 150 && declined.values().sum::<usize>() > 500 && moves > 60);
    assert!(writes > 80, "{writes}");
}
