//! Following a room: first what the store has, then what happens.

use super::drafts::Draft;
use super::hub::{Happening, Hub, Stream as Happenings};
use super::read::{Look, STREAM_PAGE, Shown};
use super::routes::{Api, Reading, Refusal, told_of_agent};
use super::verify::{self, Caller, Fingerprint};
use crate::admission::Presence;
use angelia_core::store::{BoxFuture, Guest, Line, Lines};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// How often a reader is told whether the agent is there: soon enough for
/// whoever waits for it, rare enough for thousands who look.
const LOOK_FOR_AGENT: Duration = Duration::from_secs(1);

/// How often a reader's key is looked at again: nobody reads on for long after
/// it stopped counting, whatever else failed to end their stream.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One follower of a room.
struct Reader {
    lines: Arc<dyn Lines>,
    happenings: Happenings,
    key: Fingerprint,
    look_again: Interval,
    room: String,
    /// The last line that was shown: where the next stream begins.
    after: i64,
    /// Everything up to here was shown, or is not there any more.
    seen_to: i64,
    /// How far the room was said to be.
    told: i64,
    ready: VecDeque<Line>,
    behind: bool,
    held: Held,
    drafts: Drafts,
    agent: Agent,
    look: Look,
}

/// Tells whether the room's agent is there; `None` if there is none.
type IsPresent = Box<dyn Fn() -> BoxFuture<'static, Option<Presence>> + Send + Sync>;

/// What a reader was told of the agent.
struct Agent {
    is_present: IsPresent,
    look: Interval,
    told: Option<Option<Presence>>,
}

impl Agent {
    /// The event to tell, if there is something new.
    async fn news(&mut self) -> Option<sse::Event> {
        let now = (self.is_present)().await;
        if self.told.replace(now) == Some(now) {
            return None;
        }
        let told = now.map_or_else(|| json!({ "connected": null }), told_of_agent);
        sse::Event::default().event("agent").json_data(told).ok()
    }
}

/// What a reader was told of the lines that wait until the agent has finished.
struct Held {
    hub: Arc<Hub>,
    told: Vec<String>,
    /// Whether it may be otherwise by now.
    look: bool,
}

impl Held {
    /// The event to tell, if there is something new: all that is held now.
    fn news(&mut self, room: &str) -> Option<sse::Event> {
        if !std::mem::take(&mut self.look) {
            return None;
        }
        let now = self.hub.held(room);
        if now == self.told {
            return None;
        }
        let event = sse::Event::default().event("held").json_data(json!({ "message_ids": now })).ok();
        self.told = now;
        event
    }
}

/// What a reader was told of what agents are writing.
struct Drafts {
    hub: Arc<Hub>,
    /// By thread, the number of the draft.
    told: Vec<(Option<String>, u64)>,
    /// Whether it may be otherwise by now.
    look: bool,
}

impl Drafts {
    /// The next event to tell, if there is something new.
    fn news(&mut self, room: &str, html: bool) -> Option<sse::Event> {
        if !self.look {
            return None;
        }
        let now = self.hub.drafts(room);
        let over = |told: &(Option<String>, u64)| !now.iter().any(|draft| draft.thread == told.0);
        if let Some(at) = self.told.iter().position(over) {
            let (thread, _) = self.told.remove(at);
            return drafted(json!({ "text": "" }), thread);
        }
        let is_told = |draft: &Arc<Draft>| self.told.iter().any(|(_, number)| *number == draft.number);
        let Some(draft) = now.iter().find(|draft| !is_told(draft)) else {
            self.look = false;
            return None;
        };
        self.told.retain(|(thread, _)| *thread != draft.thread);
        self.told.push((draft.thread.clone(), draft.number));
        let mut data = json!({ "text": draft.text });
        if html {
            data["html"] = draft.html.as_str().into();
        }
        drafted(data, draft.thread.clone())
    }
}

fn drafted(data: Value, thread: Option<String>) -> Option<sse::Event> {
    sse::Event::default().event("draft").json_data(in_thread(data, thread)).ok()
}

/// The event of an agent that is at work.
fn typing(thread: Option<String>, words: Option<String>) -> Option<sse::Event> {
    let mut data = json!({});
    if let Some(words) = words {
        data["words"] = words.into();
    }
    sse::Event::default().event("typing").json_data(in_thread(data, thread)).ok()
}

fn in_thread(mut data: Value, thread: Option<String>) -> Value {
    if let Some(thread) = thread {
        data["thread"] = thread.into();
    }
    data
}

/// What happens in a room, for as long as somebody looks.
pub(super) async fn follow(
    State(api): State<Arc<Api>>,
    reading: Reading,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let Caller { guest: Guest { person, visiting, .. }, key, .. } = caller;
    let happenings = api.hub.read(&person, visiting)?;
    // A browser that reconnects says where it was.
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let (lines, hub, room) = (api.ports.lines.clone(), api.hub.clone(), person.room.clone());
    let is_present: IsPresent = Box::new(move || {
        let (api, person) = (api.clone(), person.clone());
        Box::pin(async move { api.agent(&person).await })
    });
    let reader = Reader {
        after: resumed.unwrap_or(reading.after),
        look: reading.look(),
        ..Reader::new(lines, hub, happenings, key, room, is_present)
    };
    Ok(Sse::new(reader.stream()).keep_alive(sse::KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

impl Reader {
    /// A follower who has seen nothing.
    fn new(
        lines: Arc<dyn Lines>,
        hub: Arc<Hub>,
        happenings: Happenings,
        key: Fingerprint,
        room: String,
        is_present: IsPresent,
    ) -> Self {
        let (look_again, look) = (every(LOOK_AGAIN), every(LOOK_FOR_AGENT));
        let agent = Agent { is_present, look, told: None };
        let drafts = Drafts { hub: hub.clone(), told: Vec::new(), look: true };
        let held = Held { hub, told: Vec::new(), look: true };
        let ready = VecDeque::new();
        Self {
            lines,
            happenings,
            key,
            look_again,
            room,
            after: 0,
            seen_to: 0,
            told: 0,
            ready,
            behind: true,
            held,
            drafts,
            agent,
            look: Look::default(),
        }
    }

    /// What they see, for as long as they look.
    fn stream(self) -> impl Stream<Item = Result<sse::Event, Infallible>> {
        futures_util::stream::unfold(self, |mut reader| async move {
            let event = reader.next().await?;
            Some((Ok(event), reader))
        })
    }

    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                self.after = line.id;
                // What is told again is no new message: somebody changed or marked it.
                let is_new = !line.edited && line.id == line.place;
                let event = sse::Event::default().event(if is_new { "message" } else { "edit" });
                return event.id(line.id.to_string()).json_data(Shown::new(&line, self.look)).ok();
            }
            if self.behind {
                // Also at the beginning: the room may have gone before the seat was taken.
                self.check_key().await?;
                self.read_on().await?;
                continue;
            }
            // Before the first word of the agent, so that whoever comes back knows what is over.
            if let Some(news) = self.held.news(&self.room) {
                return Some(news);
            }
            // After all that was told: a line comes before the end of its draft.
            if self.happenings.next.is_empty()
                && let Some(news) = self.drafts.news(&self.room, self.look.html)
            {
                return Some(news);
            }
            if self.agent.told.is_none()
                && let Some(news) = self.agent.news().await
            {
                return Some(news);
            }
            let happening = tokio::select! {
                biased;
                _ = self.look_again.tick() => {
                    self.check_key().await?;
                    continue;
                }
                _ = self.agent.look.tick() => match self.agent.news().await {
                    Some(news) => return Some(news),
                    None => continue,
                },
                happening = self.happenings.next.recv() => happening,
            };
            match happening {
                Ok(Happening::Line(line)) => self.hear(*line),
                Ok(Happening::Reached(id)) => self.look_for(id),
                Ok(Happening::Typing { thread, words }) => return typing(thread, words),
                Ok(Happening::Drafts) => self.drafts.look = true,
                Ok(Happening::Held) => self.held.look = true,
                Ok(Happening::Keys) => self.check_key().await?,
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    (self.behind, self.held.look, self.drafts.look) = (true, true, true);
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Takes a line that was told. Lines of a room are numbered without a gap: one that is not
    /// the next has others before it, which the store has.
    fn hear(&mut self, line: Line) {
        if line.id == self.seen_to + 1 {
            self.seen_to = line.id;
            self.ready.push_back(line);
        } else {
            self.look_for(line.id);
        }
    }

    /// The room is that far: what is missing is read.
    fn look_for(&mut self, id: i64) {
        if id > self.seen_to {
            self.told = self.told.max(id);
            self.behind = true;
        }
    }

    /// Reads what comes after what was shown. `None`, which ends the stream, if it cannot be read.
    async fn read_on(&mut self) -> Option<()> {
        let page = self.lines.lines(&self.room, self.after, STREAM_PAGE).await.ok()?;
        let last = page.items.last().map_or(self.after, |line| line.id);
        // Of what was told before, all that is there is read by now.
        self.seen_to = if page.more { last } else { last.max(self.told) };
        (self.ready, self.behind) = (page.items.into(), page.more);
        Some(())
    }

    /// `None`, which ends the stream, if the key does not open the room any more.
    async fn check_key(&self) -> Option<()> {
        verify::holder(&*self.lines, self.key, &self.room).await.ok().map(drop)
    }
}

/// Ticks from then on, never in a burst.
fn every(period: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
