//! The management plane: who is known, and the operator's hands.

pub mod admin;
mod gateways;
mod identity;
mod roster;

pub(crate) use roster::Roster;
