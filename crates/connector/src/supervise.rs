//! Background loops that outlive a defect of ours: one that panics is counted, told of,
//! and begins again. Without that a server would go on and never prune, or wake anybody.

use crate::server::Server;
use crate::telemetry::Counter;
use angelia_core::clock;
use angelia_core::limit::Backoff;
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// The pauses before a loop that panicked begins again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A loop that lived for so long has not failed in a row.
const LIVED: Duration = Duration::from_secs(300);

/// Runs `work` beside everything else until it ends, or the server stops; again if it panics.
pub(crate) fn supervise<F>(
    server: &Arc<Server>,
    name: &'static str,
    work: impl Fn(Arc<Server>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let server = server.clone();
    tokio::spawn(async move {
        let panicked = |pause: Duration| {
            server.metrics.count(Counter::TaskPanics);
            tracing::error!(task = name, ?pause, "a background task panicked; it begins again");
        };
        tokio::select! {
            () = again(|| work(server.clone()), panicked) => {}
            () = server.stopped() => {}
        }
    });
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
