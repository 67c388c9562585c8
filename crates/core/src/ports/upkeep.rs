//! The store itself: whether it commits, its disk, its clock, and what is past its time.

use super::BoxFuture;
use crate::audit::Actor;
use crate::clock::{Age, Leap, UnixMillis};
use crate::error::Result;
use crate::space;
use std::time::Duration;

/// What a check of the whole database found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Nothing wrong.
    Sound,
    /// It is damaged: what was found first.
    Damaged(String),
    /// It took too long and was left.
    Unfinished,
}

/// The clock by which things grow old. While it has leapt and nobody has
/// confirmed that, nothing is dropped for its age.
pub trait ClockStore: Send + Sync {
    /// Looks at the clock: the leap that nobody has confirmed. Costs next to nothing.
    fn leap(&self) -> Option<Leap>;

    /// How long ago something of this store was written.
    fn age(&self, stamp: UnixMillis) -> Age;

    /// Writes down what is known of the clock.
    fn keep_clock(&self) -> BoxFuture<'_, Result<()>>;

    /// Takes the clock as it is for right; answers the leap that this was about.
    fn accept_clock(&self, by: &Actor) -> BoxFuture<'_, Result<Option<Leap>>>;

    /// A server begins; `true` if the one before did not end as it should.
    fn begin_run(&self) -> BoxFuture<'_, Result<bool>>;

    /// It ends as it should.
    fn end_run(&self) -> BoxFuture<'_, Result<()>>;

    /// Looks through the database beside everything else, for so long.
    fn quick_check(&self, within: Duration) -> BoxFuture<'_, Result<Checked>>;
}

/// Tenant and id of a gateway that is not remembered any more.
pub type ForgottenGateway = (String, String);

/// What was past its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Revoked gateways that are not remembered any more.
    pub forgotten: Vec<ForgottenGateway>,
    /// Messages that waited longer than the quota allows, dead letters included.
    pub overaged: u64,
}

/// The store itself: whether it commits, its disk, and what is past its time.
pub trait Upkeep: ClockStore {
    /// Whether the last commit went through; what `/readyz` shows.
    fn healthy(&self) -> bool;

    /// Writes something small to find out whether commits work again.
    fn probe(&self) -> BoxFuture<'_, Result<()>>;

    /// How the disk is doing.
    fn disk(&self) -> BoxFuture<'_, Result<space::Report>>;

    /// Looks after the disk: deletes what removed tenants left, lets the database
    /// shrink, and keeps space back for the operator.
    fn tend(&self) -> BoxFuture<'_, Result<()>>;

    /// Deletes what removed tenants left, in small steps that also fit a full disk.
    /// Whatever cut it short, the next call goes on.
    fn finish_removals(&self) -> BoxFuture<'_, Result<()>>;

    /// Drops what is past its time: seen keys, journal, overaged entries. Of what
    /// is kept for its age nothing goes while a leap of the clock is unconfirmed.
    fn prune(&self) -> BoxFuture<'_, Result<Pruned>>;
}
