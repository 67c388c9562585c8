//! Gateways that get their secret themselves.

use std::path::Path;

use serde_json::Value;
use tokio::time::Instant;

use super::{SHUTDOWN, TENANT, TURN, connected, note};
use crate::connector::Connector;
use crate::hermes::{Hermes, Login, Relay, Setup, Version};
use crate::model::Model;
use crate::portal::Portal;

/// The organisation at the portal that the tenant is linked to.
const ORGANISATION: &str = "org-1";

/// A connector whose tenant's gateways can prove themselves, in the way their
/// version knows.
struct Fixture {
    portal: Portal,
    connector: Connector,
    model: Model,
    login: Login,
}

impl Fixture {
    async fn open(version: Version, binary: &Path, folder: &Path) -> Self {
        let portal = Portal::start().await;
        let connector = Connector::start_with(binary, &folder.join("connector"), &portal.config()).await;
        let model = Model::start().await;
        let login = if version.asks_token_endpoint() {
            connector.command(&["tenant", "create", TENANT]).await;
            let made = connector.command(&["client", "create", "--tenant", TENANT]).await;
            let (token_url, id) = (text(&made, "token_url"), text(&made, "client_id"));
            Login::Client { token_url, id, secret: text(&made, "client_secret") }
        } else {
            let issuer = portal.account_url();
            let link = ["--issuer", &issuer, "--claim", ORGANISATION];
            connector.command(&[&["tenant", "create", TENANT], &link[..]].concat()).await;
            Login::Portal { access_token: portal.log_in(ORGANISATION, "ann@example.org") }
        };
        Self { portal, connector, model, login }
    }

    /// Says how often the portal must have vouched at the most: never for those
    /// who ask the token endpoint, and else once a minute for the same login.
    fn check_portal(&self, version: Version, requests: usize) {
        let expected = if version.asks_token_endpoint() { 0..=0 } else { 1..=requests };
        let vouched = self.portal.vouched();
        assert!(expected.contains(&vouched), "{vouched} times, not {expected:?}");
        assert_eq!(self.portal.refused(), 0);
    }

    fn setup(&self, version: Version, folder: &Path, relay: Relay) -> Setup {
        let setup = Setup::new(version, folder.join("hermes"), &self.model.url(), relay);
        Setup { login: Some(self.login.clone()), ..setup }
    }

    /// The one gateway there is, as the operator sees it.
    async fn gateway(&self) -> Value {
        let list = self.connector.command(&["gateway", "list"]).await;
        let [gateway] = list["gateways"].as_array().map_or(&[][..], Vec::as_slice) else {
            panic!("not one gateway: {list}");
        };
        self.connector.command(&["gateway", "show", &text(gateway, "gateway_id")]).await
    }
}

/// `hermes gateway enroll` with a token from the operator; then the gateway
/// lives on what that wrote, without any login. The token is good once.
pub async fn enroll(version: Version, binary: &Path, folder: &Path) {
    let fixture = Fixture::open(version, binary, folder).await;
    let made = fixture.connector.command(&["enroll-token", "--tenant", TENANT]).await;
    let (url, token) = (fixture.connector.url(), text(&made, "token"));
    let setup = fixture.setup(version, folder, Relay::Enrolled);
    let begun = Instant::now();
    let (done, words) = setup.enroll(&url, &token, "gw-office").await;
    note(version, "enrolled", begun);
    assert!(done && words.contains("Enrolled gateway \"gw-office\" for tenant acme"), "{words}");
    fixture.check_portal(version, 1);
    let written = |name: &str| setup.env_file(name).unwrap_or_else(|| panic!("no {name} in .env"));
    assert_eq!(
        (written("GATEWAY_RELAY_ID"), written("GATEWAY_RELAY_URL")),
        ("gw-office".into(), url.clone())
    );
    let secrets = ["GATEWAY_RELAY_SECRET", "GATEWAY_RELAY_DELIVERY_KEY"].map(written);
    assert!(secrets.iter().all(|secret| !secret.is_empty()) && secrets[0] != secrets[1]);

    let (done, words) = setup.enroll(&url, &token, "gw-thief").await;
    assert!(!done && words.contains("Enrollment failed"), "{words}");
    assert_eq!(written("GATEWAY_RELAY_ID"), "gw-office");

    let ann = fixture.connector.person(TENANT, "lobby", "ann").await;
    let _hermes = connected(Hermes::start(Setup { login: None, ..setup })).await;
    ann.say("after-enrolling").await;
    ann.wait_for_answer("echo: after-enrolling", TURN).await;
    assert_eq!(fixture.gateway().await["gateway_id"], "gw-office", "the second try made nothing");
}

/// A gateway without a secret gets one at each start, once for every platform
/// it fronts, and gets in with the first of them.
pub async fn provision(
    version: Version,
    binary: &Path,
    folder: &Path,
    identities: &[(&'static str, &'static str)],
) {
    let fixture = Fixture::open(version, binary, folder).await;
    let ann = fixture.connector.person(TENANT, "lobby", "ann").await;
    let setup = fixture.setup(version, folder, Relay::Provisioned { url: fixture.connector.url() });
    let mut hermes = Hermes::start(Setup { identities: identities.to_vec(), ..setup });
    for start in 1..=2 {
        hermes = connected(hermes).await;
        let log = hermes.gateway_log();
        assert!(log.contains("relay self-provisioned (gateway_id=gw-"), "{log}");
        assert!(!log.contains("self-provision failed"), "{log}");
        fixture.check_portal(version, start * identities.len());

        let gateway = fixture.gateway().await;
        assert_eq!((&gateway["tenant"], &gateway["connected"]), (&TENANT.into(), &true.into()));
        let fronts = gateway["fronts"].as_array().cloned().unwrap_or_default();
        let mut fronts: Vec<_> = fronts.iter().map(|it| (text(it, "platform"), text(it, "bot"))).collect();
        fronts.sort();
        let mut expected: Vec<_> =
            identities.iter().map(|(platform, bot)| ((*platform).to_owned(), (*bot).to_owned())).collect();
        expected.sort();
        assert_eq!(fronts, expected);

        let question = format!("question-{start}");
        ann.say(&question).await;
        ann.wait_for_answer(&format!("echo: {question}"), TURN).await;
        if start == 1 {
            hermes.terminate(SHUTDOWN).await;
            hermes.restart();
        }
    }
    fixture.connector.until_quiet().await;
    let mut echoes = ann.echoes();
    if !version.acknowledges() {
        // It may get what it answered once more after its restart.
        echoes.dedup();
    }
    assert_eq!(echoes, ["echo: question-1", "echo: question-2"]);
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}
