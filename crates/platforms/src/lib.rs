//! The chat platforms, one folder each, always with the same files: `verify`,
//! `ingest`, `normalize`, `send`, `descriptor`.

mod platform;
pub mod webchat;

pub use platform::{Admit, Delivery, Platform};
