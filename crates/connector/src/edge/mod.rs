//! Where the server touches addresses that others gave it.

mod guard;

pub(crate) use guard::no_client;
pub use guard::{Guard, GuardError, install_tls_provider};
