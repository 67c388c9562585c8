//! Tests of following a room.

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

    fn open_thread(&self, _thread: NewThread, _action: ActionId) -> BoxFuture<'_, Result<Option<String>>> {
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
