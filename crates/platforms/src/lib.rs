//! The chat platforms, one folder each, always with the same files: `verify`,
//! `ingest`, `normalize`, `send`, `descriptor`.

mod admit;
mod crowd;
mod desk;
pub mod directory;
pub mod discord;
mod health;
mod inbound;
mod platform;
pub mod telegram;
pub mod webchat;

pub use admit::{Admit, Linking, Which};
pub use desk::{Desk, Seal, Stop};
pub use health::{BotState, Checkup, Finding, Health, Pulse, Verdict};
pub use platform::{Delivery, Outcome, Platform, Progress, Reach};
