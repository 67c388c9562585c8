//! The socket every gateway dials: its upgrade, its session, and which sessions there are.

mod handshake;
mod mailbox;
mod outgoing;
mod pending;
mod session;
mod sessions;
mod upgrade;
mod watch;
mod websocket;

pub(crate) use session::ACK_LIMITS;

pub(crate) use mailbox::{Answer, Ending, Hint, Mailbox};
pub(crate) use session::LIMITS as SESSION_LIMITS;
pub(crate) use sessions::{Sessions, Standing};
pub(crate) use upgrade::{Identity, identify, upgrade};
pub(crate) use upgrade::{LIMITS as UPGRADE_LIMITS, SOCKETS_PER_GATEWAY};
pub(crate) use watch::watch_logs;
