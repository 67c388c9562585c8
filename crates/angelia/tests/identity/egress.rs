//! A thousand requests to write somewhere, while routes move: the web chat
//! must have seen no foreign write. The oracle is a list of who owns which
//! room, kept by the test.

use super::fixture::Fixture;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CASES: usize = 1_000;
const ROOMS: usize = 8;
const SEED: u64 = 0x5eed_0c0f_fee5;

/// Small and repeatable; the seed is in the test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

struct Agent {
    tenant: &'static str,
    gateway: &'static str,
    socket: Socket,
}

/// Who owns a room: a tenant, and one of its gateways if the route names one.
type Owner = Option<(&'static str, Option<&'static str>)>;

fn may(owner: Owner, agent: &Agent) -> bool {
    match owner {
        Some((tenant, Some(gateway))) => agent.tenant == tenant && agent.gateway == gateway,
        Some((tenant, None)) => agent.tenant == tenant,
        None => false,
    }
}

async fn agent(fixture: &Fixture, tenant: &'static str, gateway: &'static str) -> Agent {
    let made = fixture.run(&["gateway", "create", "--tenant", tenant, gateway]).await;
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let credentials = Credentials { gateway_id: text("gateway_id"), secret: text("secret") };
    let socket = Socket::join(&fixture.connector.url(), &credentials).await;
    Agent { tenant, gateway, socket }
}

/// Gives a room to somebody else, or to nobody.
async fn move_room(fixture: &Fixture, room: usize, owners: &mut [Owner], dice: &mut Dice) {
    let place = format!("webchat:r{room}");
    if owners[room].is_some() {
        fixture.run(&["route", "remove", &place]).await;
    }
    let choices: [Owner; 6] = [
        None,
        Some(("acme", None)),
        Some(("acme", Some("a1"))),
        Some(("acme", Some("a2"))),
        Some(("evil", None)),
        Some(("evil", Some("b1"))),
    ];
    owners[room] = *dice.pick(&choices);
    if let Some((tenant, gateway)) = owners[room] {
        let mut args = vec!["route", "add", "--tenant", tenant, "--allow", "any", "--free", &place];
        args.extend(gateway.iter().flat_map(|id| ["--gateway", *id]));
        fixture.run(&args).await;
    }
}

/// Metadata as an honest agent sends it, and as a lying one does.
fn metadata(dice: &mut Dice, chat: &str) -> (Value, bool) {
    let foreign = format!("web-r{}", dice.roll(ROOMS));
    match dice.roll(6) {
        0 => (json!({ "notify": true }), true),
        1 => (json!({ "scope_id": foreign, "guild_id": foreign, "user_id": "42" }), true),
        2 => (json!({ "thread_id": foreign }), foreign == chat),
        3 => (json!({ "thread_id": "" }), true),
        4 => (json!({ "profile": "evil", "recipient_user_id": foreign, "tenant": "acme" }), true),
        _ => (Value::Null, true),
    }
}

#[tokio::test]
async fn a_thousand_writes_while_routes_move() {
    println!("seed {SEED:#x}");
    let fixture = Fixture::new().await;
    fixture.run(&["route", "remove", "webchat:*"]).await;
    let mut keys = Vec::new();
    for room in 0..ROOMS {
        let invited =
            fixture.run(&["webchat", "invite", "--room", &format!("r{room}"), "--user", "ann"]).await;
        keys.push(invited["key"].as_str().unwrap().to_owned());
    }
    let mut agents = [
        agent(&fixture, "acme", "a1").await,
        agent(&fixture, "acme", "a2").await,
        agent(&fixture, "evil", "b1").await,
    ];
    let mut dice = Dice(SEED);
    let mut owners: Vec<Owner> = vec![None; ROOMS];
    for room in 0..ROOMS {
        move_room(&fixture, room, &mut owners, &mut dice).await;
    }
    // What each room must show in the end: message id to text.
    let mut expected: Vec<BTreeMap<String, String>> = vec![BTreeMap::new(); ROOMS];
    let (mut allowed, mut declined, mut moves) = (0, 0, 0);
    for case in 0..CASES {
        if dice.roll(12) == 0 {
            let room = dice.roll(ROOMS);
            move_room(&fixture, room, &mut owners, &mut dice).await;
            moves += 1;
        }
        let who = dice.roll(agents.len());
        let room = dice.roll(ROOMS + 1);
        let chat = match room {
            ROOMS => (*dice.pick(&["", "web-", "@ann", "12345", "web-nowhere", "WEB-r1", "r1"])).to_owned(),
            room => format!("web-r{room}"),
        };
        let (metadata, honest) = metadata(&mut dice, &chat);
        let text = format!("case {case}");
        let op = *dice.pick(&["send", "send", "edit", "typing", "get_chat_info"]);
        // A question about a chat has no metadata: the chat is all it names.
        let honest = honest || op == "get_chat_info";
        let may = room < ROOMS && honest && may(owners[room], &agents[who]);
        let target = match (op, expected.get(dice.roll(ROOMS))) {
            ("edit", Some(lines)) => lines.keys().next().cloned().unwrap_or_else(|| "wa1".into()),
            _ => String::new(),
        };
        let action = json!({
            "op": op, "chat_id": chat, "content": text, "message_id": target, "metadata": metadata,
        });
        let frame = json!({
            "type": "outbound", "requestId": format!("q{case}"), "action": action,
            "platform": dice.pick(&["webchat", "discord", "relay", "telegram"]), "botId": dice.pick(&["", "webchat", "b9"]),
        });
        agents[who].socket.send(&frame).await;
        let answer = agents[who].socket.frame().await;
        assert_eq!(answer["requestId"], format!("q{case}"), "{answer}");
        let result = &answer["result"];
        if !may {
            let words = result["error"].as_str().unwrap_or_default();
            assert_eq!(result["success"], false, "case {case}: {frame} {result}");
            assert!(!words.contains("r1") && !words.contains("acme"), "it reveals nothing: {words}");
            declined += 1;
            continue;
        }
        allowed += 1;
        match op {
            "send" => {
                assert_eq!(result["success"], true, "case {case}: {frame} {result}");
                let id = result["message_id"].as_str().unwrap().to_owned();
                expected[room].insert(id, text);
            }
            "edit" => {
                let there = expected[room].contains_key(&target);
                assert_eq!(result["success"], there, "case {case}: only in its own room: {frame} {result}");
                if there {
                    expected[room].insert(target, text);
                }
            }
            _ => assert_eq!(result["success"], true, "case {case}: {frame} {result}"),
        }
    }
    println!("{allowed} allowed, {declined} declined, {moves} routes moved");
    assert!(allowed > 100 && declined > 300 && moves > 40);
    for (room, key) in keys.iter().enumerate() {
        let url = format!("{}/chat/api/rooms/r{room}/messages", fixture.connector.url());
        let read = fixture.http.get(url).bearer_auth(key).send().await.unwrap();
        let lines: Value = read.json().await.unwrap();
        let seen: BTreeSet<(String, String)> = lines["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| (line["message_id"].as_str().unwrap().into(), line["text"].as_str().unwrap().into()))
            .collect();
        assert!(seen.len() < 200, "one page shows it all");
        assert_eq!(seen, expected[room].clone().into_iter().collect(), "room r{room}");
    }
}
