//! The server: the relay socket that gateways dial, the edge that providers
//! and people reach, and the management plane.

mod clockwork;
pub mod edge;
mod egress;
mod interrupt;
mod listening;
mod losses;
pub mod manage;
mod notices;
mod opening;
mod places;
mod relay;
mod server;
pub mod telemetry;
mod unanswered;
mod upkeep;

pub use egress::EgressTimings;
pub use manage::{AdminToken, Identity, KeyKeeper, Keyring, OidcIssuer, admin};
pub use notices::{Away, Notices};
pub use server::{Limits, Options, Server, Subscriber};

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[angelia_contract::limit::Group] = &[
    ("Memory", manage::admin::LIMITS),
    ("Relay sockets", relay::UPGRADE_LIMITS),
    ("Relay sockets", relay::SESSION_LIMITS),
    ("Relay sockets", relay::ACK_LIMITS),
    ("What agents send", egress::LIMITS),
    ("Gateways and who signs in", manage::TOKEN_LIMITS),
    ("Gateways and who signs in", manage::KEY_LIMITS),
];
