//! Where the server touches addresses that others gave it.

mod guard;
mod wake;

pub(crate) use guard::no_client;
pub use guard::{Guard, GuardError, install_tls_provider};
pub(crate) use wake::Waker;
