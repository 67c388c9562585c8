//! The server: the relay socket that gateways dial, the edge that providers
//! and people reach, and the management plane.

mod clockwork;
pub mod edge;
mod egress;
mod interrupt;
mod listening;
pub mod manage;
mod notices;
mod opening;
mod relay;
mod server;
pub mod telemetry;
mod unanswered;

pub use egress::EgressTimings;
pub use manage::{AdminToken, Identity, KeyKeeper, Keyring, OidcIssuer, admin};
pub use notices::{Away, Notices};
pub use server::{Announcer, Limits, Options, Server};

/// Every limit of this crate that operators are told of.
pub fn limits() -> impl Iterator<Item = &'static angelia_contract::limit::Limit> {
    relay::LIMITS.into_iter().flatten()
}
