//! `angelia demo`: a server, a room and an agent that echoes, in one process.
//!
//! Nothing is shortcut: the agent dials the real socket with a real secret,
//! and what people post goes through the real inbox.

use crate::config::Config;
use crate::files::Scratch;
use crate::remote::Remote;
use crate::serve::{self, Running};
use crate::{listen, show};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::secret::random_hex;
use angelia_gateway::{Conversation, Event, Gateway};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tokio::net::TcpListener;

/// Ports tried, the configured one first.
const PORTS: u16 = 20;

/// Runs the demo until a signal; without `keep` its data goes with it.
pub(crate) async fn demo(mut config: Config, keep: Option<PathBuf>) -> Result<()> {
    // A demo answers nobody else's people, and the bots may be in use already.
    config.bots.clear();
    // Nobody but this machine comes to see it, and no certificate is for a loopback address.
    config.server.tls = None;
    config.check_exposure(false).map_err(|faults| Error::invalid(faults.to_string()))?;
    serve::log(&config)?;
    let scratch = Scratch::new("demo");
    config.server.data_dir = keep.clone().unwrap_or_else(|| scratch.path().to_owned());
    config.server.admin_listen = (Ipv4Addr::LOCALHOST, 0).into();
    let public = next_free(config.server.listen).await?;
    let running = serve::start(&config, public).await?;
    let remote = Remote::open(&config, false).await?;
    let agent = connect_agent(&remote, &running).await?;
    let invitation =
        remote.post("/admin/webchat/invites", &json!({ "room": "lobby", "user": "you" })).await?;
    show::text(&welcome(&running, &invitation, &config, keep.is_some()))?;
    serve::stop_signal().await?;
    agent.abort();
    running.stop().await;
    Ok(())
}

/// The first port at or after the wanted one that nobody uses.
async fn next_free(wanted: SocketAddr) -> Result<TcpListener> {
    for offset in 0..PORTS {
        let mut address = wanted;
        address.set_port(wanted.port().saturating_add(offset));
        if let Ok(listener) = listen::bind(address).await {
            return Ok(listener);
        }
    }
    Err(Error::unavailable(format!("none of the {PORTS} ports from {wanted} on is free")))
}

/// Enrols an agent as an operator would, and lets it dial in.
async fn connect_agent(remote: &Remote, running: &Running) -> Result<tokio::task::JoinHandle<()>> {
    let id = format!("demo-{}", random_hex::<4>());
    let created = remote.post("/admin/gateways", &json!({ "gateway_id": id })).await?;
    let secret = created["secret"].as_str().unwrap_or_default();
    let gateway = Gateway::builder(format!("http://{}", running.public))
        .id(id)
        .secret(secret)
        .identity("webchat", "webchat")
        .build()
        .map_err(|e| Error::new(Kind::Internal, e.to_string()))?;
    Ok(tokio::spawn(async move {
        if let Err(error) = gateway.run(echo).await {
            tracing::error!(%error, "the echo agent ended");
        }
    }))
}

async fn echo(event: Event, conversation: Conversation) {
    if let Err(error) = conversation.send(&format!("You said: {}", event.text)).await {
        tracing::warn!(%error, "an echo did not arrive");
    }
}

fn welcome(running: &Running, invitation: &Value, config: &Config, kept: bool) -> String {
    let key = invitation["key"].as_str().unwrap_or_default();
    let room = format!("http://{}/chat/api/rooms/lobby", running.public);
    let data_dir = config.server.data_dir.display();
    let trace =
        if kept { format!("The data stays in {data_dir}.") } else { "Nothing is left behind.".into() };
    format!(
        "\nAngelia is running at http://{public} with an agent that echoes, connected over the real relay socket.\n\n\
         Listen in one terminal:\n  curl -N -H 'Authorization: Bearer {key}' {room}/events\n\n\
         Speak in another:\n  curl -H 'Authorization: Bearer {key}' -d '{{\"text\": \"hello\"}}' {room}/messages\n\n\
         See which way a message took (its id is in the answer to the post):\n  \
         ANGELIA_SERVER__DATA_DIR={data_dir} angelia explain MESSAGE_ID\n\n\
         Stop with Ctrl-C. {trace}\n",
        public = running.public,
    )
}
