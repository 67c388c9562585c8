//! Lines of people are posted for many at once; what is unusual about one of them comes out as it
//! does alone.

use super::identity::by;
use super::open::{Opened, Witness, another, connect, entry};
use super::people::line;
use angelia_core::error::{Kind, Result};
use angelia_core::inbox::{InstanceId, Quota, WhenFull};
use angelia_core::media::{FileId, MediaKind};
use angelia_core::store::{
    IdentityStore, Lines, Log, NewEntry, NewLine, PageSize, Person, Posted, RoomFile, RoomStore,
};
use angelia_engines::store::postgres::{HotWrites, Postgres};
use futures_util::future::join_all;
use std::sync::Arc;

const ROOMS: [&str; 3] = ["lab", "den", "hall"];

/// Rooms in which ann wrote before.
async fn furnished(opened: Opened) -> Opened {
    let opened = opened.with_ann_in(&ROOMS).await;
    for room in ROOMS {
        opened.post(room, &format!("first in {room}")).await;
    }
    opened
}

fn said(room: &str, id: &str, client_id: Option<&str>) -> NewLine {
    NewLine { room: room.into(), ..line(id, client_id) }
}

fn meant_for(instance: InstanceId, id: &str) -> Option<NewEntry> {
    Some(NewEntry { when_full: WhenFull::Refuse, ..entry(instance, id) })
}

type Asked = (NewLine, Option<NewEntry>);

/// Posts all at the same time, and waits until it is counted how.
async fn post_all(node: &Arc<Postgres>, posts: Vec<Asked>) -> (Vec<Result<Posted>>, HotWrites) {
    let (before, count) = (node.hot_writes(), posts.len() as u64);
    let posting = posts.into_iter().map(|(line, entry)| {
        let node = node.clone();
        tokio::spawn(async move { node.post_line(line, entry).await })
    });
    let posted = join_all(posting).await.into_iter().map(|it| it.unwrap()).collect();
    loop {
        let now = node.hot_writes();
        let did = HotWrites {
            batches: now.batches - before.batches,
            together: now.together - before.together,
            one_by_one: now.one_by_one - before.one_by_one,
        };
        if did.together + did.one_by_one == count {
            return (posted, did);
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_post_is_written_for_many_at_once() {
    const MANY: usize = 300;
    let opened = furnished(Opened::new()).await;
    let instance = opened.instance("a").await;
    let (node, witness) = another(&opened);
    let posts = (0..MANY).map(|n| {
        let (id, client_id) = (format!("m{n}"), (n % 2 == 0).then(|| format!("c{n}")));
        // Every fifth is for no agent.
        let entry = if n % 5 == 0 { None } else { meant_for(instance, &id) };
        let plan = RoomFile {
            id: Some(FileId::named(&[&id])),
            name: "a \"plan\".pdf".into(),
            size: 7,
            mime: "application/pdf".into(),
            kind: MediaKind::Document,
            alt: Some("\0".into()),
        };
        let files = vec![plan];
        let line = said(ROOMS[n % 3], &id, client_id.as_deref());
        (NewLine { text: format!("{id}: \0 – \u{1f600}"), files, reply_to: Some("r".into()), ..line }, entry)
    });
    let (posted, did) = post_all(&node, posts.collect()).await;
    assert_eq!((did.together, did.one_by_one), (MANY as u64, 0), "{did:?}");
    assert!(did.batches < did.together / 4, "{did:?}");
    for (n, posted) in posted.into_iter().enumerate() {
        let expected =
            Posted { message_id: format!("m{n}"), new: true, no_instance: false, entered: n % 5 != 0 };
        assert_eq!(posted.unwrap(), expected);
    }
    let entries = (MANY - MANY / 5) as u64;
    assert_eq!(node.usage(instance).await.unwrap().entries, entries);
    assert_eq!(witness.appended.lock().unwrap().len() as u64, entries, "each is told of once");
    let told = witness.lines.lock().unwrap().clone();
    assert_eq!(told.len(), MANY);
    for room in ROOMS {
        let read = opened.store.lines(room, 1, PageSize::of(1_000)).await.unwrap();
        let numbers: Vec<i64> = read.iter().map(|line| line.id).collect();
        assert_eq!(numbers, (2..=MANY as i64 / 3 + 1).collect::<Vec<_>>(), "numbers are dense");
        for line in read.iter() {
            let live = told.iter().find(|it| it.message_id == line.message_id).unwrap();
            assert_eq!((live.id, live.place, &live.files), (line.id, line.place, &line.files));
            assert_eq!(live.text.replace('\0', "\u{fffd}"), line.text);
            assert_eq!((&live.client_id, &live.reply_to), (&line.client_id, &line.reply_to));
        }
    }
    let kept = opened.sql(
        "SELECT r.lines = l.lines AND r.bytes >= l.bytes FROM webchat_rooms r JOIN (
            SELECT room, count(*) AS lines, sum(octet_length(text) + octet_length(files)) - count(*) * 4 AS bytes FROM webchat_lines
            GROUP BY room) l USING (room)",
    );
    assert_eq!(kept, ["t", "t", "t"], "rooms know what they hold");
}

/// Everything that is not for a batch, each with twenty others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_unusual_about_a_post_comes_out_as_it_does_alone() {
    let opened = furnished(Opened::new()).await;
    let (there, gone) = (opened.instance("a").await, opened.instance("b").await);
    opened.store.revoke_gateway("acme", "b", &by()).await.unwrap();
    let (node, witness) = another(&opened);
    opened.store.post_line(said("lab", "before", Some("once")), meant_for(there, "before")).await.unwrap();
    opened.store.post_line(said("lab", "unheard", Some("stays")), None).await.unwrap();
    let stranger = |id: &str| NewLine { author: "eve".into(), ..said("lab", id, None) };
    let mut posts: Vec<Asked> = (0..20)
        .map(|n| (said(ROOMS[n % 3], &format!("u{n}"), None), meant_for(there, &format!("u{n}"))))
        .collect();
    posts.extend([
        (said("lab", "again", Some("once")), meant_for(there, "again")),
        (said("lab", "again too", Some("stays")), meant_for(there, "again too")),
        (said("den", "other room", Some("once")), meant_for(there, "other room")),
        (stranger("strange"), meant_for(there, "strange")),
        (stranger("strange too"), None),
        (said("hall", "late", None), meant_for(gone, "late")),
        (said("attic", "nowhere", None), None),
        (said("den", "twice 1", Some("twice")), meant_for(there, "twice 1")),
        (said("den", "twice 2", Some("twice")), meant_for(there, "twice 2")),
    ]);
    let (mut posted, did) = post_all(&node, posts).await;
    let mut rest = posted.split_off(20).into_iter();
    assert!(posted.into_iter().all(|it| it.is_ok_and(|it| it.new && it.entered)));
    let of = |message_id: &str, new, no_instance, entered| Posted {
        message_id: message_id.into(),
        new,
        no_instance,
        entered,
    };
    let mut next = || rest.next().unwrap();
    assert_eq!(next().unwrap(), of("before", false, false, true), "the first post counts");
    assert_eq!(next().unwrap(), of("unheard", false, false, false), "and no agent got it");
    assert_eq!(next().unwrap(), of("other room", true, false, true), "each room has ids of its own");
    assert_eq!(next().unwrap_err().kind(), Kind::Unauthorized);
    assert_eq!(next().unwrap_err().kind(), Kind::Unauthorized);
    assert_eq!(next().unwrap(), of("late", true, true, false), "a line, and no entry");
    assert_eq!(next().unwrap_err().kind(), Kind::Unauthorized, "nobody has a key of it");
    let (first, second) = (next().unwrap(), next().unwrap());
    assert_eq!(first.message_id, second.message_id, "one line");
    assert!(first.new != second.new && first.entered && second.entered);
    assert!((6..=7).contains(&did.one_by_one), "{did:?}");
    assert_eq!(witness.lines.lock().unwrap().len(), 23);
    assert_eq!(witness.appended.lock().unwrap().len(), 22);
    let late = opened.store.line("hall", "late").await.unwrap().unwrap();
    assert!(late.undelivered.is_some(), "its writer is told");
    assert_eq!(opened.number("SELECT count(*) FROM webchat_lines WHERE message_id LIKE '%again%'"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inbox_that_is_full_refuses_in_a_batch_too() {
    const ROOM: usize = 16;
    let opened = furnished(Opened::new()).await;
    let (full, other) = (opened.instance("a").await, opened.instance("b").await);
    let witness = Arc::new(Witness::default());
    let quota = Quota { entries: ROOM as u64, ..Quota::default() };
    let node = connect(&opened.database, quota, &witness);
    let posts = (0..3 * ROOM).map(|n| {
        // Each of them is another chat's, which may hold what it says.
        let (id, instance) = (format!("m{n}"), if n % 3 == 0 { other } else { full });
        let entry = meant_for(instance, &id).map(|it| NewEntry { chat_id: id.as_str().into(), ..it });
        (said(ROOMS[n % 3], &id, None), entry)
    });
    let (posted, did) = post_all(&node, posts.collect()).await;
    let (refused, taken): (Vec<_>, Vec<_>) = posted.into_iter().partition(Result::is_err);
    assert!(refused.iter().all(|it| it.as_ref().is_err_and(|why| why.retry_after().is_some())));
    assert_eq!((taken.len(), refused.len()), (2 * ROOM, ROOM), "{did:?}");
    for instance in [full, other] {
        assert_eq!(node.usage(instance).await.unwrap().entries, ROOM as u64);
    }
    // Whatever was refused left no line behind.
    assert_eq!(
        opened.number("SELECT count(*) FROM webchat_lines WHERE message_id LIKE 'm%'"),
        2 * ROOM as i64
    );
    assert_eq!(witness.lines.lock().unwrap().len(), 2 * ROOM);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_number_the_lines_of_a_room_without_a_gap() {
    const EACH: usize = 150;
    let opened = furnished(Opened::new()).await;
    let instances = [opened.instance("a").await, opened.instance("b").await];
    let nodes = [another(&opened), another(&opened)];
    let posting = nodes.iter().enumerate().map(|(at, (node, _))| {
        let posts = (0..EACH).map(|n| {
            // Every tenth comes to both, as from a page that saw no answer.
            let client_id = (n % 10 == 0).then(|| format!("both {n}"));
            let id = format!("{at} {n}");
            let entry = meant_for(instances[(n + at) % 2], &id);
            (said(ROOMS[(n * (at + 1)) % 3], &id, None), entry, client_id, n)
        });
        let posts = posts.map(|(line, entry, client_id, n)| match client_id {
            Some(_) => (NewLine { client_id, room: ROOMS[n % 3].into(), ..line }, entry),
            None => (line, entry),
        });
        post_all(node, posts.collect())
    });
    let all: Vec<Posted> =
        join_all(posting).await.into_iter().flat_map(|(posted, _)| posted).map(Result::unwrap).collect();
    let new = all.iter().filter(|it| it.new).count();
    assert_eq!((new, all.iter().all(|it| it.entered)), (2 * EACH - EACH / 10, true));
    let mut lines = 0;
    for room in ROOMS {
        let numbers: Vec<i64> = opened.numbers(room, 1).await.into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, (2..=numbers.len() as i64 + 1).collect::<Vec<_>>(), "{room}");
        lines += numbers.len();
    }
    assert_eq!(lines, new);
    let mut entries = 0;
    for instance in instances {
        entries += opened.store.usage(instance).await.unwrap().entries;
    }
    assert_eq!(entries, new as u64, "one entry for each line");
    let heard: usize = nodes.iter().map(|(_, witness)| witness.lines.lock().unwrap().len()).sum();
    assert_eq!(heard, new, "each is told of once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_made_void_meanwhile_stops_the_posts_that_come_after() {
    const MANY: usize = 120;
    let opened = furnished(Opened::new()).await;
    let instance = opened.instance("a").await;
    let (node, _) = another(&opened);
    let posts =
        (0..MANY).map(|n| (said("lab", &format!("m{n}"), None), meant_for(instance, &format!("m{n}"))));
    let void = async {
        tokio::task::yield_now().await;
        opened.store.uninvite(Person { room: "lab".into(), user: "ann".into() }, &by()).await.unwrap();
    };
    let ((posted, _), ()) = tokio::join!(post_all(&node, posts.collect()), void);
    let written = posted.iter().filter(|it| it.is_ok()).count();
    let refused = posted.iter().filter(|it| it.as_ref().is_err_and(|why| why.kind() == Kind::Unauthorized));
    assert_eq!(written + refused.count(), MANY);
    assert_eq!(opened.numbers("lab", 1).await.len(), written, "a line for each that was taken");
    assert_eq!(node.usage(instance).await.unwrap().entries, written as u64, "and an entry");
}
