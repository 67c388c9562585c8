//! Who is known, what lets somebody in, and what is written down about it.

use super::open::{Opened, entry};
use angelia_core::admission::{Allow, Place, Policy, Route, RouteOptions};
use angelia_core::audit::{Actor, AuditEntry};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::commands::{Command, CommandStore, Registered};
use angelia_core::directory::BotKey;
use angelia_core::error::Kind;
use angelia_core::identity::{Subject, TOMBSTONE_FOR};
use angelia_core::inbox::InstanceId;
use angelia_core::secret::fingerprint;
use angelia_core::store::{
    AccessStore, AuditStore, Client, CodeAllow, EnrollToken, GatewayChange, IdentityStore, LinkCode,
    NewGateway, TenantIdentity,
};
use std::time::Duration;

pub(crate) fn gateway(tenant: &str, id: &str) -> NewGateway {
    NewGateway {
        tenant: tenant.into(),
        gateway_id: id.into(),
        instance: None,
        sealed_secret: vec![7],
        wake_url: None,
        display_name: None,
        while_busy: None,
        shared_groups: false,
        subject: None,
        most: 1_000,
    }
}

pub(crate) fn by() -> Actor {
    Actor::operator()
}

fn soon() -> UnixMillis {
    clock::wall().after(Duration::from_secs(60))
}

fn identity(tenant: &str, claim: &str) -> TenantIdentity {
    TenantIdentity { tenant: tenant.into(), issuer: "https://idp".into(), claim: claim.into() }
}

#[tokio::test]
async fn a_claim_proves_one_tenant() {
    let Opened { store, .. } = &Opened::new();
    store.create_tenant("acme", Some(identity("acme", "a-1")), &by()).await.unwrap();
    assert_eq!(store.tenant_of("https://idp", "a-1").await.unwrap().as_deref(), Some("acme"));
    assert_eq!(store.tenant_of("https://other", "a-1").await.unwrap(), None, "another issuer's claim");
    let taken = store.create_tenant("evil", Some(identity("evil", "a-1")), &by()).await.unwrap_err();
    assert_eq!(taken.kind(), Kind::Conflict);
    assert_eq!(store.tenants().await.unwrap(), ["acme"], "a refused tenant is not made");
    assert_eq!(store.link_tenant(identity("nobody", "x"), &by()).await.unwrap_err().kind(), Kind::NotFound);
    store.link_tenant(identity("acme", "a-2"), &by()).await.unwrap();
    assert!(store.unlink_tenant(identity("acme", "a-1"), &by()).await.unwrap());
    assert!(!store.unlink_tenant(identity("acme", "a-1"), &by()).await.unwrap());
    assert_eq!(store.tenant_identities().await.unwrap(), [identity("acme", "a-2")]);
}

#[tokio::test]
async fn an_enrolment_token_is_used_once_and_only_as_meant() {
    let Opened { store, .. } = &Opened::new();
    for tenant in ["acme", "evil"] {
        store.create_tenant(tenant, None, &by()).await.unwrap();
    }
    let mint = async |tenant: &str, secret: &str, gateway: Option<&str>, expires_at| {
        let token = EnrollToken {
            fingerprint: fingerprint(secret),
            tenant: tenant.into(),
            gateway_id: gateway.map(str::to_owned),
            expires_at,
        };
        store.mint_enroll_token(token, &by()).await.unwrap()
    };
    let enroll = async |secret: &str, tenant: &str, id: &str| {
        let enrolled = store.enroll(fingerprint(secret), gateway(tenant, id), soon(), &by()).await;
        enrolled.map(|gateway| gateway.secrets.len()).map_err(|error| error.kind())
    };
    assert!(!mint("acme", "t1", None, soon()).await);
    assert_eq!(enroll("t1", "evil", "gw").await, Err(Kind::Forbidden), "another tenant's");
    assert_eq!(enroll("t0", "acme", "gw").await, Err(Kind::Forbidden), "unknown");
    assert_eq!(enroll("t1", "acme", "gw").await, Ok(1), "the refusal used nothing up");
    assert_eq!(enroll("t1", "acme", "gw-2").await, Err(Kind::Forbidden), "used");
    mint("acme", "old", None, UnixMillis(clock::wall().0 - 1)).await;
    assert_eq!(enroll("old", "acme", "gw-2").await, Err(Kind::Forbidden), "expired");

    mint("acme", "t2", None, soon()).await;
    assert_eq!(enroll("t2", "acme", "gw").await, Err(Kind::Conflict), "the id is taken");
    assert_eq!(enroll("t2", "acme", "gw-2").await, Ok(1), "and the token still good");
    mint("acme", "t3", Some("gw-3"), soon()).await;
    assert_eq!(enroll("t3", "acme", "gw-4").await, Err(Kind::Forbidden), "for another id");
    assert!(mint("acme", "t4", Some("gw"), soon()).await, "it exists: the token replaces it");
    assert_eq!(enroll("t4", "acme", "gw").await, Ok(2), "with the old secret for a while");
    store.revoke_gateway("acme", "gw-2", &by()).await.unwrap();
    let token = EnrollToken {
        fingerprint: fingerprint("t5"),
        tenant: "acme".into(),
        gateway_id: Some("gw-2".into()),
        expires_at: soon(),
    };
    assert_eq!(store.mint_enroll_token(token, &by()).await.unwrap_err().kind(), Kind::Conflict);
}

#[tokio::test]
async fn a_code_makes_one_route() {
    let Opened { store, .. } = &Opened::new();
    store.create_tenant("acme", None, &by()).await.unwrap();
    let mint = async |secret: &str, allow: CodeAllow| {
        let code = LinkCode {
            fingerprint: fingerprint(secret),
            tenant: "acme".into(),
            instance: None,
            allow,
            free: false,
            expires_at: soon(),
        };
        store.mint_link_code(code, &by()).await.unwrap();
    };
    let lab: Place = "webchat:lab".parse().unwrap();
    let den: Place = "webchat:den".parse().unwrap();
    mint("c1", CodeAllow::Typist).await;
    mint("c2", CodeAllow::Given(Allow::Any)).await;
    let link = async |secret: &str, place: &Place| {
        store
            .use_link_code(fingerprint(secret), place, None, "ann", &by())
            .await
            .map_err(|error| error.kind())
    };
    assert_eq!(link("c1", &lab).await, Ok("acme".into()));
    assert_eq!(link("c1", &den).await, Err(Kind::Forbidden), "used");
    assert_eq!(link("c2", &lab).await, Err(Kind::Conflict), "the place is taken");
    assert_eq!(link("c2", &den).await, Ok("acme".into()), "and the code still good");
    let routes = store.routes().await.unwrap();
    let allows: Vec<_> = routes.iter().map(|route| route.allow.clone()).collect();
    assert_eq!(allows, [Allow::Any, Allow::People(vec!["ann".into()])]);
}

#[tokio::test]
async fn the_delivery_key_stays_the_same() {
    let Opened { store, .. } = &Opened::new();
    store.create_tenant("acme", None, &by()).await.unwrap();
    assert_eq!(store.delivery_key("acme").await.unwrap(), None);
    assert_eq!(store.keep_delivery_key("acme", vec![1]).await.unwrap(), [1]);
    assert_eq!(store.keep_delivery_key("acme", vec![2]).await.unwrap(), [1]);
    assert_eq!(store.delivery_key("acme").await.unwrap(), Some(vec![1]));
}

#[tokio::test]
async fn a_gateway_does_not_leave_messages_behind() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    let made = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap();
    store.append(entry(made.instance, "m1")).await.unwrap();
    let to = |name: &str| GatewayChange { instance: Some(name.into()), ..GatewayChange::default() };
    let refused = store.change_gateway("acme", "gw", to("other"), &by()).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Conflict);
    let twin = NewGateway { instance: Some("gw".into()), ..gateway("acme", "twin") };
    assert_eq!(store.create_gateway(twin, &by()).await.unwrap().instance, made.instance);
    let moved = store.change_gateway("acme", "gw", to("other"), &by()).await.unwrap();
    assert_ne!(moved.instance, made.instance, "its twin fetches what waits");
    let named = GatewayChange { display_name: Some(Some("Ann's".into())), ..GatewayChange::default() };
    let named = store.change_gateway("acme", "gw", named, &by()).await.unwrap();
    assert_eq!((named.display_name.as_deref(), named.instance), (Some("Ann's"), moved.instance));
}

#[tokio::test]
async fn a_removed_tenant_leaves_nothing_but_its_audit() {
    let opened = Opened::with_tenants(&["acme", "other"]).await;
    let Opened { store, .. } = &opened;
    let gone = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap().instance;
    let stays = store.create_gateway(gateway("other", "gw"), &by()).await.unwrap().instance;
    for (instance, id) in [(gone, "m1"), (gone, "m2"), (stays, "m3")] {
        store.append(entry(instance, id)).await.unwrap();
    }
    let removed = store.remove_tenant("acme", vec!["lab".into()], &by()).await.unwrap();
    assert_eq!((removed.gateways, removed.waiting), (1, 2));
    assert_eq!(store.remove_tenant("acme", Vec::new(), &by()).await.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(store.tenants().await.unwrap(), ["other"]);
    let unfinished = store.create_tenant("acme", None, &by()).await.unwrap_err();
    assert_eq!(unfinished.kind(), Kind::Conflict, "what is still to be deleted must not become another's");
    store.finish_removals().await.unwrap();
    assert_eq!(opened.seqs(gone).await, []);
    assert_eq!(opened.seqs(stays).await.len(), 1);
    assert_eq!(opened.witness.removed.lock().unwrap().len(), 2, "live sockets are told");
    let unknown = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap_err();
    assert_eq!(unknown.kind(), Kind::NotFound, "it does not come back by itself");
    store.create_tenant("acme", None, &by()).await.unwrap();
    let anew = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap();
    assert!(anew.instance.0 > stays.0, "an instance's number is never given again");
    let actions: Vec<_> =
        store.audit_lines(Some("acme"), 10).await.unwrap().into_iter().map(|line| line.action).collect();
    let expected = [
        "gateway.default",
        "gateway.create",
        "tenant.create",
        "tenant.remove",
        "gateway.default",
        "gateway.create",
        "tenant.create",
    ];
    assert_eq!(actions, expected);
}

#[tokio::test]
async fn policies_and_fronts_survive_a_restart() {
    let opened = Opened::new();
    let instance = opened.instance("gw").await;
    let policy = Policy { require_address: false, free_scopes: vec!["9".into()], allow_other_bots: true };
    opened.store.set_policy(instance, "discord", Policy::default(), &by()).await.unwrap();
    opened.store.set_policy(instance, "discord", policy.clone(), &by()).await.unwrap();
    let front = |platform: &str| (platform.to_owned(), "1".to_owned());
    opened.store.set_fronts(instance, vec![front("discord"), front("telegram")]).await.unwrap();
    opened.store.set_fronts(instance, vec![front("telegram")]).await.unwrap();
    let opened = opened.reopen();
    assert_eq!(opened.store.policies().await.unwrap(), [(instance, "discord".into(), policy)]);
    assert_eq!(opened.store.fronts().await.unwrap(), [(instance, "telegram".into(), "1".into())]);
}

#[tokio::test]
async fn commands_survive_a_restart_move_along_and_go_with_their_gateway() {
    let opened = Opened::with_tenants(&["acme"]).await;
    let old = opened.instance("gw").await;
    let named = |name: &str| vec![Command { name: name.into(), ..Command::default() }];
    opened.store.set_manifest(old, named("new")).await.unwrap();
    opened.store.set_manifest(old, named("model")).await.unwrap();
    let bot = BotKey::new("discord", "1");
    assert_eq!(opened.store.registered(&bot).await.unwrap(), None);
    for form in ["one", "two"] {
        let registered = Registered::of(&named("model"), form.into());
        opened.store.note_registered(&bot, registered).await.unwrap();
    }
    let opened = opened.reopen();
    assert_eq!(opened.store.manifests().await.unwrap(), [(old, named("model"))]);
    let registered = opened.store.registered(&bot).await.unwrap().unwrap();
    assert_eq!((registered.names, registered.form.as_str()), (vec!["model".to_owned()], "two"));
    let moved = GatewayChange { instance: Some("new".into()), ..GatewayChange::default() };
    let new = opened.store.change_gateway("acme", "gw", moved, &by()).await.unwrap().instance;
    assert!(opened.store.manifests().await.unwrap().contains(&(new, named("model"))), "it goes along");
    opened.store.set_manifest(old, Vec::new()).await.unwrap();
    assert_eq!(opened.store.manifests().await.unwrap().len(), 1);
    long_revoked(&opened, "gw").await;
    opened.store.prune().await.unwrap();
    assert_eq!(opened.store.manifests().await.unwrap(), [], "nobody is left to know them");
    opened.store.set_manifest(new, named("late")).await.unwrap();
    assert_eq!(opened.store.manifests().await.unwrap(), [], "nor can anybody declare some");
}

#[tokio::test]
async fn clients_are_known_by_their_fingerprint() {
    let Opened { store, .. } = &Opened::new();
    let client = Client {
        client_id: "c1".into(),
        tenant: "acme".into(),
        secret_fingerprint: fingerprint("s"),
        created_at: clock::wall(),
        revoked_at: None,
    };
    assert_eq!(store.create_client(client.clone(), &by()).await.unwrap_err().kind(), Kind::NotFound);
    store.create_tenant("acme", None, &by()).await.unwrap();
    store.create_client(client, &by()).await.unwrap();
    assert_eq!(store.client("c1").await.unwrap().unwrap().secret_fingerprint, fingerprint("s"));
    let rotated = store.rotate_client("c1", fingerprint("t"), &by()).await.unwrap();
    assert_eq!((rotated.client_id.as_str(), rotated.secret_fingerprint), ("c1", fingerprint("t")));
    assert_eq!(store.client("c1").await.unwrap().unwrap().secret_fingerprint, fingerprint("t"));
    assert!(store.revoke_client("c1", &by()).await.unwrap().revoked_at.is_some());
    let refused = async |id| store.rotate_client(id, fingerprint("u"), &by()).await.unwrap_err().kind();
    assert_eq!((refused("c1").await, refused("c2").await), (Kind::Conflict, Kind::NotFound));
    assert_eq!(store.revoke_client("c2", &by()).await.unwrap_err().kind(), Kind::NotFound);
    assert!(store.client("c1").await.unwrap().unwrap().revoked_at.is_some());
}

#[tokio::test]
async fn the_audit_log_only_grows() {
    let opened = Opened::new();
    let deed = AuditEntry::refused(&Actor::stranger(), "gateway.provision", "acme", "gw", "not proven");
    opened.store.audit(deed).await.unwrap();
    let line = opened.store.audit_lines(None, 1).await.unwrap().remove(0);
    assert_eq!((line.actor.as_str(), line.outcome.as_str()), ("stranger", "refused: not proven"));
    assert!(opened.try_sql("UPDATE audit SET actor = 'nobody'").is_err());
    assert!(opened.try_sql("DELETE FROM audit").is_err());
}

#[tokio::test]
async fn a_tombstone_is_kept_for_ninety_days() {
    let opened = Opened::new();
    for id in ["fresh", "old"] {
        opened.instance(id).await;
        opened.store.revoke_gateway("acme", id, &by()).await.unwrap();
    }
    let long_ago = clock::wall().before(TOMBSTONE_FOR).0 - 1_000;
    opened.sql(&format!("UPDATE gateways SET revoked_at = {long_ago} WHERE gateway_id = 'old'"));
    let place: Place = "webchat:lab".parse().unwrap();
    let old = opened.store.gateways().await.unwrap()[1].instance;
    let route = Route {
        place,
        bot: None,
        tenant: "acme".into(),
        instance: Some(old),
        allow: Allow::Any,
        free: false,
        while_busy: None,
        options: RouteOptions::default(),
    };
    opened.store.add_route(route, &by()).await.unwrap();
    assert_eq!(opened.store.prune().await.unwrap().forgotten, [("acme".to_owned(), "old".to_owned())]);
    assert_eq!(opened.store.routes().await.unwrap().len(), 1, "its place falls to nobody else");
    let left: Vec<_> = opened.store.gateways().await.unwrap().into_iter().map(|g| g.gateway_id).collect();
    assert_eq!(left, ["fresh"]);
    assert_eq!(opened.store.instances().await.unwrap().len(), 2, "a route names it");
}

#[tokio::test]
async fn what_a_forgotten_instance_held_is_counted_out() {
    let opened = Opened::new();
    let (gone, kept) = (opened.instance("gone").await, opened.instance("kept").await);
    for n in 0..3 {
        opened.store.append(entry(gone, &format!("g{n}"))).await.unwrap();
        opened.store.append(entry(kept, &format!("k{n}"))).await.unwrap();
    }
    opened.store.revoke_gateway("acme", "gone", &by()).await.unwrap();
    let long_ago = clock::wall().before(TOMBSTONE_FOR).0 - 1_000;
    opened.sql(&format!("UPDATE gateways SET revoked_at = {long_ago} WHERE gateway_id = 'gone'"));
    assert_eq!(opened.store.prune().await.unwrap().forgotten.len(), 1);
    assert_eq!(
        (opened.store.usage(gone).await.unwrap().entries, opened.store.usage(kept).await.unwrap().entries),
        (0, 3)
    );
    // Closing compares what is counted with what the tables hold.
    let opened = opened.reopen();
    assert_eq!(opened.store.usage(kept).await.unwrap().entries, 3);
}

#[tokio::test]
async fn an_instance_remembers_who_made_it() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    let ann = Subject::new("https://idp", "ann");
    let new = NewGateway {
        instance: Some("inst".into()),
        subject: Some(ann.clone()),
        display_name: Some("Ann's".into()),
        ..gateway("acme", "gw")
    };
    let made = store.create_gateway(new, &Actor::subject(&ann)).await.unwrap();
    assert_eq!((made.instance_name.as_str(), made.subject.as_ref()), ("inst", Some(&ann)));
    let instances = store.instances().await.unwrap();
    assert_eq!((instances[0].name.as_str(), instances[0].subject.as_ref()), ("inst", Some(&ann)));
    assert_eq!(instances[0].instance, InstanceId(1));
    let line = store.audit_lines(None, 2).await.unwrap().remove(1);
    assert_eq!((line.action.as_str(), line.actor.as_str()), ("gateway.create", "subject https://idp ann"));
}

fn of(subject: &Subject, id: &str, instance: Option<&str>) -> NewGateway {
    NewGateway {
        subject: Some(subject.clone()),
        instance: instance.map(str::to_owned),
        ..gateway("acme", id)
    }
}

#[tokio::test]
async fn nobody_joins_an_instance_that_is_not_theirs() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    let (ann, bob) = (Subject::new("i", "ann"), Subject::new("i", "bob"));
    let create = async |new: NewGateway| {
        store.create_gateway(new, &by()).await.map(|made| made.instance).map_err(|error| error.kind())
    };
    let office = create(of(&ann, "gw-sq", Some("office"))).await.unwrap();
    assert_eq!(
        create(gateway("acme", "office")).await,
        Err(Kind::Conflict),
        "not even the operator, unaware"
    );
    assert_eq!(create(of(&bob, "office", None)).await, Err(Kind::Forbidden), "nor by a gateway's name");
    assert_eq!(create(of(&bob, "gw-b", Some("office"))).await, Err(Kind::Forbidden));
    assert_eq!(
        create(of(&bob, "gw-b", Some("gw-sq"))).await,
        Err(Kind::Forbidden),
        "nor squat a gateway's name"
    );
    assert_eq!(create(of(&ann, "gw-2", Some("office"))).await, Ok(office), "its maker may");
    let named = NewGateway { instance: Some("office".into()), ..gateway("acme", "ops") };
    assert_eq!(create(named).await, Ok(office), "and the operator who says so");
}

#[tokio::test]
async fn a_replaced_gateway_is_its_new_owners_with_its_instance() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    let (ann, bob) = (Subject::new("i", "ann"), Subject::new("i", "bob"));
    store.create_gateway(of(&ann, "gw", None), &by()).await.unwrap();
    store.create_gateway(of(&ann, "gw-2", Some("gw")), &by()).await.unwrap();
    let token = EnrollToken {
        fingerprint: fingerprint("t"),
        tenant: "acme".into(),
        gateway_id: Some("gw".into()),
        expires_at: soon(),
    };
    store.mint_enroll_token(token, &by()).await.unwrap();
    let shared = store.enroll(fingerprint("t"), of(&bob, "gw", None), soon(), &by()).await.unwrap_err();
    assert_eq!(shared.kind(), Kind::Conflict, "another gateway of hers would still get his messages");
    store.revoke_gateway("acme", "gw-2", &by()).await.unwrap();
    let replaced = store.enroll(fingerprint("t"), of(&bob, "gw", None), soon(), &by()).await.unwrap();
    assert_eq!(replaced.subject, Some(bob), "the refusal had not used the token up");
    let joined = store.create_gateway(of(&ann, "gw-3", Some("gw")), &by()).await.unwrap_err();
    assert_eq!(joined.kind(), Kind::Forbidden, "the instance went along");
}

#[tokio::test]
async fn the_default_is_an_instance_that_somebody_serves() {
    let Opened { store, .. } = &Opened::with_tenants(&["acme"]).await;
    let default = async || {
        let instance = store.default_instance("acme").await.unwrap();
        let named =
            store.instances().await.unwrap().into_iter().find(|known| Some(known.instance) == instance);
        named.map(|known| known.name)
    };
    for id in ["a", "b"] {
        store.create_gateway(gateway("acme", id), &by()).await.unwrap();
    }
    assert_eq!(default().await.as_deref(), Some("a"), "the first");
    let moved = GatewayChange { instance: Some("office".into()), ..GatewayChange::default() };
    store.change_gateway("acme", "a", moved, &by()).await.unwrap();
    assert_eq!(default().await.as_deref(), Some("office"), "it goes along with its gateway");
    store.revoke_gateway("acme", "a", &by()).await.unwrap();
    assert_eq!(default().await.as_deref(), Some("b"), "the only one left");
    store.revoke_gateway("acme", "b", &by()).await.unwrap();
    assert_eq!(default().await, None);
    store.create_gateway(gateway("acme", "c"), &by()).await.unwrap();
    assert_eq!(default().await.as_deref(), Some("c"));
}

#[tokio::test]
async fn a_message_for_an_instance_that_nobody_serves_is_not_taken() {
    let opened = Opened::with_tenants(&["acme"]).await;
    let old = opened.instance("gw").await;
    let policy = Policy { require_address: false, ..Policy::default() };
    opened.store.set_policy(old, "webchat", policy.clone(), &by()).await.unwrap();
    let moved = GatewayChange { instance: Some("new".into()), ..GatewayChange::default() };
    let new = opened.store.change_gateway("acme", "gw", moved, &by()).await.unwrap().instance;
    let refused = opened.store.append(entry(old, "m1")).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::NotFound, "it was admitted before the gateway moved");
    opened.store.append(entry(new, "m1")).await.unwrap();
    let declared = opened.store.policies().await.unwrap();
    assert!(declared.contains(&(new, "webchat".into(), policy)), "what it declared goes along: {declared:?}");
    opened.store.revoke_gateway("acme", "gw", &by()).await.unwrap();
    assert_eq!(opened.store.append(entry(new, "m2")).await.unwrap_err().kind(), Kind::NotFound);
}

/// A gateway that was revoked longer ago than it is remembered.
pub(crate) async fn long_revoked(opened: &Opened, id: &str) {
    opened.store.revoke_gateway("acme", id, &by()).await.unwrap();
    let long_ago = clock::wall().before(TOMBSTONE_FOR).0 - 1_000;
    opened.sql(&format!("UPDATE gateways SET revoked_at = {long_ago} WHERE gateway_id = '{id}'"));
}

#[tokio::test]
async fn what_a_forgotten_instance_held_is_counted_out_although_the_first_try_failed() {
    let opened = Opened::new();
    let gone = opened.instance("gone").await;
    opened.instance("kept").await;
    opened.store.append(entry(gone, "g1")).await.unwrap();
    long_revoked(&opened, "gone").await;
    opened.refuse("DELETE", "instances", "1 = 1");
    assert!(opened.store.prune().await.is_err());
    opened.allow("instances");
    assert_eq!(opened.store.prune().await.unwrap().forgotten.len(), 1);
    // Closing compares what is counted with what the tables hold.
    let opened = opened.reopen();
    assert_eq!(opened.store.instances().await.unwrap().len(), 1);
}
