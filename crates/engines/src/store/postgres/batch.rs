//! Doing what waits: batches of what is hot, and the rest one by one.

use super::hot::{self, Commit, HotWrite};
use super::lines::Lines;
use super::transact::is_certain;
use super::{Isolation, Shared};
use crate::store::db::{Failure, Sql};
use crate::store::engine::Owner;
use crate::store::txn::Txn;
use crate::store::{inbox, intake, ledger, webchat};
use angelia_core::error::Error;
use angelia_core::fail;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::log::{Appended, NewEntry};
use angelia_core::ports::{Hint, NewLine, Posted};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_postgres::error::SqlState;

/// Owners who have their turn again when this goes, however that comes about.
struct Turns<'a>(&'a Lines, Vec<Owner>);

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        self.0.done(self.1.drain(..));
    }
}

/// Why a batch came to nothing.
enum Undone {
    /// There is no connection: nothing was sent.
    NotSent(Error),
    /// The server says that nothing came of it.
    Refused(Failure),
    /// Nobody knows; the same may be done again without harm.
    Unknown(Failure),
}

impl Shared {
    /// Does what is hot, for ever.
    pub(super) async fn keep_batching(self: Arc<Self>) {
        loop {
            let (writes, owners, _places) = self.lines.batch().await.take();
            let _turns = Turns(&self.lines, owners);
            // Whoever waits for an answer is told that there is none.
            let _ = AssertUnwindSafe(self.clone().write_batch(writes)).catch_unwind().await;
        }
    }

    /// Does what is done alone, for ever.
    pub(super) async fn keep_writing(self: Arc<Self>) {
        loop {
            let (write, owner, _place) = self.lines.single().await.take();
            let _turns = Turns(&self.lines, owner.into_iter().collect());
            let _ = AssertUnwindSafe(write).catch_unwind().await;
        }
    }

    /// Does a batch at once, and what is left of it one by one.
    async fn write_batch(self: Arc<Self>, writes: Vec<HotWrite>) {
        let all = writes.len();
        self.hot.batches.fetch_add(1, Ordering::Relaxed);
        let (left, unknown) = self.clone().together(writes).await;
        self.hot.together.fetch_add((all - left.len()) as u64, Ordering::Relaxed);
        self.hot.one_by_one.fetch_add(left.len() as u64, Ordering::Relaxed);
        for write in left {
            self.clone().write_one(write, unknown).await;
        }
    }

    /// Does what can be done at once. Answers what is left, and whether that may have been done
    /// all the same.
    async fn together(self: Arc<Self>, mut writes: Vec<HotWrite>) -> (Vec<HotWrite>, bool) {
        let mut unusual = Vec::new();
        loop {
            let failure = match self.try_batch(&writes).await {
                Ok(mut did) => {
                    self.is_well(true);
                    let taken_in = writes.iter().any(HotWrite::is_intake);
                    self.tell(std::mem::take(&mut did.hints), taken_in);
                    let all = writes.into_iter().enumerate();
                    unusual.extend(all.filter_map(|(place, write)| did.answer(place, write)));
                    return (unusual, false);
                }
                Err(Undone::NotSent(error)) => {
                    self.is_well(false);
                    writes.into_iter().chain(unusual).for_each(|write| write.fail(&error));
                    return (Vec::new(), false);
                }
                Err(Undone::Unknown(failure)) => {
                    self.is_well(false);
                    tracing::debug!(%failure, "nobody knows what became of a batch; its writes are done one by one");
                    return (writes.into_iter().chain(unusual).collect(), true);
                }
                Err(Undone::Refused(failure)) => failure,
            };
            // One of the bots received something unusual, or reads under a lease that it lost.
            let (intakes, others): (Vec<_>, Vec<_>) = writes.into_iter().partition(HotWrite::is_intake);
            unusual.extend(intakes);
            if unusual.is_empty() || others.is_empty() || !is_unusual(&failure) {
                tracing::debug!(%failure, "a batch came to nothing; its writes are done one by one");
                return (others.into_iter().chain(unusual).collect(), false);
            }
            writes = others;
        }
    }

    async fn try_batch(&self, writes: &[HotWrite]) -> Result<hot::Did, Undone> {
        let client = self.pool.get().await.map_err(Undone::NotSent)?;
        if writes.iter().any(HotWrite::carries_message) {
            fail::point("before_commit");
        }
        if !fail::commit() {
            return Err(Undone::Refused(Failure::Damaged("a commit failed as it was told to".into())));
        }
        match hot::run(&client, &Isolation::Locks.begin(), writes, &self.quota).await {
            Ok((did, Commit::Done)) => {
                client.give_back();
                Ok(did)
            }
            Ok((did, Commit::Pending(number))) => {
                let committed: Sql<()> = self.commit(client, number).await;
                committed.map(|()| did).map_err(Undone::Refused)
            }
            // The connection goes; what was sent after the failure came to nothing.
            Err(error) if is_certain(&error) => Err(Undone::Refused(error.into())),
            Err(error) => Err(Undone::Unknown(error.into())),
        }
    }

    /// Does one of what is hot, as everything else is done. If it may have been done before, and
    /// nobody was told, they are now.
    async fn write_one(self: Arc<Self>, write: HotWrite, again: bool) {
        let (locks, shared) = (Isolation::Locks, self.clone());
        match write {
            HotWrite::Append(entry, answer) => {
                let instance = entry.instance;
                let append = move |txn: &mut dyn Txn| intake::append_one(txn, &entry);
                let appended = self.write(locks, "append", append).await;
                if again && matches!(appended, Ok(Appended::Seen(_))) {
                    shared.tell_where(instance).await;
                }
                let _ = answer.send(appended);
            }
            HotWrite::Settle(instance, epoch, settled, answer) => {
                let settle =
                    move |txn: &mut dyn Txn| inbox::settle_all(txn, instance, epoch, &settled).map(Ok);
                let _ = answer.send(self.write(locks, "settle", settle).await);
            }
            HotWrite::NoteTurns(instance, epoch, notes, answer) => {
                let note = move |txn: &mut dyn Txn| inbox::note_turns(txn, instance, epoch, &notes).map(Ok);
                let _ = answer.send(self.write(locks, "note turns", note).await);
            }
            HotWrite::TakeIn(bot, under, intakes, answer) => {
                let mut instances: Vec<InstanceId> =
                    intakes.iter().filter_map(|intake| intake.entry.as_ref()).map(|it| it.instance).collect();
                let take_in =
                    move |txn: &mut dyn Txn| intake::take_in_all(txn, &bot, under.as_ref(), &intakes);
                let taken = self.write(locks, "take in what a bot received", take_in).await;
                instances.dedup();
                if again && taken.is_ok() {
                    for instance in instances {
                        shared.tell_where(instance).await;
                    }
                }
                let _ = answer.send(taken);
            }
            HotWrite::Post(line, entry, answer) => {
                let _ = answer.send(self.post_one(*line, entry.map(|entry| *entry), again).await);
            }
            HotWrite::Accept(by, actions, answer) => {
                let accept = move |txn: &mut dyn Txn| ledger::accept_all(txn, by, &actions);
                let _ = answer.send(self.write(locks, "accept actions", accept).await);
            }
            HotWrite::Begin(by, id, answer) => {
                let begin = move |txn: &mut dyn Txn| ledger::begin(txn, by, id).map(Ok);
                let _ = answer.send(self.write(locks, "begin an action", begin).await);
            }
            HotWrite::Finish(by, ends, answer) => {
                let finish = move |txn: &mut dyn Txn| ledger::finish_all(txn, by, &ends).map(Ok);
                let _ = answer.send(self.write(locks, "finish actions", finish).await);
            }
        }
    }

    /// Posts one line. If it may have been done before, it is the first that counts, and whoever
    /// reads the room and the log is told now.
    async fn post_one(
        self: Arc<Self>,
        line: NewLine,
        entry: Option<NewEntry>,
        again: bool,
    ) -> angelia_core::error::Result<Posted> {
        let (room, own) = (line.room.clone(), line.message_id.clone());
        let (instance, shared) = (entry.as_ref().map(|entry| entry.instance), self.clone());
        let post = move |txn: &mut dyn Txn| webchat::post(txn, &line, entry.as_ref());
        let posted = self.write(Isolation::Locks, "post a line", post).await?;
        if !again || posted.message_id != own {
            return Ok(posted);
        }
        if let Some(instance) = instance.filter(|_| posted.entered) {
            shared.tell_where(instance).await;
        }
        let line = shared.clone().read("read a line", move |db| webchat::line(db, &room, &own)).await;
        if let Ok(Some(line)) = line {
            shared.bus.publish(Hint::Line(line));
        }
        Ok(Posted { new: true, ..posted })
    }

    /// Tells how far a log is.
    async fn tell_where(self: &Arc<Self>, instance: InstanceId) {
        let mark = self.clone().read("look at a log", move |db| inbox::mark(db, instance)).await;
        if let Ok(Some(mark)) = mark {
            self.bus.publish(Hint::Reached { instance, mark });
        }
    }
}

/// Whether a statement says so that something is not for it: it divides by nothing then.
fn is_unusual(failure: &Failure) -> bool {
    matches!(failure, Failure::Postgres(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO))
}
