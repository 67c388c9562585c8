//! The management plane: who may enrol, and what an operator asks for.

#[macro_use]
pub mod types;

pub mod api;
mod bearer;
mod bots;
mod clients;
mod endpoint;
mod enroll;
mod gateways;
mod inbox;
mod invites;
mod keys;
mod master_key_change;
mod oauth;
mod openapi;
mod policy;
pub mod router;
mod routes;
mod self_service;
mod status;
mod tenants;

pub(crate) use bearer::Bearers;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use bearer::fuzzing;
pub use bearer::{IdentityOptions, KEY_LIMITS, OidcIssuer};
pub use endpoint::{Call, Endpoint, NAMED, WHOLE};
use enroll::{enroll, provision};
pub(crate) use master_key_change::resume as resume_key_change;
pub use oauth::LIMITS as TOKEN_LIMITS;
use oauth::{TokenLimits, token};
use policy::declare;
pub(crate) use router::{Admin, router};
pub(crate) use self_service::SelfService;
