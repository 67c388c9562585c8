//! The ports: what the decisions need from the world, each small, and implemented
//! by several engines that pass the same tests.

mod bus;
mod lease;
mod ledger;
pub mod log;

pub use bus::{Bus, Hint, HintKind, Listener};
pub use lease::{Lease, Leases, Term, Token, lease_lost};
pub use ledger::{Accepted, ActionId, ActionOutcome, Ledger, NewAction, StoredAction, owner_replaced};

use crate::error::Result;
use std::future::Future;
use std::pin::Pin;

/// An answer that comes after the disk had its say.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;
