//! The task that keeps a connection, and what it does with one: it asks whether the server is
//! there, tells it what is followed, and sends what waits.

use super::Shared;
use super::channel::Channel;
use super::interest::Changes;
use super::link::{Link, Post};
use super::outbox::missed_with;
use angelia_core::clock::{Mono, mono};
use angelia_core::limit::{Backoff, spread};
use angelia_core::ports::{Hint, Topic};
use futures_util::FutureExt;
use redis::{PushInfo, PushKind, RedisError, RedisResult, Value};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How often the server is asked whether it is there. With the time it has to answer, one that
/// is not is noticed within a second and a half.
const ASK_EVERY: Duration = Duration::from_millis(400);
/// The first pause before a connection is tried again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A connection that lasts so long was a good one: the next pause is the first again.
const LASTING: Duration = Duration::from_secs(5);

/// Keeps the node connected, for ever.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    // The servers in turn: the one that was asked last may be the one that is gone.
    for first in (0..shared.servers.count()).cycle() {
        let began = mono();
        // Whoever listens may panic; the bus goes on.
        match AssertUnwindSafe(connected(&shared, first)).catch_unwind().await {
            Ok(why) => shared.went(&why),
            Err(_) => shared.went("somebody who listens panicked"),
        }
        if lasted(began) {
            backoff.reset();
        }
        tokio::time::sleep(spread(backoff.pause(), getrandom::u64().unwrap_or_default())).await;
    }
}

fn lasted(began: Mono) -> bool {
    mono().since(began) >= LASTING
}

/// Connects, and serves for as long as the connection lasts; answers why it ended.
async fn connected(shared: &Arc<Shared>, first: usize) -> String {
    let pushes = Arc::new(Pushes::default());
    let (heard, by) = (pushes.clone(), Arc::downgrade(shared));
    let on_push = Arc::new(move |push: PushInfo| {
        if let Some(shared) = by.upgrade() {
            heard.hear(&shared, push);
        }
    });
    let link = match Link::open(&shared.servers, first, on_push).await {
        Ok(link) => link,
        Err(error) => return error.to_string(),
    };
    let error = tokio::select! {
        () = pushes.ended.notified() => return "the connection was closed, or a channel has moved".to_owned(),
        error = ask(link.clone()) => error,
        error = tell_interest(shared, link.clone(), &pushes) => error,
        error = send(shared, link) => error,
    };
    error.to_string()
}

/// What a connection says unasked.
#[derive(Default)]
struct Pushes {
    /// It is of no more use.
    ended: Notify,
    /// Channels that were given up, and of which the server has not said so yet.
    leaving: AtomicI64,
}

impl Pushes {
    fn hear(&self, shared: &Shared, push: PushInfo) {
        match push.kind {
            PushKind::Message | PushKind::SMessage => {
                let mut data = push.data.into_iter();
                if let (Some(Value::BulkString(channel)), Some(Value::BulkString(message))) =
                    (data.next(), data.next())
                {
                    shared.hear(&channel, message);
                }
            }
            PushKind::Disconnection => self.ended.notify_one(),
            // A slot that moves to another server takes its channels with it, and nobody asked.
            PushKind::SUnsubscribe if self.leaving.fetch_sub(1, Ordering::Relaxed) <= 0 => {
                self.ended.notify_one();
            }
            _ => {}
        }
    }
}

/// Asks again and again whether the server is there.
async fn ask(mut link: Link) -> RedisError {
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        if let Err(error) = link.ping().await {
            return error;
        }
    }
}

/// Tells the server what is followed. Once it knows as much as was followed when it came, the
/// node is connected: somebody always comes or goes, and nobody waits until all is quiet.
async fn tell_interest(shared: &Shared, mut link: Link, pushes: &Pushes) -> RedisError {
    let (mut left, mut connected) = (shared.interest.start_over(), false);
    loop {
        let changes = shared.interest.take();
        left = left.saturating_sub(changes.len());
        let is_last = changes.is_empty() || left == 0;
        if let Err(error) = tell(shared, &mut link, pushes, &changes).await {
            return error;
        }
        if connected {
            // What was said between the wish to hear it and now was not heard.
            changes.subscribe.into_iter().for_each(|topic| shared.listeners.tell(Hint::Missed(Some(topic))));
        } else if is_last {
            connected = true;
            shared.came();
        }
        shared.interest.changed().await;
    }
}

/// Tells the server what changed.
async fn tell(shared: &Shared, link: &mut Link, pushes: &Pushes, changes: &Changes) -> RedisResult<()> {
    let (leaving, entering) = (shared.channels(&changes.unsubscribe), shared.channels(&changes.subscribe));
    if !leaving.is_empty() {
        pushes.leaving.fetch_add(i64::try_from(leaving.len()).unwrap_or(i64::MAX), Ordering::Relaxed);
        link.unsubscribe(leaving).await?;
    }
    if !entering.is_empty() {
        link.subscribe(entering).await?;
    }
    Ok(())
}

/// Sends what waits.
async fn send(shared: &Shared, mut link: Link) -> RedisError {
    loop {
        let hints = shared.outbox.next().await;
        let (posts, missed): (Vec<Post>, Vec<_>) =
            hints.into_iter().filter_map(|hint| Some((shared.post(&hint)?, missed_with(&hint)))).unzip();
        if posts.is_empty() {
            continue;
        }
        let under_way = UnderWay { shared, missed };
        if let Err(error) = link.publish(&posts).await {
            return error;
        }
        under_way.arrived();
    }
}

/// Hints that were sent and may not have arrived: if nobody says that they did, they are lost.
struct UnderWay<'a> {
    shared: &'a Shared,
    missed: Vec<Option<Topic>>,
}

impl UnderWay<'_> {
    fn arrived(mut self) {
        self.shared.counters.sent.fetch_add(self.missed.len() as u64, Ordering::Relaxed);
        self.missed.clear();
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.shared.counters.dropped.fetch_add(self.missed.len() as u64, Ordering::Relaxed);
        self.missed.drain(..).for_each(|missed| self.shared.outbox.lost(missed));
    }
}

impl Shared {
    fn channels(&self, topics: &[Topic]) -> Vec<Channel> {
        topics.iter().map(|topic| Channel::of(&self.prefix, topic)).collect()
    }

    /// The message that says a hint. One that is too long says that there was one.
    fn post(&self, hint: &Hint) -> Option<Post> {
        let channel = Channel::of(&self.prefix, &hint.topic());
        let message = self.wire.write(&channel.name, hint).or_else(|| {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            self.wire.write(&channel.name, &Hint::Missed(Some(hint.topic())))
        })?;
        Some(Post { channel, message })
    }
}
