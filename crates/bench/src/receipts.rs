//! What arrived, and when.

use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Why a run gives no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A post got another answer than 201.
    #[error("a post was answered with {0:?}")]
    Post(String),
    /// An action of a gateway failed.
    #[error("a send was answered with {0}")]
    Send(String),
    /// A socket or a connection ended, or did not begin.
    #[error("{0}")]
    Broken(String),
    /// A room's messages came out of order, twice, or with a gap.
    #[error("gateway {gateway} awaited message {awaited} and got {got}")]
    Order {
        /// Whose they were.
        gateway: String,
        /// The next number of the room.
        awaited: u64,
        /// The one that came.
        got: u64,
    },
    /// Not everything arrived.
    #[error("{missing} of {begun} never arrived")]
    Lost {
        /// How many did not.
        missing: u64,
        /// How many should have.
        begun: u64,
    },
}

/// The books of one load, kept by all gateways together.
#[derive(Debug)]
pub(crate) struct Receipts {
    /// What moments inside messages are counted from.
    epoch: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    times: Vec<Duration>,
    last: Option<Instant>,
    fault: Option<Fault>,
}

impl Receipts {
    pub(crate) fn new() -> Self {
        Self { epoch: Instant::now(), inner: Mutex::default() }
    }

    /// A moment as a message carries it.
    pub(crate) fn stamp(&self, at: Instant) -> u128 {
        at.duration_since(self.epoch).as_nanos()
    }

    /// Something arrived that began at the moment it carries.
    pub(crate) fn arrived_since(&self, stamp: u64) {
        self.arrived(self.epoch + Duration::from_nanos(stamp));
    }

    /// Something arrived.
    pub(crate) fn arrived(&self, begun: Instant) {
        let now = Instant::now();
        self.with(|inner| {
            inner.times.push(now.duration_since(begun));
            inner.last = Some(now);
        });
    }

    /// Notes what went wrong; the first fault is the one that is told.
    pub(crate) fn fault(&self, fault: Fault) {
        self.with(|inner| inner.fault.get_or_insert(fault).clone());
    }

    /// How many arrived since they were last taken out, unless something went wrong.
    pub(crate) fn count(&self) -> Result<u64, Fault> {
        self.with(|inner| inner.fault.clone().map_or(Ok(inner.times.len() as u64), Err))
    }

    /// Takes the times out, and when the last one came.
    pub(crate) fn take(&self) -> (Vec<Duration>, Option<Instant>) {
        self.with(|inner| (std::mem::take(&mut inner.times), inner.last.take()))
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.lock().expect("nobody panics with the lock"))
    }
}
