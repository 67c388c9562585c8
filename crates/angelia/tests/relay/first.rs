//! Before its first gateway: what people write to a tenant waits for it, and nobody is left
//! in doubt.

use super::operator::done;
use super::world::{World, credentials};
use angelia_testkit::socket::{Next, Socket};
use serde_json::{Value, json};
use std::time::Duration;

/// Long enough for a frame that should not come.
const QUIET: Duration = Duration::from_millis(300);

impl World {
    /// A tenant without any gateway, a room of it and somebody there.
    async fn newcomer(&self) -> String {
        self.connector.command(&["tenant", "create", "new"]).await;
        self.route("new", "any", "porch").await;
        self.invite("porch", "zoe").await
    }

    /// Writes in that room; answers the id.
    async fn kept(&self, zoe: &str, text: &str) -> String {
        let answer = self.post_as(zoe, "porch", &json!({ "text": text, "client_id": text })).await;
        assert_eq!(answer["undelivered"], Value::Null, "{answer}");
        answer["message_id"].as_str().unwrap().to_owned()
    }

    async fn agent_of(&self, key: &str) -> Value {
        self.chat(key, "me", None).await.1["agent"].clone()
    }

    /// What a command shows to a person.
    fn shown(&self, args: &[&str]) -> String {
        done(&self.folder.path().join("angelia.toml"), args)
    }
}

#[tokio::test]
async fn what_is_written_before_the_first_gateway_waits_for_it() {
    let mut world = World::new().await;
    let zoe = world.newcomer().await;
    let awaited = json!({ "connected": false, "awaited": true });
    assert_eq!(world.agent_of(&zoe).await, awaited, "there is none yet, and that is said");
    let first = world.kept(&zoe, "one").await;
    world.kept(&zoe, "two").await;
    world.restart_with("").await;
    assert_eq!(world.agent_of(&zoe).await, awaited);
    world.kept(&zoe, "two").await;
    world.kept(&zoe, "three").await;
    assert_eq!((world.waiting().await, world.dropped("no_instance").await), (3, 0));

    let made = world.connector.command(&["gateway", "create", "--tenant", "new", "late"]).await;
    world.restart_with("").await;
    let mut agent = Socket::join(&world.connector.url(), &credentials(&made)).await;
    for text in ["one", "two", "three"] {
        assert_eq!(agent.take_text().await, text, "in order");
    }
    assert_eq!(world.agent_of(&zoe).await, json!({ "connected": true }));
    world.connector.command(&["gateway", "set", "late", "--display-name", "Iris"]).await;
    assert_eq!(world.agent_of(&zoe).await, json!({ "connected": true, "name": "Iris" }));
    assert_eq!(world.agent_of(&world.key).await.get("name"), None, "another room's agent has none");
    world.kept(&zoe, "four").await;
    assert_eq!(agent.take_text().await, "four");
    assert_eq!(agent.next(QUIET).await, Next::Silence, "and once");
    let said = agent.ask(json!({"op": "send", "chat_id": "web-porch", "content": "here", "reply_to": first}));
    assert_eq!(said.await["success"], true);
    let shown = world.connector.command(&["gateway", "show", "late"]).await;
    assert_eq!((&shown["instance"], &shown["default"]), (&json!("late"), &json!(true)), "{shown}");
    assert_eq!(world.join().await.next(QUIET).await, Next::Silence, "another tenant's agent hears nothing");

    world.connector.command(&["gateway", "revoke", "late"]).await;
    let gone = world.post_as(&zoe, "porch", &json!({ "text": "gone?" })).await;
    assert_eq!(gone["undelivered"], "no_instance", "nothing waits for who was taken away");
    assert_eq!(world.agent_of(&zoe).await, Value::Null);
}

#[tokio::test]
async fn an_operator_sees_what_waits_for_a_first_gateway() {
    let world = World::new().await;
    let zoe = world.newcomer().await;
    let nothing = world.connector.command(&["inbox", "list", "--tenant", "new"]).await;
    assert_eq!(nothing["inboxes"], json!([]), "nothing to tell yet");
    let id = world.kept(&zoe, "one").await;
    world.kept(&zoe, "two").await;
    let name = "(waits for its first gateway)";
    let inboxes = world.connector.command(&["inbox", "list", "--tenant", "new"]).await;
    assert_eq!(
        (&inboxes["inboxes"][0]["name"], &inboxes["inboxes"][0]["waiting"]),
        (&json!(name), &json!(2))
    );
    assert!(world.shown(&["inbox", "list"]).contains(name));
    assert!(world.shown(&["inbox", "show", "--tenant", "new"]).contains(name));
    let told = world.shown(&["explain", &id]);
    assert!(told.contains("for the first gateway of tenant new (entry b1)"), "{told}");
    assert!(told.contains("waits for its gateway"), "{told}");
    let status = world.connector.command(&["status"]).await;
    assert_eq!(status["awaiting_first"], json!([{ "tenant": "new", "waiting": 2, "lost": 0 }]), "{status}");
    let status = world.shown(&["status"]);
    assert!(status.contains("tenant new has no gateway yet: 2 messages wait for its first one"), "{status}");

    let purged = world.connector.command(&["inbox", "purge", "--tenant", "new", "b1"]).await;
    assert_eq!(purged["purged"], 1);
    let audit = world.connector.command(&["audit", "list", "--limit", "1"]).await["audit"][0].clone();
    assert_eq!((&audit["action"], &audit["target"]), (&json!("inbox.purge"), &json!(name)), "{audit}");
    let removed = world.connector.command(&["tenant", "remove", "new", "--confirm", "new"]).await;
    assert_eq!((&removed["waiting"], &removed["gateways"]), (&json!(1), &json!(0)), "{removed}");
    assert_eq!(world.waiting().await, 0);
    let log = world.connector.whole_log();
    assert!(
        !log.contains("ERROR") && !log.contains("WARN"),
        "nobody is to be woken, and that is no fault: {log}"
    );
}
