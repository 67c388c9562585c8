//! What was posted, and what came of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A post without its answer for this long is overdue: agents answer within a few seconds of
/// their return, and are away for less than ten.
const OVERDUE: Duration = Duration::from_secs(60);

/// Posts, and the readers that have seen each of their answers.
#[derive(Debug, Default)]
pub(super) struct Books {
    open: Mutex<HashMap<String, Post>>,
    posts: AtomicU64,
    answers: AtomicU64,
    /// Requests that were refused or failed, and were made again.
    pub(super) repeated: AtomicU64,
    /// Streams and sockets that were opened.
    pub(super) streams: AtomicU64,
    pub(super) sockets: AtomicU64,
    /// Actions that agents asked for and that succeeded.
    pub(super) actions: AtomicU64,
}

#[derive(Debug)]
struct Post {
    at: Instant,
    /// Who has still to see the answer.
    awaited_by: Vec<usize>,
}

impl Books {
    /// Notes a post whose answer these readers have to see.
    pub(super) fn posted(&self, name: &str, readers: &[usize]) {
        self.posts.fetch_add(1, Ordering::Relaxed);
        let post = Post { at: Instant::now(), awaited_by: readers.to_vec() };
        self.open().insert(name.to_owned(), post);
    }

    /// Notes that a reader saw the whole answer.
    pub(super) fn answered(&self, name: &str, reader: usize) {
        let mut open = self.open();
        if let Some(post) = open.get_mut(name) {
            post.awaited_by.retain(|awaited| *awaited != reader);
            if post.awaited_by.is_empty() {
                open.remove(name);
                self.answers.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn posts(&self) -> u64 {
        self.posts.load(Ordering::Relaxed)
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// The posts that still want their answer.
    pub(super) fn unanswered(&self) -> Vec<String> {
        self.open().keys().cloned().collect()
    }

    /// How many have wanted it for too long.
    pub(super) fn overdue(&self) -> usize {
        self.open_for(OVERDUE)
    }

    fn open_for(&self, time: Duration) -> usize {
        self.open().values().filter(|post| post.at.elapsed() >= time).count()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Post>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_open_until_every_reader_saw_its_answer() {
        let books = Books::default();
        books.posted("den-1", &[1, 2]);
        books.answered("den-1", 1);
        books.answered("den-1", 1);
        assert_eq!((books.posts(), books.answers(), books.overdue()), (1, 0, 0));
        assert_eq!(books.open_for(Duration::ZERO), 1);
        books.answered("den-1", 2);
        assert_eq!((books.answers(), books.open_for(Duration::ZERO)), (1, 0));
        assert!(books.unanswered().is_empty());
    }
}
