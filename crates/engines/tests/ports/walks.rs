//! Records that are read a part at a time: in which order, from where, and how many.

use angelia_core::clock::UnixMillis;
use angelia_core::error::{Kind, Result};
use angelia_core::inbox::InstanceId;
use angelia_core::records::Direction::{Down, Up};
use angelia_core::records::rows::{ChatRow, MissedRow, NoticeRow, RouteRow};
use angelia_core::records::{Change, Direction, Records, View, change, look};

const OF_BOT: &[&str] = &["platform", "bot"];

fn chat(bot: &str, chat_id: &str, last_at: Option<i64>) -> ChatRow {
    use angelia_core::directory::{BotKey, Chat, ChatKind, KnownChat};
    let known = KnownChat { last_at: last_at.map(UnixMillis), ..Chat::new(chat_id, ChatKind::Dm).into() };
    ChatRow::of(&BotKey::new("x", bot), &known)
}

async fn put(records: &(impl Records + ?Sized), rows: Vec<ChatRow>) {
    let put = change(records, Change::to("put"), move |view| {
        rows.iter().for_each(|row| view.put(row));
        Ok(())
    });
    put.await.unwrap();
}

/// What a walk along the time of the newest message comes to.
async fn walk(
    records: &(impl Records + ?Sized),
    direction: Direction,
    above: i64,
    limit: usize,
) -> Vec<String> {
    let walked = look(records, "walk", move |view| {
        view.walk::<ChatRow>((OF_BOT, ("x", "b")), "last_at", (direction, UnixMillis(above)), limit)
    });
    walked.await.unwrap().into_iter().map(|row| row.chat_id).collect()
}

async fn a_walk_goes_along_its_column_and_leaves_out_what_holds_nothing(records: &(impl Records + ?Sized)) {
    let rows = [("a", Some(30)), ("b", Some(10)), ("c", None), ("d", Some(20)), ("e", Some(-5))];
    put(records, rows.map(|(id, at)| chat("b", id, at)).into()).await;
    put(records, vec![chat("another", "f", Some(15))]).await;
    assert_eq!(walk(records, Up, i64::MIN, 10).await, ["e", "b", "d", "a"]);
    assert_eq!(walk(records, Down, i64::MIN, 10).await, ["a", "d", "b", "e"]);
}

async fn a_walk_begins_above_its_bound_whichever_way_it_goes(records: &(impl Records + ?Sized)) {
    let rows = [("a", 10), ("b", 20), ("c", 30)];
    put(records, rows.map(|(id, at)| chat("b", id, Some(at))).into()).await;
    assert_eq!(walk(records, Up, 10, 10).await, ["b", "c"]);
    assert_eq!(walk(records, Down, 10, 10).await, ["c", "b"]);
    assert_eq!(walk(records, Up, 9, 10).await, ["a", "b", "c"]);
    assert!(walk(records, Up, 30, 10).await.is_empty());
}

async fn a_walk_ends_at_its_limit(records: &(impl Records + ?Sized)) {
    let rows = [("a", 10), ("b", 20), ("c", 30)];
    put(records, rows.map(|(id, at)| chat("b", id, Some(at))).into()).await;
    assert_eq!(walk(records, Up, 0, 2).await, ["a", "b"]);
    assert_eq!(walk(records, Down, 0, 2).await, ["c", "b"], "from the top, not from the bound");
    assert!(walk(records, Up, 0, 0).await.is_empty());
}

async fn what_is_alike_is_in_the_order_of_its_key(records: &(impl Records + ?Sized)) {
    let rows = [("b", 10), ("c", 10), ("a", 10), ("d", 5)];
    put(records, rows.map(|(id, at)| chat("b", id, Some(at))).into()).await;
    assert_eq!(walk(records, Up, 0, 3).await, ["d", "a", "b"]);
    assert_eq!(walk(records, Down, 0, 3).await, ["c", "b", "a"]);
}

async fn a_walk_along_text_goes_by_its_bytes(records: &(impl Records + ?Sized)) {
    put(records, ["-42", "-42/3", "-42/31", "-420", "Z", "a", "é"].map(|id| chat("b", id, None)).into())
        .await;
    let walked =
        look(records, "walk", |view| view.walk::<ChatRow>((OF_BOT, ("x", "b")), "chat_id", (Up, "-42/"), 10));
    let ids: Vec<String> = walked.await.unwrap().into_iter().map(|row| row.chat_id).collect();
    assert_eq!(ids, ["-42/3", "-42/31", "-420", "Z", "a", "é"]);
}

async fn a_walk_may_be_through_all_that_there_is(records: &(impl Records + ?Sized)) {
    let made = change(records, Change::to("put"), |view| {
        for (chat, instance) in [("a", Some(7)), ("b", None), ("c", Some(2))] {
            view.put(&NoticeRow {
                kind: "away".into(),
                platform: "x".into(),
                bot: "b".into(),
                chat_id: chat.into(),
                instance: instance.map(InstanceId),
                at: UnixMillis(1),
            });
        }
        Ok(())
    });
    made.await.unwrap();
    let walked =
        look(records, "walk", |view| view.walk::<NoticeRow>((&[], ()), "instance", (Up, InstanceId(0)), 10));
    let chats: Vec<String> = walked.await.unwrap().into_iter().map(|row| row.chat_id).collect();
    assert_eq!(chats, ["c", "a"]);
}

async fn a_walk_that_is_not_declared_is_refused(records: &(impl Records + ?Sized)) {
    let refused =
        async |walk: fn(&mut View<'_>) -> Result<()>| look(records, "walk", walk).await.unwrap_err().kind();
    let by_nothing = |view: &mut View<'_>| view.walk::<ChatRow>((&[], ()), "last_at", (Up, 0), 1).map(drop);
    assert_eq!(refused(by_nothing).await, Kind::Internal);
    let along =
        |view: &mut View<'_>| view.walk::<ChatRow>((OF_BOT, ("x", "b")), "name", (Up, ""), 1).map(drop);
    assert_eq!(refused(along).await, Kind::Internal);
    let of_another = |view: &mut View<'_>| view.walk::<RouteRow>((&[], ()), "place", (Up, ""), 1).map(drop);
    assert_eq!(refused(of_another).await, Kind::Internal);
}

async fn a_table_is_walked_before_it_is_written(records: &(impl Records + ?Sized)) {
    let walk = |view: &mut View<'_>| {
        view.walk::<ChatRow>((OF_BOT, ("x", "b")), "last_at", (Up, UnixMillis(0)), 10).map(|rows| rows.len())
    };
    let after = change(records, Change::to("try"), move |view| {
        view.put(&chat("b", "a", Some(1)));
        walk(view)
    });
    assert_eq!(after.await.unwrap_err().kind(), Kind::Internal);
    let before = change(records, Change::to("try"), move |view| {
        let found = walk(view)?;
        view.put(&chat("b", "a", Some(1)));
        Ok(found)
    });
    assert_eq!(before.await.unwrap(), 0);
    assert_eq!(walk_count(records).await, 1);
}

async fn walk_count(records: &(impl Records + ?Sized)) -> usize {
    walk(records, Up, 0, 10).await.len()
}

async fn the_first_that_a_walk_comes_to_are_deleted(records: &(impl Records + ?Sized)) {
    let made = change(records, Change::to("put"), |view| {
        for (bot, until) in [("b", 1), ("b", 2), ("other", 3), ("b", 4)] {
            let id = view.number::<MissedRow>()?;
            let (platform, bot, why) = ("x".to_owned(), bot.to_owned(), String::new());
            let (since, until) = (UnixMillis(0), UnixMillis(until));
            view.put(&MissedRow { id, platform, bot, chat_id: None, seen: None, since, until, why });
        }
        Ok(())
    });
    made.await.unwrap();
    let deleted = change(records, Change::to("delete"), |view| {
        view.delete_first::<MissedRow>((OF_BOT, ("x", "b")), "id", 0, 2)
    });
    deleted.await.unwrap();
    let left = look(records, "count", |view| view.newest::<MissedRow>(&[], (), 10)).await.unwrap();
    assert_eq!(left.iter().map(|row| row.until.0).collect::<Vec<_>>(), [4, 3]);
}

on_every_engine!(
    a_walk_goes_along_its_column_and_leaves_out_what_holds_nothing,
    a_walk_begins_above_its_bound_whichever_way_it_goes,
    a_walk_ends_at_its_limit,
    what_is_alike_is_in_the_order_of_its_key,
    a_walk_along_text_goes_by_its_bytes,
    a_walk_may_be_through_all_that_there_is,
    a_walk_that_is_not_declared_is_refused,
    a_table_is_walked_before_it_is_written,
    the_first_that_a_walk_comes_to_are_deleted,
);
