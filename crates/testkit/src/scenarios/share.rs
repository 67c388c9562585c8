//! Several gateways at one connector: each message has one of them.

use std::path::Path;

use tokio::time::sleep;

use super::{READING, TENANT, TURN, connected, pinned};
use crate::connector::Connector;
use crate::hermes::{Hermes, Setup, Version};
use crate::model::Model;

/// A gateway with a model of its own, which tells which gateway got what.
struct Agent {
    model: Model,
    hermes: Hermes,
}

impl Agent {
    async fn start(version: Version, connector: &Connector, folder: &Path, tenant: &str, id: &str) -> Self {
        let model = Model::start().await;
        let gateway = connector.gateway(tenant, id).await;
        let home = folder.join(format!("hermes-{tenant}-{id}"));
        let setup = Setup::new(version, home, &model.url(), pinned(connector, &gateway));
        Self { model, hermes: Hermes::start(setup) }
    }

    async fn connected(self) -> Self {
        Self { hermes: connected(self.hermes).await, ..self }
    }
}

/// Two tenants whose gateways happen to have the same id, as machines with the
/// same name give them: each hears and answers its own room only.
pub async fn two_tenants(version: Version, binary: &Path, folder: &Path) {
    const ID: &str = "gw-localhost";
    let connector = Connector::start(binary, &folder.join("connector")).await;
    let red = Agent::start(version, &connector, folder, "red", ID).await;
    let blue = Agent::start(version, &connector, folder, "blue", ID).await;
    let (red, blue) = (red.connected().await, blue.connected().await);
    for tenant in ["red", "blue"] {
        let shown = connector.command(&["gateway", "show", "--tenant", tenant, ID]).await;
        assert_eq!((&shown["tenant"], &shown["connected"]), (&tenant.into(), &true.into()));
    }
    let ann = connector.person("red", "red-room", "ann").await;
    let bob = connector.person("blue", "blue-room", "bob").await;
    ann.say("red-question").await;
    bob.say("blue-question").await;
    ann.wait_for_answer("echo: red-question", TURN).await;
    bob.wait_for_answer("echo: blue-question", TURN).await;
    connector.until_quiet().await;
    assert_eq!(
        (red.model.texts(), blue.model.texts()),
        (vec!["red-question".into()], vec!["blue-question".into()])
    );
    assert_eq!(
        (ann.echoes(), bob.echoes()),
        (vec!["echo: red-question".into()], vec!["echo: blue-question".into()])
    );
}

/// Two gateways of one tenant: the default one answers, and only that one.
pub async fn two_gateways(version: Version, binary: &Path, folder: &Path) {
    let connector = Connector::start(binary, &folder.join("connector")).await;
    let first = Agent::start(version, &connector, folder, TENANT, "gw-first").await;
    let second = Agent::start(version, &connector, folder, TENANT, "gw-second").await;
    let (first, second) = (first.connected().await, second.connected().await);
    let ann = connector.person(TENANT, "lobby", "ann").await;
    ann.say("for-the-first").await;
    ann.wait_for_answer("echo: for-the-first", TURN).await;
    sleep(READING).await;
    connector.command(&["gateway", "default", "gw-second"]).await;
    ann.say("for-the-second").await;
    ann.wait_for_answer("echo: for-the-second", TURN).await;
    connector.until_quiet().await;
    assert_eq!(
        (first.model.texts(), second.model.texts()),
        (vec!["for-the-first".into()], vec!["for-the-second".into()])
    );
    assert_eq!(ann.echoes(), ["echo: for-the-first", "echo: for-the-second"]);
}
