//! The management plane: who may enrol, and what an operator asks for.

#[macro_use]
pub mod types;

pub mod api;
mod bearer;
mod bot_health;
mod bots;
mod clients;
mod cluster_status;
mod commands;
mod endpoint;
mod enroll;
mod gateways;
mod inbox;
mod invites;
mod key_following;
mod keys;
mod master_key_change;
mod messages;
mod oauth;
mod openapi;
mod other_nodes;
mod policy;
pub mod router;
mod routes;
mod self_service;
mod standing_elsewhere;
mod status;
mod tenants;

pub(crate) use bearer::Bearers;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use bearer::fuzzing;
pub use bearer::{IdentityOptions, KEY_LIMITS, OidcIssuer};
pub use endpoint::{Call, Endpoint, NAMED, WHOLE};
use enroll::{enroll, provision};
pub(crate) use key_following::follow as follow_keys;
pub use oauth::LIMITS as TOKEN_LIMITS;
use oauth::{TokenLimits, token};
pub(crate) use other_nodes::until_known;
use policy::declare;
pub(crate) use router::{Admin, answer, router};
pub(crate) use self_service::SelfService;
