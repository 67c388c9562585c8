//! The chat platforms, one folder each, and `kit`, what they share. The same question has the
//! same file in every folder that has an answer to it: `verify`, `normalize`, `address`, `take`, `send`,
//! `descriptor`, `manifest`; `webhook` where a provider posts, `ingest` where it is listened to.

mod admission;
mod commands;
pub mod discord;
mod files;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod ingress;
mod kit;
mod manifest;
mod nodes;
#[cfg(test)]
mod nodes_tests;
mod overheard;
mod platform;
pub mod settings;
pub mod sms;
pub mod telegram;
pub mod webchat;
pub mod wecom;

pub(crate) use kit::{arrival_window, health, inbound};

pub use admission::{Admission, Linking, Presence, Which};
pub use commands::{BotCommands, FromGateways, default_commands};
pub use files::{FileKeeper, Kept, Uploaded};
pub use ingress::{HeldLeases, Ingress, Seal, Stop, WrittenUnder};
pub use kit::Account;
pub use kit::health::{BotState, Checkup, Finding, Health, HealthRecord, Verdict};
pub use manifest::{ALL, Manifest, PLACES, Setup, blocks, section_keys};
pub use nodes::{Carried, Duty, Forwarded, Nodes};
pub use overheard::{Deaf, Overheard, Wanting};
pub use platform::{
    Answer, Delivery, Earlier, FetchedFile, FileContent, Outcome, OutgoingFile, Platform, Progress, Reach,
};

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[angelia_contract::limit::Group] = &[
    ("Web chat", webchat::PACE_LIMITS),
    ("Web chat", webchat::READ_LIMITS),
    ("Web chat", webchat::FILE_LIMITS),
    ("Web chat", webchat::FOLLOW_LIMITS),
    ("Web chat", webchat::DRAFT_LIMITS),
    ("Web chat", webchat::SEND_LIMITS),
    ("Web chat", webchat::VISIT_LIMITS),
    ("Files", kit::upload::LIMITS),
    ("Files", telegram::ALBUM_LIMITS),
];
