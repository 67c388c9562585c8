use super::identity::{by, gateway};
use super::open::{ME, Opened, entry};
use angelia_core::Kind;
use angelia_core::admission::{Allow, DropReason, Route, RouteOptions};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::inbox::{EntryKind, Epoch, InstanceId, Quota, Seq, SettledBy, WhenFull};
use angelia_core::media::{FileId, MediaKind};
use angelia_core::store::{
    ActionId, CONNECTOR, Earlier, Guest, IdentityStore, LineEdit, LineRevision, NewAction, NewEntry, NewLine,
    PageSize, Person, Revised, Revision, RoomFile, RoomStore, Settlement,
};

#[tokio::test]
async fn gateway_ids_are_unique_within_a_tenant() {
    let opened = Opened::with_tenants(&["acme", "other"]).await;
    let first = opened.store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap();
    let other = opened.store.create_gateway(gateway("other", "gw"), &by()).await.unwrap();
    assert_ne!(first.instance, other.instance);
    let again = opened.store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap_err();
    assert_eq!(again.kind(), Kind::Conflict);
    let opened = opened.reopen();
    let known = opened.store.gateways().await.unwrap();
    assert_eq!(known.len(), 2);
    assert_eq!(known[0].secrets[0].sealed, [7]);
}

#[tokio::test]
async fn a_place_has_one_route() {
    let opened = Opened::with_tenants(&["acme", "evil"]).await;
    let route = |tenant: &str, allow: Allow| Route {
        place: "webchat:lab".parse().unwrap(),
        bot: None,
        tenant: tenant.into(),
        instance: None,
        allow,
        free: true,
        while_busy: None,
        options: RouteOptions::default(),
    };
    let mine = route("acme", Allow::People(vec!["ann".into(), "bob".into()]));
    opened.store.add_route(mine.clone(), &by()).await.unwrap();
    let taken = opened.store.add_route(route("evil", Allow::Any), &by()).await.unwrap_err();
    assert_eq!(taken.kind(), Kind::Conflict);
    assert_eq!(opened.store.routes().await.unwrap(), std::slice::from_ref(&mine));
    assert!(opened.store.remove_route(&mine.place, None, &by()).await.unwrap());
    assert!(!opened.store.remove_route(&mine.place, None, &by()).await.unwrap());
}

#[tokio::test]
async fn a_conversation_follows_its_last_delivery() {
    let opened = Opened::new();
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    let key = "agent:main:relay:group:web-lab:ann";
    opened.store.append(entry(a, "1")).await.unwrap();
    assert_eq!(opened.store.conversation("acme", key).await.unwrap().unwrap().instance, a);
    opened.store.append(entry(b, "2")).await.unwrap();
    assert_eq!(opened.store.conversation("acme", key).await.unwrap().unwrap().instance, b);
    assert_eq!(opened.store.conversation("other", key).await.unwrap(), None, "tenants are apart");
    assert_eq!(opened.store.recent_conversations("acme", 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_revoked_person_has_no_key_and_writes_nothing_more() {
    let opened = Opened::new().with_ann_in_lab().await;
    let ann = Person { room: "lab".into(), user: "ann".into() };
    opened.store.invite(ann.clone(), [2; 32], &by()).await.unwrap();
    let there = opened.store.people(Some("lab")).await.unwrap();
    assert_eq!(
        there.iter().map(|it| (it.user.as_str(), it.keys, it.until)).collect::<Vec<_>>(),
        [("ann", 2, None)]
    );
    assert!(opened.store.people(Some("den")).await.unwrap().is_empty());
    opened.store.post_line(line("m0", None), None).await.unwrap();
    opened.store.uninvite(ann.clone(), &by()).await.unwrap();
    assert_eq!(opened.store.person([1; 32]).await.unwrap(), None);
    assert_eq!(opened.store.person([2; 32]).await.unwrap(), None);
    let posted = opened.store.post_line(line("m1", None), None).await;
    assert_eq!(posted.unwrap_err().kind(), Kind::Unauthorized, "a post under way is refused as well");
    let edited = opened.store.revise_line(reworded("m0", "late")).await;
    assert_eq!(edited.unwrap_err().kind(), Kind::Unauthorized, "and so is an edit");
    assert_eq!(opened.store.uninvite(ann, &by()).await.unwrap_err().kind(), Kind::NotFound);
}

/// Ann's change of a line.
fn reworded(message_id: &str, text: &str) -> LineRevision {
    let (room, author) = ("lab".into(), "ann".into());
    LineRevision { room, message_id: message_id.into(), author, text: text.into(), entry: None }
}

#[tokio::test]
async fn a_line_remembers_why_it_reached_nobody() {
    let opened = Opened::new().with_ann_in_lab().await;
    let refused = NewLine { undelivered: Some(DropReason::AuthorNotAllowed), ..line("m1", None) };
    opened.store.post_line(refused, None).await.unwrap();
    let nowhere = NewEntry { message_id: "m2".into(), ..entry(InstanceId(77), "m2") };
    assert!(opened.store.post_line(line("m2", None), Some(nowhere)).await.unwrap().no_instance);
    let opened = opened.reopen();
    let lines = opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap();
    let reasons: Vec<_> = lines.iter().map(|it| it.undelivered).collect();
    assert_eq!(reasons, [Some(DropReason::AuthorNotAllowed), Some(DropReason::NoInstance)]);
}

#[tokio::test]
async fn visitors_come_for_a_while_under_names_of_their_own() {
    let opened = Opened::new().with_ann_in_lab().await;
    let visit = |key: u8, user: &str, until: i64| {
        let person = Person { room: "lab".into(), user: user.into() };
        opened.store.visit(person, [key; 32], UnixMillis(until))
    };
    let later = clock::wall().0 + 3_600_000;
    visit(3, "guest-bob", later).await.unwrap();
    let guest = opened.store.person([3; 32]).await.unwrap().unwrap();
    assert_eq!((guest.visiting, guest.first, guest.alone), (true, false, false));
    assert!(!opened.store.person([1; 32]).await.unwrap().unwrap().visiting, "ann was invited");
    for taken in ["guest-bob", "GUEST-BOB", "ann"] {
        assert_eq!(visit(4, taken, later).await.unwrap_err().kind(), Kind::Conflict, "{taken}");
    }
    let bobs = |id| NewLine { author: "guest-bob".into(), ..line(id, None) };
    assert!(opened.store.post_line(bobs("m1"), None).await.unwrap().new);
    opened.store.uninvite(Person { room: "lab".into(), user: "guest-bob".into() }, &by()).await.unwrap();
    assert_eq!(visit(4, "guest-bob", later).await.unwrap_err().kind(), Kind::Conflict, "lines are his");
    visit(5, "guest-eve", clock::wall().0 - 1).await.unwrap();
    assert_eq!(opened.store.person([5; 32]).await.unwrap(), None, "the time is over");
    let eves = NewLine { author: "guest-eve".into(), ..line("m2", None) };
    assert_eq!(opened.store.post_line(eves, None).await.unwrap_err().kind(), Kind::Unauthorized);
    opened.store.prune().await.unwrap();
    visit(6, "guest-eve", later).await.unwrap();
}

#[tokio::test]
async fn a_room_takes_so_many_visitors() {
    let opened = Opened::new();
    let visit = |n: u64| {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&n.to_le_bytes());
        let person = Person { room: "lab".into(), user: format!("guest-{n}") };
        opened.store.visit(person, key, UnixMillis(clock::wall().0 + 3_600_000))
    };
    for n in 0..500 {
        visit(n).await.unwrap();
    }
    assert_eq!(visit(500).await.unwrap_err().kind(), Kind::TooMany);
}

#[tokio::test]
async fn a_line_keeps_its_place_and_its_files_when_it_is_edited() {
    let opened = Opened::new().with_ann_in_lab().await;
    let file = picture();
    let with_file = NewLine { files: vec![file.clone()], ..line("m1", Some("c1")) };
    opened.store.post_line(with_file, None).await.unwrap();
    opened.store.post_line(line("m2", None), None).await.unwrap();
    opened.store.revise_line(reworded("m1", "other")).await.unwrap();
    let lines = opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap();
    let shown: Vec<_> = lines.iter().map(|it| (it.message_id.as_str(), it.id, it.place)).collect();
    assert_eq!(shown, [("m2", 2, 2), ("m1", 3, 1)]);
    assert_eq!((lines[1].files.clone(), lines[1].client_id.as_deref()), (vec![file], Some("c1")));
}

#[tokio::test]
async fn a_line_of_an_agent_that_is_taken_back_goes_with_its_files() {
    let opened = Opened::new().with_ann_in_lab().await;
    let action = super::actions::accept(&opened, "send").await;
    let shown =
        NewLine { from_agent: true, author: "agent".into(), files: vec![picture()], ..line("wa1", None) };
    opened.store.say_lines(vec![NewLine { text: String::new(), ..shown }], action).await.unwrap();
    let lines = opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap();
    assert!(lines[0].is_there() && lines[0].files == [picture()], "without a word it is there");
    let gone = LineEdit { room: "lab".into(), message_id: "wa1".into(), parts: vec![String::new()] };
    assert!(opened.store.edit_line(gone, super::actions::accept(&opened, "send").await).await.unwrap());
    assert!(opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap().is_empty());
    let told = opened.store.lines("lab", 1, PageSize::of(10)).await.unwrap();
    assert!(told.len() == 1 && !told[0].is_there(), "whoever saw it hears of it: {told:?}");
}

fn picture() -> RoomFile {
    RoomFile {
        id: Some(FileId::named(&["a.png"])),
        name: "a.png".into(),
        size: 7,
        mime: "image/png".into(),
        kind: MediaKind::Image,
        alt: Some("a cat".into()),
    }
}

pub(crate) fn line(id: &str, client_id: Option<&str>) -> NewLine {
    NewLine {
        room: "lab".into(),
        message_id: id.into(),
        author: "ann".into(),
        from_agent: false,
        text: format!("text of {id}"),
        reply_to: None,
        client_id: client_id.map(str::to_owned),
        files: Vec::new(),
        undelivered: None,
        buttons: None,
        thread: None,
        thread_name: None,
        at: clock::wall(),
    }
}

impl Opened {
    /// Lets ann into the room the lines of these tests are in.
    pub(crate) async fn with_ann_in_lab(self) -> Self {
        let ann = Person { room: "lab".into(), user: "ann".into() };
        self.store.invite(ann, [1; 32], &by()).await.unwrap();
        self
    }
}

#[tokio::test]
async fn a_repeated_post_makes_neither_line_nor_entry() {
    let opened = Opened::new().with_ann_in_lab().await;
    let a = opened.instance("a").await;
    let post = |id: &'static str| {
        let entry = NewEntry { message_id: id.into(), ..entry(a, id) };
        opened.store.post_line(line(id, Some("c1")), Some(entry))
    };
    assert!(post("m1").await.unwrap().new);
    let again = post("m2").await.unwrap();
    assert_eq!((again.new, again.message_id.as_str()), (false, "m1"));
    assert_eq!(opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap().len(), 1);
    assert_eq!(opened.seqs(a).await.len(), 1);
}

#[tokio::test]
async fn a_key_opens_the_room_it_was_made_for() {
    let opened = Opened::new();
    let person = Person { room: "lab".into(), user: "ann".into() };
    opened.store.invite(person.clone(), [1; 32], &by()).await.unwrap();
    let opened = opened.reopen();
    let guest = Guest { person, alone: true, first: true, visiting: false };
    assert_eq!(opened.store.person([1; 32]).await.unwrap(), Some(guest));
    assert_eq!(opened.store.person([2; 32]).await.unwrap(), None);
}

#[tokio::test]
async fn a_guest_knows_whether_others_were_invited_and_who_came_first() {
    let opened = Opened::new();
    let invite = |key: u8, room: &str, user: &str| {
        let person = Person { room: room.into(), user: user.into() };
        opened.store.invite(person, [key; 32], &by())
    };
    let standing = async |key: u8| {
        let guest = opened.store.person([key; 32]).await.unwrap().unwrap();
        (guest.alone, guest.first)
    };
    // Keys in falling order: neither they nor names decide who was first.
    invite(9, "lab", "zoe").await.unwrap();
    invite(8, "lab", "zoe").await.unwrap();
    invite(7, "den", "ann").await.unwrap();
    assert_eq!(standing(9).await, (true, true), "two keys of one person are one person");
    invite(1, "lab", "ann").await.unwrap();
    assert_eq!(standing(9).await, (false, true));
    assert_eq!(standing(8).await, (false, true));
    assert_eq!(standing(1).await, (false, false));
    assert_eq!(standing(7).await, (true, true), "another room");
}

#[tokio::test]
async fn an_answered_post_has_its_answer_once_and_agents_do_not_change_it() {
    let opened = Opened::new().with_ann_in_lab().await;
    let answer = |id: &str| NewLine { from_agent: true, author: CONNECTOR.into(), ..line(id, None) };
    assert!(opened.store.post_answered(line("m1", Some("c1")), answer("a1")).await.unwrap().new);
    assert!(!opened.store.post_answered(line("m2", Some("c1")), answer("a2")).await.unwrap().new);
    let lines = opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap();
    assert_eq!(lines.iter().map(|line| line.message_id.as_str()).collect::<Vec<_>>(), ["m1", "a1"]);
    let edit = LineEdit { room: "lab".into(), message_id: "a1".into(), parts: vec!["evil".into()] };
    assert!(!opened.store.edit_line(edit, ActionId(1)).await.unwrap());
    assert_eq!(opened.store.line("lab", "a1").await.unwrap().unwrap().text, "text of a1");
}

fn revision(room: &str, id: &str, author: &str, text: &str, instance: InstanceId) -> LineRevision {
    let entry = Revision {
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-lab".into(),
        message_id: id.into(),
        instance,
        kind: EntryKind::Message,
        body: format!("{{\"text\":\"{text}\"}}").into(),
    };
    LineRevision {
        room: room.into(),
        message_id: id.into(),
        author: author.into(),
        text: text.into(),
        entry: Some(entry),
    }
}

#[tokio::test]
async fn a_person_changes_their_own_line_and_what_waits_of_it() {
    let opened = Opened::new().with_ann_in_lab().await;
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    let revision = |room: &str, id: &str, author: &str, text: &str| revision(room, id, author, text, a);
    opened.store.post_line(line("m1", None), Some(entry(a, "m1"))).await.unwrap();
    opened.store.post_line(line("m2", None), None).await.unwrap();
    let revise = async |revision| opened.store.revise_line(revision).await.unwrap();
    assert_eq!(revise(revision("lab", "m1", "ann", "new")).await, Revised::Replaced);
    assert_eq!(revise(revision("lab", "m2", "ann", "new")).await, Revised::NotWaiting, "it never waited");
    for (wrong, kind) in [
        (revision("lab", "m1", "bob", "evil"), Kind::Forbidden),
        (revision("den", "m1", "ann", "evil"), Kind::NotFound),
        (revision("lab", "m9", "ann", "evil"), Kind::NotFound),
    ] {
        assert_eq!(opened.store.revise_line(wrong).await.unwrap_err().kind(), kind);
    }
    let lines = opened.store.lines("lab", 2, PageSize::of(10)).await.unwrap();
    let shown: Vec<_> = lines.iter().map(|l| (l.message_id.as_str(), l.text.as_str(), l.edited)).collect();
    assert_eq!(shown, [("m1", "new", true), ("m2", "new", true)], "edits come after what was read");
    let waiting = opened.store.load(a, Seq(0), &[], PageSize::of(10)).await.unwrap();
    assert_eq!((&waiting[0].body[..], waiting[0].revision), (&b"{\"text\":\"new\"}"[..], 1));

    let newest = revision("lab", "m1", "ann", "newest");
    let entry = newest.entry.clone().map(|entry| Revision { instance: b, ..entry });
    assert_eq!(revise(LineRevision { entry, ..newest.clone() }).await, Revised::Elsewhere);
    assert_eq!(revise(LineRevision { entry: None, ..newest }).await, Revised::NotWaiting);
    let line = opened.store.line("lab", "m1").await.unwrap().unwrap();
    assert_eq!(line.text, "newest", "the room sees every change");
    let waiting = opened.store.load(a, Seq(0), &[], PageSize::of(10)).await.unwrap();
    assert_eq!(&waiting[0].body[..], b"{\"text\":\"new\"}", "what waits is not what another may hear");
}

#[tokio::test]
async fn an_earlier_post_is_found_with_its_answer() {
    let opened = Opened::new().with_ann_in_lab().await;
    let ann = Person { room: "lab".into(), user: "ann".into() };
    let answer = NewLine {
        from_agent: true,
        author: CONNECTOR.into(),
        reply_to: Some("m1".into()),
        ..line("a1", None)
    };
    opened.store.post_answered(line("m1", Some("c1")), answer).await.unwrap();
    opened.store.post_line(line("m2", Some("c2")), None).await.unwrap();
    let earlier = async |person: &Person, id: &str| opened.store.earlier(person, id).await.unwrap();
    let answered = Earlier { message_id: "m1".into(), answer: Some("text of a1".into()) };
    assert_eq!(earlier(&ann, "c1").await, Some(answered));
    assert_eq!(earlier(&ann, "c2").await, Some(Earlier { message_id: "m2".into(), answer: None }));
    assert_eq!(earlier(&ann, "c3").await, None);
    assert_eq!(earlier(&Person { user: "bob".into(), ..ann.clone() }, "c1").await, None);
    assert_eq!(earlier(&Person { room: "den".into(), ..ann }, "c1").await, None);
}

/// Everything that holds something of a message.
fn rows(opened: &Opened) -> Vec<(&'static str, i64)> {
    ["inbox", "journal", "conversations", "webchat_lines"]
        .into_iter()
        .map(|table| (table, opened.number(&format!("SELECT count(*) FROM {table}"))))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[tokio::test]
async fn what_comes_after_the_removal_of_a_tenant_leaves_nothing() {
    let opened = Opened::new().with_ann_in_lab().await;
    let store = &opened.store;
    let a = opened.instance("a").await;
    let action = NewAction {
        tenant: "acme".into(),
        gateway_id: None,
        thread_id: None,
        edits: None,
        instance: a,
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-lab".into(),
        op: "send".into(),
        reply_to: None,
        body: Vec::new(),
        answering: None,
        received_at: clock::wall(),
    };
    let before = store.accept(ME, vec![action.clone()]).await.unwrap()[0];
    store.remove_tenant("acme", vec!["lab".into()], &by()).await.unwrap();

    assert_eq!(store.append(entry(a, "m1")).await.unwrap_err().kind(), Kind::NotFound);
    let late = store.post_line(line("m2", None), Some(entry(a, "m2"))).await;
    assert_eq!(late.unwrap_err().kind(), Kind::Unauthorized, "the key went with the room");
    let answer = NewLine { from_agent: true, author: CONNECTOR.into(), ..line("a1", None) };
    assert_eq!(store.post_answered(line("m3", None), answer).await.unwrap_err().kind(), Kind::Unauthorized);
    let after = store.accept(ME, vec![action]).await.unwrap_or_default();
    for action in [before].into_iter().chain(after) {
        let said = NewLine { from_agent: true, author: "agent".into(), ..line("wa1", None) };
        assert_eq!(store.say_lines(vec![said], action.id).await.unwrap_err().kind(), Kind::NotFound);
    }
    store.finish_removals().await.unwrap();
    assert_eq!(rows(&opened), []);
    assert_eq!(store.usage(a).await.unwrap().entries, 0);
    assert!(opened.witness.lines.lock().unwrap().is_empty(), "nobody is told of them either");
}

#[tokio::test]
async fn a_line_for_an_instance_that_is_gone_is_a_line_and_no_more() {
    let opened = Opened::new().with_ann_in_lab().await;
    let a = opened.instance("a").await;
    opened.store.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    let posted = opened.store.post_line(line("m1", None), Some(entry(a, "m1"))).await.unwrap();
    assert!(posted.new && posted.no_instance);
    assert_eq!(rows(&opened), [("webchat_lines", 1)]);
    assert!(opened.witness.appended.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_agents_line_is_not_a_persons_to_change() {
    let opened = Opened::new().with_ann_in_lab().await;
    let a = opened.instance("a").await;
    let own = NewLine { from_agent: true, ..line("wa1", None) };
    opened.store.post_answered(line("m1", None), own).await.unwrap();
    let refused = opened.store.revise_line(revision("lab", "wa1", "ann", "evil", a)).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Forbidden);
    assert_eq!(opened.store.line("lab", "wa1").await.unwrap().unwrap().text, "text of wa1");
    assert_eq!(opened.store.line("den", "wa1").await.unwrap(), None, "lines are looked up in their room");
}

#[tokio::test]
async fn a_full_inbox_takes_no_line_and_no_longer_text_and_the_same_post_may_come_again() {
    let opened = Opened::with(Quota { entries: 2, bytes: 100, ..Quota::default() }).with_ann_in_lab().await;
    let a = opened.instance("a").await;
    let refusable = |id: &str| Some(NewEntry { when_full: WhenFull::Refuse, ..entry(a, id) });
    for id in ["m1", "m2"] {
        assert!(opened.store.post_line(line(id, Some(id)), refusable(id)).await.unwrap().entered);
    }
    let full = opened.store.post_line(line("m3", Some("m3")), refusable("m3")).await.unwrap_err();
    assert_eq!(full.kind(), Kind::Unavailable);
    assert_eq!(opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap().len(), 2, "nothing was written");
    let again = opened.store.post_line(line("m9", Some("m1")), refusable("m9")).await.unwrap();
    assert_eq!((again.message_id.as_str(), again.entered), ("m1", true), "what is there is known");
    assert!(opened.store.post_line(line("m4", None), None).await.is_ok(), "what waits for nobody is taken");
    let longer = revision("lab", "m1", "ann", &"x".repeat(200), a);
    assert_eq!(opened.store.revise_line(longer).await.unwrap_err().kind(), Kind::Unavailable);
    let unchanged = opened.store.line("lab", "m1").await.unwrap().unwrap();
    assert!(!unchanged.edited);
    assert_eq!(
        opened.store.revise_line(revision("lab", "m1", "ann", "y", a)).await.unwrap(),
        Revised::Replaced
    );
    let seq = opened.seqs(a).await[0];
    let settled = Settlement { seq, by: SettledBy::Ack, pushed_at: None };
    opened.store.settle(a, Epoch(0), vec![settled]).await.unwrap();
    assert!(opened.store.post_line(line("m3", Some("m3")), refusable("m3")).await.unwrap().entered);
}
