//! The store of the nodes: leases by its own clock, and how far each bot was read.

use super::{Variant, Violation};
use angelia_core::clock::{Mono, UnixMillis};
use angelia_core::cluster::{Beat, Nodes as _, Sign};
use angelia_core::lease::{LeaseToken, may_advance};
use angelia_core::ports::{Lease, Leases as _, Under};
use angelia_engines::memory::MemoryRecords;
use std::cell::Cell;
use std::future::Future;
use std::task::{Context, Poll, Waker};

/// Bots whose streams are read.
pub(super) const BOTS: usize = 5;

thread_local! {
    /// The store's clock. One run is one thread's.
    static NOW: Cell<i64> = const { Cell::new(0) };
}

pub(super) fn lease_of(bot: usize) -> String {
    format!("bot {bot}")
}

/// What all nodes share.
pub(super) struct Store {
    records: MemoryRecords,
    /// How much of each stream was taken in.
    read: [u64; BOTS],
    variant: Variant,
}

impl Store {
    pub(super) fn new(variant: Variant) -> Self {
        NOW.with(|now| now.set(0));
        let records = MemoryRecords::new(|| UnixMillis(NOW.with(Cell::get)));
        Self { records, read: [0; BOTS], variant }
    }

    pub(super) fn set_clock(&self, now: Mono) {
        NOW.with(|clock| clock.set(i64::try_from(now.0.as_millis()).unwrap_or(i64::MAX)));
    }

    pub(super) fn beat(&self, sign: Sign) -> Option<Beat> {
        done(self.records.beat(sign)).ok()
    }

    pub(super) fn release(&self, lease: &Lease) {
        let _ = done(self.records.release(lease));
    }

    pub(super) fn leave(&self, node: &str) {
        let _ = done(self.records.leave(node));
    }

    /// How far a bot was read.
    pub(super) fn position(&self, bot: usize) -> u64 {
        self.read[bot]
    }

    /// Takes something in under a token; `false` if it was refused.
    pub(super) fn take_in(&mut self, bot: usize, token: LeaseToken, item: u64) -> Result<bool, Violation> {
        let under = Under { lease: lease_of(bot), token };
        let leases = done(self.records.leases()).unwrap_or_default();
        let current = leases.iter().find(|row| row.name == lease_of(bot)).map(|row| LeaseToken(row.token));
        if self.variant != Variant::NoFence && may_advance(Some(&under), current).is_err() {
            return Ok(false);
        }
        let next = self.read[bot];
        if item < next {
            return Err(Violation::Doubled(bot, item));
        }
        if item > next {
            return Err(Violation::Lost(bot, item));
        }
        self.read[bot] += 1;
        Ok(true)
    }
}

/// What comes of a future that waits for nobody.
fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
}
