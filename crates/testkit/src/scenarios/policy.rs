//! What a gateway declares at its start, and what comes of it.

use std::path::Path;

use super::{TENANT, TURN, connected, pinned};
use crate::connector::Connector;
use crate::hermes::{Hermes, Setup, Version};
use crate::model::Model;

/// What makes a gateway declare a policy for the web chat: it reads a block of
/// the platform's name, whatever that name is.
const CONFIG: &str = "webchat:\n  require_mention: true\n  free_response_channels: [web-lab]\n";

/// In a shared room people talk to each other, unless they name the agent; a
/// gateway can ask for a room in which everything is meant for it.
pub async fn policy(version: Version, binary: &Path, folder: &Path) {
    let connector = Connector::start(binary, &folder.join("connector")).await;
    let model = Model::start().await;
    let gateway = connector.gateway(TENANT, "gw-test").await;
    for place in ["webchat:lab", "webchat:hall"] {
        let apart = ["route", "add", "--tenant", TENANT, "--allow", "any", "--context", "off", place];
        connector.command(&apart).await;
    }
    let lab = connector.person(TENANT, "lab", "ann").await;
    let hall = connector.person(TENANT, "hall", "ann").await;
    let _others =
        [connector.person(TENANT, "lab", "bob").await, connector.person(TENANT, "hall", "bob").await];
    assert_eq!(lab.try_say("before-the-policy").await, Err("not_addressed".into()));

    let setup = Setup::new(version, folder.join("hermes"), &model.url(), pinned(&connector, &gateway));
    let hermes = connected(Hermes::start(Setup {
        identities: vec![("webchat", "webchat")],
        config: CONFIG.to_owned(),
        env: vec![("WEBCHAT_ALLOW_BOTS", "all")],
        ..setup
    }))
    .await;
    let log = hermes.gateway_log();
    assert!(log.contains("relay policy declared (platform=webchat"), "{log}");
    let [set] = connector.audited("policy.set").await.try_into().expect("one policy in the audit log");
    assert_eq!((&set["actor"], &set["target"]), (&"gateway acme/gw-test".into(), &"gw-test".into()));
    let detail = set["detail"].as_str().unwrap_or_default();
    for part in ["webchat", "require_address true", "1 free scope", "allow_other_bots true"] {
        assert!(detail.contains(part), "no {part:?} in {set}");
    }

    assert_eq!(lab.try_say("free-question").await, Ok(()));
    lab.wait_for_answer("echo: free-question", TURN).await;
    assert_eq!(hall.try_say("hall-chatter").await, Err("not_addressed".into()));
    hall.say("@agent hall-question").await;
    hall.wait_for_answer("echo: hall-question", TURN).await;
    assert_eq!(model.texts(), ["free-question", "hall-question"]);
}
