//! Background loops that outlive a defect of ours: one that panics is counted, told of,
//! and begins again. Without that a server would go on and never prune, or wake anybody.

use crate::telemetry::{Counter, Metrics};
use angelia_core::clock;
use angelia_core::limit::Backoff;
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// The pauses before a loop that panicked begins again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A loop that lived for so long has not failed in a row.
const LIVED: Duration = Duration::from_secs(300);

/// Whether the server stops, and what runs beside everything else until it does.
pub(crate) struct Lifecycle {
    metrics: Arc<Metrics>,
    stopping: AtomicBool,
    stopped: Notify,
}

impl Lifecycle {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { metrics, stopping: AtomicBool::new(false), stopped: Notify::new() })
    }

    /// Lets everything know that the server stops.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Resolves when the server stops.
    pub(crate) async fn stopped(&self) {
        let told = self.stopped.notified();
        if !self.is_stopping() {
            told.await;
        }
    }

    /// Runs `work` of a service until it ends, or the server stops; again if it panics.
    pub(crate) fn supervise<S, F>(
        self: &Arc<Self>,
        name: &'static str,
        service: &Arc<S>,
        work: impl Fn(Arc<S>) -> F + Send + Sync + 'static,
    ) where
        S: Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (life, service) = (self.clone(), service.clone());
        tokio::spawn(async move {
            let panicked = |pause: Duration| {
                life.metrics.count(Counter::TaskPanics);
                tracing::error!(task = name, ?pause, "a background task panicked; it begins again");
            };
            tokio::select! {
                () = again(|| work(service.clone()), panicked) => {}
                () = life.stopped() => {}
            }
        });
    }
}

/// Runs `work` until it ends by itself.
async fn again<F: Future<Output = ()>>(work: impl Fn() -> F, panicked: impl Fn(Duration)) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        let began = clock::mono();
        if AssertUnwindSafe(work()).catch_unwind().await.is_ok() {
            return;
        }
        if clock::mono().since(began) >= LIVED {
            backoff.reset();
        }
        let pause = backoff.pause();
        panicked(pause);
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    #[tokio::test(start_paused = true)]
    async fn what_panics_begins_again_with_growing_pauses_and_what_ends_has_ended() {
        let (runs, pauses) = (Cell::new(0), RefCell::new(Vec::new()));
        let work = || async {
            runs.set(runs.get() + 1);
            assert!(runs.get() > 3, "on purpose");
        };
        again(work, |pause| pauses.borrow_mut().push(pause.as_secs())).await;
        assert_eq!((runs.get(), pauses.into_inner()), (4, vec![1, 2, 4]));
    }
}
