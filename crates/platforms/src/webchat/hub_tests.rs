use super::*;

fn person(room: &str, user: &str) -> Person {
    Person { room: room.into(), user: user.into() }
}

#[test]
fn one_person_has_so_many_seats_and_gets_them_back() {
    let hub = Arc::new(Hub::default());
    let ann = person("lab", "ann");
    let mut seats: Vec<Stream> = (0..MAX_STREAMS_EACH).map(|_| hub.read(&ann, false).unwrap()).collect();
    assert_eq!(hub.read(&ann, false).unwrap_err().kind(), Kind::TooMany);
    assert!(hub.read(&person("lab", "bob"), false).is_ok(), "another person");
    assert!(hub.read(&person("den", "ann"), false).is_ok(), "another room");
    seats.pop();
    assert!(hub.read(&ann, false).is_ok());
    drop(seats);
    assert!(hub.seats.are_free(), "nothing is kept of who left");
}

#[test]
fn everybody_together_has_so_many_seats() {
    let hub = Arc::new(Hub::default());
    let seats: Vec<Stream> =
        (0..MAX_STREAMS).map(|n| hub.read(&person("lab", &n.to_string()), false).unwrap()).collect();
    let refused = hub.read(&person("lab", "one more"), false).unwrap_err();
    assert_eq!((refused.kind(), refused.retry_after()), (Kind::Unavailable, Some(TRY_AGAIN)));
    drop(seats);
    assert!(hub.read(&person("lab", "one more"), false).is_ok());
}

#[test]
fn visitors_leave_seats_for_those_who_were_invited() {
    let hub = Arc::new(Hub::default());
    let visit = |n: usize| hub.read(&person("lab", &n.to_string()), true);
    let seats: Vec<Stream> = (0..MAX_STREAMS_OF_VISITORS).map(|n| visit(n).unwrap()).collect();
    assert_eq!(visit(MAX_STREAMS).unwrap_err().kind(), Kind::Unavailable);
    assert!(hub.read(&person("lab", "ann"), false).is_ok());
    drop(seats);
    let _two = [visit(0).unwrap(), visit(0).unwrap()];
    assert_eq!(visit(0).unwrap_err().kind(), Kind::TooMany);
}

#[test]
fn there_are_fewer_seats_where_there_are_few_connections() {
    let hub = Arc::new(Hub::default());
    hub.bound(&Lasting::of(22));
    let ann = person("lab", "ann");
    let _visit = hub.read(&person("lab", "eve"), true).unwrap();
    let _another = hub.read(&person("lab", "mallory"), true).unwrap();
    assert!(hub.read(&person("lab", "trudy"), true).is_err(), "half of four");
    let _seats = [hub.read(&ann, false).unwrap(), hub.read(&ann, false).unwrap()];
    assert_eq!(hub.read(&ann, false).unwrap_err().kind(), Kind::Unavailable);
}

#[test]
fn what_is_held_is_of_its_room_and_nothing_is_kept_of_what_went() {
    let hub = Hub::default();
    hub.hold("lab", "wp1");
    hub.hold("lab", "wp2");
    hub.hold("den", "wp3");
    hub.release("lab", "wp1");
    hub.release("lab", "wp9");
    assert_eq!((hub.held("lab"), hub.held("den")), (vec!["wp2".to_owned()], vec!["wp3".to_owned()]));
    hub.release("lab", "wp2");
    hub.release("den", "wp3");
    assert!(hub.held.is_empty());
}

#[tokio::test]
async fn the_streams_of_a_closed_room_end_and_no_others() {
    let hub = Arc::new(Hub::default());
    let (mut lab, mut den) =
        (hub.read(&person("lab", "ann"), false).unwrap(), hub.read(&person("den", "ann"), false).unwrap());
    hub.close([&"lab".to_owned()]);
    // Whoever comes after that is of another room of that name.
    let mut later = hub.read(&person("lab", "eve"), false).unwrap();
    hub.typing("lab");
    hub.typing("den");
    assert_eq!(lab.next.recv().await.unwrap_err(), broadcast::error::RecvError::Closed);
    assert!(matches!(den.next.recv().await, Ok(Happening::Typing { .. })));
    assert!(matches!(later.next.recv().await, Ok(Happening::Typing { .. })));
}

/// A bus of several nodes that says what was followed, and loses what it is told to lose.
#[derive(Default)]
struct Nodes {
    hubs: Mutex<Vec<std::sync::Weak<Hub>>>,
    followed: Mutex<Vec<(Topic, bool)>>,
    loses: std::sync::atomic::AtomicBool,
}

impl Bus for Nodes {
    fn publish(&self, hint: Hint) {
        if let Hint::Room { room, event } = hint
            && !self.loses.load(std::sync::atomic::Ordering::Relaxed)
        {
            let hubs: Vec<_> = self.hubs.lock().iter().filter_map(std::sync::Weak::upgrade).collect();
            hubs.iter().for_each(|hub| hub.hear(&room, &event));
        }
    }

    fn subscribe(&self, _listener: angelia_core::ports::Listener) {}

    fn follow(&self, topic: Topic) {
        self.followed.lock().push((topic, true));
    }

    fn unfollow(&self, topic: &Topic) {
        self.followed.lock().push((topic.clone(), false));
    }
}

impl Nodes {
    fn two() -> (Arc<Self>, Arc<Hub>, Arc<Hub>) {
        let nodes = Arc::new(Self::default());
        let [a, b] = ["a", "b"].map(|name| {
            let hub = Hub::on(nodes.clone());
            hub.is_node(name);
            nodes.hubs.lock().push(Arc::downgrade(&hub));
            hub
        });
        (nodes, a, b)
    }

    fn lose(&self, loses: bool) {
        self.loses.store(loses, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn typing_and_what_is_held_reach_readers_on_other_nodes() {
    let (nodes, a, b) = Nodes::two();
    a.hold("lab", "wp1");
    let mut reader = b.read(&person("lab", "ann"), false).unwrap();
    assert_eq!(b.held("lab"), ["wp1"], "asked for");
    a.typing("lab");
    a.hold("lab", "wp2");
    assert_eq!(b.held("lab"), ["wp1", "wp2"]);
    b.hold("lab", "wp3");
    a.release("lab", "wp1");
    assert_eq!(b.held("lab"), ["wp3", "wp2"]);
    let mut typing = 0;
    while let Ok(happening) = reader.next.try_recv() {
        typing += usize::from(matches!(happening, Happening::Typing { .. }));
    }
    assert_eq!(typing, 1);
    assert!(a.held("lab") == ["wp2"], "nobody reads there, so nothing is kept of others");
    drop(reader);
    a.release("lab", "wp2");
    b.release("lab", "wp3");
    let followed = std::mem::take(&mut *nodes.followed.lock());
    let open = followed.iter().map(|(_, on)| if *on { 1 } else { -1 }).sum::<i32>();
    assert_eq!(
        (open, followed.len()),
        (0, 6),
        "as long as somebody reads or something is held: {followed:?}"
    );
}

#[tokio::test]
async fn what_was_not_heard_is_asked_for() {
    let (nodes, a, b) = Nodes::two();
    let mut reader = b.read(&person("lab", "ann"), false).unwrap();
    nodes.lose(true);
    a.hold("lab", "wp1");
    assert!(b.held("lab").is_empty());
    nodes.lose(false);
    b.missed(Some("den"));
    assert!(b.to_look_at(false).is_empty(), "nobody reads that");
    b.missed(Some("lab"));
    assert_eq!(b.held("lab"), ["wp1"]);
    assert_eq!(b.to_look_at(false), ["lab"]);
    assert!(b.to_look_at(false).is_empty());
    b.missed(None);
    assert_eq!(b.to_look_at(false), ["lab"]);
    assert_eq!(b.to_look_at(true), ["lab"], "all of them from time to time");
    b.forget_gone(|node| node != "a");
    assert!(b.held("lab").is_empty(), "it went with its node");
    let mut heard = Vec::new();
    while let Ok(happening) = reader.next.try_recv() {
        heard.push(happening);
    }
    assert!(heard.iter().all(|it| matches!(it, Happening::Held)) && !heard.is_empty(), "{heard:?}");
}

#[test]
fn what_a_later_release_says_harms_nobody() {
    let hub = Hub::default();
    hub.hear("lab", r#"{"dances":{"who":"ann"}}"#);
    hub.hear("lab", "not JSON");
}

#[tokio::test]
async fn words_and_drafts_reach_readers_on_other_nodes_and_end_with_the_line() {
    let (_nodes, a, b) = Nodes::two();
    let _readers = a.read(&person("lab", "bob"), false).unwrap();
    let mut reader = b.read(&person("lab", "ann"), false).unwrap();
    a.works("lab", None, Some("Reading files".into()));
    a.draft("lab", None, "Hel".into());
    a.draft("lab", None, "Hello".into());
    a.draft("lab", Some("wa1"), "in a thread".into());
    let shown = |hub: &Hub| -> Vec<(Option<String>, String)> {
        hub.drafts("lab").iter().map(|draft| (draft.thread.clone(), draft.text.clone())).collect()
    };
    let both = [(None, "Hello".to_owned()), (Some("wa1".to_owned()), "in a thread".to_owned())];
    assert_eq!((shown(&a), shown(&b)), (both.to_vec(), both.to_vec()));
    let said = Line { id: 3, place: 3, room: "lab".into(), text: "Hello!".into(), ..Line::default() };
    b.line(&said);
    assert_eq!(shown(&b).len(), 2, "a person's line is not the agent's");
    b.line(&Line { id: 4, place: 3, from_agent: true, ..said.clone() });
    assert_eq!(shown(&b).len(), 2, "nor is a line that changes");
    b.line(&Line { id: 5, place: 5, from_agent: true, ..said });
    assert_eq!(shown(&b), both[1..], "the draft of a thread stays");
    a.works("lab", Some("wa1"), Some(String::new()));
    assert!(shown(&b).is_empty());
    let mut words = Vec::new();
    let mut told = 0;
    while let Ok(happening) = reader.next.try_recv() {
        match happening {
            Happening::Typing { words: Some(said), .. } => words.push(said),
            Happening::Drafts => told += 1,
            _ => {}
        }
    }
    assert_eq!((words, told), (vec!["Reading files".to_owned(), String::new()], 5));
    a.draft("den", None, "of another room".into());
    a.close([&"den".to_owned()]);
    assert!(a.drafts("den").is_empty(), "a room that is gone takes its drafts along");
}
