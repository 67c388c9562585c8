//! Following a room: first what the store has, then what happens.

use super::hub::{Happening, Hub, Stream as Happenings};
use super::read::{Look, STREAM_PAGE, Shown};
use super::routes::{Api, Reading, Refusal, told_of_agent};
use super::verify::{self, Caller, Fingerprint};
use crate::admission::Presence;
use angelia_core::store::{Guest, Line, Lines};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use serde_json::json;
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
    after: i64,
    ready: VecDeque<Line>,
    behind: bool,
    held: Held,
    agent: Agent,
    look: Look,
}

/// Tells whether the room's agent is there; `None` if there is none.
type IsPresent = Box<dyn Fn() -> Option<Presence> + Send + Sync>;

/// What a reader was told of the agent.
struct Agent {
    is_present: IsPresent,
    look: Interval,
    told: Option<Option<Presence>>,
}

impl Agent {
    /// The event to tell, if there is something new.
    fn news(&mut self) -> Option<sse::Event> {
        let now = (self.is_present)();
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
    let is_present = Box::new(move || api.agent(&person));
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
        let held = Held { hub, told: Vec::new(), look: true };
        let (after, ready) = (0, VecDeque::new());
        Self {
            lines,
            happenings,
            key,
            look_again,
            room,
            after,
            ready,
            behind: true,
            held,
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
                let event = sse::Event::default().event(if line.edited { "edit" } else { "message" });
                return event.id(line.id.to_string()).json_data(Shown::new(&line, self.look)).ok();
            }
            if self.behind {
                // Also at the beginning: the room may have gone before the seat was taken.
                self.check_key().await?;
                let page = self.lines.lines(&self.room, self.after, STREAM_PAGE).await.ok()?;
                (self.ready, self.behind) = (page.items.into(), page.more);
                continue;
            }
            // Before the first word of the agent, so that whoever comes back knows what is over.
            if let Some(news) = self.held.news(&self.room) {
                return Some(news);
            }
            if self.agent.told.is_none()
                && let Some(news) = self.agent.news()
            {
                return Some(news);
            }
            let happening = tokio::select! {
                biased;
                _ = self.look_again.tick() => {
                    self.check_key().await?;
                    continue;
                }
                _ = self.agent.look.tick() => match self.agent.news() {
                    Some(news) => return Some(news),
                    None => continue,
                },
                happening = self.happenings.next.recv() => happening,
            };
            match happening {
                Ok(Happening::Line(line)) if line.id > self.after => self.ready.push_back(line),
                Ok(Happening::Line(_)) => {}
                Ok(Happening::LongLine) => self.behind = true,
                Ok(Happening::Typing) => return Some(sse::Event::default().event("typing").data("{}")),
                Ok(Happening::Held) => self.held.look = true,
                Err(broadcast::error::RecvError::Lagged(_)) => (self.behind, self.held.look) = (true, true),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
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
mod tests {
    use super::*;
    use angelia_core::error::Result;
    use angelia_core::store::{
        ActionId, BoxFuture, Earlier, LineEdit, LineRevision, NewEntry, NewLine, Page, PageSize, Person,
        Posted, Revised,
    };
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Long enough for whatever should happen at once.
    const SOON: Duration = Duration::from_secs(10);

    /// A room with one key, which may stop to count.
    #[derive(Default)]
    struct Room {
        closed: AtomicBool,
        present: AtomicBool,
    }

    fn ann() -> Person {
        Person { room: "lab".into(), user: "ann".into() }
    }

    impl Lines for Room {
        fn person(&self, _key: Fingerprint) -> BoxFuture<'_, Result<Option<Guest>>> {
            let open = !self.closed.load(Ordering::Relaxed);
            Box::pin(async move {
                Ok(open.then(|| Guest { person: ann(), alone: true, first: true, visiting: false }))
            })
        }

        fn lines(&self, _room: &str, _after: i64, _size: PageSize) -> BoxFuture<'_, Result<Page<Line>>> {
            Box::pin(async { Ok(Page::default()) })
        }

        fn post_line(&self, _line: NewLine, _entry: Option<NewEntry>) -> BoxFuture<'_, Result<Posted>> {
            unreachable!("readers do not write")
        }

        fn post_answered(&self, _line: NewLine, _answer: NewLine) -> BoxFuture<'_, Result<Posted>> {
            unreachable!("readers do not write")
        }

        fn earlier(&self, _person: &Person, _client_id: &str) -> BoxFuture<'_, Result<Option<Earlier>>> {
            unreachable!("readers do not write")
        }

        fn revise_line(&self, _revision: LineRevision) -> BoxFuture<'_, Result<Revised>> {
            unreachable!("readers do not write")
        }

        fn line(&self, _room: &str, _message_id: &str) -> BoxFuture<'_, Result<Option<Line>>> {
            unreachable!("readers read on")
        }

        fn say_lines(&self, _lines: Vec<NewLine>, _action: ActionId) -> BoxFuture<'_, Result<()>> {
            unreachable!("readers do not write")
        }

        fn edit_line(&self, _edit: LineEdit, _action: ActionId) -> BoxFuture<'_, Result<bool>> {
            unreachable!("readers do not write")
        }

        fn rooms(&self) -> BoxFuture<'_, Result<Vec<String>>> {
            unreachable!("readers know their room")
        }
    }

    fn reader() -> (Arc<Room>, Arc<Hub>, Reader) {
        let (room, hub) = (Arc::new(Room::default()), Arc::new(Hub::default()));
        let seat = hub.read(&ann(), false).unwrap();
        let shown = room.clone();
        let is_present = Box::new(move || {
            let here = shown.present.load(Ordering::Relaxed);
            Some(if here { Presence::Here } else { Presence::Away })
        });
        let reader = Reader::new(room.clone(), hub.clone(), seat, [1; 32], "lab".into(), is_present);
        (room, hub, reader)
    }

    async fn next(reader: &mut Reader) -> Option<sse::Event> {
        tokio::time::timeout(SOON, reader.next()).await.expect("something should happen")
    }

    #[tokio::test]
    async fn a_key_that_went_before_the_first_look_shows_nothing() {
        let (room, hub, mut reader) = reader();
        hub.typing("lab");
        room.closed.store(true, Ordering::Relaxed);
        assert!(next(&mut reader).await.is_none());
    }

    #[tokio::test]
    async fn a_reader_who_fell_behind_shows_the_key_again() {
        let (room, hub, mut reader) = reader();
        hub.typing("lab");
        for _ in ["the agent", "typing"] {
            assert!(next(&mut reader).await.is_some(), "the key is good");
        }
        room.closed.store(true, Ordering::Relaxed);
        for id in 0..1_000 {
            hub.line(&Line { id, place: id, room: "lab".into(), from_agent: true, ..Line::default() });
        }
        assert!(next(&mut reader).await.is_none());
    }

    #[tokio::test]
    async fn a_reader_is_told_when_the_agent_comes_and_goes() {
        let (room, _hub, mut reader) = reader();
        reader.agent.look = tokio::time::interval(Duration::from_millis(1));
        for present in [false, true, false] {
            room.present.store(present, Ordering::Relaxed);
            let told = format!("{:?}", next(&mut reader).await.unwrap());
            assert!(told.contains(&present.to_string()), "{told}");
        }
        let silent = tokio::time::timeout(Duration::from_millis(50), reader.next()).await;
        assert!(silent.is_err(), "nothing changed: {silent:?}");
    }

    #[tokio::test]
    async fn a_reader_is_told_what_is_held_at_the_beginning_and_when_it_changes() {
        let (_room, hub, mut reader) = reader();
        hub.hold("lab", "wp1");
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("held") && told.contains("wp1"), "{told}");
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("agent"), "{told}");
        hub.hold("den", "wp8");
        hub.hold("lab", "wp2");
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("wp1") && told.contains("wp2") && !told.contains("wp8"), "{told}");
        hub.release("lab", "wp1");
        hub.release("lab", "wp2");
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("held") && !told.contains("wp"), "{told}");
    }

    #[tokio::test]
    async fn a_key_is_looked_at_again_from_time_to_time_however_busy_the_room() {
        let (room, hub, mut reader) = reader();
        reader.look_again = tokio::time::interval(Duration::from_millis(1));
        for _ in 0..3 {
            hub.typing("lab");
            assert!(next(&mut reader).await.is_some(), "the key is good");
        }
        room.closed.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(5)).await;
        hub.typing("lab");
        assert!(next(&mut reader).await.is_none());
    }
}
