//! The socket every gateway dials: upgrade, session, registry.

mod backlog;
mod handshake;
mod mailbox;
mod outgoing;
mod pending;
mod registry;
mod session;
mod upgrade;

pub(crate) use mailbox::{Answer, Ending, Mailbox};
pub(crate) use registry::{Registry, Standing};
pub(crate) use upgrade::{Identity, identify, upgrade};
