//! How many calls a provider can count in one second.
//!
//! A budget counts calls when they leave. They arrive when the network and both
//! machines let them: a hiccup turns two modest seconds into one that is too
//! full. So a call takes up room until a second after its answer.

use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// The second that providers count in, and a little for clocks that differ.
const WINDOW: Duration = Duration::from_millis(1_020);
/// How long room is waited for. It is full for so long only if nobody answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Room for so many calls in any second, wherever in it they arrive.
#[derive(Debug)]
pub(crate) struct ArrivalWindow {
    room: Arc<Semaphore>,
    window: Duration,
}

/// A call's room, to be held until its answer is there.
#[derive(Debug)]
pub(crate) struct Inside {
    place: Option<OwnedSemaphorePermit>,
    window: Duration,
}

impl ArrivalWindow {
    pub(crate) fn of(calls: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(calls)), window: WINDOW }
    }

    /// Waits for room, first come, first served; `None` if the provider answers nobody.
    pub(crate) async fn enter(&self) -> Option<Inside> {
        let place = timeout(PATIENCE, self.room.clone().acquire_owned()).await;
        Some(Inside { place: Some(place.ok()?.ok()?), window: self.window })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let (place, window) = (self.place.take(), self.window);
        // Without a runtime nobody calls any more.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                sleep(window).await;
                drop(place);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use tokio::time::Instant;

    #[tokio::test]
    async fn no_window_holds_more_arrivals_however_long_calls_are_on_their_way() {
        let window = Duration::from_millis(60);
        let arrivals = ArrivalWindow { room: Arc::new(Semaphore::new(5)), window };
        let arrived = Mutex::new(Vec::new());
        let call = |number: u64| {
            let (arrivals, arrived) = (&arrivals, &arrived);
            async move {
                let inside = arrivals.enter().await.unwrap();
                // Each takes another time to get there, and its answer to come back.
                sleep(Duration::from_millis(number * 7 % 40)).await;
                arrived.lock().push(Instant::now());
                sleep(Duration::from_millis(number * 3 % 10)).await;
                drop(inside);
            }
        };
        futures_util::future::join_all((0..40).map(call)).await;
        let mut arrived = arrived.into_inner();
        arrived.sort();
        assert_eq!(arrived.len(), 40);
        for six in arrived.windows(6) {
            assert!(six[5] - six[0] >= window, "six within a window: {six:?}");
        }
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_leaves_its_room() {
        let arrivals = ArrivalWindow { room: Arc::new(Semaphore::new(1)), window: Duration::from_millis(5) };
        for _ in 0..3 {
            let call = async {
                let _inside = arrivals.enter().await;
                std::future::pending::<()>().await;
            };
            assert!(timeout(Duration::from_millis(20), call).await.is_err());
        }
        assert!(arrivals.enter().await.is_some());
    }
}
