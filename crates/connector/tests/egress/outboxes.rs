//! Several servers over one store: a bot's calls are made by the one that holds the bot, once,
//! and answered where the agent is.

use super::platform::{Knows, Scripted, sent};
use super::world::{Node, QUICK, World, edit, error, send, until};
use angelia_connector::{Notices, Subscriber};
use angelia_core::clock;
use angelia_core::cluster::Nodes as _;
use angelia_core::directory::BotKey;
use angelia_core::egress::{Dedupe, Owner};
use angelia_core::inbox::Quota;
use angelia_core::lease;
use angelia_core::ports::{Bus, Control, Hint, Leases as _, Ledger, Listener, NewAction, Term};
use angelia_core::store::IdentityStore;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A bus that may lose what nodes say to each other.
#[derive(Default)]
struct Lossy {
    bus: LocalBus,
    loses: AtomicBool,
}

impl Bus for Lossy {
    fn publish(&self, hint: Hint) {
        let said = matches!(hint, Hint::Control(Control::Done { .. } | Control::Waiting { .. }));
        if !(said && self.loses.load(Ordering::Relaxed)) {
            self.bus.publish(hint);
        }
    }

    fn subscribe(&self, listener: Listener) {
        self.bus.subscribe(listener);
    }

    fn is_connected(&self) -> bool {
        !self.loses.load(Ordering::Relaxed)
    }
}

/// A store that servers share, and the bus between them.
struct Cluster {
    folder: TempDir,
    store: Arc<Sqlite>,
    bus: Arc<Lossy>,
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bus = Arc::<Lossy>::default();
        let store = Arc::new(Sqlite::open(folder.path(), Quota::default(), bus.clone()).unwrap());
        Self { folder, store, bus }
    }

    async fn node(&self, name: &'static str, platform: &Arc<Scripted>) -> World {
        self.slow(name, platform, Duration::ZERO).await
    }

    /// A node that is told so late what the ledger accepted.
    async fn slow(&self, name: &'static str, platform: &Arc<Scripted>, told_after: Duration) -> World {
        let Self { folder, store, bus } = self;
        join(folder.path().to_owned(), store.clone(), bus.clone(), name, platform.clone(), told_after).await
    }

    /// A node that can be killed: with its runtime all of it stands still at once.
    fn mortal(&self, name: &'static str, platform: &Arc<Scripted>) -> (Runtime, World) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let (folder, store, bus) = (self.folder.path().to_owned(), self.store.clone(), self.bus.clone());
        let platform = platform.clone();
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        runtime
            .spawn(async move { tell.send(join(folder, store, bus, name, platform, Duration::ZERO).await) });
        (runtime, told.recv().unwrap())
    }
}

async fn join(
    folder: PathBuf,
    store: Arc<Sqlite>,
    bus: Arc<Lossy>,
    name: &'static str,
    platform: Arc<Scripted>,
    told_after: Duration,
) -> World {
    let bus: Arc<dyn Bus> = bus;
    let subscriber = Subscriber::on(&bus);
    let (timings, notices, drain) = (QUICK, Notices::default(), Duration::ZERO);
    let node = Node { name, shared: true, timings, notices, drain, told_after };
    World::over(&folder, &store, &subscriber, platform, node).await
}

fn two() -> (Arc<Scripted>, Arc<Scripted>) {
    (Scripted::new(Dedupe::No), Scripted::new(Dedupe::No))
}

fn says(answer: &Value) -> &str {
    assert_eq!(answer["success"], true, "{answer}");
    answer["message_id"].as_str().unwrap()
}

#[tokio::test]
async fn what_an_agent_asks_for_here_is_done_by_the_node_with_the_bot() {
    let (cluster, (there, here)) = (Cluster::new(), two());
    let holder = cluster.node("a", &there).await;
    let world = cluster.node("b", &here).await;
    let mut agent = world.agent().await;
    let message = says(&agent.asked(send("x-lab", "hello")).await).to_owned();
    assert_eq!(says(&agent.asked(edit("x-lab", &message, "hello again")).await), message);
    let info = json!({"op": "get_chat_info", "chat_id": "x-lab", "metadata": {}});
    let info = agent.asked(info).await;
    assert_eq!((&info["success"], &info["chat_info"]["name"]), (&json!(true), &json!("a chat")), "{info}");
    let typing = json!({"op": "typing", "chat_id": "x-den", "metadata": {}});
    assert_eq!(agent.asked(typing).await["success"], true);
    let mark =
        json!({"op": "react", "chat_id": "x-lab", "message_id": message, "emoji": "👀", "metadata": {}});
    assert_eq!(agent.asked(mark).await["success"], true);
    let shown = || there.texts().iter().filter(|text| text.starts_with('(')).count();
    until(|| shown() == 3, || format!("{:?} were called", there.texts())).await;
    let said: Vec<String> = there.texts().into_iter().filter(|text| !text.starts_with('(')).collect();
    assert_eq!(said, ["hello", "hello again"]);
    assert!(here.calls().is_empty(), "the bot is not this node's");
    holder.until_states(&["sent", "sent"]).await;
    let refused = agent.asked(send("y-lab", "psst")).await;
    assert_eq!(refused["code"], "egress_declined", "{refused}");
}

#[tokio::test]
async fn a_chat_keeps_its_order_and_each_edit_gives_way_to_a_later_one() {
    let (cluster, (there, here)) = (Cluster::new(), two());
    let _holder = cluster.node("a", &there).await;
    let world = cluster.node("b", &here).await;
    let mut agent = world.agent().await;
    let held = there.hold();
    agent.ask("0", send("x-lab", "text 0")).await;
    until(|| there.texts() == ["text 0"], || format!("{:?} were called", there.texts())).await;
    let texts: Vec<String> = (0..20).map(|n| format!("text {n}")).collect();
    for (n, text) in texts.iter().enumerate().skip(1) {
        agent.ask(&n.to_string(), send("x-lab", text)).await;
    }
    for n in 0..3 {
        agent.ask(&format!("e{n}"), edit("x-lab", "m", &format!("edit {n}"))).await;
    }
    // Whatever waits was accepted, and the node with the bot has it in hand.
    until(|| world.ledger().len() == 23, || format!("{:?} are in the ledger", world.ledger().len())).await;
    // Fixed pause: nobody tells when the node with the bot has read them.
    tokio::time::sleep(Duration::from_millis(500)).await;
    held.send(sent("m0")).unwrap();
    for n in 0..20 {
        says(&agent.answer(&n.to_string()).await);
    }
    for n in 0..3 {
        assert_eq!(says(&agent.answer(&format!("e{n}")).await), "m");
    }
    let expected: Vec<String> = texts.into_iter().chain(["edit 2".to_owned()]).collect();
    assert_eq!(there.texts(), expected);
}

#[tokio::test]
async fn what_nobody_is_told_of_is_looked_for() {
    let (cluster, (there, here)) = (Cluster::new(), two());
    let _holder = cluster.node("a", &there).await;
    let world = cluster.node("b", &here).await;
    let mut agent = world.agent().await;
    cluster.bus.loses.store(true, Ordering::Relaxed);
    for text in ["one", "two"] {
        says(&agent.asked(send("x-lab", text)).await);
    }
    there.give([super::platform::refused()]);
    assert_eq!(error(&agent.asked(send("x-lab", "three")).await), "no such chat");
    assert_eq!(there.texts(), ["one", "two", "three"]);
}

#[tokio::test]
async fn a_bot_that_is_handed_over_says_everything_once() {
    let (cluster, (there, here)) = (Cluster::new(), two());
    let holder = cluster.node("a", &there).await;
    let world = cluster.node("b", &here).await;
    let credentials = holder.gateway("acme", "other").await;
    let (mut agent, mut on_holder) = (world.agent().await, holder.join(&credentials).await);
    let held = there.hold();
    agent.ask("1", send("x-lab", "one")).await;
    until(|| there.texts() == ["one"], || format!("{:?} were called", there.texts())).await;
    agent.ask("2", send("x-lab", "two")).await;
    let also_held = there.hold();
    on_holder.ask("3", send("x-den", "three")).await;
    until(|| there.texts().len() == 2, || format!("{:?} were called", there.texts())).await;
    on_holder.ask("4", send("x-den", "four")).await;
    until(|| world.ledger().len() == 4, || format!("{:?}", world.ledger())).await;
    let server = holder.server.clone();
    let leaving = tokio::spawn(async move { server.finish_turns().await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    held.send(sent("m1")).unwrap();
    also_held.send(sent("m3")).unwrap();
    assert_eq!(says(&agent.answer("1").await), "m1");
    says(&agent.answer("2").await);
    leaving.await.unwrap();
    assert_eq!(there.texts(), ["one", "three"], "nothing more was begun");
    // Nobody here is told when the next one has said what the holder's own agent asked for.
    until(|| here.texts().len() == 2, || format!("{:?} were called", here.texts())).await;
    let mut by_the_next = here.texts();
    by_the_next.sort();
    assert_eq!(by_the_next, ["four", "two"]);
    says(&agent.asked(send("x-lab", "five")).await);
    world.until_states(&["sent"; 5]).await;
}

#[tokio::test]
async fn what_a_node_that_died_had_in_hand_is_done_once_by_the_next() {
    let (cluster, (there, here)) = (Cluster::new(), two());
    let (runtime, _holder) = cluster.mortal("a", &there);
    let world = cluster.node("b", &here).await;
    let mut agent = world.agent().await;
    says(&agent.asked(send("x-lab", "zero")).await);
    let _held = there.hold();
    agent.ask("1", send("x-lab", "one")).await;
    until(|| there.texts() == ["zero", "one"], || format!("{:?} were called", there.texts())).await;
    agent.ask("2", send("x-lab", "two")).await;
    until(|| world.ledger().len() == 3, || format!("{:?}", world.ledger())).await;
    runtime.shutdown_background();
    agent.ask("3", send("x-lab", "three")).await;
    let perhaps = agent.answer("1").await;
    assert!(error(&perhaps).starts_with("timed out"), "{perhaps}");
    says(&agent.answer("2").await);
    says(&agent.answer("3").await);
    let said: Vec<String> = here.texts().into_iter().filter(|text| text.len() < 10).collect();
    assert_eq!(said, ["two", "three"], "and perhaps a word on the first");
    assert_eq!(there.texts(), ["zero", "one"]);
}

#[tokio::test]
async fn where_a_chat_is_the_node_with_the_bot_finds_out() {
    let (cluster, (there, here)) = (Cluster::new(), two());
    let _holder = cluster.node("a", &there).await;
    let world = cluster.node("b", &here).await;
    let mut agent = world.agent().await;
    there.elsewhere.lock().unwrap().insert("den".into(), Knows::Provider);
    here.elsewhere.lock().unwrap().insert("den".into(), Knows::Nobody);
    let ask = agent.asked(send("x-den", "psst")).await;
    assert_eq!(ask["code"], "egress_declined", "the store of this node does not know it: {ask}");
    assert_eq!(*there.looked_up.lock().unwrap(), ["x-den"]);
    assert!(here.looked_up.lock().unwrap().is_empty());
    assert!(here.recalled.lock().unwrap().contains(&"x-den".to_owned()));
}

#[tokio::test]
async fn what_a_node_left_in_the_web_chat_another_one_says() {
    let (cluster, (there, _)) = (Cluster::new(), two());
    let world = cluster.node("a", &there).await;
    world.gateway("acme", "gw").await;
    world.admin("routes", json!({"tenant": "acme", "place": "webchat:lab", "allow": ["any"]})).await;
    let instance = cluster.store.gateways().await.unwrap()[0].instance;
    let gone = cluster.store.new_owner().await.unwrap();
    let action = json!({"op": "send", "chat_id": "web-lab", "content": "hello", "metadata": {}});
    let left = NewAction {
        tenant: "acme".into(),
        instance,
        gateway_id: Some("gw".into()),
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-lab".into(),
        thread_id: None,
        op: "send".into(),
        edits: None,
        reply_to: None,
        body: action.to_string().into_bytes(),
        answering: None,
        received_at: clock::wall(),
    };
    cluster.store.accept(gone, vec![left]).await.unwrap();
    world.until_states(&["sent"]).await;
    let refused = cluster.store.accept(gone, Vec::new()).await;
    assert!(refused.is_err(), "it is replaced: {refused:?}");
}

/// It stood still for too long, and others took up what it had.
#[tokio::test]
async fn a_node_that_was_believed_gone_goes_on_as_somebody_else() {
    let (cluster, (there, _)) = (Cluster::new(), two());
    let world = cluster.node("a", &there).await;
    world.admin("routes", json!({"tenant": "acme", "place": "webchat:lab", "allow": ["any"]})).await;
    let mut agent = world.agent().await;
    says(&agent.asked(send("web-lab", "one")).await);
    let (_, nodes) = cluster.store.nodes().await.unwrap();
    let heir = cluster.store.new_owner().await.unwrap();
    cluster.store.adopt(heir, Some(Owner(nodes[0].owner))).await.unwrap();
    says(&agent.asked(send("web-lab", "two")).await);
    says(&agent.asked(send("web-lab", "three")).await);
    world.until_states(&["sent"; 3]).await;
}

/// Whoever held the bot before makes no call by it, and what waits there goes to the next.
#[tokio::test]
async fn a_node_whose_outbox_another_took_over_hands_everything_on() {
    let (cluster, (there, here)) = (Cluster::new(), two());
    let world = cluster.node("a", &there).await;
    let mut agent = world.agent().await;
    says(&agent.asked(send("x-lab", "one")).await);
    let lease = cluster.store.holder(&lease::of_bot(&BotKey::new("fake", "bot"))).await.unwrap().unwrap();
    // The lease goes to another node while this one believes that it has it.
    assert!(cluster.store.release(&lease).await.unwrap());
    let next = cluster.store.acquire(&lease.name, "b", Term::For(Duration::from_secs(1))).await.unwrap();
    let bot = BotKey::new("fake", "bot");
    let owner = cluster.store.take_over(&bot, next.unwrap().token).await.unwrap();
    agent.ask("2", send("x-lab", "two")).await;
    until(|| world.ledger().len() == 2, || format!("{:?}", world.ledger())).await;
    // The other one is gone, and this one has it again.
    says(&agent.answer("2").await);
    assert_eq!(there.texts(), ["one", "two"]);
    let refused = cluster.store.accept(owner, Vec::new()).await;
    assert!(refused.is_err() && here.calls().is_empty(), "{refused:?}");
}

/// What is accepted here is not taken for what others accepted, however the two mingle.
#[tokio::test]
async fn what_both_nodes_accept_at_once_is_said_once() {
    // A provider that recognises what it was given is called without a note.
    let (there, here) = (Scripted::new(Dedupe::Yes), Scripted::new(Dedupe::Yes));
    let cluster = Cluster::new();
    let holder = cluster.slow("a", &there, Duration::from_millis(20)).await;
    let world = cluster.node("b", &here).await;
    let credentials = holder.gateway("acme", "other").await;
    let (mut agent, mut on_holder) = (world.agent().await, holder.join(&credentials).await);
    for round in 0..5 {
        for n in 0..20 {
            let id = (round * 20 + n).to_string();
            agent.ask(&id, send(&format!("x-{}", n % 3), &format!("far {id}"))).await;
            on_holder.ask(&id, send(&format!("x-{}", n % 3), &format!("near {id}"))).await;
        }
        for n in 0..20 {
            let id = (round * 20 + n).to_string();
            says(&agent.answer(&id).await);
            says(&on_holder.answer(&id).await);
        }
    }
    let mut texts = there.texts();
    texts.sort();
    let all = texts.len();
    texts.dedup();
    assert_eq!((all, texts.len(), here.calls().len()), (200, 200, 0));
}
