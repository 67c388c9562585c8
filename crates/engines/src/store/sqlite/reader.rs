//! Reads beside the writer: WAL lets them go on while it commits.
//!
//! They run on a few threads of their own, each with a connection that stays open. A thread that
//! has read keeps what its page cache and its part of the allocator grew to, so there must be few
//! of them, and always the same: docs/decisions/0027.

use super::connection::Plain;
use super::open_for_reading;
use crate::store::db::{Db, Sql};
use angelia_core::error::{Error, Result};
use angelia_core::store::BoxFuture;
use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, oneshot};

angelia_contract::limits! {
    /// Each keeps a thread, a connection and some megabytes of memory for good. A read takes
    /// about a millisecond; beyond this many, reads wait for each other in their order.
    const AT_ONCE: usize = 4, count "reads of the database at the same time";
}

/// A read, with the connection or the reason why there is none.
type Job = Box<dyn FnOnce(Result<&Connection>) + Send>;

/// The threads that read.
pub(super) struct Readers {
    queue: Arc<ReadQueue>,
    turns: Arc<Semaphore>,
}

/// Where reads are handed to the threads.
struct ReadQueue {
    path: PathBuf,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    /// Given and not begun; no more than [`AT_ONCE`], because each has a turn.
    jobs: VecDeque<Job>,
    /// Started when they are first needed.
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    closed: bool,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        let queue = ReadQueue { path, state: Mutex::default(), arrived: Condvar::new() };
        Self { queue: Arc::new(queue), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// The file that is read.
    pub(super) fn path(&self) -> &Path {
        &self.queue.path
    }

    /// Runs one read off the async threads, at one moment.
    pub(super) fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        query: impl FnOnce(&mut dyn Db) -> Sql<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.look(what, |connection| at_one_moment(connection, query))
    }

    /// The same, for what is SQLite's own.
    pub(super) fn look<T: Send + 'static>(
        &self,
        what: &'static str,
        query: impl FnOnce(&Connection) -> Sql<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        let (queue, turns) = (self.queue.clone(), self.turns.clone());
        Box::pin(async move {
            let turn = turns.acquire_owned().await;
            let (answer, answered) = oneshot::channel();
            queue.give(Box::new(move |connection| {
                let _turn = turn;
                // Whoever gave up waiting needs no answer.
                if !answer.is_closed() {
                    let read = connection.and_then(|it| query(it).map_err(|e| e.told(what)));
                    let _ = answer.send(read);
                }
            }));
            let broken = || Error::unavailable(format!("the store could not {what}: the read broke off"));
            answered.await.unwrap_or_else(|_| Err(broken()))
        })
    }
}

impl Drop for Readers {
    /// Closes every connection before the writer's, which is the one that can fold the log.
    fn drop(&mut self) {
        let threads = {
            let mut state = self.queue.state.lock();
            state.closed = true;
            std::mem::take(&mut state.threads)
        };
        self.queue.arrived.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl ReadQueue {
    /// Hands over a read. If there is nobody to do it, it is dropped, which its caller is told.
    fn give(self: &Arc<Self>, job: Job) {
        let mut state = self.state.lock();
        state.jobs.push_back(job);
        if state.jobs.len() > state.idle && state.threads.len() < AT_ONCE {
            let queue = self.clone();
            let started = std::thread::Builder::new().name("store-reader".into()).spawn(move || queue.work());
            match started {
                Ok(thread) => state.threads.push(thread),
                Err(error) => tracing::warn!(%error, "a thread to read the store could not be started"),
            }
        }
        if state.threads.is_empty() {
            state.jobs.clear();
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Reads what it is given, until the store closes.
    fn work(&self) {
        let mut kept = None;
        while let Some(job) = self.next() {
            if kept.is_none() {
                match open_for_reading(&self.path) {
                    Ok(connection) => kept = Some(connection),
                    Err(error) => {
                        job(Err(error));
                        continue;
                    }
                }
            }
            if let Some(connection) = &kept
                && catch_unwind(AssertUnwindSafe(|| job(Ok(connection)))).is_err()
            {
                // Nobody knows in what state it was left.
                kept = None;
            }
        }
    }

    /// The next read; `None` when the store closes.
    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        state.idle += 1;
        while state.jobs.is_empty() && !state.closed {
            self.arrived.wait(&mut state);
        }
        state.idle -= 1;
        state.jobs.pop_front()
    }
}

/// However many statements it takes.
fn at_one_moment<T>(connection: &Connection, query: impl FnOnce(&mut dyn Db) -> Sql<T>) -> Sql<T> {
    let snapshot = connection.unchecked_transaction()?;
    query(&mut Plain(&snapshot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::db::Ask;
    use angelia_core::error::Kind;
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use std::collections::HashSet;
    use std::thread::{ThreadId, current};

    /// A database with nothing in it, and readers of it.
    fn readers() -> (tempfile::TempDir, Readers) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (n)").unwrap();
        (folder, Readers::new(path))
    }

    /// Reads, and tells on which thread.
    async fn where_it_reads(readers: &Readers) -> ThreadId {
        let read = readers.read("count", |db| {
            db.says::<i64>("SELECT count(*) FROM t", &[])?;
            Ok(current().id())
        });
        read.await.unwrap()
    }

    /// Holds a thread until the returned end is dropped.
    fn hold(readers: &Readers) -> (std::sync::mpsc::SyncSender<()>, BoxFuture<'_, Result<()>>) {
        let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
        let reading = readers.read("wait", move |_| {
            let _ = held.recv();
            Ok(())
        });
        (release, reading)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_reads_share_a_few_threads_that_stay() {
        let (_folder, readers) = readers();
        for _ in 0..5 {
            let all = (0..200).map(|_| where_it_reads(&readers));
            let used: HashSet<ThreadId> = join_all(all).await.into_iter().collect();
            assert!((1..=AT_ONCE).contains(&used.len()), "{} threads", used.len());
        }
        assert!(readers.queue.state.lock().threads.len() <= AT_ONCE);
    }

    #[tokio::test]
    async fn one_read_after_the_other_needs_one_thread() {
        let (_folder, readers) = readers();
        let first = where_it_reads(&readers).await;
        for _ in 0..20 {
            // The thread that answered is back at the queue before the next read comes.
            while readers.queue.state.lock().idle == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(where_it_reads(&readers).await, first);
        }
    }

    #[tokio::test]
    async fn a_read_that_takes_long_holds_up_no_other() {
        let (_folder, readers) = readers();
        let (held, mut reading): (Vec<_>, Vec<_>) = (1..AT_ONCE).map(|_| hold(&readers)).unzip();
        for it in &mut reading {
            assert!(it.now_or_never().is_none());
        }
        where_it_reads(&readers).await;
        drop(held);
        for it in reading {
            it.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_read_that_panics_is_an_error_and_the_next_one_works() {
        let (_folder, readers) = readers();
        for _ in 0..2 * AT_ONCE {
            let broken = readers.read("break", |_| -> Sql<()> { panic!("as it should") }).await;
            assert_eq!(broken.unwrap_err().kind(), Kind::Unavailable);
        }
        where_it_reads(&readers).await;
    }

    #[tokio::test]
    async fn who_gives_up_gives_the_turn_back() {
        let (_folder, readers) = readers();
        for _ in 0..2 * AT_ONCE {
            let (held, mut reading) = hold(&readers);
            assert!((&mut reading).now_or_never().is_none());
            drop((reading, held));
        }
        where_it_reads(&readers).await;
    }

    #[tokio::test]
    async fn no_connection_is_open_after_the_end() {
        let (folder, readers) = readers();
        where_it_reads(&readers).await;
        let queue = Arc::downgrade(&readers.queue);
        drop(readers);
        assert!(queue.upgrade().is_none(), "every thread has ended");
        drop(folder);
    }
}
