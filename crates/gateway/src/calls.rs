//! Calls that wait for their answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use angelia_contract::ActionResult;
use tokio::sync::{Semaphore, oneshot};

use crate::error::CallError;

/// Calls that may wait for answers at once; more wait for a place.
const MAX_PENDING: usize = 1024;

/// What a call comes to.
pub(crate) type Answer = Result<ActionResult, CallError>;

/// All calls of a gateway that wait for their answer.
pub(crate) struct Calls {
    pending: Mutex<HashMap<String, Pending>>,
    places: Semaphore,
    /// Distinguishes this process from the ones before it.
    process: u64,
    count: AtomicU64,
}

struct Pending {
    answer: oneshot::Sender<Answer>,
    written: Arc<AtomicBool>,
}

/// A place among the waiting calls; dropping it gives the place up.
pub(crate) struct Ticket<'a> {
    calls: &'a Calls,
    _place: tokio::sync::SemaphorePermit<'a>,
    /// The id the answer will carry.
    pub(crate) id: String,
}

/// One attempt at a call.
pub(crate) struct Attempt {
    /// To be raised when the call leaves this process.
    pub(crate) written: Arc<AtomicBool>,
    answer: oneshot::Receiver<Answer>,
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self {
            pending: Mutex::default(),
            places: Semaphore::new(MAX_PENDING),
            process: random(),
            count: AtomicU64::new(0),
        }
    }

    /// Takes a place, waiting for one if need be.
    pub(crate) async fn open(&self) -> Result<Ticket<'_>, CallError> {
        let place = self.places.acquire().await;
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        Ok(Ticket {
            calls: self,
            _place: place.map_err(|_| CallError::Stopped)?,
            id: format!("{:016x}{count:016x}", self.process),
        })
    }

    /// Delivers an answer; one that nobody waits for is ignored.
    pub(crate) fn answer(&self, id: &str, result: ActionResult) {
        let waiting = self.pending().remove(id);
        if let Some(pending) = waiting {
            let answer = if result.success { Ok(result) } else { Err(CallError::Refused(Box::new(result))) };
            let _ = pending.answer.send(answer);
        }
    }

    /// Ends every waiting call: the socket they went out on is gone.
    pub(crate) fn lose_all(&self) {
        let lost = std::mem::take(&mut *self.pending());
        for pending in lost.into_values() {
            let written = pending.written.load(Ordering::Acquire);
            let error = if written { CallError::Lost } else { CallError::NotSent };
            let _ = pending.answer.send(Err(error));
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket<'_> {
    /// Registers the call on the connection there is now.
    ///
    /// Not before: the end of a connection ends every call registered on it.
    pub(crate) fn attempt(&self) -> Attempt {
        let (sender, answer) = oneshot::channel();
        let written = Arc::new(AtomicBool::new(false));
        let pending = Pending { answer: sender, written: Arc::clone(&written) };
        self.calls.pending().insert(self.id.clone(), pending);
        Attempt { written, answer }
    }
}

impl Attempt {
    /// Waits for the answer.
    pub(crate) async fn answered(&mut self) -> Answer {
        (&mut self.answer).await.unwrap_or(Err(CallError::Lost))
    }

    /// What it means that no answer came.
    pub(crate) fn unanswered(&self) -> CallError {
        if self.written.load(Ordering::Acquire) { CallError::TimedOut } else { CallError::NotSent }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.calls.pending().remove(&self.id);
    }
}

/// A random number; a system without randomness gives the wall clock, which
/// is enough to spread dials and to tell processes apart.
pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or_else(|_| crate::clock::unix_seconds().wrapping_mul(0x9E37_79B9_7F4A_7C15))
}
