//! Background loops that outlive a defect of ours: one that panics is counted, told of,
//! and begins again. Without that a server would go on and never prune, or wake anybody.

use crate::telemetry::{Counter, Metrics};
use angelia_core::clock;
use angelia_core::limit::Backoff;
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The pauses before a loop that panicked begins again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A loop that lived for so long has not failed in a row.
const LIVED: Duration = Duration::from_secs(300);

/// How far the server is on its way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It serves.
    Serving,
    /// It finishes what agents have begun, and lets them begin nothing new.
    Leaving,
    /// It stops.
    Stopping,
}

/// Whether the server leaves or stops, and what runs beside everything else until it does.
pub(crate) struct Lifecycle {
    metrics: Arc<Metrics>,
    stage: watch::Sender<Stage>,
    loops: Mutex<JoinSet<()>>,
}

impl Lifecycle {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { metrics, stage: watch::Sender::new(Stage::Serving), loops: Mutex::default() })
    }

    /// Lets everything know that the server is about to stop: whoever is not here yet may
    /// not come in, and nobody is called for.
    pub(crate) fn leave(&self) {
        self.reach(Stage::Leaving);
    }

    /// Lets everything know that the server stops.
    pub(crate) fn stop(&self) {
        self.reach(Stage::Stopping);
    }

    fn reach(&self, stage: Stage) {
        self.stage.send_if_modified(|now| std::mem::replace(now, stage.max(*now)) < stage);
    }

    /// Whether the server is about to stop, or stops.
    pub(crate) fn is_leaving(&self) -> bool {
        *self.stage.borrow() >= Stage::Leaving
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stage.borrow() >= Stage::Stopping
    }

    /// Waits for a while: what a loop does between its rounds, and where it ends. `false`
    /// if the server stops.
    pub(crate) async fn pause(&self, span: Duration) -> bool {
        self.unless_stopped(tokio::time::sleep(span)).await.is_some()
    }

    /// Waits for something that may be left half done; `None` if the server stops before.
    pub(crate) async fn unless_stopped<T>(&self, something: impl Future<Output = T>) -> Option<T> {
        self.unless(Stage::Stopping, something).await
    }

    /// The same; `None` if the server is about to stop before.
    pub(crate) async fn unless_leaving<T>(&self, something: impl Future<Output = T>) -> Option<T> {
        self.unless(Stage::Leaving, something).await
    }

    async fn unless<T>(&self, stage: Stage, something: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.reached(stage) => None,
            done = something => Some(done),
        }
    }

    /// Resolves when every loop has ended. Those that do not are cut off with the future.
    pub(crate) async fn ended(&self) {
        let mut loops = std::mem::take(&mut *self.loops.lock());
        while loops.join_next().await.is_some() {}
    }

    /// Resolves when the server stops.
    pub(crate) async fn stopped(&self) {
        self.reached(Stage::Stopping).await;
    }

    async fn reached(&self, stage: Stage) {
        // It cannot fail: the sender is here.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }

    /// Runs `work` of a service until it ends; again if it panics. A loop ends in one of its
    /// pauses, and not half way through what it does.
    pub(crate) fn supervise<S, F>(
        self: &Arc<Self>,
        name: &'static str,
        service: &Arc<S>,
        work: impl Fn(Arc<S>, Arc<Self>) -> F + Send + Sync + 'static,
    ) where
        S: Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (life, service) = (self.clone(), service.clone());
        self.loops.lock().spawn(async move {
            let panicked = |pause: Duration| {
                life.metrics.count(Counter::TaskPanics);
                tracing::error!(task = name, ?pause, "a background task panicked; it begins again");
            };
            again(&life, || work(service.clone(), life.clone()), panicked).await;
        });
    }
}

/// Runs `work` until it ends by itself.
async fn again<F: Future<Output = ()>>(life: &Lifecycle, work: impl Fn() -> F, panicked: impl Fn(Duration)) {
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
        if !life.pause(pause).await {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test(start_paused = true)]
    async fn what_panics_begins_again_with_growing_pauses_and_what_ends_has_ended() {
        let (runs, pauses) = (Cell::new(0), RefCell::new(Vec::new()));
        let work = || async {
            runs.set(runs.get() + 1);
            assert!(runs.get() > 3, "on purpose");
        };
        let life = Lifecycle::new(Arc::default());
        again(&life, work, |pause| pauses.borrow_mut().push(pause.as_secs())).await;
        assert_eq!((runs.get(), pauses.into_inner()), (4, vec![1, 2, 4]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_panics_is_counted_and_all_end_with_the_server() {
        let (metrics, runs) = (Arc::<Metrics>::default(), Arc::new(AtomicUsize::new(0)));
        let life = Lifecycle::new(metrics.clone());
        life.supervise("a test", &runs, |runs, life| async move {
            assert!(runs.fetch_add(1, Ordering::AcqRel) > 0, "on purpose");
            while life.pause(LIVED).await {}
        });
        tokio::time::sleep(FIRST_PAUSE * 2).await;
        assert_eq!((runs.load(Ordering::Acquire), metrics.get(Counter::TaskPanics)), (2, 1));
        life.stop();
        tokio::time::sleep(FIRST_PAUSE).await;
        assert_eq!(Arc::strong_count(&runs), 1, "the loop is gone");
    }

    #[tokio::test]
    async fn who_leaves_has_not_stopped_and_who_stopped_does_not_come_back() {
        let life = Lifecycle::new(Arc::default());
        assert!(!life.is_leaving() && !life.is_stopping());
        life.leave();
        assert!(life.is_leaving() && !life.is_stopping());
        assert_eq!(life.unless_leaving(std::future::pending::<()>()).await, None);
        assert_eq!(life.unless_stopped(async { 7 }).await, Some(7), "loops go on");
        life.stop();
        life.leave();
        assert!(life.is_leaving() && life.is_stopping());
        assert_eq!(life.unless_stopped(std::future::pending::<()>()).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_loop_has_begun_it_ends_although_the_server_stops() {
        let (life, steps) = (Lifecycle::new(Arc::default()), Arc::new(AtomicUsize::new(0)));
        life.supervise("a test", &steps, |steps, life| async move {
            while life.pause(FIRST_PAUSE).await {
                steps.fetch_add(1, Ordering::AcqRel);
                tokio::time::sleep(FIRST_PAUSE).await;
                steps.fetch_add(1, Ordering::AcqRel);
            }
        });
        tokio::time::sleep(FIRST_PAUSE * 3 / 2).await;
        assert_eq!(steps.load(Ordering::Acquire), 1, "in the middle of a round");
        life.stop();
        life.ended().await;
        assert_eq!((steps.load(Ordering::Acquire), Arc::strong_count(&steps)), (2, 1));
    }
}
