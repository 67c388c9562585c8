//! The log that outlives every node, with commits that fail, and commits whose answer gets lost.

use crate::dice::Dice;
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, Mark, Quota};
use angelia_core::ports::log::Log;
use angelia_core::ports::{BoxFuture, Bus, Hint, Listener};
use angelia_engines::memory::MemoryLog;
use futures_util::FutureExt;
use std::sync::{Arc, Mutex, PoisonError};

/// The one agent there is.
pub(crate) const INSTANCE: InstanceId = InstanceId(1);

/// Collects what the log tells.
#[derive(Default)]
struct Published(Mutex<Vec<Hint>>);

impl Bus for Published {
    fn publish(&self, hint: Hint) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hint);
    }

    // Whoever simulates takes what was published.
    fn subscribe(&self, _: Listener) {}
}

/// The log.
pub(crate) struct Store {
    log: MemoryLog,
    published: Arc<Published>,
    dice: Dice,
    /// How many of a hundred commits fail, and of how many the answer is lost.
    pub(crate) faults: usize,
    /// Whether one did since somebody looked.
    pub(crate) failed: bool,
}

impl Store {
    pub(crate) fn new(seed: u64, faults: usize) -> Self {
        let published = Arc::<Published>::default();
        let log = MemoryLog::new(Quota::default(), published.clone());
        log.add(INSTANCE);
        Self { log, published, dice: Dice::new(seed), faults, failed: false }
    }

    /// What was published since this was asked last.
    pub(crate) fn hints(&self) -> Vec<Hint> {
        std::mem::take(&mut *self.published.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the log: it may fail, and a commit may be made though nobody hears of it.
    pub(crate) fn ask<T>(
        &mut self,
        ask: impl for<'a> FnOnce(&'a MemoryLog) -> BoxFuture<'a, Result<T>>,
    ) -> Option<T> {
        let (fails, unheard) = (self.dice.percent(self.faults), self.dice.percent(self.faults));
        self.failed |= fails || unheard;
        if fails {
            return None;
        }
        ask(&self.log).now_or_never().and_then(Result::ok).filter(|_| !unheard)
    }

    /// How far the log is.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.log.states(vec![INSTANCE]).now_or_never()?.ok()?.first().map(|of| of.mark)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.log.waiting().now_or_never().and_then(Result::ok).is_some_and(|waiting| waiting.is_empty())
    }
}
