//! What is asked of the admin API and what it answers: one set of structs for
//! whoever serves, whoever asks, and the OpenAPI document. Each stands beside the
//! function that answers.
//!
//! In a request, a field that may be left out is an option or has a default; one
//! that nobody knows is refused. In an answer, what is missing reads as empty:
//! while an operator changes releases, the command and the server may be of two.

/// What is asked.
macro_rules! asked {
    ($($(#[$about:meta])* pub struct $name:ident $fields:tt)*) => {$(
        $(#[$about])*
        #[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name $fields
    )*};
}

/// What is answered.
macro_rules! answered {
    ($($(#[$about:meta])* pub struct $name:ident $fields:tt)*) => {$(
        $(#[$about])*
        #[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default)]
        pub struct $name $fields
    )*};
}

pub use super::bots::*;
pub use super::clients::*;
pub use super::cluster_status::*;
pub use super::commands::*;
pub use super::gateways::*;
pub use super::inbox::*;
pub use super::invites::*;
pub use super::keys::*;
pub use super::messages::*;
pub use super::routes::*;
pub use super::status::*;
pub use super::tenants::*;
pub use crate::ingress::Dropped;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An empty object.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}
