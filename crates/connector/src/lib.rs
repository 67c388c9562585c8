//! The server: the relay socket that gateways dial, the edge that providers
//! and people reach, and the management plane.

pub mod admin;
mod bootstrap;
pub mod edge;
mod egress;
mod identities;
mod ingress;
mod refusal_log;
mod relay;
mod server;
mod supervise;
pub mod telemetry;
mod upkeep;

pub use admin::{AdminToken, Identity, KeyKeeper, Keyring, OidcIssuer};
pub use egress::EgressTimings;
pub use server::{Limits, Options, Server, Subscriber};
pub use upkeep::{Away, Notices};

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[angelia_contract::limit::Group] = &[
    ("Memory", admin::router::LIMITS),
    ("Relay sockets", relay::UPGRADE_LIMITS),
    ("Relay sockets", relay::SESSION_LIMITS),
    ("Relay sockets", relay::ACK_LIMITS),
    ("What agents send", egress::LIMITS),
    ("Gateways and who signs in", admin::TOKEN_LIMITS),
    ("Gateways and who signs in", admin::KEY_LIMITS),
];
