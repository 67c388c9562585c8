//! The two agents: each a gateway of its own, over the real socket.

use super::cast::{Cast, IRIS, METIS};
use super::iris::Iris;
use super::metis::metis;
use angelia_core::error::{Error, Kind, Result};
use angelia_gateway::{Agent, Gateway, GatewayHandle};
use std::time::Duration;
use tokio::task::JoinSet;

/// Conversations an agent has at once; a demo has one visitor, in a few windows.
const MAX_TURNS: usize = 8;
/// Messages that may wait for an agent; the server keeps the others.
const MAX_BACKLOG: usize = 64;
/// The shortest time between two edits: quick enough to look like typing, and
/// each of them is a commit.
const EDIT_INTERVAL: Duration = Duration::from_millis(80);
/// How long an agent may take to dial in: a moment, on a machine that does not swap.
const DIAL_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The running agents; they end when this is dropped.
pub(super) struct Agents {
    _tasks: JoinSet<()>,
}

impl Agents {
    /// Lets both dial in and waits until they are there: the link that is shown
    /// next leads to somebody who answers.
    pub(super) async fn start(cast: &Cast, url: &str) -> Result<Self> {
        let mut tasks = JoinSet::new();
        let iris = dial(&mut tasks, cast, url, IRIS, Iris::default())?;
        let metis = dial(&mut tasks, cast, url, METIS, metis)?;
        for (name, agent) in [(IRIS, iris), (METIS, metis)] {
            let connected = tokio::time::timeout(DIAL_WITHIN, connected(&agent)).await;
            connected.map_err(|_| {
                Error::unavailable(format!(
                    "the agent {name} could not dial in at {url}. If this demo is kept and its secret was \
                     changed, empty the file demo.json in its directory and start again"
                ))
            })?;
        }
        Ok(Self { _tasks: tasks })
    }
}

fn dial(
    tasks: &mut JoinSet<()>,
    cast: &Cast,
    url: &str,
    id: &'static str,
    agent: impl Agent,
) -> Result<GatewayHandle> {
    let gateway = Gateway::builder(url)
        .id(id)
        .secret(cast.secret(id)?.expose())
        .identity("webchat", "webchat")
        .cooperative_interrupts()
        .max_turns(MAX_TURNS)
        .max_backlog(MAX_BACKLOG)
        .edit_interval(EDIT_INTERVAL)
        .build()
        .map_err(|e| Error::new(Kind::Internal, e.to_string()))?;
    let handle = gateway.handle();
    tasks.spawn(async move {
        if let Err(error) = gateway.run(agent).await {
            tracing::error!(%error, agent = id, "a demo agent ended");
        }
    });
    Ok(handle)
}

async fn connected(agent: &GatewayHandle) {
    while !agent.is_connected() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
