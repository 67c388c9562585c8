//! Whole stories: a person, the connector, a real gateway, a model.
//!
//! Each scenario starts everything it needs in `folder` and panics when the
//! story goes wrong. Assertions follow what the gateways really do: texts are
//! counted at the model (answers may be merged), the home-channel notice that
//! precedes a first answer is left out, and 0.17.0, which never acknowledges,
//! may get a text twice but never not at all.

mod bots;
mod clock;
mod command;
mod context;
mod enroll;
mod files;
mod interactions;
mod join;
mod outage;
mod policy;
mod posted;
mod revoke;
mod share;
mod stop;
mod talk;

pub use bots::{discord, telegram};
pub use clock::{Clock, clock_jumps, wrong_clock};
pub use command::help_in_mid_turn;
pub use context::context;
pub use enroll::{enroll, provision};
pub use files::link;
pub use interactions::{slash_commands, slash_commands_forwarded};
pub use join::join;
pub use outage::restart;
pub use policy::policy;
pub use posted::sms_and_wecom;
pub use revoke::revoke;
pub use share::{two_gateways, two_tenants};
pub use stop::{Stop, stop};
pub use talk::{dm_and_group, round_trip, two_rooms};

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::connector::{Connector, Credentials};
use crate::hermes::{Hermes, Relay, Setup, Version};
use crate::model::Model;
use crate::webchat::Person;

/// A gateway starts in 1–2 s; machines are busy while tests run.
const BOOT: Duration = Duration::from_secs(60);

/// A first turn takes 4–7 s, and a stalled reader adds 30 s.
const TURN: Duration = Duration::from_secs(90);

/// An idle gateway ends in less than a second.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// Fixed pause: so long something that must not happen, and that nothing would tell of, is awaited.
const QUIET: Duration = Duration::from_secs(3);

/// Fixed pause: a person reads before writing again. It also keeps clear of a hole in
/// 0.19.0: a text that arrives in the very moment a turn ends is acknowledged,
/// but stays parked until the chat's next one.
const READING: Duration = Duration::from_secs(2);

/// The tenant of stories that need only one.
const TENANT: &str = "acme";

/// A connector, a model and one gateway that has connected.
struct Stage {
    connector: Connector,
    model: Model,
    hermes: Hermes,
}

impl Stage {
    async fn set(version: Version, binary: &Path, folder: &Path) -> Self {
        let connector = Connector::start(binary, &folder.join("connector")).await;
        let model = Model::start().await;
        let gateway = connector.gateway(TENANT, "gw-test").await;
        let relay = pinned(&connector, &gateway);
        let setup = Setup::new(version, folder.join("hermes"), &model.url(), relay);
        let hermes = connected(Hermes::start(setup)).await;
        Self { connector, model, hermes }
    }

    async fn person(&self, room: &str) -> Person {
        self.connector.person(TENANT, room, "ann").await
    }
}

/// What a gateway is given that an operator made.
fn pinned(connector: &Connector, gateway: &Credentials) -> Relay {
    let Credentials { gateway_id, secret } = gateway.clone();
    Relay::Pinned { url: connector.url(), gateway_id, secret }
}

/// Waits for a gateway's connection.
async fn connected(mut hermes: Hermes) -> Hermes {
    let begun = Instant::now();
    hermes.wait_connected(BOOT).await;
    note(hermes.version(), "connected", begun);
    hermes
}

fn note(version: Version, what: &str, begun: Instant) {
    eprintln!("{version}: {what}: {:.2} s", begun.elapsed().as_secs_f64());
}
