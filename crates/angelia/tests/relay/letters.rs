//! What an operator chooses of the inboxes is what is shown, redriven or thrown away.

use super::hands::{done, refused};
use super::world::World;
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
    list.iter().map(|entry| format!("b{}", entry["seq"])).collect()
}

/// What the last audit line says: action, tenant, target, detail.
fn written(config: &Path) -> Value {
    let line = asked(config, &["audit", "list", "--limit", "1"])["audit"][0].clone();
    json!([line["action"], line["tenant"], line["target"], line["detail"]])
}

/// Two tenants with two dead letters each and one entry that waits for each;
/// answers the entries of the default tenant and of acme, in this order. The server is stopped.
async fn two_tenants(world: &mut World) -> [Vec<String>; 2] {
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
    world.connector.process().terminate(SOON).await;
    let db = rusqlite::Connection::open(world.folder.path().join("data/angelia.db")).unwrap();
    let of = |tenant: &str| {
        let mut statement = db
            .prepare(
                "SELECT 'b' || seq FROM inbox JOIN instances USING (instance) WHERE tenant = ? ORDER BY seq",
            )
            .unwrap();
        statement.query_map([tenant], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let all: [Vec<String>; 2] = [of("default"), of("acme")];
    // The second of each waits.
    for name in all.iter().flat_map(|list| [&list[0], &list[2]]) {
        db.execute("UPDATE inbox SET dead_at = 1, strikes = 3 WHERE seq = ?", [&name[1..]]).unwrap();
    }
    all
}

#[tokio::test]
async fn a_tenant_is_a_choice_by_itself() {
    let mut world = World::new().await;
    let [ours, theirs] = two_tenants(&mut world).await;
    let config = world.folder.path().join("angelia.toml");
    let inboxes = asked(&config, &["inbox", "list", "--tenant", "acme"]);
    let names = inboxes["inboxes"].as_array().unwrap().iter().map(|inbox| &inbox["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["gw-a", "gw-b"]);
    let dead = ["inbox", "list", "--dead", "--tenant"];
    assert_eq!(entries(&config, &[&dead[..], &["acme"]].concat()), [theirs[0].clone(), theirs[2].clone()]);
    assert_eq!(entries(&config, &["inbox", "show", "--tenant", "default"]), [ours[1].clone()]);
    for verb in ["list", "show", "redrive", "purge"] {
        let (code, error) = refused(&config, &["inbox", verb, "--tenant", "acne"]);
        assert!(code == 3 && error.contains("no tenant \"acne\""), "{verb}: {code} {error}");
    }

    assert_eq!(asked(&config, &["inbox", "purge", "--tenant", "acme", "--gateway", "gw-b"])["purged"], 1);
    assert_eq!(written(&config), json!(["inbox.purge", "acme", "gw-b", "all dead letters: 1"]));
    assert_eq!(asked(&config, &["inbox", "purge", "--tenant", "acme"])["purged"], 1);
    assert_eq!(written(&config), json!(["inbox.purge", "acme", "gw-a", "all dead letters: 1"]));
    assert_eq!(entries(&config, &["inbox", "list", "--dead"]), [ours[0].clone(), ours[2].clone()]);
    assert_eq!(asked(&config, &["inbox", "redrive", "--gateway", "gw"])["redriven"], 2);
    assert_eq!(written(&config)[1], "default", "the tenant of the gateway that was named");
    assert_eq!(asked(&config, &["inbox", "purge"])["purged"], 0);
    assert_eq!(written(&config)[0], "inbox.redrive", "nothing was done, and nothing is written down");
}

#[tokio::test]
async fn an_entry_that_is_not_there_is_not_found() {
    let mut world = World::new().await;
    let [ours, theirs] = two_tenants(&mut world).await;
    let config = world.folder.path().join("angelia.toml");
    for verb in ["show", "redrive", "purge"] {
        for args in [&["b999"] as &[_], &[theirs[0].as_str(), "--tenant", "default"]] {
            let (code, error) = refused(&config, &[&["inbox", verb], args].concat());
            assert!(code == 3 && error.contains(args[0]), "{verb} {args:?}: {code} {error}");
        }
    }
    assert_eq!(entries(&config, &["inbox", "show", &ours[0]]), [ours[0].clone()], "dead or not");
    assert_eq!(refused(&config, &["inbox", "show", "--dead", &ours[1]]).0, 3, "it is no dead letter");
    assert_eq!(refused(&config, &["inbox", "redrive", &ours[1]]).0, 4, "it is in line already");
    assert_eq!(asked(&config, &["inbox", "redrive", &ours[0]])["redriven"], 1);
    assert_eq!(asked(&config, &["inbox", "purge", &theirs[1]])["purged"], 1);
    assert_eq!(written(&config), json!(["inbox.purge", "acme", "gw-a", theirs[1]]));
    assert_eq!(refused(&config, &["inbox", "purge", &theirs[1]]).0, 3);
}
