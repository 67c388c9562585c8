//! Something that only one node does at a time: reading a bot, waking gateways, upkeep. What is
//! known of it is [`Duties`]'; here is how somebody waits for it.

use angelia_core::cluster::Duties;
use angelia_core::ports::LeaseToken;
use parking_lot::Mutex;
use std::sync::Arc;
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
            if let Some(token) = self.book.duties.lock().begin(&self.name) {
                return token;
            }
            // It cannot fail: the sender is here.
            let _ = told.changed().await;
        }
    }

    /// Resolves when its work has to stop.
    pub(crate) async fn over(&self) {
        let mut told = self.book.changed.subscribe();
        while !self.book.read(|duties| duties.is_over(&self.name)) {
            let _ = told.changed().await;
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
    use angelia_core::ports::Lease;
    use futures_util::FutureExt;

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
