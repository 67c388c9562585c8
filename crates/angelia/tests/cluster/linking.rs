//! Link codes that are typed at one node and another: the wrong ones are counted together, and a
//! good one works once.

use super::stage::{SECOND, SOON, Stage, until};
use angelia_testkit::cluster::Cluster;
use serde_json::{Value, json};
use tokio::time::timeout;

/// What somebody may get wrong within ten minutes.
const WRONG: usize = 10;

struct Room {
    stage: Stage,
    key: String,
}

impl Room {
    /// A room without a route, in which Bob is alone.
    async fn new(story: &str) -> Self {
        let stage = Stage::new(story, 2).await;
        let invited =
            stage.cluster[0].command(&["webchat", "invite", "--room", "den", "--user", "bob"]).await;
        Self { stage, key: invited["key"].as_str().unwrap().to_owned() }
    }

    fn nodes(&self) -> &Cluster {
        &self.stage.cluster
    }

    async fn code(&self) -> String {
        let made = self.nodes()[0].command(&["route", "code", "--tenant", "acme"]).await;
        made["code"].as_str().unwrap().to_owned()
    }

    /// What Bob is told who types a code at a node.
    async fn link(&self, node: usize, code: &str, client_id: &str) -> String {
        let url = format!("{}/chat/api/rooms/den/messages", self.nodes()[node].url());
        let post = json!({ "text": format!("/link {code}"), "client_id": client_id });
        let posted = self.stage.http.post(url).bearer_auth(&self.key).json(&post).send();
        let answer: Value = timeout(SOON, posted).await.unwrap().unwrap().json().await.unwrap();
        answer["answer"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

#[tokio::test]
async fn wrong_codes_are_counted_by_all_nodes_together() {
    let room = Room::new("wrong-codes").await;
    let code = room.code().await;
    for n in 0..WRONG {
        let told = room.link(n % 2, &format!("wrong{n}"), &format!("w{n}")).await;
        assert!(told.contains("did not work"), "{told}");
    }
    // Each node saw half of them, and would have listened to five more.
    for node in 0..2 {
        let told = room.link(node, &code, &format!("r{node}")).await;
        assert!(told.contains("did not work"), "at node {node}: {told}");
    }
    let routes = room.nodes()[1].command(&["route", "list"]).await;
    assert!(!routes.to_string().contains("webchat:den"), "{routes}");
    room.nodes().assert_never_panicked();
}

#[tokio::test]
async fn a_code_that_comes_again_at_another_node_is_answered_as_it_was() {
    let room = Room::new("code-again").await;
    let code = room.code().await;
    // A message that is sent again because nobody answered in time, in the same moment and later.
    let (here, there) = tokio::join!(room.link(0, &code, "one"), room.link(1, &code, "two"));
    for told in [here, there, room.link(1, &code, "three").await] {
        assert!(told.contains("belongs to acme"), "{told}");
    }
    let linked = async || {
        let routes = room.nodes()[1].command(&["route", "list"]).await;
        routes.to_string().matches("webchat:den").count() == 1
    };
    until("one route", SECOND, linked).await;
    let other = room.code().await;
    let told = room.link(0, &other, "four").await;
    assert!(told.contains("did not work"), "another code for a place that is linked: {told}");
    room.nodes().assert_never_panicked();
}
