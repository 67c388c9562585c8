//! What an operator chooses of the inboxes is what is shown, redriven or thrown away.

use super::operator::{data, done, refused};
use super::world::{World, store};
use angelia_core::inbox::{Seq, is_dead};
use angelia_core::store::{Inboxes, Log, Returned};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

fn asked(config: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&done(config, &[args, &["--json"]].concat())).unwrap()
}

fn entries(config: &Path, args: &[&str]) -> Vec<String> {
    let shown = asked(config, args);
    let list = shown["entries"].as_array().unwrap_or_else(|| panic!("{shown}"));
    list.iter().map(|entry| format!("{} b{}", entry["name"].as_str().unwrap(), entry["seq"])).collect()
}

/// What the last audit line says: action, tenant, target, detail.
fn written(config: &Path) -> Value {
    let line = asked(config, &["audit", "list", "--limit", "1"])["audit"][0].clone();
    json!([line["action"], line["tenant"], line["target"], line["detail"]])
}

/// The default tenant's gateway has b1 to b3, acme's gw-a b1 and b2, its gw-b b1:
/// numbers count within each inbox. All but each b2 are dead letters. The server is stopped.
async fn two_tenants(world: &mut World) {
    world.connector.gateway("acme", "gw-a").await;
    world.connector.gateway("acme", "gw-b").await;
    let route = |room, gateway| {
        ["route", "add", "--tenant", "acme", "--gateway", gateway, "--allow", "any", "--free", room]
    };
    world.connector.command(&route("webchat:den", "gw-a")).await;
    world.connector.command(&route("webchat:loft", "gw-b")).await;
    for text in ["one", "two", "three"] {
        world.post(text).await;
    }
    for room in ["den", "loft"] {
        let invited = world.connector.command(&["webchat", "invite", "--room", room, "--user", "ann"]).await;
        for _ in 0..(if room == "den" { 2 } else { 1 }) {
            world.post_as(invited["key"].as_str().unwrap(), room, &json!({ "text": "hello" })).await;
        }
    }
    world.connector.stop(SOON).await;
    assert_eq!(bury_all_but(Seq(2), &data(world)).await, 4);
}

/// Has every entry but those with this number struck until it is a dead letter; how many.
async fn bury_all_but(spared: Seq, data: &Path) -> usize {
    let store = store(data);
    let mut entries = store.entries(None, false, 100).await.unwrap();
    entries.retain(|entry| entry.seq != spared);
    for entry in &entries {
        let epoch = store.claim(entry.instance, "a test").await.unwrap().epoch;
        for _ in (0..).take_while(|strikes| !is_dead(*strikes)) {
            let returned = Returned { entries: Vec::new(), strike: Some(entry.seq) };
            store.returned(entry.instance, epoch, returned).await.unwrap();
        }
    }
    assert_eq!(store.entries(None, true, 100).await.unwrap().len(), entries.len());
    entries.len()
}

#[tokio::test]
async fn a_tenant_is_a_choice_by_itself() {
    let mut world = World::new().await;
    two_tenants(&mut world).await;
    let config = world.folder.path().join("angelia.toml");
    let inboxes = asked(&config, &["inbox", "list", "--tenant", "acme"]);
    let names = inboxes["inboxes"].as_array().unwrap().iter().map(|inbox| &inbox["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["gw-a", "gw-b"]);
    let dead = ["inbox", "list", "--dead", "--tenant"];
    assert_eq!(entries(&config, &[&dead[..], &["acme"]].concat()), ["gw-a b1", "gw-b b1"]);
    assert_eq!(entries(&config, &["inbox", "show", "--tenant", "default"]), ["gw b2"]);
    for verb in ["list", "show", "redrive", "purge"] {
        let (code, error) = refused(&config, &["inbox", verb, "--tenant", "acne"]);
        assert!(code == 3 && error.contains("no tenant \"acne\""), "{verb}: {code} {error}");
    }

    let (code, error) = refused(&config, &["inbox", "purge", "--tenant", "acme"]);
    assert!(code == 2 && error.contains("2 of them") && error.contains("--yes"), "{code} {error}");
    let of_b = ["inbox", "purge", "--yes", "--tenant", "acme", "--gateway", "gw-b"];
    assert_eq!(asked(&config, &of_b)["purged"], 1);
    assert_eq!(written(&config), json!(["inbox.purge", "acme", "gw-b", "all dead letters: 1"]));
    assert_eq!(asked(&config, &["inbox", "purge", "--yes", "--tenant", "acme"])["purged"], 1);
    assert_eq!(written(&config), json!(["inbox.purge", "acme", "gw-a", "all dead letters: 1"]));
    assert_eq!(entries(&config, &["inbox", "list", "--dead"]), ["gw b1", "gw b3"]);
    assert_eq!(asked(&config, &["inbox", "redrive", "--gateway", "gw"])["redriven"], 2);
    assert_eq!(written(&config)[1], "default", "the tenant of the gateway that was named");
    assert_eq!(asked(&config, &["inbox", "purge", "--yes"])["purged"], 0);
    assert_eq!(written(&config)[0], "inbox.redrive", "nothing was done, and nothing is written down");
}

#[tokio::test]
async fn an_entry_that_is_not_there_is_not_found() {
    let mut world = World::new().await;
    two_tenants(&mut world).await;
    let config = world.folder.path().join("angelia.toml");
    for verb in ["show", "redrive", "purge"] {
        for args in [&["b999"] as &[_], &["b3", "--tenant", "acme"]] {
            let (code, error) = refused(&config, &[&["inbox", verb], args].concat());
            assert!(code == 3 && error.contains(args[0]), "{verb} {args:?}: {code} {error}");
        }
        let (code, error) = refused(&config, &["inbox", verb, "b1"]);
        assert!(code == 4 && error.contains("3 inboxes have an entry b1"), "{verb}: {code} {error}");
    }
    let of_ours = ["--tenant", "default"];
    let ours = |verb: &'static [&'static str], id: &'static str| [verb, &[id], &of_ours].concat();
    assert_eq!(entries(&config, &ours(&["inbox", "show"], "b1")), ["gw b1"], "dead or not");
    assert_eq!(refused(&config, &ours(&["inbox", "show", "--dead"], "b2")).0, 3, "it is no dead letter");
    assert_eq!(refused(&config, &ours(&["inbox", "redrive"], "b2")).0, 4, "it is in line already");
    assert_eq!(asked(&config, &ours(&["inbox", "redrive"], "b1"))["redriven"], 1);
    let theirs = ["inbox", "purge", "b2", "--gateway", "gw-a"];
    assert_eq!(asked(&config, &theirs)["purged"], 1);
    assert_eq!(written(&config), json!(["inbox.purge", "acme", "gw-a", "b2"]));
    assert_eq!(refused(&config, &theirs).0, 3);
}
