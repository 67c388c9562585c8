//! What comes in: who may speak to which agent, the bots that listen, and what reached nobody.

mod admission;
mod bots;
mod drops;
mod forward;
mod overheard;

pub(crate) use admission::RoutedAdmission;
pub(crate) use bots::{Bots, Listeners};
pub use drops::Dropped;
pub(crate) use drops::{Drops, Heard};
pub(crate) use overheard::RecentTalk;
