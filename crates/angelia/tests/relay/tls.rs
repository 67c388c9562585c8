//! TLS at the listener: HTTP, web sockets, and who does not get in.

use super::world::{binary, credentials};
use angelia_contract::token;
use angelia_engines::store::sqlite::DATABASE;
use angelia_testkit::process::{Process, free_port, run};
use angelia_testkit::socket::now;
use futures_util::{SinkExt, StreamExt};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::Message;

const SOON: Duration = Duration::from_secs(30);

/// An authority of our own, and what it signed for this machine.
struct Authority {
    certificate: rcgen::Certificate,
}

impl Authority {
    /// Writes `cert.pem` and `key.pem` into `folder`.
    fn certify(folder: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let own_key = KeyPair::generate().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let own = CertificateParams::new(names).unwrap().signed_by(&own_key, &issuer).unwrap();
        std::fs::write(folder.join("cert.pem"), own.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), own_key.serialize_pem()).unwrap();
        Self { certificate }
    }

    /// A client that trusts this authority and no other.
    fn http(&self) -> reqwest::Client {
        let trusted = reqwest::Certificate::from_der(self.certificate.der()).unwrap();
        reqwest::Client::builder().no_proxy().tls_certs_only([trusted]).build().unwrap()
    }

    async fn connect(&self, port: u16) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }
}

/// A server that does TLS.
struct Secure {
    folder: TempDir,
    port: u16,
    authority: Authority,
    http: reqwest::Client,
    _process: Process,
}

fn configure(folder: &Path, listen: &str, tls: bool) {
    let (data, cert, key) = (folder.join("data"), folder.join("cert.pem"), folder.join("key.pem"));
    let tls = if tls { format!("tls = {{ cert = {cert:?}, key = {key:?} }}\n") } else { String::new() };
    let text =
        format!("[server]\nlisten = {listen:?}\nadmin_listen = \"127.0.0.1:0\"\ndata_dir = {data:?}\n{tls}");
    std::fs::write(folder.join("angelia.toml"), text).unwrap();
}

fn angelia(folder: &Path, args: &[&str]) -> Output {
    Command::new(binary()).arg("--config").arg(folder.join("angelia.toml")).args(args).output().unwrap()
}

impl Secure {
    async fn start(host: &str) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::certify(folder.path());
        let port = free_port();
        configure(folder.path(), &format!("{host}:{port}"), true);
        let mut command = tokio::process::Command::new(binary());
        command.arg("--config").arg(folder.path().join("angelia.toml")).arg("serve");
        let mut process = Process::spawn("angelia", command, folder.path().join("angelia.log"));
        process.wait_for_log("ready", SOON).await;
        let http = authority.http();
        Self { folder, port, authority, http, _process: process }
    }

    async fn command(&self, args: &[&str]) -> Value {
        let config = self.folder.path().join("angelia.toml").display().to_string();
        let all = [&["--config", &config, "--json"], args].concat();
        serde_json::from_str(&run(binary(), &all, SOON, &[]).await).unwrap()
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

/// The next frame of a socket.
async fn frame(socket: &mut WebSocketStream<TlsStream<TcpStream>>) -> Value {
    loop {
        let message = tokio::time::timeout(SOON, socket.next()).await.expect("a frame in time");
        if let Message::Text(text) = message.expect("an open socket").unwrap() {
            return serde_json::from_str(text.trim()).unwrap();
        }
    }
}

#[tokio::test]
async fn people_and_gateways_come_over_tls() {
    let server = Secure::start("127.0.0.1").await;
    let ready = server.http.get(format!("{}/readyz", server.url())).send().await.unwrap();
    assert_eq!(ready.status(), 200);

    let made = server.command(&["gateway", "create", "gw"]).await;
    assert_eq!(made["env"][0], format!("GATEWAY_RELAY_URL={}", server.url()), "the URL says https by itself");
    let gateway = credentials(&made);
    let invited = server.command(&["webchat", "invite", "--room", "lab", "--user", "ann"]).await;

    let stream = server.authority.connect(server.port).await;
    let mut request = format!("wss://localhost:{}/relay", server.port).into_client_request().unwrap();
    let bearer = format!("Bearer {}", token::mint(&gateway.gateway_id, &gateway.secret, now(), 300));
    request.headers_mut().insert(AUTHORIZATION, bearer.parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    let hello = json!({ "type": "hello", "platform": "webchat", "botId": "webchat" });
    socket.send(Message::text(format!("{hello}\n"))).await.unwrap();
    assert_eq!(frame(&mut socket).await["type"], "descriptor");

    let (url, key) = (invited["url"].as_str().unwrap(), invited["key"].as_str().unwrap());
    assert!(url.starts_with(&server.url()), "{url}");
    let text = "x".repeat(7_000);
    let post = server.http.post(format!("{url}/messages")).bearer_auth(key).json(&json!({ "text": text }));
    assert_eq!(post.send().await.unwrap().status(), 201);
    let inbound = frame(&mut socket).await;
    assert_eq!((&inbound["type"], &inbound["event"]["text"]), (&json!("inbound"), &json!(text)));
}

#[tokio::test]
async fn without_tls_and_without_trust_nobody_gets_anything() {
    let server = Secure::start("127.0.0.1").await;
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let refused = plain.get(format!("http://127.0.0.1:{}/readyz", server.port)).send().await;
    assert!(refused.is_err(), "plain HTTP got {refused:?}");
    let stranger = tempfile::tempdir().unwrap();
    let other = Authority::certify(stranger.path()).http();
    assert!(other.get(format!("{}/readyz", server.url())).send().await.is_err(), "another authority");

    // Who only holds the line is let go, and others are served meanwhile.
    let mut silent = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    assert!(server.http.get(format!("{}/livez", server.url())).send().await.unwrap().status().is_success());
    let ended = tokio::time::timeout(SOON, silent.read(&mut [0; 16])).await.expect("let go in time");
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}

#[tokio::test]
async fn a_server_that_others_reach_needs_tls_or_a_word() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), &format!("0.0.0.0:{}", free_port()), false);
    let refused = angelia(folder.path(), &["serve"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    for way in ["server.tls", "server.behind_proxy", "--insecure"] {
        assert!(error.contains(way), "{way} in {error}");
    }
    let server = Secure::start("0.0.0.0").await;
    let ready = server.http.get(format!("{}/readyz", server.url())).send().await.unwrap();
    assert_eq!(ready.status(), 200);
}

#[test]
fn bad_files_are_told_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "127.0.0.1:0", true);
    for args in [["config", "check"].as_slice(), &["serve"]] {
        let refused = angelia(folder.path(), args);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(error.contains("cert.pem cannot be read"), "{error}");
    }
    assert!(!folder.path().join("data").join(DATABASE).exists(), "nothing was made");
    Authority::certify(folder.path());
    assert!(angelia(folder.path(), &["config", "check"]).status.success());
}
