//! Several nodes on one PostgreSQL: one master key, one admin token, one signing key; a change of
//! the keys while all of them serve; what an operator sees of them.

use super::bots::unreachable_bots;
use super::operator::{done, refused};
use super::world::{binary, credentials};
use angelia_services::{Postgres, Redis, psql};
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::process::free_port;
use angelia_testkit::socket::Socket;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(30);

/// A database for several nodes, and a folder for each of them.
struct Shared {
    folder: TempDir,
    url: String,
    lines: String,
}

impl Shared {
    fn new(more: &str) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let url = Postgres::shared().unwrap().fresh_database().unwrap();
        let lines = format!("[store]\nurl = {url:?}\n{more}");
        Self { folder: tempfile::tempdir().unwrap(), url, lines }
    }

    fn folder(&self, node: &str) -> PathBuf {
        self.folder.path().join(node)
    }

    fn config(&self, node: &str) -> PathBuf {
        self.folder(node).join("angelia.toml")
    }

    fn file(&self, node: &str, name: &str) -> PathBuf {
        self.folder(node).join("data").join(name)
    }

    fn read(&self, node: &str, name: &str) -> String {
        fs::read_to_string(self.file(node, name)).unwrap().trim().to_owned()
    }

    /// Gives a node a master key before it starts.
    fn give_key(&self, node: &str, key: &str) {
        write_private(&self.file(node, "master.key"), key);
    }

    async fn start(&self, node: &str) -> Connector {
        Connector::start_with(binary(), &self.folder(node), &self.lines).await
    }

    /// A first node, and a second one with its key.
    async fn two(&self) -> (Connector, Connector) {
        let first = self.start("a").await;
        self.give_key("b", &self.read("a", "master.key"));
        (first, self.start("b").await)
    }

    fn admin(&self, node: &str) -> String {
        self.read(node, "admin-url")
    }
}

fn write_private(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = path.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Asks a server that is named; nothing else of this machine is known.
fn ask(server: &str, token: Option<&str>, args: &[&str]) -> Output {
    let empty = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command
        .current_dir(empty.path())
        .arg("--server")
        .arg(server)
        .args(args)
        .env_remove("ANGELIA_ADMIN_TOKEN");
    if let Some(token) = token {
        command.env("ANGELIA_ADMIN_TOKEN", token);
    }
    let output = command.output().unwrap();
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0, "nothing is made here");
    output
}

/// Joins once the node has heard of the gateway, which takes a second at most without a bus.
async fn join(node: &Connector, gateway: &Credentials) -> Socket {
    until("the node knows the gateway", Duration::from_secs(3), async || {
        node.command(&["gateway", "list"]).await.to_string().contains(&gateway.gateway_id)
    })
    .await;
    Socket::join(&node.url(), gateway).await
}

/// Waits until something holds.
async fn until(what: &str, limit: Duration, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(tokio::time::timeout(limit, waiting).await.is_ok(), "it took too long until {what}");
}

fn ids(checked: &Value) -> (&str, u64) {
    (checked["key_id"].as_str().unwrap(), checked["unreadable"].as_u64().unwrap())
}

#[tokio::test]
async fn nodes_that_begin_at_once_have_the_same_secrets() {
    let shared = Shared::new("");
    let key = "0f".repeat(32);
    for node in ["a", "b", "c"] {
        shared.give_key(node, &key);
    }
    let (a, b, c) = tokio::join!(shared.start("a"), shared.start("b"), shared.start("c"));
    let tokens = ["a", "b", "c"].map(|node| shared.read(node, "admin-token"));
    assert!(tokens.iter().all(|token| *token == tokens[0]), "one token for all");
    // Tokens of one node are good on another.
    a.command(&["tenant", "create", "acme"]).await;
    let client = b.command(&["client", "create", "--tenant", "acme"]).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let [id, secret] = ["client_id", "client_secret"].map(|name| client[name].as_str().unwrap());
    let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
    let url = format!("{}/oauth/token", c.url());
    let post = http.post(url).header("content-type", "application/x-www-form-urlencoded");
    let answer = post.body(form).send().await.unwrap();
    let bearer = answer.json::<Value>().await.unwrap()["access_token"].as_str().unwrap().to_owned();
    for node in [&a, &b] {
        let url = format!("{}/relay/provision", node.url());
        let body = serde_json::json!({ "gatewayId": "gw" });
        let answer = http.post(url).bearer_auth(&bearer).json(&body).send().await.unwrap();
        assert_ne!(answer.status().as_u16(), 401, "one signing key for all");
    }
    assert_eq!(psql(&shared.url, "SELECT count(*) FROM tenants").unwrap().trim(), "2");
}

#[tokio::test]
async fn a_node_with_another_key_is_told_to_get_the_right_one() {
    let shared = Shared::new("");
    let _first = shared.start("a").await;
    fs::create_dir_all(shared.folder("b")).unwrap();
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:{}\"\nadmin_listen = \"127.0.0.1:{}\"\ndata_dir = {:?}\n{}",
        free_port(),
        free_port(),
        shared.folder("b").join("data"),
        shared.lines
    );
    fs::write(shared.config("b"), config).unwrap();
    let (code, error) = refused(&shared.config("b"), &["serve"]);
    assert!(
        code == 1 && error.contains("its master key") && error.contains("cannot be read"),
        "{code} {error}"
    );
    shared.give_key("b", &"ab".repeat(32));
    let (code, error) = refused(&shared.config("b"), &["serve"]);
    assert!(code == 1 && error.contains("all nodes need the same key: copy master.key"), "{code} {error}");
}

#[tokio::test]
async fn the_master_key_changes_while_all_nodes_serve() {
    let shared = Shared::new("");
    let (a, mut b) = shared.two().await;
    let first = shared.read("a", "master.key");
    let one = credentials(&a.command(&["gateway", "create", "one"]).await);
    let mut sockets = vec![join(&b, &one).await];
    for (round, node) in [&a, &b, &a].into_iter().enumerate() {
        let rotated = node.command(&["key", "rotate"]).await;
        assert!(rotated["next_step"].is_null(), "{rotated}");
        let name = format!("gw-{round}");
        // What one node seals now the other opens, and the other way round.
        let (made_on, joins_on) = if round == 1 { (&a, &b) } else { (&b, &a) };
        let made = credentials(&made_on.command(&["gateway", "create", &name]).await);
        sockets.push(join(joins_on, &made).await);
        let checks = [a.command(&["key", "check"]).await, b.command(&["key", "check"]).await];
        assert_eq!(ids(&checks[0]), (rotated["key_id"].as_str().unwrap(), 0), "{checks:?}");
        assert_eq!(ids(&checks[0]), ids(&checks[1]));
        assert_eq!(shared.read("a", "master.key"), shared.read("b", "master.key"));
        assert!(checks.iter().all(|check| check["retiring_key_id"].is_null()) || round < 3, "{checks:?}");
    }
    let former = psql(&shared.url, "SELECT count(*) FROM notes WHERE name = 'former_key'").unwrap();
    assert_eq!(former.trim(), "0", "the old key is forgotten");
    assert_ne!(shared.read("a", "master.key"), first);

    // One that is away does not learn of it, and is told so.
    b.process().terminate(SOON).await;
    a.command(&["key", "rotate"]).await;
    let (code, error) = refused(&shared.config("b"), &["serve"]);
    assert!(
        code == 1 && error.contains("was changed while this node was away: copy master.key"),
        "{code} {error}"
    );
    shared.give_key("b", &shared.read("a", "master.key"));
    b.restart().await;
    join(&b, &one).await;
}

#[tokio::test]
async fn a_key_that_operators_keep_is_theirs_to_change_on_every_node() {
    let shared = Shared::new("[keys]\nmaster = { env = \"NODE_KEY\" }\n");
    let key = "1e".repeat(32);
    let start = async |node: &str| {
        let port = free_port();
        let variables = [("NODE_KEY", key.as_str())];
        Connector::start_as(binary(), &shared.folder(node), port, &shared.lines, &variables).await
    };
    let (a, b) = (start("a").await, start("b").await);
    let next = shared.folder.path().join("next.key");
    write_private(&next, &"2e".repeat(32));
    let rotated = a.command(&["key", "rotate", "--to", &next.display().to_string()]).await;
    let step = rotated["next_step"].as_str().unwrap();
    assert!(step.contains("point keys.master at the new key") && step.contains("on the node"), "{step}");
    assert!(step.contains("{ env = \"NODE_KEY\" }"), "{step}");
    assert_eq!(ids(&b.command(&["key", "check"]).await), (rotated["key_id"].as_str().unwrap(), 0));
    let status = b.command(&["cluster", "status"]).await;
    assert!(status["problems"].to_string().contains("before the next start"), "{status}");
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_change_goes_on_without_the_node_that_began_it() {
    let shared = Shared::new("");
    let port = free_port();
    let fails = [("ANGELIA_FAIL", "key_begun@1")];
    let mut a = Connector::start_as(binary(), &shared.folder("a"), port, &shared.lines, &fails).await;
    shared.give_key("b", &shared.read("a", "master.key"));
    let b = shared.start("b").await;
    let one = credentials(&b.command(&["gateway", "create", "one"]).await);
    let before = b.command(&["key", "check"]).await;
    let refusal = refused(&shared.config("a"), &["key", "rotate"]);
    // Its connections end a moment before it does.
    let began = Instant::now();
    while a.process().is_running() {
        assert!(began.elapsed() < SOON, "the node goes on, and says {refusal:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until("the other node finishes the change", SOON, async || {
        let check = b.command(&["key", "check"]).await;
        check["key_id"] != before["key_id"] && check["retiring_key_id"].is_null() && check["unreadable"] == 0
    })
    .await;
    a.restart_with(&[]).await;
    assert_eq!(shared.read("a", "master.key"), shared.read("b", "master.key"));
    join(&a, &one).await;
}

#[tokio::test]
async fn any_node_answers_with_one_token() {
    let shared = Shared::new("");
    let (a, b) = shared.two().await;
    let token = shared.read("a", "admin-token");
    assert_eq!(token, shared.read("b", "admin-token"));
    for node in ["a", "b"] {
        let answer = ask(&shared.admin(node), Some(&token), &["tenant", "list", "--json"]);
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    }
    // A token file, and nothing in the environment.
    let file = shared.file("a", "admin-token").display().to_string();
    let answer = ask(&shared.admin("b"), None, &["tenant", "create", "acme", "--token-file", &file]);
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(a.command(&["tenant", "list"]).await.to_string().contains("acme"));
    for (args, code, said) in
        [(&["tenant", "list"][..], 2, "--token-file"), (&["backup", "/tmp/x"], 2, "--token-file")]
    {
        let answer = ask(&shared.admin("a"), None, args);
        let error = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert!(answer.status.code() == Some(code) && error.contains(said), "{error}");
    }
    let answer = ask(&shared.admin("a"), Some(&token), &["backup", "/tmp/x"]);
    assert!(String::from_utf8_lossy(&answer.stderr).contains("asks no server"));

    a.command(&["admin-token", "rotate"]).await;
    let new = shared.read("a", "admin-token");
    assert_ne!(new, token);
    until("the other node asks for the new token", Duration::from_secs(3), async || {
        ask(&shared.admin("b"), Some(&new), &["tenant", "list"]).status.success()
            && shared.read("b", "admin-token") == new
    })
    .await;
    let old = ask(&shared.admin("b"), Some(&token), &["tenant", "list"]);
    assert!(!old.status.success() && String::from_utf8_lossy(&old.stderr).contains("wrong admin token"));
    b.command(&["tenant", "list"]).await;
}

#[tokio::test]
async fn an_operator_sees_all_nodes_and_what_is_wrong() {
    let shared = Shared::new("");
    let (a, mut b) = shared.two().await;
    let one = credentials(&a.command(&["gateway", "create", "one"]).await);
    let _socket = join(&b, &one).await;
    until("both nodes tell of themselves", SOON, async || {
        let status = a.command(&["cluster", "status"]).await;
        let nodes = status["nodes"].as_array().unwrap();
        let sockets: u64 = nodes.iter().map(|node| node["sockets"].as_u64().unwrap()).sum();
        nodes.len() == 2 && sockets == 1 && nodes.iter().all(|node| node["ready"] == true)
    })
    .await;
    let status = a.command(&["cluster", "status"]).await;
    let names: Vec<&Value> = status["leases"].as_array().unwrap().iter().map(|it| &it["lease"]).collect();
    assert!(["wake", "notices", "upkeep"].iter().all(|name| names.iter().any(|it| *it == name)), "{status}");
    assert!(status["problems"].to_string().contains("no bus"), "{status}");
    let text = done(&shared.config("a"), &["cluster", "status"]);
    assert!(text.starts_with("2 nodes, answered by ") && text.contains("within a second"), "{text}");
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ready = http.get(format!("{}/readyz", a.url())).send().await.unwrap();
    assert_eq!(ready.status().as_u16(), 200);
    assert!(ready.text().await.unwrap().starts_with("ready, but degraded: no bus"));
    assert!(done(&shared.config("a"), &["status"]).contains("DEGRADED: no bus"));
    let metrics = a.metrics().await;
    for line in ["angelia_node_info{node=\"", "\nangelia_node_current 1\n", "\nangelia_bus_connected 0\n"] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }

    b.process().kill().await;
    until("the node that was killed is missed", SOON, async || {
        let status = a.command(&["cluster", "status"]).await;
        status["problems"].to_string().contains("gives no sign of life")
            && status["leases"].as_array().unwrap().iter().all(|lease| !lease["node"].is_null())
    })
    .await;
}

#[tokio::test]
async fn with_a_bus_nothing_is_wrong_and_drops_are_known_everywhere() {
    let redis = Redis::start().unwrap();
    let shared = Shared::new(&format!("[bus]\nurl = {:?}\n", redis.url()));
    let (a, b) = shared.two().await;
    until("nothing is wrong", SOON, async || {
        let status = b.command(&["cluster", "status"]).await;
        status["problems"].as_array().unwrap().is_empty() && status["nodes"].as_array().unwrap().len() == 2
    })
    .await;
    assert_eq!(a.metrics().await.lines().filter(|line| *line == "angelia_bus_connected 1").count(), 1);
    // Nobody takes this place in: the node it was written on remembers why.
    let invited = a.command(&["webchat", "invite", "--room", "lab", "--user", "ann"]).await;
    a.command(&["route", "remove", "webchat:*"]).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/chat/api/rooms/lab/messages", a.url());
    let key = invited["key"].as_str().unwrap();
    let body = serde_json::json!({ "text": "hello" });
    let posted: Value =
        http.post(url).bearer_auth(key).json(&body).send().await.unwrap().json().await.unwrap();
    let message = posted["message_id"].as_str().unwrap_or_else(|| panic!("{posted}"));
    let explained = b.command(&["explain", message]).await;
    assert_eq!(explained["drops"][0]["reason"], "no_route", "{explained}");
    assert_eq!(explained["not_asked"].as_array().map(Vec::len), Some(0), "{explained}");
    let unrouted = b.command(&["route", "list", "--unrouted"]).await;
    assert_eq!(unrouted["unrouted"][0]["place"], "webchat:lab", "{unrouted}");
}

#[tokio::test]
async fn how_a_bot_is_any_node_tells() {
    let redis = Redis::start().unwrap();
    let mut shared = Shared::new(&format!("[bus]\nurl = {:?}\n", redis.url()));
    shared.lines += &unreachable_bots(shared.folder.path());
    let (a, b) = shared.two().await;
    for node in [&a, &b] {
        until("both bots are down", SOON, async || {
            let listed = node.command(&["bot", "list"]).await;
            let bots = listed["bots"].as_array().unwrap();
            bots.iter().filter(|bot| bot["health"]["state"] == "down").count() == 2
        })
        .await;
        let unwell = node.command(&["status"]).await["bots"].clone();
        assert_eq!(unwell.as_array().map(Vec::len), Some(2), "{unwell}");
    }
    drop(redis);
    until("the other node is not heard of", SOON, async || {
        let listed = a.command(&["bot", "list"]).await;
        listed["not_asked"].as_array().map(Vec::len) == Some(1)
    })
    .await;
    assert!(done(&shared.config("a"), &["bot", "list"]).contains("did not answer in time"));
}
