//! What is asked of the admin API and what it answers: one set of structs for
//! whoever serves, whoever asks, and the OpenAPI document.
//!
//! In a request, a field that may be left out is an option or has a default; one
//! that nobody knows is refused. In an answer, what is missing reads as empty:
//! while an operator changes releases, the command and the server may be of two.

mod access;
mod bots;
mod gateways;
mod inbox;
mod places;
mod status;
mod upkeep;

pub use access::*;
pub use bots::*;
pub use gateways::*;
pub use inbox::*;
pub use places::*;
pub use status::*;
pub use upkeep::*;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An empty object.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}
