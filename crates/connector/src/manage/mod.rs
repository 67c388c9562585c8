//! The management plane: who is known, and the operator's hands.

pub mod admin;
mod api;
mod audit;
mod bearer;
mod bots;
mod clients;
mod clock;
mod doorkeeper;
mod drops;
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
mod roster;
mod routes;
mod status;
mod tenants;

pub(crate) use audit::RefusalLog;
pub(crate) use bearer::Bearers;
pub use bearer::{Identity, KEY_LIMITS, OidcIssuer};
pub(crate) use doorkeeper::Doorkeeper;
pub(crate) use drops::Drops;
pub(crate) use enroll::{enroll, provision};
pub use keyring::{AdminToken, KeyKeeper, Keyring};
pub use oauth::LIMITS as TOKEN_LIMITS;
pub(crate) use oauth::{TokenLimits, token};
pub(crate) use pace::Pace;
pub(crate) use policy::declare;
pub(crate) use roster::{Front, Roster};
