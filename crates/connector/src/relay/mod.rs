//! The socket every gateway dials: upgrade, session, registry.

mod handshake;
mod mailbox;
mod outgoing;
mod pending;
mod registry;
mod session;
mod upgrade;
mod watch;
mod websocket;

pub(crate) use session::ACK_LIMITS;

pub(crate) use mailbox::{Answer, Ending, Hint, Mailbox};
pub(crate) use registry::{Registry, Standing};
pub(crate) use session::LIMITS as SESSION_LIMITS;
pub(crate) use upgrade::{Identity, identify, upgrade};
pub(crate) use upgrade::{LIMITS as UPGRADE_LIMITS, SOCKETS_PER_GATEWAY};
pub(crate) use watch::watch_logs;
