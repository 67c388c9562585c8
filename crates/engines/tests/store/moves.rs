//! Chats that get another id, beside what waits and what somebody wrote by hand.

use super::identity::by;
use super::open::{Opened, entry};
use crate::ports::moves::{NEW, OLD, at, bot, places, routed};
use angelia_core::directory::{Chat, ChatKind};
use angelia_core::error::Kind;
use angelia_core::store::{DirectoryStore, NewEntry};

/// A store with the routes, as `place`, bot, tenant.
async fn with_routes(routes: &[(&str, Option<&str>, &str)]) -> Opened {
    let opened = Opened::new();
    routed(&*opened.store, routes).await;
    opened
}

#[tokio::test]
async fn what_waits_keeps_the_chat_it_came_from() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let waiting =
        NewEntry { platform: "telegram".into(), bot: "7".into(), chat_id: OLD.into(), ..entry(a, "1") };
    opened.store.append(waiting).await.unwrap();
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    let seq = opened.seqs(a).await[0];
    assert_eq!(opened.store.numbered(seq).await.unwrap()[0].chat_id, OLD);
}

#[tokio::test]
async fn what_is_said_of_the_old_id_later_does_not_bring_it_back() {
    let opened = Opened::new();
    let called = |name: &str| Chat { name: Some(name.into()), ..Chat::new(OLD, ChatKind::Group) };
    opened.learn(&bot(), &[called("the group")]).await;
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    opened.learn(&bot(), &[called("late")]).await;
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    assert_eq!(opened.known(&bot(), OLD).await.unwrap().moved_to.as_deref(), Some(NEW));
    assert_eq!(opened.known(&bot(), NEW).await.unwrap().chat.name.as_deref(), Some("the group"));
}

#[tokio::test]
async fn a_move_that_fails_moves_nothing() {
    let opened = with_routes(&[("telegram:-42", Some("7"), "acme")]).await;
    opened.learn(&bot(), &[Chat::new(OLD, ChatKind::Group)]).await;
    opened.refuse("INSERT", "audit", "NEW.action = 'route.move'");
    assert!(opened.store.move_chat(&bot(), OLD, NEW, &by()).await.is_err());
    assert_eq!(places(&*opened.store).await, [at("telegram:-42", Some("7"), "acme")]);
    assert_eq!(opened.known(&bot(), OLD).await.unwrap().moved_to, None);
    assert_eq!(opened.known(&bot(), NEW).await, None);
}

#[tokio::test]
async fn a_route_that_cannot_be_read_holds_up_no_other() {
    let opened = with_routes(&[("telegram:-42", None, "acme")]).await;
    let broken =
        "INSERT INTO routes (place, bot, tenant, allow) VALUES ('telegram:-43', '', 'umbra', 'no json')";
    opened.sql(broken);
    let held_back = opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    assert!(held_back.is_none(), "{held_back:?}");
    opened.sql("DELETE FROM routes WHERE tenant = 'umbra'");
    assert_eq!(places(&*opened.store).await, [at("telegram:-100900", None, "acme")]);
}

#[tokio::test]
async fn a_route_of_the_chat_that_cannot_be_read_holds_up_the_routes_alone_and_is_told() {
    let opened = with_routes(&[("telegram:-42", None, "acme"), ("telegram:-42/3", None, "acme")]).await;
    opened.learn(&bot(), &[Chat::new(OLD, ChatKind::Group)]).await;
    let broken = "INSERT INTO routes (place, bot, tenant, allow)
                  VALUES ('telegram:-100900/3', '', 'umbra', 'no json')";
    opened.sql(broken);
    let held_back = opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap().unwrap();
    assert_eq!((held_back.kind(), held_back.to_string().contains("routes")), (Kind::Internal, true));
    assert_eq!(opened.known(&bot(), OLD).await.unwrap().moved_to.as_deref(), Some(NEW));
    opened.sql("DELETE FROM routes WHERE tenant = 'umbra'");
    let stayed = [at("telegram:-42", None, "acme"), at("telegram:-42/3", None, "acme")];
    assert_eq!(places(&*opened.store).await, stayed, "none of them is half moved");
}

#[tokio::test]
async fn what_cannot_be_read_of_a_chat_holds_up_neither_its_move_nor_its_end() {
    let opened = Opened::new();
    opened.learn(&bot(), &[Chat::new(OLD, ChatKind::Group), Chat::new("-42/3", ChatKind::Topic)]).await;
    opened.store.keep_pieces(&bot(), "-42/3", "1", vec!["2".into()]).await.unwrap();
    let broken = "UPDATE chats SET kind = 'of another release', roles = 'no json', scope = 's';
                  UPDATE pieces SET pieces = 'no json'";
    opened.sql(broken);
    assert_eq!(opened.store.chat(&bot(), OLD).await.unwrap_err().kind(), Kind::Internal);
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    let count = |of: &str| opened.number(&format!("SELECT count(*) FROM {of}"));
    assert_eq!((count("chats WHERE moved_to IS NULL"), count("chats"), count("pieces")), (2, 4, 0));
    opened.store.forget_chat(&bot(), OLD).await.unwrap();
    opened.store.forget_scope(&bot(), "s").await.unwrap();
    assert_eq!(count("chats"), 0);
}
