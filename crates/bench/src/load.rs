//! Keeps a server busy with one kind of operation, and waits for the last of it.

use crate::gateway::Gateway;
use crate::poster::Poster;
use crate::receipts::{Fault, Receipts};
use crate::stage::Room;
use angelia_testkit::process::eventually;
use futures_util::future::try_join_all;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How long the last message may take when nobody posts any more.
const LAST: Duration = Duration::from_secs(20);
/// Time for the last acknowledgements to be committed: they belong to what is measured.
const SETTLE: Duration = Duration::from_millis(300);
/// What people write, after the number and the moment.
pub(crate) const WORDS: &str = "The quick brown fox jumps over the lazy dog, and the dog, which had been \
    asleep in the shade since noon, does not so much as lift its head to see who it was, because it \
    has seen foxes before and expects to see more of them; the afternoon is long, and warm.";

/// What is done again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A person posts, their agent's gateway receives and acknowledges.
    Post,
    /// A gateway sends, and is told what became of it.
    Send,
}

/// How fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// Each writer begins the next when the one before is done.
    FlatOut,
    /// So many in a second, of all writers together, whether or not the server keeps up: what
    /// begins late because it does not is counted from when it was due.
    PerSecond(f64),
}

/// A load that is over.
#[derive(Debug)]
pub(crate) struct Done {
    /// From the beginning until the last arrived.
    pub(crate) took: Duration,
    pub(crate) times: Vec<Duration>,
}

/// A gateway, its room, and how much was posted there.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) gateway: Gateway,
    pub(crate) room: Room,
    pub(crate) posted: u64,
}

/// One of those who are busy at the same time, with seats that are nobody else's: so a room's
/// messages have an order, and a gateway one action at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) seats: Vec<Seat>,
    pub(crate) poster: Poster,
}

/// Lets all writers work for so long, and waits until all of it has arrived.
pub(crate) async fn load(
    writers: &mut [Writer],
    receipts: &Arc<Receipts>,
    work: Work,
    pace: Pace,
    time: Duration,
) -> Result<Done, Fault> {
    let (begun, count) = (Instant::now(), writers.len());
    let working = writers.iter_mut().enumerate().map(|(number, writer)| {
        let plan = Plan { work, pace, begun, until: begun + time, number, count };
        writer.work(plan, receipts)
    });
    let count = try_join_all(working).await?.into_iter().sum();
    rest(receipts, begun, count).await
}

/// Waits until everything has arrived of a load in which so many began.
pub(crate) async fn rest(receipts: &Receipts, begun: Instant, count: u64) -> Result<Done, Fault> {
    let waited = tokio::time::timeout(LAST, arrived(receipts, count)).await;
    waited.unwrap_or_else(|_| {
        let missing = count.saturating_sub(receipts.count()?);
        Err(Fault::Lost { missing, begun: count })
    })?;
    sleep(SETTLE).await;
    let (times, last) = receipts.take();
    Ok(Done { took: last.unwrap_or(begun).duration_since(begun), times })
}

async fn arrived(receipts: &Receipts, all: u64) -> Result<(), Fault> {
    let done =
        || receipts.count().map_or_else(|fault| Some(Err(fault)), |count| (count >= all).then_some(Ok(())));
    eventually("the last arrival", LAST * 2, done).await
}

/// What one writer does in one load.
#[derive(Clone, Copy, Debug)]
struct Plan {
    work: Work,
    pace: Pace,
    begun: Instant,
    until: Instant,
    /// Which of the writers it is, and of how many.
    number: usize,
    count: usize,
}

impl Plan {
    /// Waits until a writer's next operation is due and gives the moment it counts from; `None`
    /// when the time is over.
    async fn next(&self, done: usize) -> Option<Instant> {
        let now = Instant::now();
        let due = match self.pace {
            Pace::FlatOut => now,
            #[expect(clippy::cast_precision_loss, reason = "some thousands")]
            Pace::PerSecond(rate) => {
                self.begun + Duration::from_secs_f64((done * self.count + self.number) as f64 / rate)
            }
        };
        if due >= self.until {
            return None;
        }
        if due <= now {
            return Some(due);
        }
        // A timer is late by up to a millisecond; that is not the server's.
        sleep_until(due).await;
        Some(Instant::now())
    }
}

impl Writer {
    async fn work(&mut self, plan: Plan, receipts: &Receipts) -> Result<u64, Fault> {
        let (mut done, seats) = (0, self.seats.len());
        while let Some(begun) = plan.next(done).await {
            let seat = &mut self.seats[done % seats];
            match plan.work {
                Work::Post => {
                    let text = format!("{} {} {WORDS}", seat.posted, receipts.stamp(begun));
                    seat.posted += 1;
                    let body = json!({ "text": text }).to_string();
                    self.poster.post(&seat.room.name, &seat.room.key, &body).await?;
                }
                Work::Send => {
                    let action = json!({ "op": "send", "chat_id": seat.room.chat_id(), "content": WORDS });
                    let id = format!("{}-{done}", plan.number);
                    let ask = json!({ "type": "outbound", "requestId": id, "action": action });
                    seat.gateway.ask(format!("{ask}\n"), begun).await?;
                }
            }
            done += 1;
        }
        Ok(done as u64)
    }
}
