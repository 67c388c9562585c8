//! The chat platforms, one folder each, always with the same files: `verify`,
//! `ingest`, `normalize`, `send`, `descriptor`.

mod admit;
mod platform;
pub mod webchat;

pub use admit::{Admit, Linking, Which};
pub use platform::{Delivery, Outcome, Platform, Progress};
