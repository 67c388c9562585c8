//! What every keeper of records must do: a rule is run whole or not at all, sees
//! what it wrote itself, and nobody comes between what it read and what it writes.

use super::vault::{capability, keep};
use angelia_core::admission::{Allow, Policy, Route, RouteOptions};
use angelia_core::audit::{Actor, AuditEntry, AuditLine};
use angelia_core::clock::UnixMillis;
use angelia_core::commands::Command;
use angelia_core::error::{Error, Kind};
use angelia_core::identity::Subject;
use angelia_core::identity::link_tries::WRONG;
use angelia_core::inbox::InstanceId;
use angelia_core::records::rows::{
    FrontRow, GatewayRow, InstanceRow, SealedCapabilityRow, SecretRow, TenantRow,
};
use angelia_core::records::{Change, Direction, Records, change, look};
use angelia_core::store::{
    AccessStore, AuditStore, Client, CodeAllow, EnrollToken, GatewayChange, IdentityStore, LinkCode,
    NewGateway, Person, RoomStore, TenantIdentity, VaultStore,
};
use angelia_core::turns::WhileBusy;
use angelia_core::vault::{Capability, CapabilityId, Stage};
use futures_util::future::join_all;

fn by() -> Actor {
    Actor::operator()
}

fn gateway(id: &str) -> NewGateway {
    NewGateway {
        tenant: "acme".into(),
        gateway_id: id.into(),
        instance: None,
        sealed_secret: vec![1],
        wake_url: None,
        display_name: None,
        while_busy: None,
        shared_groups: false,
        subject: None,
        most: 100,
    }
}

fn row(tenant: &str) -> TenantRow {
    TenantRow { tenant: tenant.into(), created_at: UnixMillis(1), default_instance: None, delivery_key: None }
}

async fn a_rule_that_refuses_changes_nothing(records: &(impl Records + ?Sized)) {
    let refused = change(records, Change::to("try"), |view| -> angelia_core::error::Result<()> {
        view.put(&row("acme"));
        view.audit(&AuditEntry::done(&by(), "tenant.create", "acme", "acme"));
        view.audit_refusal(&AuditEntry::refused(&by(), "tenant.create", "acme", "acme", "a test"));
        Err(Error::conflict("no"))
    });
    assert_eq!(refused.await.unwrap_err().kind(), Kind::Conflict);
    assert!(records.tenants().await.unwrap().is_empty());
    assert!(records.changed(0, 10).await.unwrap().is_empty(), "nothing is told to others");
    let told = records.audit_lines(None, 10).await.unwrap();
    assert_eq!(told.len(), 1, "only that it was refused");
    assert_eq!(told[0].outcome, "refused: a test");
}

async fn a_rule_sees_what_it_wrote(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    let seen = change(records, Change::to("look at one's own"), |view| {
        let front = |bot: &str| FrontRow { instance: InstanceId(7), platform: "x".into(), bot: bot.into() };
        view.put(&front("b"));
        view.put(&front("a"));
        let both: Vec<String> =
            view.find::<FrontRow>(&["instance"], (InstanceId(7),))?.into_iter().map(|row| row.bot).collect();
        view.delete(&front("b"));
        let one = view.count::<FrontRow>(&["instance"], (InstanceId(7),))?;
        let mut tenant = view.get::<TenantRow>(("acme",))?.expect("it was made before");
        tenant.delivery_key = Some(vec![9]);
        view.put(&tenant);
        let again = view.get::<TenantRow>(("acme",))?.and_then(|row| row.delivery_key);
        Ok((both, one, again))
    });
    assert_eq!(seen.await.unwrap(), (vec!["a".to_owned(), "b".to_owned()], 1, Some(vec![9])));
    let kept = records.fronts().await.unwrap();
    assert_eq!(kept, [(InstanceId(7), "x".to_owned(), "a".to_owned())]);
    assert_eq!(records.delivery_key("acme").await.unwrap(), Some(vec![9]));
}

async fn nobody_comes_between_reading_and_writing(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    let count = |_| {
        change(records, Change::to("count"), |view| {
            let mut row = view.get::<TenantRow>(("acme",))?.expect("it was made before");
            let counted = row.delivery_key.unwrap_or_default().len() + 1;
            row.delivery_key = Some(vec![0; counted]);
            view.put(&row);
            Ok(counted)
        })
    };
    let mut said: Vec<usize> = join_all((0..20).map(count)).await.into_iter().map(Result::unwrap).collect();
    said.sort_unstable();
    assert_eq!(said, (1..=20).collect::<Vec<_>>(), "each saw what the one before wrote");
}

async fn a_token_lets_one_in(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    let token = EnrollToken {
        fingerprint: [3; 32],
        tenant: "acme".into(),
        gateway_id: None,
        expires_at: UnixMillis(i64::MAX),
    };
    records.mint_enroll_token(token, &by()).await.unwrap();
    let enrol = |number: usize| {
        records.enroll([3; 32], gateway(&format!("gw-{number}")), UnixMillis(0), &Actor::stranger())
    };
    let let_in = join_all((0..8).map(enrol)).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(let_in, 1);
    assert_eq!(records.gateways().await.unwrap().len(), 1);
}

async fn a_number_is_never_given_again(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    let first = records.create_gateway(gateway("one"), &by()).await.unwrap();
    records.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    records.create_tenant("globex", None, &by()).await.unwrap();
    let other = NewGateway { tenant: "globex".into(), ..gateway("one") };
    let second = records.create_gateway(other, &by()).await.unwrap();
    assert!(second.instance > first.instance, "{first:?} {second:?}");
    let left = look(records, "count", |view| {
        Ok((view.count::<SecretRow>(&[], ())?, view.count::<InstanceRow>(&[], ())?))
    });
    assert_eq!(left.await.unwrap(), (1, 1), "what was the other tenant's went with it");
}

/// Every change of what servers remember, and what the feed says of it.
async fn every_change_is_fed(records: &(impl Records + ?Sized)) {
    let mut seen = 0;
    let mut fed = async |what: &str, expected: &[(&str, &str)]| {
        let lines = records.changed(seen, 100).await.unwrap();
        let told: Vec<_> = lines.iter().map(|line| (line.records.as_str(), line.key.as_str())).collect();
        for line in expected {
            assert!(told.contains(line), "{what}: {line:?} is not in {told:?}");
        }
        assert!(lines.windows(2).all(|pair| pair[0].id < pair[1].id));
        seen = lines.last().expect(what).id;
    };
    let identity = TenantIdentity { tenant: "acme".into(), issuer: "https://i".into(), claim: "a".into() };
    records.create_tenant("acme", None, &by()).await.unwrap();
    fed("a tenant", &[("tenants", r#"["acme"]"#)]).await;
    records.link_tenant(identity.clone(), &by()).await.unwrap();
    fed("its identity", &[("tenant_identities", r#"["https://i","a"]"#)]).await;
    records.unlink_tenant(identity, &by()).await.unwrap();
    fed("taken back", &[("tenant_identities", r#"["https://i","a"]"#)]).await;
    let made = records.create_gateway(gateway("one"), &by()).await.unwrap();
    let of_gateway = [("gateways", r#"["acme","one"]"#), ("gateway_secrets", r#"["acme","one"]"#)];
    fed("a gateway", &of_gateway).await;
    records.rotate_gateway("acme", "one", vec![2], None, &by()).await.unwrap();
    fed("a rotation", &of_gateway[1..]).await;
    let moves = GatewayChange { instance: Some("other".into()), ..GatewayChange::default() };
    records.change_gateway("acme", "one", moves, &by()).await.unwrap();
    fed("a move", &of_gateway[..1]).await;
    records.set_fronts(made.instance, vec![("x".into(), "bot".into())]).await.unwrap();
    let instance = format!("[{}]", made.instance.0);
    fed("a front", &[("fronts", &instance)]).await;
    let commands = vec![Command { name: "new".into(), ..Command::default() }];
    records.set_manifest(made.instance, commands.clone()).await.unwrap();
    fed("a manifest", &[("manifests", &instance)]).await;
    assert_eq!(records.manifests().await.unwrap(), [(made.instance, commands)]);
    records.set_manifest(made.instance, Vec::new()).await.unwrap();
    fed("no manifest", &[("manifests", &instance)]).await;
    let policy = Policy { require_address: true, free_scopes: vec!["g".into()], allow_other_bots: false };
    records.set_policy(made.instance, "x", policy.clone(), &by()).await.unwrap();
    fed("a policy", &[("policies", &format!(r#"[{},"x"]"#, made.instance.0))]).await;
    assert_eq!(records.policies().await.unwrap(), [(made.instance, "x".to_owned(), policy)]);
    let place = "discord:1".parse().unwrap();
    let allow = Allow::People(vec!["ann".into()]);
    let route = Route {
        place,
        bot: None,
        tenant: "acme".into(),
        instance: None,
        allow,
        free: true,
        while_busy: Some(WhileBusy::Collect),
        options: RouteOptions::default(),
    };
    records.add_route(route.clone(), &by()).await.unwrap();
    fed("a route", &[("routes", r#"["discord:1",""]"#)]).await;
    assert_eq!(records.routes().await.unwrap(), std::slice::from_ref(&route));
    assert!(records.remove_route(&route.place, None, &by()).await.unwrap());
    fed("a removed route", &[("routes", r#"["discord:1",""]"#)]).await;
    let ann = Person { room: "lab".into(), user: "ann".into() };
    records.invite(ann.clone(), [1; 32], &by()).await.unwrap();
    fed("an invitation", &[("webchat_people", r#"["lab","ann"]"#)]).await;
    records.uninvite(ann, &by()).await.unwrap();
    fed("one that is void", &[("webchat_people", r#"["lab","ann"]"#)]).await;
    records.revoke_gateway("acme", "one", &by()).await.unwrap();
    fed("a revocation", &of_gateway[..1]).await;
    records.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    fed("a removal", &[of_gateway[0], ("tenants", r#"["acme"]"#)]).await;
}

async fn what_is_kept_is_read_back(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    let ann = Subject::new("i", "ann");
    let new = NewGateway {
        subject: Some(ann.clone()),
        wake_url: Some("https://w".into()),
        while_busy: Some(WhileBusy::Followup),
        shared_groups: true,
        ..gateway("one")
    };
    let made = records.create_gateway(new, &by()).await.unwrap();
    assert_eq!((made.while_busy, made.shared_groups), (Some(WhileBusy::Followup), true));
    let (again, instances) = (records.gateways().await.unwrap(), records.instances().await.unwrap());
    assert_eq!(format!("{again:?}"), format!("{:?}", [made]));
    assert_eq!((instances[0].subject.as_ref(), instances[0].is_default), (Some(&ann), true));
    for allow in [CodeAllow::Typist, CodeAllow::Given(Allow::Any), CodeAllow::Given(Allow::People(vec![]))] {
        let code = LinkCode {
            fingerprint: [4; 32],
            tenant: "acme".into(),
            instance: None,
            allow: allow.clone(),
            free: false,
            expires_at: UnixMillis(i64::MAX),
        };
        records.mint_link_code(code, &by()).await.unwrap();
        let place = "discord:1".parse().unwrap();
        records.use_link_code([4; 32], &place, Some("bot"), "ann", &by()).await.unwrap();
        let expected = match allow {
            CodeAllow::Typist => Allow::People(vec!["ann".into()]),
            CodeAllow::Given(allow) => allow,
        };
        assert_eq!(records.routes().await.unwrap()[0].allow, expected);
        records.remove_route(&place, Some("bot"), &by()).await.unwrap();
    }
    let to = GatewayChange { while_busy: Some(WhileBusy::Pass), ..GatewayChange::default() };
    let changed = records.change_gateway("acme", "one", to, &by()).await.unwrap();
    assert_eq!((changed.while_busy, changed.shared_groups), (Some(WhileBusy::Pass), true), "the rest stays");
    let to = GatewayChange { shared_groups: Some(false), ..GatewayChange::default() };
    let changed = records.change_gateway("acme", "one", to, &by()).await.unwrap();
    assert_eq!((changed.while_busy, changed.shared_groups), (Some(WhileBusy::Pass), false));
    records.set_note("n", vec![1, 2]).await.unwrap();
    assert_eq!(records.note("n").await.unwrap(), Some(vec![1, 2]));
    assert_eq!(records.note("m").await.unwrap(), None);
}

async fn what_is_not_declared_is_not_searched(records: &(impl Records + ?Sized)) {
    let searched = look(records, "search", |view| view.find::<Client>(&["revoked_at"], (UnixMillis(1),)));
    assert_eq!(searched.await.unwrap_err().kind(), Kind::Internal);
    let counted = look(records, "search", |view| view.count::<Client>(&["revoked_at"], (UnixMillis(1),)));
    assert_eq!(counted.await.unwrap_err().kind(), Kind::Internal);
    let whole = look(records, "search", |view| view.all::<AuditLine>().map(|rows| rows.len()));
    assert_eq!(whole.await.unwrap_err().kind(), Kind::Internal, "only its newest lines");
    let newest = look(records, "search", |view| view.find::<GatewayRow>(&["instance"], (InstanceId(1),)));
    assert!(newest.await.unwrap().is_empty());
}

async fn what_is_added_takes_nobodys_place(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    let add = |tenant: &'static str| change(records, Change::to("add"), move |view| view.add(&row(tenant)));
    assert_eq!(add("acme").await.unwrap_err().kind(), Kind::Conflict);
    add("globex").await.unwrap();
    assert_eq!(records.tenants().await.unwrap(), ["acme", "globex"]);
}

/// Which capabilities lie above a moment, one way or the other.
async fn a_part_of_a_table_is_read_along_a_column(records: &(impl Records + ?Sized)) {
    keep(records, &[capability(1, 30), capability(2, 10), capability(3, 20), capability(4, 20)]).await;
    let walked = async |direction, above: i64, limit| -> Vec<i64> {
        let walk = look(records, "walk", move |view| {
            let by: (&[&str], _) = (&["stage"], (Stage::Open,));
            view.walk::<Capability>(by, "expires_at", (direction, above), limit)
        });
        walk.await.unwrap().iter().map(|row| row.id.0).collect()
    };
    assert_eq!(walked(Direction::Up, 0, 9).await, [2, 3, 4, 1]);
    assert_eq!(walked(Direction::Up, 10, 2).await, [3, 4], "what it begins at is not among them");
    assert_eq!(walked(Direction::Down, 10, 2).await, [1, 4], "from the top");
    let between = async |stage: Stage, above: i64, up_to: i64| -> Vec<i64> {
        let part = look(records, "read a part", move |view| {
            view.between::<Capability>((&["stage"], (stage,)), "expires_at", (above, up_to))
        });
        part.await.unwrap().iter().map(|row| row.id.0).collect()
    };
    assert_eq!(between(Stage::Open, 10, 20).await, [3, 4], "with what it ends at");
    assert_eq!(between(Stage::Open, 0, 99).await, [2, 3, 4, 1]);
    assert!(between(Stage::Claimed, 0, 99).await.is_empty());
    let elsewhere =
        look(records, "walk", |view| view.walk::<Capability>((&[], ()), "chat_id", (Direction::Up, ""), 1));
    assert_eq!(elsewhere.await.unwrap_err().kind(), Kind::Internal, "nobody declared that way");
}

async fn what_is_replaced_leaves_the_rest_and_makes_nothing(records: &(impl Records + ?Sized)) {
    keep(records, &[capability(1, 30)]).await;
    let seen = change(records, Change::to("replace"), |view| {
        let found = view.get::<SealedCapabilityRow>((1,))?.expect("it was kept before");
        view.replace(&SealedCapabilityRow { sealed: vec![9], ..found.clone() });
        view.replace(&SealedCapabilityRow { id: 2, ..found });
        Ok(view.get::<SealedCapabilityRow>((1,))?.map(|row| row.sealed))
    });
    assert_eq!(seen.await.unwrap(), Some(vec![9]), "a rule sees what it wrote");
    let kept = records.capability(CapabilityId(1)).await.unwrap().unwrap();
    assert_eq!((kept.sealed, kept.expires_at, kept.stage), (vec![9], UnixMillis(30), Stage::Open));
    assert!(records.capability(CapabilityId(2)).await.unwrap().is_none());
}

async fn it_is_told_how_the_least_and_the_greatest_sealed_value_begin(records: &(impl Records + ?Sized)) {
    let heads = async || look(records, "look", |view| view.heads::<SealedCapabilityRow>()).await.unwrap();
    assert!(heads().await.is_empty());
    let sealed = |id, sealed: &[u8]| Capability { sealed: sealed.to_vec(), ..capability(id, 1) };
    keep(records, &[sealed(1, &[5; 40]), sealed(2, &[7]), sealed(3, &[4]), sealed(4, &[6; 9])]).await;
    assert_eq!(heads().await, [[4], [7]]);
    keep(records, &[sealed(2, &[5; 10]), sealed(3, &[5; 9]), sealed(4, &[5; 11])]).await;
    assert!(heads().await.iter().all(|head| *head == [5; 9]), "as much as names a key, and no more");
    let open = look(records, "look", |view| view.heads::<Capability>());
    assert_eq!(open.await.unwrap_err().kind(), Kind::Internal, "nothing is declared as sealed there");
}

async fn what_holds_nothing_is_found_by_that(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    for id in ["one", "two", "three"] {
        records.create_gateway(gateway(id), &by()).await.unwrap();
    }
    records.revoke_gateway("acme", "two", &by()).await.unwrap();
    let living = look(records, "count", |view| {
        view.count::<GatewayRow>(&["tenant", "revoked_at"], ("acme", None::<UnixMillis>))
    });
    assert_eq!(living.await.unwrap(), 2);
    let full = NewGateway { most: 2, ..gateway("four") };
    let refused = records.create_gateway(full, &by()).await.unwrap_err().to_string();
    assert!(refused.contains("has 2 gateways already"), "{refused}");
}

fn of(subject: &Subject, id: &str, instance: Option<&str>) -> NewGateway {
    let instance = instance.map(str::to_owned);
    NewGateway { subject: Some(subject.clone()), instance, ..gateway(id) }
}

async fn the_first_gateway_takes_over_what_waits_for_it(records: &(impl Records + ?Sized)) {
    let (ann, bob) = (Subject::new("i", "ann"), Subject::new("i", "bob"));
    let first = records.create_tenant("acme", None, &by()).await.unwrap();
    let globex = records.create_tenant("globex", None, &by()).await.unwrap();
    assert_eq!(records.default_instance("acme").await.unwrap(), Some(first));
    let made = records.create_gateway(of(&ann, "one", Some("office")), &by()).await.unwrap();
    assert_eq!((made.instance, made.instance_name.as_str()), (first, "office"), "whatever it calls it");
    assert_eq!(records.default_instance("acme").await.unwrap(), Some(first));
    let known = |id, name: &str| (id, name.to_owned());
    let instances = records.instances().await.unwrap();
    let named: Vec<_> = instances.iter().map(|it| (it.instance, it.name.clone())).collect();
    assert_eq!(named, [known(first, "office"), known(globex, "")], "another tenant's goes on waiting");
    assert_eq!(instances[0].subject.as_ref(), Some(&ann), "it is hers as if she had made it");
    let joined = records.create_gateway(of(&bob, "two", Some("office")), &by()).await.unwrap_err();
    assert_eq!(joined.kind(), Kind::Forbidden);
    let second = records.create_gateway(of(&bob, "two", None), &by()).await.unwrap();
    assert!(second.instance > first, "there is only one first");
    let told: Vec<_> = records.audit_lines(Some("acme"), 9).await.unwrap();
    let told: Vec<_> = told.iter().map(|line| (line.action.as_str(), line.target.as_str())).collect();
    let expected = [
        ("gateway.create", "two"),
        ("gateway.default", "office"),
        ("gateway.create", "one"),
        ("tenant.create", "acme"),
    ];
    assert_eq!(told, expected);
}

async fn of_many_at_once_one_is_the_first(records: &(impl Records + ?Sized)) {
    let first = records.create_tenant("acme", None, &by()).await.unwrap();
    let create = |number: usize| records.create_gateway(gateway(&format!("gw-{number}")), &by());
    let made: Vec<_> = join_all((0..8).map(create)).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(made.iter().filter(|gateway| gateway.instance == first).count(), 1);
    assert_eq!(records.instances().await.unwrap().len(), 8, "and everybody else has one of their own");
}

async fn who_enrols_first_owns_what_waited(records: &(impl Records + ?Sized)) {
    let ann = Subject::new("i", "ann");
    let first = records.create_tenant("acme", None, &by()).await.unwrap();
    let token = EnrollToken {
        fingerprint: [3; 32],
        tenant: "acme".into(),
        gateway_id: None,
        expires_at: UnixMillis(i64::MAX),
    };
    records.mint_enroll_token(token, &by()).await.unwrap();
    let full = NewGateway { most: 0, ..of(&ann, "gw", None) };
    let refused = records.enroll([3; 32], full, UnixMillis(0), &by()).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Conflict);
    assert_eq!(records.instances().await.unwrap()[0].name, "", "a refusal takes nothing");
    let made = records.enroll([3; 32], of(&ann, "gw", None), UnixMillis(0), &by()).await.unwrap();
    assert_eq!((made.instance, made.instance_name.as_str()), (first, "gw"));
    assert_eq!(records.instances().await.unwrap()[0].subject, Some(ann));
}

async fn wrong_codes_are_counted_for_everybody_who_asks(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    let (place, other) = ("discord:1".parse().unwrap(), "discord:2".parse().unwrap());
    let good = LinkCode {
        fingerprint: [9; 32],
        tenant: "acme".into(),
        instance: None,
        allow: CodeAllow::Typist,
        free: false,
        expires_at: UnixMillis(i64::MAX),
    };
    records.mint_link_code(good, &by()).await.unwrap();
    let (ann, bob) = (Actor::person("discord", "ann"), Actor::person("discord", "bob"));
    let link = async |code: u8, who: &Actor| {
        let linked = records.use_link_code([code; 32], &place, Some("bot"), "x", who).await;
        linked.map_err(|error| error.kind())
    };
    // All at once, as if each came by a node of its own.
    let tried = join_all((0..WRONG as u8 + 5).map(|_| link(1, &ann))).await;
    let counted = |kind| tried.iter().filter(|tried| tried.as_ref().err() == Some(&kind)).count();
    assert_eq!((counted(Kind::Forbidden), counted(Kind::TooMany)), (WRONG, 5));
    assert_eq!(link(9, &ann).await, Err(Kind::TooMany), "not even a good one");
    let told = records.audit_lines(None, 100).await.unwrap();
    let refused = told.iter().filter(|line| line.action == "route.link").count();
    assert_eq!(refused, WRONG, "nobody fills the log with it");
    assert_eq!(link(9, &bob).await, Ok("acme".into()), "somebody else");

    // The message comes again, to whoever reads the bot by now.
    assert_eq!(link(9, &bob).await, Ok("acme".into()));
    let before = async |place, who| records.linked_before([9; 32], place, Some("bot"), who).await.unwrap();
    assert_eq!(before(&place, &bob).await.as_deref(), Some("acme"));
    assert_eq!((before(&place, &ann).await, before(&other, &bob).await), (None, None));
    assert_eq!(records.routes().await.unwrap().len(), 1);
    records.remove_route(&place, Some("bot"), &by()).await.unwrap();
    assert_eq!(link(9, &bob).await, Err(Kind::Forbidden), "what was taken away stays so");
}

async fn what_a_revoked_gateway_left_is_nobodys(records: &(impl Records + ?Sized)) {
    let first = records.create_tenant("acme", None, &by()).await.unwrap();
    records.create_gateway(gateway("one"), &by()).await.unwrap();
    records.revoke_gateway("acme", "one", &by()).await.unwrap();
    assert_eq!(records.default_instance("acme").await.unwrap(), None, "nothing waits for it");
    let later = records.create_gateway(gateway("two"), &by()).await.unwrap();
    assert_ne!(later.instance, first, "nor is it handed to the next one");
    assert_eq!(records.default_instance("acme").await.unwrap(), Some(later.instance));
}

on_every_engine!(
    a_rule_that_refuses_changes_nothing,
    a_rule_sees_what_it_wrote,
    nobody_comes_between_reading_and_writing,
    a_token_lets_one_in,
    a_number_is_never_given_again,
    every_change_is_fed,
    what_is_kept_is_read_back,
    what_is_not_declared_is_not_searched,
    what_is_added_takes_nobodys_place,
    what_holds_nothing_is_found_by_that,
    a_part_of_a_table_is_read_along_a_column,
    what_is_replaced_leaves_the_rest_and_makes_nothing,
    it_is_told_how_the_least_and_the_greatest_sealed_value_begin,
    the_first_gateway_takes_over_what_waits_for_it,
    of_many_at_once_one_is_the_first,
    who_enrols_first_owns_what_waited,
    what_a_revoked_gateway_left_is_nobodys,
    wrong_codes_are_counted_for_everybody_who_asks,
);
