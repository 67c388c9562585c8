//! What waits when a chat changes hands, and answers of a server with two bots.

use super::egress_world::{Agent, Chat, World, agents, stage_of};
use super::shared_stage::{Kind, Stage, discord_bot, discord_calls, hears, outbound};
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::socket::Next;
use futures_util::future::join_all;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How long a call that was allowed may be on its way on a busy machine.
const ON_ITS_WAY: f64 = 1.0;

#[allow(clippy::disallowed_methods, reason = "compared with the clock of another process")]
fn wall() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// From when to when a tenant owned the contested chats.
type Reign = (&'static str, f64, f64);

/// Two tenants write into the same chats faster than these take it, and the
/// chats change hands: what still waits then is not written any more.
#[tokio::test]
async fn what_waits_when_a_route_moves_is_not_written() {
    let world = World::new().await;
    let stage = stage_of(&world).await;
    world.be_seen().await;
    let mut agents = agents(&stage, &world).await;
    let group = |chat: &&Chat| chat.platform == "telegram" && chat.id.starts_with('-');
    let contested: Vec<Chat> = [
        world.chats.iter().find(|chat| chat.platform == "discord").unwrap(),
        world.chats.iter().find(|chat| chat.platform == "telegram").unwrap(),
        world.chats.iter().find(group).unwrap(),
    ]
    .map(Clone::clone)
    .to_vec();
    let since = world.now().await;
    let over = AtomicBool::new(false);
    let rivals =
        join_all(agents.iter_mut().skip(1).take(2).map(|agent| write_until(agent, &contested, &over)));
    let reigns = async {
        let mut reigns: Vec<Reign> = Vec::new();
        // Discord counts five messages in five seconds: the second comes into a
        // window that the first has used up, and gets one of its own.
        for (tenant, seconds) in [("acme", 2), ("bolt", 5), ("acme", 2), ("bolt", 5)] {
            let from = wall();
            for chat in &contested {
                stage.route(tenant, None, &chat.places[0]).await;
            }
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            for chat in &contested {
                stage.unroute(&chat.places[0]).await;
            }
            reigns.push((tenant, from, wall()));
        }
        // Fixed pause: what slipped through would come now, in the next window of Discord's.
        tokio::time::sleep(Duration::from_secs(6)).await;
        over.store(true, Ordering::Release);
        reigns
    };
    let (counts, reigns) = tokio::join!(rivals, reigns);
    let calls = world.calls(since).await;
    let mut written: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.kind == Kind::Send) {
        let tenant = call.text.as_deref().unwrap().split(' ').next().unwrap();
        let owned = reigns
            .iter()
            .any(|(owner, from, to)| *owner == tenant && (*from..*to + ON_ITS_WAY).contains(&call.at));
        assert!(owned, "{tenant} wrote after its time: {call:?} {reigns:?}");
        *written.entry((call.platform, tenant.to_owned())).or_default() += 1;
    }
    println!("written: {written:?}; asked and declined: {counts:?}");
    assert_eq!(written.len(), 4, "each wrote on each platform: {written:?}");
    assert!(counts.iter().all(|(asked, declined)| *declined > 20 && asked > declined), "{counts:?}");
}

/// Writes into every chat all the time; answers how much was asked and declined.
async fn write_until(agent: &mut Agent, chats: &[Chat], over: &AtomicBool) -> (usize, usize) {
    let (mut asked, mut declined, mut open) = (0, 0, 0);
    while !over.load(Ordering::Acquire) || open > 0 {
        let ends = over.load(Ordering::Acquire);
        for chat in chats {
            // A socket with too many open requests is not read; others must get their turn.
            if open < 48 && !ends {
                let content = format!("{} {asked}", agent.tenant);
                let send = json!({ "op": "send", "chat_id": chat.id, "content": content });
                agent.socket.send(&outbound("r", &send)).await;
                (asked, open) = (asked + 1, open + 1);
            }
        }
        let next = Instant::now() + Duration::from_millis(100);
        while let Next::Frame(frame) = agent.socket.next(next.saturating_duration_since(Instant::now())).await
        {
            if frame["type"] == "outbound_result" {
                open -= 1;
                declined += usize::from(frame["result"]["success"] == false);
            }
        }
    }
    (asked, declined)
}

/// An answer leaves through the bot whose chat it is, whatever the frame claims.
#[tokio::test]
async fn each_of_two_bots_answers_in_its_own_chats() {
    let folder = tempfile::tempdir().unwrap();
    let start = |name: &'static str| {
        let path = folder.path().join(name);
        async move { FakeDiscord::start(&path, &json!({ "bot_name": name })).await }
    };
    let bots = [start("dora").await, start("dirk").await];
    assert_ne!(bots[0].bot_id(), bots[1].bot_id());
    let config = |path: &Path| discord_bot(path, "dora", &bots[0]) + &discord_bot(path, "dirk", &bots[1]);
    let stage = Stage::new(config).await;
    let mut agent = stage.agent("acme", "a1", "discord", bots[0].bot_id()).await;
    let mut channels = Vec::new();
    for (index, bot) in bots.iter().enumerate() {
        hears(bot).await;
        let (guild, ann) = (bot.guild("Harbour").await.id, bot.user("ann").await);
        let channel = bot.channel(&guild, "quay").await;
        stage.route("acme", None, &format!("discord:{guild}")).await;
        bot.say(&channel, &ann, "hello").await;
        let heard = agent.frame().await;
        assert_eq!(heard["botId"], bots[index].bot_id(), "{heard}");
        agent.ack(&heard).await;
        assert_eq!(heard["event"]["source"]["chat_id"], channel, "{heard}");
        channels.push(channel);
    }
    let claims = ["", bots[0].bot_id(), bots[1].bot_id(), "77"];
    for claim in claims {
        for channel in &channels {
            let send = json!({ "op": "send", "chat_id": channel, "content": format!("for {channel}") });
            let mut frame = outbound("r", &send);
            frame["botId"] = claim.into();
            agent.send(&frame).await;
            let answer = agent.frame().await;
            assert_eq!(answer["result"]["success"], true, "{answer}");
        }
    }
    for (bot, channel) in bots.iter().zip(&channels) {
        let answers = bot.answers(channel).await;
        assert_eq!(answers.len(), claims.len());
        let calls = discord_calls(bot, 0).await;
        let named: BTreeSet<&str> = calls.iter().map(|call| call.chat.as_str()).collect();
        assert_eq!(named, BTreeSet::from([channel.as_str()]), "no bot is asked for the other's chat");
        assert!(
            calls.iter().all(|call| call.text.as_ref().is_none_or(|text| *text == format!("for {channel}")))
        );
    }
}
