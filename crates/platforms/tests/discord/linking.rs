//! `/link`, which anybody can type anywhere.

use super::world::{SOON, World, texts};
use angelia_core::store::StreamStore;
use serde_json::json;

#[tokio::test]
async fn nobody_makes_the_bot_answer_at_will() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let channel = fake.channel(&guild.id, "general").await;
    let dm = fake.dm(&ann).await;
    fake.say_many(&channel, &ann, "/link c0de", 20).await;
    fake.say(&dm, &ann, "between").await;
    world.until_events(1).await;
    assert!(world.door.linked.lock().unwrap().is_empty(), "it was not meant for the bot");
    let asked = fake.requests(0).await.iter().filter(|request| request.path.contains("guilds/")).count();
    assert_eq!(asked, 0, "nobody was asked about");
    for _ in 0..10 {
        fake.mention(&channel, &ann, "/link c0de").await;
    }
    fake.say(&dm, &ann, "after").await;
    assert_eq!(texts(&world.until_events(2).await), ["between", "after"]);
    assert_eq!(world.door.linked.lock().unwrap().len(), 2, "the others were not tried");
    let all = |count: usize| count == 2;
    fake.until_messages(&channel, SOON, |messages| all(messages.iter().filter(|m| m.own).count())).await;
    assert_eq!(world.count("links_unanswered"), 8);
}

#[tokio::test]
async fn whoever_types_no_code_is_told_how() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let channel = fake.channel(&guild.id, "general").await;
    fake.mention(&channel, &ann, "/link").await;
    let told = fake.until_messages(&channel, SOON, |messages| messages.iter().any(|m| m.own)).await;
    assert!(told.iter().any(|m| m.own && m.content.contains("administrator: true")), "{told:?}");
    let path = format!("guilds/{}", guild.id);
    let asked = fake.requests(0).await.iter().filter(|request| request.path.contains(&path)).count();
    assert_eq!(asked, 0, "who ann is does not matter");
    fake.mention(&channel, &ann, "/link c0de").await;
    fake.until_messages(&channel, SOON, |messages| messages.iter().filter(|m| m.own).count() == 2).await;
    assert!(!world.door.linked.lock().unwrap()[1].administrator, "with a code it does");
}

#[tokio::test]
async fn a_shard_does_not_wait_for_an_answer() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    let (ann, bob) = (fake.user("ann").await, fake.user("bob").await);
    let guild = fake.guild("ops").await;
    let channel = fake.channel(&guild.id, "general").await;
    let dm = fake.dm(&bob).await;
    fake.fault(json!({"path": "messages$", "method": "POST", "how": "hang", "seconds": 600})).await;
    let at_once = tokio::time::Instant::now();
    fake.mention(&channel, &ann, "/link c0de").await;
    fake.say(&dm, &bob, "heard").await;
    world.until_events(1).await;
    assert!(at_once.elapsed().as_secs() < 5, "nobody waits for what hangs");
    let silent = json!({"path": format!("guilds/{}$", guild.id), "status": 503, "count": 5});
    fake.fault(silent).await;
    let other = fake.channel(&guild.id, "other").await;
    fake.mention(&other, &bob, "/link c0de").await;
    let told = fake.until_messages(&other, SOON, |messages| messages.iter().any(|message| message.own)).await;
    assert!(told.iter().any(|message| message.own && message.content.contains("try again")), "{told:?}");
    assert_eq!(world.door.linked.lock().unwrap().len(), 1, "the code was not tried");
}

#[tokio::test]
async fn a_code_does_not_go_into_quarantine() {
    let world = World::started(json!({})).await;
    let ann = world.fake.user("ann").await;
    for content in ["/link c0de", "hello"] {
        let lost = json!({"id": "5", "channel_id": "999", "author": {"id": ann}, "content": content});
        world.fake.order("emit", json!({"event": "MESSAGE_CREATE", "payload": lost})).await;
    }
    world.until("both are in quarantine", |world| world.count("quarantined") == 2).await;
    let mut kept = Vec::new();
    // The newest first; what seals here leaves it readable.
    for one in world.ports.records.quarantine(None, 10).await.unwrap() {
        let (_, sealed) = world.ports.records.quarantined(one.id).await.unwrap().unwrap();
        kept.push(String::from_utf8(sealed).unwrap());
    }
    assert!(kept[0].contains("hello") && !kept[1].contains("c0de"), "{kept:?}");
}
