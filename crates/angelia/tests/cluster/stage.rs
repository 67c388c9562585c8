//! The usual beginning: some nodes, an agent, a person in a room of the web chat.

use angelia_testkit::cluster::{Cluster, Setup};
use angelia_testkit::connector::Credentials;
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::telegram::{FakeTelegram, Options};
use serde_json::{Value, json};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What a change may take until it counts on every node, and what happens on one node until it
/// is seen on another, whether there is a Redis or not.
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// What it may take with a Redis: a few milliseconds, and what a machine takes that has other
/// things to do. Well below what it takes without one.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(400);
/// After a `kill -9`, until another node does what the dead one did.
pub(crate) const TAKEN_OVER: Duration = Duration::from_secs(5);
/// What a machine may add that is busy with other tests.
pub(crate) const BUSY: Duration = Duration::from_secs(1);
/// How long something may take about which nothing is promised.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Fixed pause: so long a node is paused that is to be taken for gone, a second longer than its term.
pub(crate) const BEYOND_THE_LEASE: Duration = Duration::from_secs(5);
/// How often something is looked at while waiting for it.
pub(crate) const POLL: Duration = Duration::from_millis(10);

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_angelia"))
}

/// An empty folder for a test; it stays, so that a failure can be read about.
pub(crate) fn folder(story: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cluster-{story}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn setup(story: &str) -> Setup {
    angelia_connector::ssrf_guard::install_tls_provider();
    Setup::new(binary(), &folder(story))
}

/// Nodes, with the gateway `gw` of the tenant `acme` and the room `lab`, in which Ann is. They
/// were made on the first node.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) gateway: Credentials,
    pub(crate) key: String,
    pub(crate) http: reqwest::Client,
}

impl Stage {
    pub(crate) async fn new(story: &str, nodes: usize) -> Self {
        Self::on(setup(story).start(nodes).await).await
    }

    pub(crate) async fn on(cluster: Cluster) -> Self {
        cluster[0].command(&["tenant", "create", "acme"]).await;
        let add = ["route", "add", "--tenant", "acme", "--allow", "any", "--free", "webchat:lab"];
        cluster[0].command(&add).await;
        let invited = cluster[0].command(&["webchat", "invite", "--room", "lab", "--user", "ann"]).await;
        let key = invited["key"].as_str().unwrap_or_else(|| panic!("{invited}")).to_owned();
        let http = angelia_testkit::webchat::http_client();
        let gateway = cluster[0].gateway("acme", "gw").await;
        let stage = Self { cluster, gateway, key, http };
        stage.until_known_everywhere().await;
        stage
    }

    /// Waits until every node has heard of the gateway, which was made last.
    async fn until_known_everywhere(&self) {
        for node in 0..self.cluster.len() {
            self.until_known(node, &self.gateway).await;
        }
    }

    /// Waits until a node lets a gateway in that was just made on another; a dial without a
    /// hello disturbs nobody.
    pub(crate) async fn until_known(&self, node: usize, gateway: &Credentials) {
        let url = self.cluster[node].url();
        until("a gateway that was just made", SECOND + BUSY, async || dial(&url, gateway).await == 101).await;
    }

    pub(crate) async fn join(&self, node: usize) -> Socket {
        self.join_as(node, &self.gateway).await
    }

    pub(crate) async fn join_as(&self, node: usize, gateway: &Credentials) -> Socket {
        Socket::join(&self.cluster[node].url(), gateway).await
    }

    /// Ann writes, at a node.
    pub(crate) async fn post(&self, node: usize, text: &str) -> Value {
        let url = format!("{}/chat/api/rooms/lab/messages", self.cluster[node].url());
        let answer = self.http.post(url).bearer_auth(&self.key).json(&json!({ "text": text })).send().await;
        let answer = answer.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.json().await.unwrap()
    }

    /// How many entries wait for agents.
    pub(crate) async fn waiting(&self, node: usize) -> u64 {
        let inboxes = self.cluster[node].command(&["inbox", "list"]).await;
        inboxes["inboxes"].as_array().unwrap().iter().map(|inbox| inbox["waiting"].as_u64().unwrap()).sum()
    }

    pub(crate) async fn until_waiting(&self, node: usize, count: u64) {
        until(&format!("{count} entries that wait"), SOON, async || self.waiting(node).await == count).await;
    }

    /// Stops the Redis and waits until the nodes have noticed.
    pub(crate) async fn without_redis(&self) {
        self.cluster.redis.kill().unwrap();
        // Whoever has not noticed yet would not poll yet.
        sleep(Duration::from_millis(300)).await;
    }
}

/// Waits until something is so; answers how long it took.
pub(crate) async fn until(what: &str, limit: Duration, is_so: impl AsyncFn() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        sleep(POLL).await;
    }
    began.elapsed()
}

/// How long something takes, which must be below a limit; told, for whoever reads along.
pub(crate) async fn timed<T>(what: &str, limit: Duration, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let done = tokio::time::timeout(limit.max(SOON), work).await;
    let took = began.elapsed();
    println!("cluster: {what}: {} ms", took.as_millis());
    assert!(took < limit, "{what} took {took:?}, and may take {limit:?}");
    done.unwrap()
}

/// Reads on until the socket ends: the code, or 0 without one.
pub(crate) async fn end_of(socket: &mut Socket) -> u16 {
    loop {
        match socket.next(SOON).await {
            Next::Frame(_) => {}
            Next::Closed(code, _) => return code,
            Next::Gone => return 0,
            Next::Silence => panic!("the socket stays open"),
        }
    }
}

/// The status that refuses a dial; 101 if it is let in.
pub(crate) async fn dial(url: &str, gateway: &Credentials) -> u16 {
    match Socket::dial(url, gateway).await {
        Ok(_) => 101,
        Err(refused) => refused.status,
    }
}

/// A Telegram without limits.
pub(crate) async fn telegram(story: &str) -> (FakeTelegram, PathBuf) {
    let folder = folder(story);
    let options = Options { limits: Some(json!({ "enabled": false })), ..Options::default() };
    (FakeTelegram::start(&folder, &options).await, folder)
}

/// The lines of the configuration that make a bot of it.
pub(crate) fn bot(telegram: &FakeTelegram, folder: &Path) -> String {
    let token = folder.join("token");
    std::fs::write(&token, telegram.token()).unwrap();
    format!(
        "[[bots]]\nplatform = \"telegram\"\nid = \"{}\"\ntoken = {{ file = {token:?} }}\napi_url = {:?}\n",
        telegram.bot_id(),
        telegram.url(),
    )
}

/// The lease of whoever reads it.
pub(crate) fn lease(telegram: &FakeTelegram) -> String {
    format!("bot telegram/{}", telegram.bot_id())
}

/// The same for Discord.
pub(crate) fn discord_bot(discord: &FakeDiscord, folder: &Path) -> String {
    let token = folder.join("discord-token");
    std::fs::write(&token, discord.token()).unwrap();
    format!(
        "[[bots]]\nplatform = \"discord\"\nid = \"{}\"\ntoken = {{ file = {token:?} }}\napi_url = {:?}\n\
         gateway_url = {:?}\n",
        discord.bot_id(),
        discord.url(),
        discord.gateway_url()
    )
}
