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
mod tests {
    use super::*;
    use angelia_core::error::Result;
    use angelia_core::store::{
        ActionId, Earlier, LineAnswer, LineEdit, LineMark, LineRevision, NewEntry, NewLine, NewThread, Page,
        PageSize, Person, Posted, Revised, ThreadName,
    };
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Long enough for whatever should happen at once.
    const SOON: Duration = Duration::from_secs(10);

    /// A room with one key, which may stop to count.
    #[derive(Default)]
    struct Room {
        closed: AtomicBool,
        present: AtomicBool,
        written: parking_lot::Mutex<Vec<Line>>,
        reads: AtomicUsize,
    }

    impl Room {
        /// Writes lines with these numbers, and tells nobody.
        fn write(&self, ids: impl IntoIterator<Item = i64>) {
            self.written.lock().extend(ids.into_iter().map(line));
        }
    }

    fn line(id: i64) -> Line {
        Line { id, place: id, room: "lab".into(), text: "x".into(), from_agent: true, ..Line::default() }
    }

    /// The numbers of the next lines that are shown.
    async fn shown(reader: &mut Reader, count: usize) -> Vec<i64> {
        let mut ids = Vec::new();
        while ids.len() < count {
            let before = reader.after;
            assert!(next(reader).await.is_some(), "the key is good");
            if reader.after != before {
                ids.push(reader.after);
            }
        }
        ids
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

        fn lines(&self, _room: &str, after: i64, _size: PageSize) -> BoxFuture<'_, Result<Page<Line>>> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let mut items: Vec<Line> =
                self.written.lock().iter().filter(|line| line.id > after).cloned().collect();
            // Pages are short here, so that there is more than one.
            let more = items.len() > 3;
            items.truncate(3);
            Box::pin(async move { Ok(Page { items, more }) })
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

        fn answer_line(&self, _answer: LineAnswer) -> BoxFuture<'_, Result<bool>> {
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

        fn mark_line(&self, _mark: LineMark) -> BoxFuture<'_, Result<bool>> {
            unreachable!("readers do not write")
        }

        fn open_thread(
            &self,
            _thread: NewThread,
            _action: ActionId,
        ) -> BoxFuture<'_, Result<Option<String>>> {
            unreachable!("readers do not write")
        }

        fn name_thread(&self, _name: ThreadName, _action: ActionId) -> BoxFuture<'_, Result<bool>> {
            unreachable!("readers do not write")
        }

        fn reached(&self, _rooms: Vec<String>) -> BoxFuture<'_, Result<Vec<i64>>> {
            unreachable!("readers are told")
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
            let presence = Some(if here { Presence::Here } else { Presence::Away });
            Box::pin(async move { presence }) as BoxFuture<'static, Option<Presence>>
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

    #[tokio::test]
    async fn a_gap_is_read_from_the_store_and_nothing_is_shown_twice() {
        let (room, hub, mut reader) = reader();
        room.write(1..=2);
        assert_eq!(shown(&mut reader, 2).await, [1, 2]);
        let reads = room.reads.load(Ordering::Relaxed);
        room.write(3..=9);
        hub.line(&line(3));
        assert_eq!(shown(&mut reader, 1).await, [3]);
        assert_eq!(room.reads.load(Ordering::Relaxed), reads, "the next one needs no reading");
        // Of 4 to 8 nobody tells here, or too late.
        hub.line(&line(9));
        hub.line(&line(8));
        hub.line(&line(9));
        assert_eq!(shown(&mut reader, 6).await, [4, 5, 6, 7, 8, 9]);
        room.write([10]);
        hub.line(&line(10));
        assert_eq!(shown(&mut reader, 1).await, [10]);
    }

    #[tokio::test]
    async fn whoever_is_told_how_far_the_room_is_reads_what_is_missing_once() {
        let (room, hub, mut reader) = reader();
        assert!(next(&mut reader).await.is_some(), "the agent");
        room.write(1..=5);
        hub.reached("lab", 5);
        assert_eq!(shown(&mut reader, 5).await, [1, 2, 3, 4, 5]);
        // The last number was given to something that is gone.
        hub.reached("lab", 6);
        hub.typing("lab");
        assert!(next(&mut reader).await.is_some(), "typing");
        let reads = room.reads.load(Ordering::Relaxed);
        hub.reached("lab", 6);
        hub.reached("lab", 2);
        hub.typing("lab");
        assert!(next(&mut reader).await.is_some(), "typing");
        assert_eq!(room.reads.load(Ordering::Relaxed), reads, "nothing is looked for twice");
        room.write([7]);
        hub.line(&line(7));
        assert_eq!(shown(&mut reader, 1).await, [7]);
    }

    #[tokio::test]
    async fn whoever_comes_back_goes_on_after_the_last_line_that_was_shown() {
        let (room, hub, mut reader) = reader();
        room.write(1..=9);
        reader.after = 4;
        hub.line(&line(9));
        assert_eq!(shown(&mut reader, 5).await, [5, 6, 7, 8, 9]);
    }

    #[tokio::test]
    async fn readers_show_their_keys_when_somebodys_are_void() {
        let (room, hub, mut reader) = reader();
        assert!(next(&mut reader).await.is_some(), "the agent");
        hub.keys_changed("lab");
        hub.typing("lab");
        assert!(next(&mut reader).await.is_some(), "this one is good");
        room.closed.store(true, Ordering::Relaxed);
        hub.keys_changed("lab");
        assert!(next(&mut reader).await.is_none());
    }

    #[tokio::test]
    async fn a_draft_is_shown_to_who_comes_in_the_middle_and_its_line_comes_before_its_end() {
        let (room, hub, mut reader) = reader();
        reader.look.html = true;
        hub.draft("lab", None, "*Hel".into());
        hub.draft("lab", None, "*Hello*".into());
        assert!(format!("{:?}", next(&mut reader).await.unwrap()).contains("agent"));
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("draft") && told.contains("<em>Hello</em>"), "only the newest: {told}");
        // Told of, and not looked at yet.
        hub.draft("lab", None, "*Hello*!".into());
        room.write([1]);
        hub.line(&Line { author: "agent".into(), ..line(1) });
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("message"), "{told}");
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("draft") && told.contains(r#"\"text\":\"\""#), "{told}");
    }

    #[tokio::test]
    async fn a_line_that_is_told_again_is_no_new_message() {
        let (_room, hub, mut reader) = reader();
        assert!(next(&mut reader).await.is_some(), "the agent");
        hub.line(&line(1));
        assert!(format!("{:?}", next(&mut reader).await.unwrap()).contains("message"));
        hub.line(&Line { id: 2, marks: vec!["+1".into()], ..line(1) });
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("edit") && told.contains("+1"), "{told}");
    }

    #[tokio::test]
    async fn words_of_the_agent_are_told_with_their_thread() {
        let (_room, hub, mut reader) = reader();
        assert!(next(&mut reader).await.is_some(), "the agent");
        hub.works("lab", Some("wa1"), Some("Reading files".into()));
        let told = format!("{:?}", next(&mut reader).await.unwrap());
        assert!(told.contains("typing") && told.contains("Reading files") && told.contains("wa1"), "{told}");
    }
}
