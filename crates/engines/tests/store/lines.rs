//! The numbers of lines, which people see: each room counts for itself.

use super::identity::by;
use super::open::Opened;
use super::people::line;
use angelia_core::store::{
    ActionId, IdentityStore, LineEdit, LineRevision, NewLine, PageSize, Person, RoomStore,
};

impl Opened {
    /// Lets ann into these rooms.
    pub(crate) async fn with_ann_in(self, rooms: &[&str]) -> Self {
        for (key, room) in (1..).zip(rooms) {
            let ann = Person { room: (*room).into(), user: "ann".into() };
            self.store.invite(ann, [key; 32], &by()).await.unwrap();
        }
        self
    }

    /// Posts a line of ann's.
    pub(crate) async fn post(&self, room: &str, message_id: &str) {
        let new = NewLine { room: room.into(), ..line(message_id, None) };
        self.store.post_line(new, None).await.unwrap();
    }

    /// What a reader who has seen everything up to `after` still has to read.
    pub(crate) async fn numbers(&self, room: &str, after: i64) -> Vec<(String, i64)> {
        let lines = self.store.lines(room, after, PageSize::of(5_000)).await.unwrap();
        lines.iter().map(|line| (line.message_id.clone(), line.id)).collect()
    }
}

fn shown(lines: &[(&str, i64)]) -> Vec<(String, i64)> {
    lines.iter().map(|(message_id, number)| ((*message_id).to_owned(), *number)).collect()
}

#[tokio::test]
async fn a_room_learns_nothing_of_how_much_is_said_in_others() {
    let opened = Opened::new().with_ann_in(&["lab", "den"]).await;
    opened.post("lab", "m1").await;
    for number in 0..5 {
        opened.post("den", &format!("n{number}")).await;
    }
    opened.post("lab", "m2").await;
    let reworded = LineRevision {
        room: "den".into(),
        message_id: "n0".into(),
        author: "ann".into(),
        text: "other".into(),
        entry: None,
    };
    opened.store.revise_line(reworded).await.unwrap();
    opened.post("lab", "m3").await;
    assert_eq!(opened.numbers("lab", 0).await, shown(&[("m1", 1), ("m2", 2), ("m3", 3)]));
    assert_eq!(opened.numbers("den", 4).await, shown(&[("n4", 5), ("n0", 6)]));
    let reached = |rooms: &[&str]| opened.store.reached(rooms.iter().map(|room| (*room).into()).collect());
    assert_eq!(reached(&["den", "none", "lab"]).await.unwrap(), [6, 0, 3], "how far they are, in order");
    assert!(reached(&[]).await.unwrap().is_empty());
    let told: Vec<_> = opened.witness.lines.lock().unwrap().iter().map(|it| (it.id, it.place)).collect();
    assert_eq!(
        told,
        [(1, 1), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (2, 2), (6, 1), (3, 3)],
        "live, the same"
    );
}

#[tokio::test]
async fn every_part_of_an_edit_is_one_number_and_an_edit_of_nothing_is_none() {
    let opened = Opened::new().with_ann_in(&["lab"]).await;
    let said = NewLine { from_agent: true, author: "agent".into(), ..line("wa1", None) };
    opened.store.post_answered(line("m1", None), said).await.unwrap();
    let edit = async |message_id: &str, parts: &[&str]| {
        let parts = parts.iter().map(ToString::to_string).collect();
        let edit = LineEdit { room: "lab".into(), message_id: message_id.into(), parts };
        opened.store.edit_line(edit, ActionId(1)).await.unwrap()
    };
    assert!(edit("wa1", &["longer", "than", "before"]).await);
    assert!(!edit("nobody's", &["?"]).await);
    assert!(edit("wa1", &["shorter"]).await);
    opened.post("lab", "m2").await;
    let all = shown(&[("m1", 1), ("wa1", 6), ("wa1.1", 7), ("wa1.2", 8), ("m2", 9)]);
    assert_eq!(opened.numbers("lab", 1).await, all[1..]);
}

#[tokio::test]
async fn a_room_that_was_cut_to_its_size_counts_on() {
    let opened = Opened::new().with_ann_in(&["lab"]).await;
    for number in 1..=12 {
        let text = "x".repeat(1024 * 1024);
        let new = NewLine { text, ..line(&format!("m{number}"), None) };
        opened.store.post_line(new, None).await.unwrap();
    }
    let kept = opened.numbers("lab", 0).await;
    assert!((5..10).contains(&kept.len()), "{} are left", kept.len());
    assert_eq!(kept.last(), Some(&("m12".to_owned(), 12)));
}

#[tokio::test]
async fn a_removed_tenants_room_begins_anew_once_it_is_empty() {
    let opened = Opened::with_tenants(&["acme"]).await.with_ann_in(&["lab", "den"]).await;
    for room in ["lab", "den", "lab", "den", "lab"] {
        opened.post(room, &format!("{room}-{}", opened.numbers(room, 0).await.len())).await;
    }
    opened.store.remove_tenant("acme", vec!["lab".into()], &by()).await.unwrap();
    opened.post("den", "meanwhile").await;
    opened.store.finish_removals().await.unwrap();
    assert_eq!(opened.numbers("lab", 0).await, []);
    let opened = opened.with_ann_in_lab().await;
    opened.post("lab", "new").await;
    assert_eq!(opened.numbers("lab", 0).await, shown(&[("new", 1)]));
    assert_eq!(opened.numbers("den", 2).await, shown(&[("meanwhile", 3)]), "another's stays");
}
