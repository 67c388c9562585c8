//! The decisions of the connector, without any I/O.
//!
//! Everything here is a function of (state, input, now). Sockets, disks and
//! providers live in the crates around this one; the ports they implement are
//! declared in [`store`].

pub mod admission;
pub mod audit;
pub mod clock;
pub mod directory;
pub mod egress;
pub mod error;
pub mod fail;
pub mod identity;
pub mod inbox;
pub mod interrupt;
pub mod seal;
pub mod secret;
pub mod store;
pub mod vault;

pub use error::{Error, Kind};
