//! `/link`: a place is given away by a code that somebody types there.

use super::world::World;
use angelia_core::own_words::{Language, OwnWords};
use angelia_engines::inspect::Inspect;
use angelia_testkit::socket::{Next, Socket};
use serde_json::{Value, json};
use std::time::Duration;

const QUIET: Duration = Duration::from_millis(300);

impl World {
    async fn code(&self, args: &[&str]) -> String {
        let made = self.connector.command(&[&["route", "code", "--tenant", "acme"], args].concat()).await;
        made["code"].as_str().unwrap_or_else(|| panic!("no code in {made}")).to_owned()
    }

    async fn type_link(&self, key: &str, room: &str, text: &str) -> String {
        let answer = self.post_as(key, room, &json!({ "text": text })).await;
        assert_eq!(answer["undelivered"], Value::Null, "it is not a message: {answer}");
        answer["answer"].as_str().unwrap_or_else(|| panic!("no answer in {answer}")).to_owned()
    }

    async fn route_of(&self, place: &str) -> Option<Value> {
        let routes = self.connector.command(&["route", "list"]).await;
        routes["routes"].as_array().unwrap().iter().find(|route| route["place"] == place).cloned()
    }
}

#[tokio::test]
async fn a_browser_is_told_in_the_language_it_asks_for() {
    let world = World::new().await;
    let url = format!("{}/chat/api/rooms/lab/messages", world.connector.url());
    world.invite("lab", "bob").await;
    let post = async |text: &str, language: &str| -> Value {
        let post = world.http.post(&url).bearer_auth(&world.key).header("accept-language", language);
        post.json(&json!({ "text": text })).send().await.unwrap().json().await.unwrap()
    };
    let german = "de-DE,de;q=0.9,en;q=0.8";
    assert_eq!(post("/link", german).await["answer"], OwnWords::HowToLink.text(Language::German));
    assert_eq!(post("/link", "fr").await["answer"], OwnWords::HowToLink.text(Language::English));
    world.connector.command(&["route", "remove", "webchat:*"]).await;
    let told = post("hallo", german).await;
    assert_eq!(
        (&told["undelivered"], &told["hint"]),
        (&json!("no_route"), &json!(OwnWords::RoomOfNobody.text(Language::German)))
    );
    let read = world.http.get(&url).bearer_auth(&world.key).header("accept-language", german);
    let lines = read.send().await.unwrap().json::<Value>().await.unwrap();
    let last = lines["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["hint"], OwnWords::RoomOfNobody.text(Language::German), "{last}");
}

#[tokio::test]
async fn a_code_gives_a_room_to_its_tenant_once() {
    let mut world = World::new().await;
    let acme = world.connector.gateway("acme", "gw-acme").await;
    let mut before = world.join().await;
    let mut acme = Socket::join(&world.connector.url(), &acme).await;
    let code = world.code(&[]).await;
    let said = world.type_link(&world.key, "lab", &format!("@agent /link@angelia {code}")).await;
    assert!(said.starts_with("Linked"), "{said}");
    let route = world.route_of("webchat:lab").await.unwrap();
    assert_eq!((&route["tenant"], &route["allow"]), (&json!("acme"), &json!(["ann"])), "whoever typed it");

    let lines = world.lines().await;
    assert_eq!((&lines[0]["text"], &lines[0]["author"]), (&json!("/link …"), &json!("ann")));
    assert_eq!((&lines[1]["text"], &lines[1]["author"]), (&json!(said), &json!("angelia")));
    assert_eq!((&lines[1]["from_agent"], &lines[1]["reply_to"]), (&json!(true), &lines[0]["message_id"]));
    assert_eq!(world.waiting().await, 0, "no agent gets it");
    world.post("hello").await;
    assert_eq!(acme.take_text().await, "hello");
    assert_eq!(before.next(QUIET).await, Next::Silence);
    let reply = json!({"text": "thanks", "reply_to": lines[1]["message_id"]});
    world.invite("lab", "bob").await;
    let answer = world.post_as(&world.key, "lab", &reply).await;
    assert_eq!(answer["undelivered"], "not_addressed", "the connector is not the agent");

    let den = world.invite("den", "ann").await;
    let again = world.type_link(&den, "den", &format!("/link {code}")).await;
    let wrong = world.type_link(&den, "den", "/link 0000").await;
    assert_eq!(again, wrong, "used and unknown are told alike");
    let spare = world.code(&[]).await;
    let taken = world.type_link(&world.key, "lab", &format!("/link {spare}")).await;
    assert_eq!(taken, wrong, "and so is a place that is taken");
    assert!(world.route_of("webchat:den").await.is_none());
    let said = world.type_link(&den, "den", &format!("/link {spare}")).await;
    assert!(said.starts_with("Linked"), "the code was still good: {said}");

    let audit = world.connector.command(&["audit", "list"]).await;
    let links: Vec<(&str, &str)> = audit["audit"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["action"] == "route.link")
        .map(|line| (line["target"].as_str().unwrap(), line["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(links.len(), 5, "{audit}");
    assert_eq!(links[0], ("webchat:den", "done"));
    assert_eq!(links[4], ("webchat:lab", "done"));
    assert!(audit.to_string().contains("person webchat:ann"), "{audit}");

    world.connector.stop(Duration::from_secs(10)).await;
    let disk = Inspect::of(&world.folder.path().join("data"));
    let log = std::fs::read_to_string(world.folder.path().join("angelia.log")).unwrap();
    assert!(disk.holds(b"webchat:den"), "where it was typed is there");
    for code in [&code, &spare] {
        assert!(!disk.holds(code.as_bytes()), "a code in the database");
        assert!(!log.contains(code.as_str()), "a code in the log");
    }
}

#[tokio::test]
async fn in_a_shared_room_only_the_first_person_can_link_it() {
    let world = World::new().await;
    world.connector.gateway("acme", "gw-acme").await;
    let bob = world.invite("lab", "bob").await;
    let code = world.code(&["--allow", "any"]).await;
    let said = world.type_link(&bob, "lab", &format!("/link {code}")).await;
    assert!(said.contains("administrator"), "{said}");
    assert!(world.route_of("webchat:lab").await.is_none());
    assert_eq!(world.waiting().await, 0, "consumed all the same");
    let how = world.type_link(&world.key, "lab", "/link").await;
    assert!(how.contains("code"), "{how}");
    assert!(world.type_link(&world.key, "lab", &format!("/LINK {code} ")).await.starts_with("Linked"));
    assert_eq!(world.route_of("webchat:lab").await.unwrap()["allow"], json!(["any"]));
}

#[tokio::test]
async fn a_private_chat_is_linked_by_its_person() {
    let world = World::new().await;
    world.connector.gateway("acme", "gw-acme").await;
    let made = world.connector.command(&["webchat", "invite", "--user", "ann"]).await;
    let code = world.code(&["--gateway", "gw-acme", "--free"]).await;
    let said = world.type_link(made["key"].as_str().unwrap(), "dm:ann", &format!("/link {code}")).await;
    assert!(said.starts_with("Linked"), "{said}");
    let route = world.route_of("webchat:dm:ann").await.unwrap();
    assert_eq!(
        (&route["gateway"], &route["allow"], &route["free"]),
        (&json!("gw-acme"), &json!(["ann"]), &json!(true))
    );
}

#[tokio::test]
async fn a_repeated_link_has_the_first_answer() {
    let world = World::new().await;
    world.connector.gateway("acme", "gw-acme").await;
    let code = world.code(&[]).await;
    let body = json!({ "text": format!("/link {code}"), "client_id": "c1" });
    // Both at once, as an impatient client does, and once more.
    let (one, two) =
        tokio::join!(world.post_as(&world.key, "lab", &body), world.post_as(&world.key, "lab", &body));
    let three = world.post_as(&world.key, "lab", &body).await;
    assert!(one["answer"].as_str().is_some_and(|said| said.starts_with("Linked")), "{one}");
    assert_eq!((&two, &three), (&one, &one));
    assert_eq!(world.lines().await.len(), 2, "one line and one answer");
    let spare = world.code(&[]).await;
    let den = world.invite("den", "ann").await;
    let first = world.post_as(&den, "den", &json!({ "text": "hello", "client_id": "c1" })).await;
    let reused = json!({ "text": format!("/link {spare}"), "client_id": "c1" });
    assert_eq!(world.post_as(&den, "den", &reused).await["message_id"], first["message_id"]);
    assert!(world.route_of("webchat:den").await.is_none(), "a post with an id of before is that of before");
    assert!(world.type_link(&den, "den", &format!("/link {spare}")).await.starts_with("Linked"));
}

#[tokio::test]
async fn a_link_has_a_story() {
    let world = World::new().await;
    let body = json!({ "text": "/link wrong-7d1f", "client_id": "c1" });
    let posted = world.post_as(&world.key, "lab", &body).await;
    world.post_as(&world.key, "lab", &body).await;
    assert_eq!(world.dropped("consumed").await, 1, "a repetition is not another one");
    let story = world.connector.command(&["explain", posted["message_id"].as_str().unwrap()]).await;
    let told = &story["drops"][0];
    assert_eq!((&told["reason"], &told["place"]), (&json!("consumed"), &json!("webchat:lab")), "{story}");
    assert!(!story.to_string().contains("7d1f"), "without the code: {story}");
}

#[tokio::test]
async fn ten_wrong_codes_are_enough() {
    let world = World::new().await;
    world.connector.gateway("acme", "gw-acme").await;
    let refused = world.type_link(&world.key, "lab", "/link wrong-0").await;
    for n in 1..10 {
        assert_eq!(world.type_link(&world.key, "lab", &format!("/link wrong-{n}")).await, refused);
    }
    let code = world.code(&[]).await;
    assert_eq!(
        world.type_link(&world.key, "lab", &format!("/link {code}")).await,
        refused,
        "not even looked at"
    );
    assert!(world.route_of("webchat:lab").await.is_none());
    let den = world.invite("den", "zoe").await;
    assert!(
        world.type_link(&den, "den", &format!("/link {code}")).await.starts_with("Linked"),
        "another person"
    );
}
