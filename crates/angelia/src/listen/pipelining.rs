//! Pipelining: whose turn it is among requests that were sent ahead of an answer.

use angelia_core::clock;
use angelia_core::connections::{SENT_AHEAD, SENT_AHEAD_TURN, is_crowd, rest_after};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The turns of one listener, first come, first served.
pub(super) struct Ahead {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(SENT_AHEAD)), waiting: AtomicUsize::new(0) }
    }
}

impl Ahead {
    /// Does something in its turn; `begin` is called when that has come. The next
    /// one does not wait for what this one waits for, in a crowd only for a moment.
    pub(super) async fn in_turn<T>(&self, begin: impl FnOnce(), act: impl Future<Output = T>) -> T {
        let waiting = Waiting::new(&self.waiting);
        let turn = self.turns.clone().acquire_owned().await;
        drop(waiting);
        let began = clock::mono();
        begin();
        let mut act = pin!(act);
        let others = || self.waiting.load(Ordering::Relaxed);
        let mut done = poll_fn(|cx| Poll::Ready(act.as_mut().poll(cx))).await;
        if done.is_pending() && is_crowd(others()) {
            done = timeout(SENT_AHEAD_TURN, &mut act).await.map_or(Poll::Pending, Poll::Ready);
        }
        let took = clock::mono().since(began);
        if let Some(rest) = rest_after(others(), took) {
            tokio::spawn(async move {
                tokio::time::sleep(rest).await;
                drop(turn);
            });
        } else {
            drop(turn);
        }
        match done {
            Poll::Ready(done) => done,
            Poll::Pending => act.await,
        }
    }
}

/// One that waits, until it has its turn or hangs up.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use tokio::time::{Duration, sleep};

    async fn until(mut is_so: impl FnMut() -> bool) {
        let waiting = async {
            while !is_so() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(10), waiting).await.expect("it comes to that");
    }

    #[tokio::test]
    async fn a_crowd_goes_one_by_one_and_rests_in_between() {
        let (ahead, begun) = (Arc::new(Ahead::default()), Arc::new(Mutex::new(Vec::new())));
        let held = ahead.turns.clone().acquire_owned().await.unwrap();
        for _ in 0..30 {
            let (ahead, begun) = (ahead.clone(), begun.clone());
            let begin = move || begun.lock().push(clock::mono());
            tokio::spawn(async move { ahead.in_turn(begin, std::future::pending::<()>()).await });
        }
        until(|| ahead.waiting.load(Ordering::Relaxed) == 30).await;
        drop(held);
        until(|| begun.lock().len() > 5).await;
        // Each keeps its turn for as long as it may, and then nobody has it for as long again.
        let begun = begun.lock();
        let shortest = begun.windows(2).map(|two| two[1].since(two[0])).min().unwrap();
        assert!(shortest >= SENT_AHEAD_TURN.mul_f32(1.8), "the next one after {shortest:?}");
    }
}
