//! Chats that get another id.

use super::directory::seen;
use super::identity::by;
use super::open::{Opened, entry};
use angelia_core::admission::{Allow, Route};
use angelia_core::directory::{BotKey, Chat, ChatKind};
use angelia_core::inbox::InstanceId;
use angelia_core::store::{AuditStore, IdentityStore, Intake, NewEntry, NoticeKind};

const OLD: &str = "-42";
const NEW: &str = "-100900";

fn bot() -> BotKey {
    BotKey::new("telegram", "7")
}

fn route(place: &str, bot: Option<&str>, tenant: &str) -> Route {
    Route {
        place: place.parse().unwrap(),
        bot: bot.map(str::to_owned),
        tenant: tenant.into(),
        instance: None,
        allow: Allow::People(vec!["ann".into()]),
        free: true,
    }
}

/// A store with the routes, as `place`, bot, tenant.
async fn with_routes(routes: &[(&str, Option<&str>, &str)]) -> Opened {
    let opened = Opened::with_tenants(&["acme", "umbra"]).await;
    for (place, bot, tenant) in routes {
        opened.store.add_route(route(place, *bot, tenant), &by()).await.unwrap();
    }
    opened
}

impl Opened {
    async fn places(&self) -> Vec<(String, Option<String>, String)> {
        let routes = self.store.routes().await.unwrap();
        assert!(routes.iter().all(|r| r.free && r.allow == Allow::People(vec!["ann".into()])));
        routes.into_iter().map(|route| (route.place.to_string(), route.bot, route.tenant)).collect()
    }

    async fn moves(&self) -> Vec<(String, String, String)> {
        let lines = self.store.audit_lines(None, 100).await.unwrap().into_iter();
        lines
            .filter(|line| line.action == "route.move")
            .map(|line| (line.tenant, line.target, line.detail))
            .collect()
    }
}

fn at(place: &str, bot: Option<&str>, tenant: &str) -> (String, Option<String>, String) {
    (place.into(), bot.map(str::to_owned), tenant.into())
}

#[tokio::test]
async fn the_routes_of_this_bot_and_of_every_bot_move() {
    let opened = with_routes(&[
        ("telegram:-42", Some("7"), "acme"),
        ("telegram:-42", None, "umbra"),
        ("telegram:-42", Some("8"), "umbra"),
        ("telegram:-42/3", Some("7"), "umbra"),
        ("telegram:-420", None, "umbra"),
        ("discord:-42", None, "umbra"),
    ])
    .await;
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    let expected = [
        at("discord:-42", None, "umbra"),
        at("telegram:-100900", None, "umbra"),
        at("telegram:-100900", Some("7"), "acme"),
        at("telegram:-100900/3", Some("7"), "umbra"),
        at("telegram:-42", Some("8"), "umbra"),
        at("telegram:-420", None, "umbra"),
    ];
    assert_eq!(opened.places().await, expected);
    let moves = opened.moves().await;
    assert_eq!(moves.len(), 3, "{moves:?}");
    let own = ("acme".into(), "telegram:-42".into(), "to telegram:-100900".into());
    assert!(moves.contains(&own), "{moves:?}");
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    assert_eq!(opened.places().await, expected);
    assert_eq!(opened.moves().await, moves, "doing it again changes nothing");
}

#[tokio::test]
async fn a_route_that_the_new_id_has_stays() {
    let opened = with_routes(&[
        ("telegram:-42", Some("7"), "acme"),
        ("telegram:-42", None, "acme"),
        ("telegram:-100900", Some("7"), "umbra"),
    ])
    .await;
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    let expected = [at("telegram:-100900", None, "acme"), at("telegram:-100900", Some("7"), "umbra")];
    assert_eq!(opened.places().await, expected);
    let gone = "gone: telegram:-100900 has a route already";
    assert!(opened.moves().await.contains(&("acme".into(), "telegram:-42".into(), gone.into())));
}

#[tokio::test]
async fn what_is_known_moves_with_the_topics_and_the_old_id_leads_on() {
    let opened = Opened::new();
    let group = Chat { name: Some("the group".into()), ..Chat::new(OLD, ChatKind::Group) };
    let topic = Chat { parent: Some(OLD.into()), ..Chat::new("-42/3", ChatKind::Topic) };
    let neighbour = Chat::new("-420", ChatKind::Group);
    let first = Intake {
        chats: vec![group.clone(), topic.clone(), neighbour.clone()],
        traffic: vec![seen(OLD, "5", 50)],
        engaged: Some((OLD.into(), InstanceId(3))),
        ..Intake::default()
    };
    opened.store.take_in(&bot(), None, vec![first]).await.unwrap();
    opened.learn(&BotKey::new("telegram", "8"), std::slice::from_ref(&group)).await;
    opened.store.keep_pieces(&bot(), OLD, "1", vec!["2".into()]).await.unwrap();
    opened.store.keep_pieces(&bot(), OLD, "8", vec!["old".into()]).await.unwrap();
    opened.store.keep_pieces(&bot(), NEW, "8", vec!["new".into()]).await.unwrap();
    opened.store.notice(NoticeKind::Hint, &bot(), OLD, None).await.unwrap();
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();

    let new = opened.known(&bot(), NEW).await.unwrap();
    assert_eq!(new.chat, Chat { chat_id: NEW.into(), ..group.clone() });
    assert_eq!((new.engaged, new.last_message, new.moved_to), (Some(InstanceId(3)), None, None));
    let moved = opened.known(&bot(), "-100900/3").await.unwrap().chat;
    assert_eq!((moved.kind, moved.parent.as_deref()), (ChatKind::Topic, Some(NEW)));
    let leads = async |id: &str| opened.known(&bot(), id).await.unwrap().moved_to;
    assert_eq!(leads(OLD).await.as_deref(), Some(NEW));
    assert_eq!(leads("-42/3").await.as_deref(), Some("-100900/3"));
    assert_eq!(opened.known(&bot(), "-420").await, Some(neighbour.into()));
    let other = opened.known(&BotKey::new("telegram", "8"), OLD).await;
    assert_eq!(other, Some(group.clone().into()), "another bot hears of it itself");
    assert!(opened.store.pieces(&bot(), NEW, "1").await.unwrap().is_empty(), "another message has this id");
    assert_eq!(opened.store.pieces(&bot(), NEW, "8").await.unwrap(), ["new"]);
    for message in ["1", "8"] {
        assert!(opened.store.pieces(&bot(), OLD, message).await.unwrap().is_empty());
    }
    assert!(!opened.store.notice(NoticeKind::Hint, &bot(), NEW, None).await.unwrap());

    // What the provider says of the old id later does not bring it back.
    opened.learn(&bot(), &[Chat { name: Some("late".into()), ..group }]).await;
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    assert_eq!(leads(OLD).await.as_deref(), Some(NEW));
    assert_eq!(opened.known(&bot(), NEW).await.unwrap().chat.name.as_deref(), Some("the group"));
}

#[tokio::test]
async fn what_is_known_of_the_new_id_stays() {
    let opened = Opened::new();
    let said = |id: &str, name: &str| Chat { name: Some(name.into()), ..Chat::new(id, ChatKind::Group) };
    let both = Intake {
        chats: vec![said(OLD, "old"), said(NEW, "new")],
        traffic: vec![seen(NEW, "1", 90)],
        engaged: Some((OLD.into(), InstanceId(3))),
        ..Intake::default()
    };
    opened.store.take_in(&bot(), None, vec![both]).await.unwrap();
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    let new = opened.known(&bot(), NEW).await.unwrap();
    assert_eq!(new.chat.name.as_deref(), Some("new"));
    assert_eq!((new.engaged, new.last_message.as_deref()), (Some(InstanceId(3)), Some("1")));
}

#[tokio::test]
async fn an_id_that_nobody_knew_leads_on_and_nothing_is_made_up() {
    let opened = Opened::new();
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    assert_eq!(opened.known(&bot(), OLD).await.unwrap().moved_to.as_deref(), Some(NEW));
    assert_eq!(opened.known(&bot(), NEW).await, None);
    opened.store.move_chat(&bot(), "-7", "-7", &by()).await.unwrap();
    assert_eq!(opened.known(&bot(), "-7").await, None, "nothing leads to itself");
}

#[tokio::test]
async fn a_chat_that_goes_on_or_back_leads_to_where_it_is() {
    let leads =
        async |opened: &Opened, id: &str| opened.known(&bot(), id).await.and_then(|known| known.moved_to);
    for known in [true, false] {
        let opened = Opened::new();
        if known {
            opened.learn(&bot(), &[Chat::new(OLD, ChatKind::Channel)]).await;
        }
        let go = async |from: &str, to: &str| opened.store.move_chat(&bot(), from, to, &by()).await.unwrap();
        go(OLD, NEW).await;
        go(NEW, "-3").await;
        go(OLD, NEW).await;
        assert_eq!(leads(&opened, OLD).await.as_deref(), Some(NEW));
        assert_eq!(leads(&opened, NEW).await.as_deref(), Some("-3"), "what was done is done");
        let kind = opened.known(&bot(), "-3").await.map(|known| known.chat.kind);
        assert_eq!(kind, known.then_some(ChatKind::Channel), "what leads on is nothing that is known");
        go("-3", OLD).await;
        assert_eq!(leads(&opened, OLD).await, None, "no circle");
        assert_eq!(leads(&opened, "-3").await.as_deref(), Some(OLD));
        let kind = opened.known(&bot(), OLD).await.map(|known| known.chat.kind);
        assert_eq!(kind, known.then_some(ChatKind::Channel));
    }
    let opened = Opened::new();
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    opened.store.move_chat(&bot(), OLD, "-3", &by()).await.unwrap();
    assert_eq!(leads(&opened, OLD).await.as_deref(), Some("-3"));
    assert_eq!(opened.known(&bot(), "-3").await, None, "nothing is made up of a signpost");
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
async fn a_move_that_fails_moves_nothing() {
    let opened = with_routes(&[("telegram:-42", Some("7"), "acme")]).await;
    opened.learn(&bot(), &[Chat::new(OLD, ChatKind::Group)]).await;
    opened
        .raw()
        .execute_batch(
            "CREATE TRIGGER stuck BEFORE INSERT ON audit WHEN NEW.action = 'route.move'
             BEGIN SELECT raise(ABORT, 'no'); END",
        )
        .unwrap();
    assert!(opened.store.move_chat(&bot(), OLD, NEW, &by()).await.is_err());
    assert_eq!(opened.places().await, [at("telegram:-42", Some("7"), "acme")]);
    assert_eq!(opened.known(&bot(), OLD).await.unwrap().moved_to, None);
    assert_eq!(opened.known(&bot(), NEW).await, None);
}

#[tokio::test]
async fn a_route_that_cannot_be_read_holds_up_no_other() {
    let opened = with_routes(&[("telegram:-42", None, "acme")]).await;
    let broken =
        "INSERT INTO routes (place, bot, tenant, allow) VALUES ('telegram:-43', '', 'umbra', 'no json')";
    opened.raw().execute_batch(broken).unwrap();
    opened.store.move_chat(&bot(), OLD, NEW, &by()).await.unwrap();
    opened.raw().execute_batch("DELETE FROM routes WHERE tenant = 'umbra'").unwrap();
    assert_eq!(opened.places().await, [at("telegram:-100900", None, "acme")]);
}
