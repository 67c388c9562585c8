//! Chats that get another id: what goes along, what stays, and where the old id leads.

use super::directory::knows;
use angelia_core::admission::{Allow, Route, RouteOptions};
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::{BotKey, Chat, ChatKind, KnownChat};
use angelia_core::inbox::InstanceId;
use angelia_core::records::Records;
use angelia_core::store::{AuditStore, DirectoryStore, IdentityStore, NoticeKind, NoticeStore};

pub(crate) const OLD: &str = "-42";
pub(crate) const NEW: &str = "-100900";

pub(crate) fn bot() -> BotKey {
    BotKey::new("telegram", "7")
}

fn by() -> Actor {
    Actor::operator()
}

/// Routes as `place`, bot, tenant.
type Places = Vec<(String, Option<String>, String)>;

pub(crate) fn at(place: &str, bot: Option<&str>, tenant: &str) -> (String, Option<String>, String) {
    (place.into(), bot.map(str::to_owned), tenant.into())
}

/// Makes two tenants, and these routes of theirs.
pub(crate) async fn routed(records: &(impl Records + ?Sized), routes: &[(&str, Option<&str>, &str)]) {
    for tenant in ["acme", "umbra"] {
        records.create_tenant(tenant, None, &by()).await.unwrap();
    }
    for (place, bot, tenant) in routes {
        let route = Route {
            place: place.parse().unwrap(),
            bot: bot.map(str::to_owned),
            tenant: (*tenant).into(),
            instance: None,
            allow: Allow::People(vec!["ann".into()]),
            free: true,
            while_busy: None,
            options: RouteOptions::default(),
        };
        records.add_route(route, &by()).await.unwrap();
    }
}

pub(crate) async fn places(records: &(impl Records + ?Sized)) -> Places {
    let routes = records.routes().await.unwrap();
    assert!(routes.iter().all(|r| r.free && r.allow == Allow::People(vec!["ann".into()])));
    routes.into_iter().map(|route| (route.place.to_string(), route.bot, route.tenant)).collect()
}

/// What the audit log says of routes that moved.
async fn moves(records: &(impl Records + ?Sized)) -> Vec<(String, String, String)> {
    let lines = records.audit_lines(None, 100).await.unwrap().into_iter();
    lines
        .filter(|line| line.action == "route.move")
        .map(|line| (line.tenant, line.target, line.detail))
        .collect()
}

async fn go(records: &(impl Records + ?Sized), from: &str, to: &str) {
    let held_back = records.move_chat(&bot(), from, to, &by()).await.unwrap();
    assert!(held_back.is_none(), "{held_back:?}");
}

async fn known(records: &(impl Records + ?Sized), chat_id: &str) -> Option<KnownChat> {
    records.chat(&bot(), chat_id).await.unwrap()
}

async fn leads(records: &(impl Records + ?Sized), chat_id: &str) -> Option<String> {
    known(records, chat_id).await.and_then(|known| known.moved_to)
}

async fn the_routes_of_this_bot_and_of_every_bot_move(records: &(impl Records + ?Sized)) {
    let before = [
        ("telegram:-42", Some("7"), "acme"),
        ("telegram:-42", None, "umbra"),
        ("telegram:-42", Some("8"), "umbra"),
        ("telegram:-42/3", Some("7"), "umbra"),
        ("telegram:-420", None, "umbra"),
        ("discord:-42", None, "umbra"),
    ];
    routed(records, &before).await;
    go(records, OLD, NEW).await;
    let expected = [
        at("discord:-42", None, "umbra"),
        at("telegram:-100900", None, "umbra"),
        at("telegram:-100900", Some("7"), "acme"),
        at("telegram:-100900/3", Some("7"), "umbra"),
        at("telegram:-42", Some("8"), "umbra"),
        at("telegram:-420", None, "umbra"),
    ];
    assert_eq!(places(records).await, expected);
    let told = moves(records).await;
    assert_eq!(told.len(), 3, "{told:?}");
    let own = ("acme".into(), "telegram:-42".into(), "to telegram:-100900".into());
    assert!(told.contains(&own), "{told:?}");
    go(records, OLD, NEW).await;
    assert_eq!(places(records).await, expected);
    assert_eq!(moves(records).await, told, "doing it again changes nothing");
}

async fn a_route_that_the_new_id_has_stays(records: &(impl Records + ?Sized)) {
    let before = [
        ("telegram:-42", Some("7"), "acme"),
        ("telegram:-42", None, "acme"),
        ("telegram:-100900", Some("7"), "umbra"),
    ];
    routed(records, &before).await;
    go(records, OLD, NEW).await;
    let expected = [at("telegram:-100900", None, "acme"), at("telegram:-100900", Some("7"), "umbra")];
    assert_eq!(places(records).await, expected);
    let gone = "gone: telegram:-100900 has a route already";
    assert!(moves(records).await.contains(&("acme".into(), "telegram:-42".into(), gone.into())));
}

async fn what_is_known_moves_with_the_topics_and_the_old_id_leads_on(records: &(impl Records + ?Sized)) {
    let group = Chat { name: Some("the group".into()), ..Chat::new(OLD, ChatKind::Group) };
    let seen = KnownChat {
        engaged: Some(InstanceId(3)),
        last_message: Some("5".into()),
        last_at: Some(UnixMillis(50)),
        ..group.clone().into()
    };
    let topic = |id: &str| Chat { parent: Some(OLD.into()), ..Chat::new(id, ChatKind::Topic) };
    let neighbour = KnownChat::from(Chat::new("-420", ChatKind::Group));
    let all = [seen, topic("-42/3").into(), topic("-42/31").into(), neighbour.clone()];
    knows(records, &bot(), &all).await;
    let other = BotKey::new("telegram", "8");
    knows(records, &other, &[group.clone().into()]).await;
    go(records, OLD, NEW).await;

    let new = known(records, NEW).await.unwrap();
    assert_eq!(new.chat, Chat { chat_id: NEW.into(), ..group.clone() });
    assert_eq!((new.engaged, new.last_message, new.moved_to), (Some(InstanceId(3)), None, None));
    for (was, is) in [("-42/3", "-100900/3"), ("-42/31", "-100900/31")] {
        let moved = known(records, is).await.unwrap().chat;
        assert_eq!((moved.kind, moved.parent.as_deref()), (ChatKind::Topic, Some(NEW)));
        assert_eq!(leads(records, was).await.as_deref(), Some(is));
    }
    let left = known(records, OLD).await.unwrap();
    assert_eq!(left.moved_to.as_deref(), Some(NEW));
    assert_eq!((left.engaged, left.last_message, left.last_at), (None, None, None));
    assert_eq!(known(records, "-420").await, Some(neighbour));
    let other = records.chat(&other, OLD).await.unwrap();
    assert_eq!(other, Some(group.into()), "another bot hears of it itself");
}

async fn what_was_told_comes_along_and_messages_stay_behind(records: &(impl Records + ?Sized)) {
    let keep = async |chat: &str, message: &str, piece: &str| {
        records.keep_pieces(&bot(), chat, message, vec![piece.into()]).await.unwrap();
    };
    for (chat, message) in [(OLD, "1"), (OLD, "8"), ("-42/3", "1"), ("-42/3", "2"), ("-42/4", "1")] {
        keep(chat, message, "old").await;
    }
    keep(NEW, "8", "new").await;
    keep("-420", "1", "another's").await;
    let (away, here) = (Some(InstanceId(1)), Some(InstanceId(2)));
    let tell = async |kind, chat: &str, instance| records.notice(kind, &bot(), chat, instance).await.unwrap();
    assert!(tell(NoticeKind::Hint, OLD, None).await && tell(NoticeKind::Hint, "-42/3", None).await);
    assert!(tell(NoticeKind::Away, OLD, away).await && tell(NoticeKind::Away, NEW, here).await);
    assert!(tell(NoticeKind::Lost, "-420", None).await);
    go(records, OLD, NEW).await;

    let pieces = async |chat: &str, message: &str| records.pieces(&bot(), chat, message).await.unwrap();
    assert!(pieces(NEW, "1").await.is_empty(), "another message has this id");
    assert_eq!(
        (pieces(NEW, "8").await, pieces("-420", "1").await),
        (vec!["new".into()], vec!["another's".into()])
    );
    for (chat, message) in [(OLD, "1"), (OLD, "8"), ("-42/3", "1"), ("-42/3", "2"), ("-42/4", "1")] {
        assert!(pieces(chat, message).await.is_empty(), "{chat} {message}");
    }
    assert_eq!(records.noticed().await.unwrap(), [InstanceId(2)], "what the new id has is newer");
    assert!(!tell(NoticeKind::Hint, NEW, None).await && !tell(NoticeKind::Hint, "-100900/3", None).await);
    assert!(!tell(NoticeKind::Lost, "-420", None).await, "a neighbour's stays");
    assert!(tell(NoticeKind::Hint, OLD, None).await && tell(NoticeKind::Away, OLD, away).await);
}

async fn what_is_known_of_the_new_id_stays(records: &(impl Records + ?Sized)) {
    let said = |id: &str, name: &str| Chat { name: Some(name.into()), ..Chat::new(id, ChatKind::Group) };
    let old = KnownChat { engaged: Some(InstanceId(3)), ..said(OLD, "old").into() };
    let (message, at) = (Some("1".to_owned()), Some(UnixMillis(90)));
    let new = KnownChat { last_message: message, last_at: at, ..said(NEW, "new").into() };
    knows(records, &bot(), &[old, new.clone()]).await;
    go(records, OLD, NEW).await;
    assert_eq!(known(records, NEW).await, Some(KnownChat { engaged: Some(InstanceId(3)), ..new }));
}

async fn an_id_that_nobody_knew_leads_on_and_nothing_is_made_up(records: &(impl Records + ?Sized)) {
    go(records, OLD, NEW).await;
    assert_eq!(leads(records, OLD).await.as_deref(), Some(NEW));
    assert_eq!(known(records, NEW).await, None);
    go(records, "-7", "-7").await;
    assert_eq!(known(records, "-7").await, None, "nothing leads to itself");
    go(records, OLD, "-3").await;
    assert_eq!(leads(records, OLD).await.as_deref(), Some("-3"));
    assert_eq!(known(records, "-3").await, None, "nothing is made up of a signpost");
}

async fn a_chat_that_goes_on_or_back_leads_to_where_it_is(records: &(impl Records + ?Sized)) {
    for (learnt, old, new, third) in [(true, OLD, NEW, "-3"), (false, "-52", "-100901", "-4")] {
        if learnt {
            knows(records, &bot(), &[Chat::new(old, ChatKind::Channel).into()]).await;
        }
        go(records, old, new).await;
        go(records, new, third).await;
        go(records, old, new).await;
        assert_eq!(leads(records, old).await.as_deref(), Some(new));
        assert_eq!(leads(records, new).await.as_deref(), Some(third), "what was done is done");
        let kind = known(records, third).await.map(|known| known.chat.kind);
        assert_eq!(kind, learnt.then_some(ChatKind::Channel), "what leads on is nothing that is known");
        go(records, third, old).await;
        assert_eq!(leads(records, old).await, None, "no circle");
        assert_eq!(leads(records, third).await.as_deref(), Some(old));
        let kind = known(records, old).await.map(|known| known.chat.kind);
        assert_eq!(kind, learnt.then_some(ChatKind::Channel));
    }
}

on_every_engine!(
    the_routes_of_this_bot_and_of_every_bot_move,
    a_route_that_the_new_id_has_stays,
    what_is_known_moves_with_the_topics_and_the_old_id_leads_on,
    what_was_told_comes_along_and_messages_stay_behind,
    what_is_known_of_the_new_id_stays,
    an_id_that_nobody_knew_leads_on_and_nothing_is_made_up,
    a_chat_that_goes_on_or_back_leads_to_where_it_is,
);
