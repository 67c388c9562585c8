//! The server: the relay socket that gateways dial, what agents send to platforms, and
//! what operators and gateways ask of it.
//!
//! | Question | Module |
//! |---|---|
//! | Who may open a socket, and what travels on it? | `relay`: `upgrade`, `handshake`, `session` |
//! | Which socket is told of a commit? | `relay`: `mailbox`, its `Subscriber`, and `sessions` |
//! | What becomes of `send`, `edit`, `typing`, `follow_up`? | `egress` |
//! | How do files come and go: `/relay/media`? | `media` |
//! | Whose message is it, and which bots listen? | `ingress` |
//! | Who is known here? | `identities` |
//! | What may operators ask? And gateways: `/relay/enroll`, `/relay/provision`, `/relay/policy`? | [`admin`] |
//! | What happens without being asked: wakes, notices, pruning? | `upkeep` |
//! | What is said by the connector itself, as operators want it? | `notices` |
//! | What may a URL of others point to? | [`ssrf_guard`] |
//!
//! Webhooks of providers are read in `angelia_platforms`: its `kit::webhook`, and the
//! `webhook` of each platform.

pub mod admin;
mod admin_token;
mod bootstrap;
mod cluster;
mod egress;
mod identities;
mod ingress;
mod key_handover;
mod keyring;
mod media;
mod notices;
mod readiness;
mod refusal_log;
mod registrar;
mod relay;
mod server;
pub mod ssrf_guard;
mod supervise;
pub mod telemetry;
mod upkeep;

pub use admin::{IdentityOptions, OidcIssuer};
pub use admin_token::AdminToken;
pub use bootstrap::{ClusterKey, cluster_key};
pub use egress::EgressTimings;
pub use keyring::{KeyKeeper, Keyring};
pub use notices::{Away, Notices};
pub use relay::Subscriber;
pub use server::{Limits, Options, Server};

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[angelia_contract::limit::Group] = &[
    ("Memory", admin::router::LIMITS),
    ("Files", media::LIMITS),
    ("Relay sockets", relay::UPGRADE_LIMITS),
    ("Relay sockets", relay::SESSION_LIMITS),
    ("Relay sockets", relay::ACK_LIMITS),
    ("What agents send", egress::LIMITS),
    ("Gateways and who signs in", registrar::LIMITS),
    ("Gateways and who signs in", identities::MANIFEST_LIMITS),
    ("Gateways and who signs in", admin::TOKEN_LIMITS),
    ("Gateways and who signs in", admin::KEY_LIMITS),
];
