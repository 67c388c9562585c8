//! The database all nodes share, with commits that fail, and commits whose answer
//! gets lost.

use super::Variant;
use crate::dice::Dice;
use angelia_core::inbox::{AckHabit, Entry, Epoch, InstanceId, Mark, Quota, Seq};
use angelia_core::ports::log::{Appended, Claimed, Log, NewEntry, Ownership, Returned, Settlement, Stretch};
use angelia_core::ports::{self as bus, Bus, HintKind, Listener};
use angelia_core::store::PageSize;
use angelia_engines::memory::MemoryLog;
use futures_util::FutureExt;
use std::sync::{Arc, Mutex, PoisonError};

/// A hint that was published.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    pub(crate) instance: InstanceId,
    pub(crate) mark: Mark,
    pub(crate) entry: Entry,
    pub(crate) ahead: bool,
}

/// Collects what the log tells.
#[derive(Default)]
struct Published(Mutex<Vec<Hint>>);

impl Bus for Published {
    fn publish(&self, hint: bus::Hint) {
        let bus::Hint::Log { instance, mark, entry, kind } = hint else { return };
        let hint = Hint { instance, mark, entry, ahead: kind == HintKind::Ahead };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hint);
    }

    // Whoever simulates takes what was published.
    fn subscribe(&self, _: Listener) {}
}

/// The shared log.
pub(crate) struct Store {
    log: MemoryLog,
    published: Arc<Published>,
    dice: Mutex<Dice>,
    /// How many of a hundred commits fail, and of how many the answer is lost.
    faults: Mutex<usize>,
    variant: Variant,
}

impl Store {
    pub(crate) fn new(seed: u64, variant: Variant) -> Self {
        let published = Arc::<Published>::default();
        let log = MemoryLog::new(Quota::default(), published.clone());
        Self { log, published, dice: Mutex::new(Dice::new(seed)), faults: Mutex::new(3), variant }
    }

    pub(crate) fn add(&self, instance: InstanceId) {
        self.log.add(instance);
    }

    /// From now on every commit succeeds.
    pub(crate) fn heal(&self) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = 0;
    }

    /// What was published since this was asked last.
    pub(crate) fn hints(&self) -> Vec<Hint> {
        std::mem::take(&mut *self.published.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn happens(&self) -> bool {
        let often = *self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).percent(often)
    }

    /// A commit: it may fail, and it may be made though nobody hears of it.
    fn commit<T>(&self, make: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.happens() {
            return None;
        }
        let made = make();
        if self.happens() { None } else { made }
    }

    /// The epoch that is looked at; the broken variant looks at none.
    fn fence(&self, epoch: Epoch) -> Epoch {
        if self.variant == Variant::NoFence { Epoch(i64::MAX) } else { epoch }
    }

    pub(crate) fn append(&self, entry: NewEntry) -> Option<Seq> {
        self.commit(|| match self.log.append(entry).now_or_never()?.ok()? {
            Appended::New(seq) | Appended::Seen(seq) => Some(seq),
        })
    }

    pub(crate) fn claim(&self, instance: InstanceId) -> Option<Claimed> {
        self.commit(|| self.log.claim(instance, "node").now_or_never()?.ok())
    }

    pub(crate) fn load(&self, instance: InstanceId, after: Seq, size: PageSize) -> Option<Stretch> {
        self.commit(|| self.log.load(instance, after, &[], size).now_or_never()?.ok())
    }

    pub(crate) fn load_ahead(&self, instance: InstanceId, size: PageSize) -> Option<Stretch> {
        self.commit(|| self.log.load_ahead(instance, size).now_or_never()?.ok())
    }

    pub(crate) fn settle(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        settled: Vec<Settlement>,
    ) -> Option<Ownership> {
        self.commit(|| self.log.settle(instance, self.fence(epoch), settled).now_or_never()?.ok())
    }

    pub(crate) fn settle_late(&self, instance: InstanceId, seqs: Vec<Seq>) -> Option<Vec<Seq>> {
        self.commit(|| self.log.settle_late(instance, seqs).now_or_never()?.ok())
    }

    pub(crate) fn returned(&self, instance: InstanceId, epoch: Epoch, returned: Returned) -> Option<()> {
        let epoch = self.fence(epoch);
        self.commit(|| self.log.returned(instance, epoch, returned).now_or_never()?.ok().map(drop))
    }

    pub(crate) fn set_idle(&self, instance: InstanceId, epoch: Epoch) -> Option<Ownership> {
        self.commit(|| self.log.set_idle(instance, self.fence(epoch), true).now_or_never()?.ok())
    }

    pub(crate) fn mark(&self, instance: InstanceId) -> Option<Mark> {
        self.log.states(vec![instance]).now_or_never()?.ok()?.first().map(|of| of.mark)
    }

    /// Whether the instance counts as asleep.
    pub(crate) fn is_idle(&self, instance: InstanceId) -> bool {
        self.log.standing(instance).is_some_and(|(idle, _): (bool, AckHabit)| idle)
    }

    /// What still waits.
    pub(crate) fn waiting(&self) -> Vec<InstanceId> {
        self.log.waiting().now_or_never().and_then(Result::ok).unwrap_or_default()
    }
}
