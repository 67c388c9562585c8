//! Something that only one node does at a time: reading a bot, waking gateways, upkeep. What is
//! known of it is [`Duties`]'; here is how somebody waits for it.

use angelia_core::clock;
use angelia_core::cluster::Duties;
use angelia_core::ports::LeaseToken;
use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::watch;

/// What a node knows of what is its own to do, and who is told when that changes.
pub(super) struct Book {
    duties: Mutex<Duties>,
    changed: watch::Sender<()>,
}

impl Book {
    pub(super) fn new(duties: Duties) -> Arc<Self> {
        Arc::new(Self { duties: Mutex::new(duties), changed: watch::Sender::new(()) })
    }

    /// Looks something up.
    pub(super) fn read<T>(&self, ask: impl FnOnce(&Duties) -> T) -> T {
        ask(&self.duties.lock())
    }

    /// Changes something, and tells whoever waits.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Duties) -> T) -> T {
        let said = change(&mut self.duties.lock());
        self.changed.send_replace(());
        said
    }
}

/// Something that only one node does at a time. Whoever does a part of the work waits until it is
/// this node's, stops when it is not, and says when it has.
pub(crate) struct Duty {
    name: String,
    book: Arc<Book>,
}

impl Duty {
    pub(super) fn new(name: &str, book: &Arc<Book>) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), book: book.clone() })
    }

    /// Resolves once it is this node's; the token goes along with what is written. Whoever
    /// asked is at work from now on, until it says [`Duty::stopped`].
    pub(crate) async fn ours(&self) -> LeaseToken {
        let mut told = self.book.changed.subscribe();
        loop {
            // Nobody else has to hear that somebody began.
            if let Some(token) = self.book.duties.lock().begin(&self.name, clock::mono()) {
                return token;
            }
            // It cannot fail: the sender is here.
            let _ = told.changed().await;
        }
    }

    /// Resolves when its work has to stop. The clock is looked at whenever this is polled: work that
    /// polls it first does nothing on a node that stood still and was not told yet what it lost.
    pub(crate) async fn over(&self) {
        let is_over = || self.book.read(|duties| duties.is_over(&self.name, clock::mono()));
        let mut told = self.book.changed.subscribe();
        loop {
            // Whoever looks again when its time is over is told by the book.
            let by_the_clock = poll_fn(|_| if is_over() { Poll::Ready(()) } else { Poll::Pending });
            tokio::select! {
                biased;
                () = by_the_clock => return,
                _ = told.changed() => {}
            }
        }
    }

    /// Whoever waited for [`Duty::ours`] has stopped: nothing of it goes on here.
    pub(crate) fn stopped(&self) {
        self.book.change(|duties| duties.stopped(&self.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::cluster::{Beat, TERM};
    use angelia_core::ports::Lease;
    use futures_util::FutureExt;

    #[test]
    fn whoever_looks_sees_that_its_time_is_over_although_nobody_told_it() {
        let book = Book::new(Duties::default());
        book.change(|duties| duties.add("bot"));
        let lease = Lease { name: "bot".into(), node: "a".into(), token: LeaseToken(3), until: None };
        let began = clock::mono();
        book.change(|duties| duties.learn(&Beat { held: vec![lease], ..Beat::default() }, began));
        let duty = Duty::new("bot", &book);
        assert!(duty.ours().now_or_never().is_some());
        let mut over = Box::pin(duty.over());
        assert!(over.as_mut().now_or_never().is_none());
        // Fixed pause: a term is what it takes.
        std::thread::sleep(TERM);
        assert!(duty.ours().now_or_never().is_none(), "nor does anything begin");
        assert!(over.now_or_never().is_some());
    }

    #[test]
    fn who_waits_is_told() {
        let book = Book::new(Duties::default());
        book.change(|duties| duties.add("bot"));
        let duty = Duty::new("bot", &book);
        let mut begins = Box::pin(duty.ours());
        assert!(begins.as_mut().now_or_never().is_none());
        let lease = Lease { name: "bot".into(), node: "a".into(), token: LeaseToken(3), until: None };
        book.change(|duties| duties.take(lease));
        assert_eq!(begins.now_or_never(), Some(LeaseToken(3)));
        let mut over = Box::pin(duty.over());
        assert!(over.as_mut().now_or_never().is_none());
        book.change(Duties::leave);
        assert!(over.now_or_never().is_some() && book.read(Duties::is_at_work));
        duty.stopped();
        assert!(!book.read(Duties::is_at_work));
    }
}
