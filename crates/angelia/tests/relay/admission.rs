//! Who is heard, by whom, and what becomes of the rest.

use super::world::{World, credentials};
use angelia_contract::token;
use angelia_testkit::socket::{Next, Socket, now};
use serde_json::{Value, json};
use std::time::Duration;

/// Long enough for a frame that should not come.
const QUIET: Duration = Duration::from_millis(300);

impl World {
    /// Invites somebody; answers their key.
    pub(crate) async fn invite(&self, room: &str, user: &str) -> String {
        let made = self.connector.command(&["webchat", "invite", "--room", room, "--user", user]).await;
        made["key"].as_str().unwrap_or_else(|| panic!("no key in {made}")).to_owned()
    }

    /// Makes a route for a room that is not open to all chatter.
    pub(crate) async fn route(&self, tenant: &str, allow: &str, room: &str) {
        let place = format!("webchat:{room}");
        self.connector.command(&["route", "add", "--tenant", tenant, "--allow", allow, &place]).await;
    }

    /// Asks the admin API; answers the status as well.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let read = |name: &str| std::fs::read_to_string(self.folder.path().join("data").join(name)).unwrap();
        let url = format!("{}{path}", read("admin-url").trim());
        let request = self.http.request(method.parse().unwrap(), url).bearer_auth(read("admin-token").trim());
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn dropped(&self, reason: &str) -> u64 {
        let (_, text) = self.admin("GET", "/metrics", None).await;
        let name = format!("angelia_dropped_total{{reason=\"{reason}\"}} ");
        let line = text.as_str().unwrap().lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("{reason} is not counted")).parse().unwrap()
    }

    /// Makes a tenant whose only gateway was revoked, a room of it and somebody there.
    async fn bereft(&self) -> String {
        self.connector.gateway("bereft", "gone").await;
        self.connector.command(&["gateway", "revoke", "gone"]).await;
        self.route("bereft", "any", "void").await;
        self.invite("void", "zoe").await
    }

    /// Posts something that no agent gets, and checks that everybody says so.
    async fn is_dropped(&self, key: &str, room: &str, body: Value, reason: &str) -> Value {
        let before = self.dropped(reason).await;
        let answer = self.post_as(key, room, &body).await;
        assert_eq!(answer["undelivered"], reason, "{answer}");
        assert!(answer["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{answer}");
        assert_eq!(self.dropped(reason).await, before + 1);
        let id = answer["message_id"].as_str().unwrap();
        let story = self.connector.command(&["explain", id]).await;
        let told = &story["drops"][0];
        assert_eq!(told["reason"], reason, "{story}");
        assert_eq!(told["place"], format!("webchat:{room}"));
        assert_eq!(told["chat_id"], format!("web-{room}"));
        assert!(!story.to_string().contains(body["text"].as_str().unwrap()), "without the text: {story}");
        answer
    }
}

#[tokio::test]
async fn in_company_only_what_is_meant_for_the_agent_is_delivered() {
    let world = World::new().await;
    world.route("default", "any", "lab").await;
    let mut socket = world.join().await;
    world.post("nobody else is here").await;
    assert_eq!(socket.take_text().await, "nobody else is here", "one person needs no mention");
    let said = socket.ask(json!({"op": "send", "chat_id": "web-lab", "content": "I am"})).await;

    let bob = world.invite("lab", "bob").await;
    let chatter = world.is_dropped(&world.key, "lab", json!({"text": "chatter-1"}), "not_addressed").await;
    assert!(chatter["hint"].as_str().unwrap().contains("@agent"), "{chatter}");
    world.is_dropped(&bob, "lab", json!({"text": "chatter-2"}), "not_addressed").await;
    let to_ann = json!({"text": "chatter-3", "reply_to": chatter["message_id"]});
    world.is_dropped(&bob, "lab", to_ann, "not_addressed").await;
    assert_eq!(world.lines().await.len(), 5, "all of it stands in the room");

    world.post_as(&bob, "lab", &json!({"text": "@Agent: are you there?"})).await;
    assert_eq!(socket.take_text().await, "are you there?");
    world.post_as(&bob, "lab", &json!({"text": "/help"})).await;
    assert_eq!(socket.take_text().await, "/help");
    world.post_as(&bob, "lab", &json!({"text": "@agent /new"})).await;
    let frame = socket.frame().await;
    socket.ack(&frame).await;
    assert_eq!(
        (&frame["event"]["text"], &frame["event"]["message_type"]),
        (&json!("/new"), &json!("command"))
    );
    world.post_as(&bob, "lab", &json!({"text": "indeed", "reply_to": said["message_id"]})).await;
    assert_eq!(socket.take_text().await, "indeed");
    assert_eq!(socket.next(QUIET).await, Next::Silence);

    world.connector.command(&["route", "remove", "webchat:lab"]).await;
    world
        .connector
        .command(&["route", "add", "--tenant", "default", "--allow", "any", "--free", "webchat:lab"])
        .await;
    world.post_as(&bob, "lab", &json!({"text": "just chatter"})).await;
    assert_eq!(socket.take_text().await, "just chatter", "a free route delivers everything");
}

#[tokio::test]
async fn a_repeated_post_is_dropped_once() {
    let world = World::new().await;
    world.route("default", "bob", "lab").await;
    let body = json!({"text": "hello", "client_id": "c1"});
    let first = world.is_dropped(&world.key, "lab", body.clone(), "author_not_allowed").await;
    let again = world.post_as(&world.key, "lab", &body).await;
    assert_eq!(again, first);
    assert_eq!(world.dropped("author_not_allowed").await, 1);
}

#[tokio::test]
async fn a_repeated_post_tells_what_became_of_the_first() {
    let world = World::new().await;
    let zoe = world.bereft().await;
    let body = json!({"text": "anybody home", "client_id": "c1"});
    world.is_dropped(&zoe, "void", body.clone(), "no_instance").await;
    world.connector.command(&["gateway", "create", "--tenant", "bereft", "late"]).await;
    let again = world.post_as(&zoe, "void", &body).await;
    assert_eq!(again["undelivered"], "not_delivered", "an agent came, but not for that one: {again}");
    let body = json!({"text": "now", "client_id": "c2"});
    assert_eq!(world.post_as(&zoe, "void", &body).await["undelivered"], Value::Null);
    world.connector.command(&["gateway", "revoke", "late"]).await;
    assert_eq!(world.post_as(&zoe, "void", &body).await["undelivered"], Value::Null, "the first one waits");
}

#[tokio::test]
async fn every_reason_is_told_counted_and_explained() {
    let world = World::new().await;
    let text = |text: &str| json!({ "text": text });
    let zoe = world.bereft().await;
    world.is_dropped(&zoe, "void", text("anybody home"), "no_instance").await;

    world.route("default", "bob,carl", "lab").await;
    world.is_dropped(&world.key, "lab", text("let me in"), "author_not_allowed").await;
    let url = format!("{}/chat/api/rooms/lab/interrupt", world.connector.url());
    let refused = world.http.post(url).bearer_auth(&world.key).send().await.unwrap();
    assert_eq!(refused.status(), 403, "the button asks the same question");

    world.connector.command(&["route", "remove", "webchat:*"]).await;
    let den = world.invite("den", "ann").await;
    world.is_dropped(&den, "den", text("hello out there"), "no_route").await;
    world.is_dropped(&den, "den", text("nobody out there"), "no_route").await;
    let (_, unrouted) = world.admin("GET", "/admin/routes/unrouted", None).await;
    let row = &unrouted["unrouted"][0];
    assert_eq!(
        (&row["place"], &row["bot"], &row["count"]),
        (&json!("webchat:den"), &json!("webchat"), &json!(2))
    );
    assert!(row["last_at"].is_i64(), "{unrouted}");
    assert_eq!(row["add"], "angelia route add --tenant TENANT --allow ID,… webchat:den");
    world.route("default", "any", "den").await;
    let (_, unrouted) = world.admin("GET", "/admin/routes/unrouted", None).await;
    assert_eq!(unrouted["unrouted"], json!([]), "somebody took care of it");

    let answer = world.post_as(&den, "den", &text("and now")).await;
    assert_eq!(answer["undelivered"], Value::Null);
    world.connector.command(&["gateway", "revoke", "gw"]).await;
    world.is_dropped(&den, "den", text("gone again"), "no_instance").await;
    let (status, _) = world.admin("GET", "/admin/explain/nothing", None).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_private_chat_belongs_to_one_person() {
    let world = World::new().await;
    let made = world.connector.command(&["webchat", "invite", "--user", "ann"]).await;
    assert_eq!(made["room"], "dm:ann");
    let key = made["key"].as_str().unwrap();
    let invite = |room: &str, user: &str| {
        let body = json!({"room": room, "user": user});
        world.admin("POST", "/admin/webchat/invites", Some(body))
    };
    let (status, error) = invite("dm:ann", "bob").await;
    assert_eq!(status, 400, "{error}");
    assert_eq!(invite("lab", "agent").await.0, 400, "nobody is to be mistaken for an agent");

    let acme = world.connector.gateway("acme", "gw-acme").await;
    let route = world.connector.command(&["route", "add", "--tenant", "acme", "webchat:dm:ann"]).await;
    assert_eq!(route["allow"], json!(["ann"]), "that person, without being named");
    let mut socket = Socket::join(&world.connector.url(), &acme).await;
    world.post_as(key, "dm:ann", &json!({"text": "between us"})).await;
    let frame = socket.frame().await;
    socket.ack(&frame).await;
    let source = &frame["event"]["source"];
    assert_eq!((&source["chat_type"], &source["chat_name"]), (&json!("dm"), &json!("ann")), "{frame}");
    assert_eq!((&source["chat_id"], &source["user_id"]), (&json!("web-dm:ann"), &json!("ann")));
    let said = socket.ask(json!({"op": "send", "chat_id": "web-dm:ann", "content": "just us"})).await;
    assert_eq!(said["success"], true, "{said}");
    let mut other = world.join().await;
    let foreign = other.ask(json!({"op": "send", "chat_id": "web-dm:ann", "content": "let me in"})).await;
    assert_eq!(foreign["success"], false, "{foreign}");
}

#[tokio::test]
async fn a_policy_counts_at_once() {
    let world = World::new().await;
    world.route("default", "any", "lab").await;
    world.invite("lab", "bob").await;
    let mut socket = world.join().await;
    let declare = async |body: Value| {
        let url = format!("{}/relay/policy", world.connector.url());
        let token = token::mint(&world.gateway.gateway_id, &world.gateway.secret, now(), 300);
        let answer = world.http.post(url).bearer_auth(token).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    };
    world.is_dropped(&world.key, "lab", json!({"text": "chatter-1"}), "not_addressed").await;
    // The web chat has no name of its own among gateways: they know it as the relay.
    for (n, policy) in [
        json!({"platform": "relay", "requireAddress": false}),
        json!({"platform": "relay", "requireAddress": true, "freeResponseScopes": ["x", "web-lab"]}),
    ]
    .into_iter()
    .enumerate()
    {
        declare(policy).await;
        world.post(&format!("heard-{n}")).await;
        assert_eq!(socket.take_text().await, format!("heard-{n}"));
    }
    declare(json!({"platform": "webchat", "freeResponseScopes": ["web-den"], "allowOtherBots": true})).await;
    world.is_dropped(&world.key, "lab", json!({"text": "chatter-2"}), "not_addressed").await;
}

#[tokio::test]
async fn what_no_route_assigns_goes_to_the_only_one_that_fronts_the_platform() {
    let world = World::new().await;
    let second = world.connector.command(&["gateway", "create", "second"]).await;
    // The first is the tenant's default, and has not said what it answers for.
    world.post("for the default").await;
    let mut second = Socket::join(&world.connector.url(), &credentials(&second)).await;
    assert_eq!(second.next(QUIET).await, Next::Silence);
    world.post("for the one that fronts it").await;
    assert_eq!(second.take_text().await, "for the one that fronts it");
    let mut first = world.join().await;
    assert_eq!(first.take_text().await, "for the default");
    world.post("for the default again").await;
    assert_eq!(first.take_text().await, "for the default again", "two front it now");
    assert_eq!(second.next(QUIET).await, Next::Silence);
}
