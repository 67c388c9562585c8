//! Interactions as people see them, against the stand-in: over the gateway's
//! socket, and posted to the bot.

use super::world::{SOON, World, edit, send};
use angelia_core::clock;
use angelia_core::egress::Target;
use angelia_core::inbox::{EntryKind, Interaction, Seq};
use angelia_core::secret::Secret;
use angelia_core::store::{ActionId, NewEntry, PageSize, StreamStore, VaultStore};
use angelia_core::vault::{Capability, Way};
use angelia_platforms::discord::Config;
use angelia_platforms::{Answer, Delivery, Earlier, Outcome, Platform};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the vault of this world keeps.
async fn kept(world: &World) -> Vec<Capability> {
    world.ports.records.capabilities(world.instance, clock::wall()).await.unwrap()
}

/// An answer with a capability, as the connector gives one.
fn answer(kept: &Capability) -> Answer {
    let sealed = String::from_utf8(kept.sealed.clone()).unwrap();
    let credential = sealed.rsplit_once('|').unwrap().1;
    Answer { way: kept.way(), credential: Secret::new(credential), expires_at: kept.expires_at }
}

async fn say(world: &World, id: i64, kept: &Capability, answer: Answer, text: &str) -> Outcome {
    say_after(Earlier::Nothing, world, id, kept, answer, text).await
}

async fn say_after(
    earlier: Earlier,
    world: &World,
    id: i64,
    kept: &Capability,
    answer: Answer,
    text: &str,
) -> Outcome {
    let progress = Arc::new(super::world::Hand::default());
    let action = send(&kept.chat_id, text, Some(&kept.interaction_id));
    let target = Target::chat(&kept.chat_id);
    let delivery = Delivery {
        id: ActionId(id),
        received_at: clock::wall(),
        target,
        action,
        answer: Some(answer),
        file: None,
        earlier,
        progress,
    };
    world.bot().deliver(delivery).await
}

async fn entries(world: &World) -> Vec<Interaction> {
    let mut entries =
        world.ports.log.load(world.instance, Seq(0), &[], PageSize::of(100)).await.unwrap().page.items;
    entries.extend(world.ports.log.load_ahead(world.instance, PageSize::of(100)).await.unwrap());
    entries.retain(|entry| entry.kind == EntryKind::Interaction);
    entries.sort_by_key(|entry| entry.seq);
    entries.iter().map(|entry| Interaction::read(&entry.body).unwrap()).collect()
}

#[tokio::test]
async fn over_the_socket_a_command_is_deferred_and_answered_in_its_place() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    world.push_commands().await;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let channel = fake.channel(&guild.id, "general").await;
    let asked = fake.slash(&channel, &ann, "ask", json!({"question": "why?"})).await;
    assert_eq!(asked.via, "gateway");
    let seen = fake.until_interaction(&asked.id, SOON, |it| it.state != "waiting").await;
    assert_eq!((seen.state.as_str(), &seen.answer), ("deferred", &json!({"type": 5})), "{seen:?}");
    let stop = fake.slash(&channel, &ann, "stop", json!({})).await;
    fake.until_interaction(&stop.id, SOON, |it| it.state == "deferred").await;
    let waiting = entries(&world).await;
    let said: Vec<&str> = waiting.iter().map(|it| it.event.text.as_str()).collect();
    assert_eq!(said, ["why?", "/stop"]);
    assert!(waiting.iter().all(|it| !it.request.body.contains(&asked.token)));
    let kept = kept(&world).await;
    let long = "because ".repeat(400);
    let sent = say(&world, 1, &kept[0], answer(&kept[0]), &long).await;
    let seen = fake.interaction(&asked.id).await;
    assert_eq!(seen.state, "answered");
    assert!(matches!(&sent, Outcome::Sent { message_id, .. } if Some(message_id) == seen.message.as_ref()));
    assert_eq!(seen.followups.len(), 0, "the rest is a message, which Discord knows by its nonce");
    let said = fake.answers(&channel).await;
    assert_eq!(said.iter().filter(|it| !it.loading).count(), 2, "{said:?}");
    let further = Answer { way: Way::Further, ..answer(&kept[0]) };
    say(&world, 2, &kept[0], further, "and more").await;
    let seen = fake.interaction(&asked.id).await;
    assert_eq!(seen.followups.last().unwrap().content.as_deref(), Some("and more"));
    let message_id = seen.message.unwrap();
    world.deliver(3, Target::chat(&channel), edit(&channel, &message_id, "in short")).await;
    let seen = fake.interaction(&asked.id).await;
    assert_eq!(seen.content.as_deref(), Some("in short"), "later it is a message like any other");
    world.bot().tell_waiting(&answer(&kept[1]), "nothing came").await.unwrap();
    assert_eq!(fake.interaction(&stop.id).await.content.as_deref(), Some("nothing came"));
    assert_eq!(world.count("failed_callbacks"), 0);
}

#[tokio::test]
async fn a_long_answer_whose_replies_are_lost_is_said_once() {
    let world = World::started(json!({})).await;
    let fake = &world.fake;
    world.push_commands().await;
    let (ann, guild) = (fake.user("ann").await, fake.guild("ops").await);
    let channel = fake.channel(&guild.id, "general").await;
    let asked = fake.slash(&channel, &ann, "ask", json!({"question": "why?"})).await;
    fake.until_interaction(&asked.id, SOON, |it| it.state == "deferred").await;
    let kept = kept(&world).await.remove(0);
    let long = "because ".repeat(300);
    fake.fault(json!({"method": "PATCH", "path": "@original$", "perform": true, "how": "drop"})).await;
    let lost = say(&world, 1, &kept, answer(&kept), &long).await;
    assert!(matches!(lost, Outcome::Unknown { .. }), "{lost:?}");
    let anywhere = "/(messages|webhooks/[^@]*)$";
    fake.fault(json!({"method": "POST", "path": anywhere, "perform": true, "how": "drop"})).await;
    for _ in 0..2 {
        // The courier gives the whole again for as long as it is not known to be there.
        let sent = say_after(Earlier::Perhaps, &world, 1, &kept, answer(&kept), &long).await;
        assert!(matches!(sent, Outcome::Sent { .. }), "{sent:?}");
    }
    let said: Vec<_> = fake.answers(&channel).await.into_iter().map(|it| it.content.len()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(fake.interaction(&asked.id).await.followups.is_empty());
}

#[tokio::test]
async fn over_the_socket_whoever_reaches_nobody_is_told() {
    let mut world = World::started(json!({})).await;
    world.push_commands().await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    *world.door.place.lock().unwrap() = "discord:1".into();
    let refused = world.fake.slash(&channel, &ann, "new", json!({})).await;
    let seen = world.fake.until_interaction(&refused.id, SOON, |it| it.state != "waiting").await;
    assert!(seen.ephemeral && seen.content.unwrap().starts_with("Nobody answers here"));
    let spoilt = json!({"channel": channel, "user": ann, "name": "new", "drop": ["member"]});
    let spoilt = world.fake.interact("slash", spoilt).await;
    let seen = world.fake.until_interaction(&spoilt.id, SOON, |it| it.state != "waiting").await;
    assert!(seen.ephemeral, "{seen:?}");
    *world.door.place.lock().unwrap() = "discord:*".into();
    // What was committed with the cursor does not come again.
    world.stop().await;
    world.start();
    let new = world.fake.slash(&channel, &ann, "new", json!({})).await;
    world.fake.until_interaction(&new.id, SOON, |it| it.state == "deferred").await;
    let ids: Vec<_> = entries(&world).await.into_iter().map(|it| it.event.message_id.unwrap()).collect();
    assert_eq!(ids, [new.id]);
    assert_eq!(world.ports.records.quarantine(None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn over_the_socket_a_store_that_hangs_is_not_waited_for() {
    let mut world = World::started(json!({})).await;
    world.push_commands().await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    // So that nothing of the guild is left to be committed.
    let first = world.fake.slash(&channel, &ann, "new", json!({})).await;
    world.fake.until_interaction(&first.id, SOON, |it| it.state == "deferred").await;
    world.gate.shut(true);
    let (ports, entry) = (world.ports.clone(), other_entry(&world));
    let other = tokio::spawn(async move { ports.log.append(entry).await });
    world.until("the store hangs", |world| world.gate.holds.load(Ordering::SeqCst)).await;
    let lost = world.fake.slash(&channel, &ann, "help", json!({})).await;
    let seen = world.fake.until_interaction(&lost.id, SOON, |it| it.state != "waiting").await;
    assert!(seen.ephemeral && seen.content.unwrap().contains("try again"));
    world.gate.shut(false);
    other.await.unwrap().unwrap();
    world.until("it was given up", |world| world.count("given_up") == 1).await;
    world.stop().await;
    world.start();
    let next = world.fake.slash(&channel, &ann, "status", json!({})).await;
    world.fake.until_interaction(&next.id, SOON, |it| it.state == "deferred").await;
    let ids: Vec<_> = entries(&world).await.into_iter().map(|it| it.event.message_id.unwrap()).collect();
    assert_eq!(ids, [first.id, next.id], "nobody gets it after all, and it was read past");
}

fn other_entry(world: &World) -> NewEntry {
    NewEntry {
        tenant: "acme".into(),
        instance: world.instance,
        kind: EntryKind::Message,
        platform: "discord".into(),
        bot: world.fake.bot_id().into(),
        chat_id: "1".into(),
        message_id: "1".into(),
        session_key: "agent:main:discord:dm:1".into(),
        body: "{}".into(),
        ahead: false,
        while_busy: None,
        when_full: angelia_core::inbox::WhenFull::MakeRoom,
        received_at: clock::wall(),
    }
}

#[tokio::test]
async fn what_is_posted_is_taken_once_and_answered() {
    let mut world = World::new(json!({})).await;
    let config = Config { public_key: Some(world.fake.public_key().to_owned()), ..world.config() };
    world.start_with(config);
    world.until("the bot hears", |world| world.count("identifies") == 1).await;
    let url = world.serve_webhooks().await;
    world.fake.set_interactions_url(Some(&format!("{url}/webhooks/discord/main"))).await;
    assert_eq!(world.fake.ping().await["accepted"], true);
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    let form = world.fake.submit(&dm, &ann, "poll", json!({"name": "Ann"})).await;
    assert_eq!((form.state.as_str(), form.status), ("deferred", Some(200)), "{form:?}");
    let again = world.fake.repost(&form.id, json!({})).await;
    assert_eq!(again["status"], 200);
    for tampered in [json!({"tamper": "body"}), json!({"tamper": "signature"}), json!({"age": 400})] {
        assert_eq!(world.fake.repost(&form.id, tampered.clone()).await["status"], 401, "{tampered}");
    }
    let waiting = entries(&world).await;
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (waiting[0].event.text.as_str(), waiting[0].event.source.chat_type.as_str()),
        ("name=Ann", "dm")
    );
    let kept = kept(&world).await;
    say(&world, 1, &kept[0], answer(&kept[0]), "thanks").await;
    let seen = world.fake.interaction(&form.id).await;
    assert_eq!((seen.state.as_str(), seen.content.as_deref()), ("answered", Some("thanks")));
}
