//! What is damaged, or known to the wrong people, is named and made anew.

use super::operator::{done, refused};
use super::world::{World, credentials};
use angelia_core::records::rows::{NoteRow, SecretRow};
use angelia_core::seal::OAUTH_KEY;
use angelia_engines::inspect::Inspect;
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_damaged_secret_is_named_and_only_its_gateway_stays_out() {
    let mut world = World::new().await;
    let config = world.folder.path().join("angelia.toml");
    let hurt = world.connector.gateway("acme", "gw-hurt").await;
    world.connector.stop(SOON).await;
    let disk = Inspect::of(&world.folder.path().join("data"));
    let flip = |secret: &mut SecretRow| *secret.sealed.last_mut().unwrap() ^= 1;
    disk.rewrite(|secret: &SecretRow| secret.gateway_id == "gw-hurt", flip);
    disk.rewrite(|note: &NoteRow| note.name == OAUTH_KEY, |note| note.value = vec![0]);

    let (code, error) = refused(&config, &["key", "check"]);
    assert!(code == 1 && error.contains("secret of a gateway acme/gw-hurt"), "{code} {error}");
    world.connector.restart().await;
    assert!(world.connector.log_text().contains("gw-hurt"), "the log names it");
    world.post("hello").await;
    assert_eq!(world.join().await.take_text().await, "hello", "the others work");
    let status = world.connector.command(&["status"]).await;
    assert_eq!(status["damaged"][0]["gateway_id"], "gw-hurt", "{status}");
    assert!(done(&config, &["status"]).contains("DAMAGED: the secret of a gateway acme/gw-hurt"));
    let refusal = Socket::dial(&world.connector.url(), &hurt).await.err().unwrap();
    assert_eq!(refusal.status, 401, "it stays out, and may try again");
    let (code, error) = refused(&config, &["key", "rotate"]);
    assert!(code == 4 && error.contains("acme/gw-hurt"), "{code} {error}");

    let made = world.connector.command(&["gateway", "rotate", "gw-hurt"]).await;
    Socket::join(&world.connector.url(), &credentials(&made)).await;
}

#[tokio::test]
async fn a_client_gets_a_new_secret_and_stays_the_same() {
    let world = World::new().await;
    let config = world.folder.path().join("angelia.toml");
    let made = world.connector.command(&["client", "create", "--tenant", "default"]).await;
    let id = made["client_id"].as_str().unwrap();
    let token = async |secret: &Value| {
        let form = format!(
            "grant_type=client_credentials&client_id={id}&client_secret={}",
            secret.as_str().unwrap()
        );
        let url = format!("{}/oauth/token", world.connector.url());
        let request =
            world.http.post(url).header("content-type", "application/x-www-form-urlencoded").body(form);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(token(&made["client_secret"]).await, 200);
    let rotated = world.connector.command(&["client", "rotate", id]).await;
    let audit = world.connector.command(&["audit", "list", "--limit", "1"]).await;
    assert_eq!(
        (&audit["audit"][0]["action"], &audit["audit"][0]["target"]),
        (&json!("client.rotate"), &json!(id))
    );
    assert_eq!(rotated["client_id"], id);
    assert_eq!(token(&rotated["client_secret"]).await, 200);
    assert_eq!(token(&made["client_secret"]).await, 401, "the old one is void at once");
    assert_eq!(refused(&config, &["client", "rotate", "client-0"]).0, 3);
    done(&config, &["client", "revoke", id]);
    assert_eq!(refused(&config, &["client", "rotate", id]).0, 4, "revoked is revoked");
}
