//! The management plane: who is known here, who may enrol, and what an operator asks for.

mod api;
mod audit;
mod bearer;
mod bots;
mod clients;
mod clock;
mod enroll;
mod gateways;
mod inbox;
mod invites;
mod keyring;
mod keys;
mod oauth;
mod pace;
mod peer;
mod policy;
mod rotation;
pub mod router;
mod routes;
mod status;
mod tenants;

pub(crate) use audit::RefusalLog;
pub(crate) use bearer::Bearers;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use bearer::fuzzing;
pub use bearer::{Identity, KEY_LIMITS, OidcIssuer};
pub(crate) use enroll::{enroll, provision};
pub use keyring::{AdminToken, KeyKeeper, Keyring};
pub use oauth::LIMITS as TOKEN_LIMITS;
pub(crate) use oauth::{TokenLimits, token};
pub(crate) use pace::Pace;
pub(crate) use policy::declare;
pub(crate) use rotation::resume as resume_key_change;
pub use router::router;
