//! Marks on lines, and threads: both are seen by who was away, and neither is an edit.

use super::actions::accept;
use super::open::Opened;
use super::people::line;
use angelia_core::store::{Line, LineEdit, LineMark, NewLine, NewThread, PageSize, ThreadName};

impl Opened {
    async fn mark(&self, message_id: &str, emoji: &str, remove: bool) -> bool {
        let (room, message_id, emoji) = ("lab".into(), message_id.into(), emoji.into());
        self.store.mark_line(LineMark { room, message_id, emoji, remove }).await.unwrap()
    }

    async fn found(&self, message_id: &str) -> Line {
        self.store.line("lab", message_id).await.unwrap().unwrap()
    }

    async fn open_thread(&self, id: &str, on: Option<&str>, name: &str) -> Option<String> {
        let action = accept(self, "thread_create").await;
        let line = NewLine {
            author: "agent".into(),
            from_agent: true,
            text: name.into(),
            thread_name: Some(name.into()),
            ..line(id, None)
        };
        self.store.open_thread(NewThread { line, on: on.map(str::to_owned) }, action).await.unwrap()
    }

    async fn rename(&self, thread: &str, name: &str, only_if: Option<&str>) -> bool {
        let action = accept(self, "thread_rename").await;
        let (room, thread, name) = ("lab".into(), thread.into(), name.into());
        let name = ThreadName { room, thread, name, only_if: only_if.map(str::to_owned) };
        self.store.name_thread(name, action).await.unwrap()
    }
}

#[tokio::test]
async fn a_mark_is_kept_and_told_and_is_no_edit() {
    let opened = Opened::new().with_ann_in(&["lab", "den"]).await;
    opened.post("lab", "m1").await;
    opened.post("lab", "m2").await;
    assert!(opened.mark("m1", "👀", false).await);
    assert!(!opened.mark("m1", "👀", false).await, "it is there");
    assert!(opened.mark("m1", "✅", false).await);
    assert!(opened.mark("m1", "👀", true).await);
    assert!(!opened.mark("nobody's", "👀", false).await);
    let line = opened.found("m1").await;
    assert_eq!((line.marks.as_slice(), line.id, line.place), (&["✅".to_owned()][..], 5, 1));
    assert!(!line.edited);
    assert_eq!(opened.numbers("lab", 2).await, [("m1".to_owned(), 5)], "who was away reads it");
    let told: Vec<usize> = opened.witness.lines.lock().unwrap().iter().map(|it| it.marks.len()).collect();
    assert_eq!(told, [0, 0, 1, 2, 1], "live, the same");
    for number in 0..20 {
        opened.mark("m1", &format!("{number}"), false).await;
    }
    assert_eq!(opened.found("m1").await.marks.len(), 8);
    let other = LineMark { room: "den".into(), message_id: "m1".into(), emoji: "👀".into(), remove: false };
    assert!(!opened.store.mark_line(other).await.unwrap(), "another room's line");
}

#[tokio::test]
async fn what_was_taken_back_is_not_marked() {
    let opened = Opened::new().with_ann_in(&["lab"]).await;
    let action = accept(&opened, "send").await;
    let said = NewLine { author: "agent".into(), from_agent: true, ..line("wa1", None) };
    opened.store.say_lines(vec![said], action).await.unwrap();
    assert!(opened.mark("wa1", "👍", false).await);
    let action = accept(&opened, "delete").await;
    let gone = LineEdit { room: "lab".into(), message_id: "wa1".into(), parts: vec![String::new()] };
    assert!(opened.store.edit_line(gone, action).await.unwrap());
    assert!(!opened.mark("wa1", "👎", false).await);
}

#[tokio::test]
async fn a_thread_is_opened_once_by_a_line_of_its_own_or_one_that_is_there() {
    let opened = Opened::new().with_ann_in(&["lab"]).await;
    opened.post("lab", "m1").await;
    assert_eq!(opened.open_thread("wa1", None, "Build").await.as_deref(), Some("wa1"));
    assert_eq!(opened.open_thread("wa2", Some("m1"), "Tests").await.as_deref(), Some("m1"));
    assert_eq!(opened.open_thread("wa3", Some("m1"), "Other").await.as_deref(), Some("m1"), "that one");
    assert_eq!(opened.open_thread("wa4", Some("nobody's"), "Lost").await, None);
    let new = NewLine { thread: Some("m1".into()), ..line("m2", None) };
    opened.store.post_line(new, None).await.unwrap();
    assert_eq!(opened.found("m2").await.thread.as_deref(), Some("m1"));
    assert_eq!(opened.open_thread("wa5", Some("m2"), "Within").await, None, "none within another");
    let (own, there) = (opened.found("wa1").await, opened.found("m1").await);
    assert_eq!((own.text.as_str(), own.thread_name.as_deref()), ("Build", Some("Build")));
    assert_eq!((there.author.as_str(), there.thread_name.as_deref()), ("ann", Some("Tests")));
    assert!(!there.edited);
    let page = opened.store.lines("lab", 0, PageSize::of(100)).await.unwrap();
    let read: Vec<_> = page.iter().map(|line| (&*line.message_id, line.thread.as_deref())).collect();
    assert_eq!(read, [("wa1", None), ("m1", None), ("m2", Some("m1"))]);
}

#[tokio::test]
async fn a_thread_is_renamed_only_while_it_is_called_as_expected() {
    let opened = Opened::new().with_ann_in(&["lab"]).await;
    opened.post("lab", "m1").await;
    opened.open_thread("wa1", None, "Build").await;
    assert!(!opened.rename("m1", "Tests", None).await, "that is none");
    assert!(!opened.rename("wa1", "Tests", Some("Other")).await);
    assert!(opened.rename("wa1", "Tests", Some("Build")).await);
    assert!(opened.rename("wa1", "Tests", None).await, "so it is called");
    let line = opened.found("wa1").await;
    assert_eq!(
        (line.text.as_str(), line.thread_name.as_deref(), line.edited),
        ("Tests", Some("Tests"), false)
    );
}

/// A long edit of an agent's line in a thread stays in it.
#[tokio::test]
async fn what_outgrows_a_line_goes_on_in_its_thread() {
    let opened = Opened::new().with_ann_in(&["lab"]).await;
    opened.open_thread("wa1", None, "Build").await;
    let said =
        NewLine { author: "agent".into(), from_agent: true, thread: Some("wa1".into()), ..line("wa2", None) };
    opened.store.say_lines(vec![said], accept(&opened, "send").await).await.unwrap();
    let parts = vec!["longer".into(), "than before".into()];
    let edit = LineEdit { room: "lab".into(), message_id: "wa2".into(), parts };
    assert!(opened.store.edit_line(edit, accept(&opened, "edit").await).await.unwrap());
    assert_eq!(opened.found("wa2.1").await.thread.as_deref(), Some("wa1"));
}
