//! The socket every gateway dials: upgrade, session, registry.

mod backlog;
mod handshake;
mod mailbox;
mod outgoing;
mod pending;
mod registry;
mod session;
mod upgrade;
mod websocket;

use angelia_contract::limit::Limit;

pub(crate) use mailbox::{Answer, Ending, Mailbox};
pub(crate) use registry::{Registry, Standing};
pub(crate) use upgrade::SOCKETS_PER_GATEWAY;
pub(crate) use upgrade::{Identity, identify, upgrade};

/// What bounds the relay.
pub(crate) const LIMITS: [&[Limit]; 2] = [upgrade::LIMITS, session::LIMITS];
