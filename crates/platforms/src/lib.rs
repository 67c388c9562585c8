//! The chat platforms, one folder each, always with the same files: `verify`,
//! `ingest`, `normalize`, `send`, `descriptor`.

mod admit;
mod commands;
mod crowd;
mod desk;
pub mod directory;
pub mod discord;
mod health;
mod hook;
mod inbound;
mod minted;
mod platform;
pub mod sms;
pub mod telegram;
pub mod webchat;
pub mod wecom;

pub use admit::{Admit, Linking, Which};
pub use commands::{SlashCommand, SlashOption};
pub use desk::{Desk, HeldLeases, Seal, Stop};
pub use health::{BotState, Checkup, Finding, Health, Pulse, Verdict};
pub use platform::{Answer, Delivery, Earlier, Outcome, Platform, Progress, Reach};

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[angelia_contract::limit::Group] = &[
    ("Web chat", webchat::PACE_LIMITS),
    ("Web chat", webchat::READ_LIMITS),
    ("Web chat", webchat::FOLLOW_LIMITS),
    ("Web chat", webchat::VISIT_LIMITS),
];
