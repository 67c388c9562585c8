use super::open::{Opened, entry};
use angelia_core::Kind;
use angelia_core::admission::{Allow, Route};
use angelia_core::clock;
use angelia_core::store::{NewEntry, NewGateway, NewLine, Person};

fn gateway(tenant: &str, id: &str) -> NewGateway {
    NewGateway { tenant: tenant.into(), gateway_id: id.into(), sealed_secret: vec![7], wake_url: None }
}

#[tokio::test]
async fn gateway_ids_are_unique_within_a_tenant() {
    let opened = Opened::new();
    let first = opened.store.create_gateway(gateway("acme", "gw")).await.unwrap();
    let other = opened.store.create_gateway(gateway("other", "gw")).await.unwrap();
    assert_ne!(first.instance, other.instance);
    let again = opened.store.create_gateway(gateway("acme", "gw")).await.unwrap_err();
    assert_eq!(again.kind(), Kind::Conflict);
    let opened = opened.reopen();
    let known = opened.store.gateways().await.unwrap();
    assert_eq!(known.len(), 2);
    assert_eq!(known[0].secrets[0].sealed, [7]);
}

#[tokio::test]
async fn a_place_has_one_route() {
    let opened = Opened::new();
    let route = |tenant: &str, allow: Allow| Route {
        place: "webchat:lab".parse().unwrap(),
        bot: None,
        tenant: tenant.into(),
        instance: None,
        allow,
        free: true,
    };
    let mine = route("acme", Allow::People(vec!["ann".into(), "bob".into()]));
    opened.store.add_route(mine.clone()).await.unwrap();
    let taken = opened.store.add_route(route("evil", Allow::Any)).await.unwrap_err();
    assert_eq!(taken.kind(), Kind::Conflict);
    assert_eq!(opened.store.routes().await.unwrap(), std::slice::from_ref(&mine));
    assert!(opened.store.remove_route(&mine.place, None).await.unwrap());
    assert!(!opened.store.remove_route(&mine.place, None).await.unwrap());
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

fn line(id: &str, client_id: Option<&str>) -> NewLine {
    NewLine {
        room: "lab".into(),
        message_id: id.into(),
        author: "ann".into(),
        from_agent: false,
        text: format!("text of {id}"),
        reply_to: None,
        client_id: client_id.map(str::to_owned),
        at: clock::wall(),
    }
}

#[tokio::test]
async fn a_repeated_post_makes_neither_line_nor_entry() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let post = |id: &'static str| {
        let entry = NewEntry { message_id: id.into(), ..entry(a, id) };
        opened.store.post_line(line(id, Some("c1")), Some(entry))
    };
    assert!(post("m1").await.unwrap().new);
    let again = post("m2").await.unwrap();
    assert_eq!((again.new, again.message_id.as_str()), (false, "m1"));
    assert_eq!(opened.store.lines("lab", 0, 10).await.unwrap().len(), 1);
    assert_eq!(opened.seqs(a).await.len(), 1);
}

#[tokio::test]
async fn a_key_opens_the_room_it_was_made_for() {
    let opened = Opened::new();
    let person = Person { room: "lab".into(), user: "ann".into() };
    opened.store.invite(person.clone(), [1; 32]).await.unwrap();
    let opened = opened.reopen();
    assert_eq!(opened.store.person([1; 32]).await.unwrap(), Some(person));
    assert_eq!(opened.store.person([2; 32]).await.unwrap(), None);
}
