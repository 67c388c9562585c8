//! The real binary with a data directory of its own, and the operator's hands.

use angelia_testkit::connector::WIDE_PACE;
use angelia_testkit::process::Process;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// How long a start may take: the machine may be busy with other tests.
const START: Duration = Duration::from_secs(30);

/// What a gateway dials with.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) id: String,
    pub(crate) secret: String,
}

/// A server process; its folder goes with it unless the test fails.
pub(crate) struct Server {
    pub(crate) process: Process,
    folder: PathBuf,
    data: PathBuf,
    port: u16,
    wrap: Vec<String>,
    operator: reqwest::Client,
}

impl Server {
    /// Starts a server in a fresh folder named after the test.
    pub(crate) async fn start(test: &str) -> Self {
        let folder = fresh_folder(test);
        let data = folder.join("data");
        Self::start_in(folder, data, &[]).await
    }

    /// Starts a server over `data`; `wrap` is put before its command line.
    pub(crate) async fn start_in(folder: PathBuf, data: PathBuf, wrap: &[&str]) -> Self {
        let port = port();
        let wrap: Vec<String> = wrap.iter().map(|part| (*part).to_owned()).collect();
        let process = spawn(&folder, &data, port, &wrap, None);
        let mut server = Self { process, folder, data, port, wrap, operator: keep_alive_client() };
        server.wait_ready().await;
        server
    }

    /// Starts it again over the same data, without waiting for it. With `fail`
    /// it ends itself at that point.
    pub(crate) fn respawn(&mut self, fail: Option<&str>) {
        assert!(!self.process.is_running(), "the server before still runs");
        self.process = spawn(&self.folder, &self.data, self.port, &self.wrap, fail);
    }

    pub(crate) async fn wait_ready(&mut self) {
        let deadline = Instant::now() + START;
        while self.probe("/readyz").await != Some(200) {
            assert!(self.process.is_running(), "the server ended at start: {}", self.log());
            assert!(Instant::now() < deadline, "the server is not ready: {}", self.log());
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// The status of a GET; `None` when nobody answers.
    pub(crate) async fn probe(&self, path: &str) -> Option<u16> {
        let get = client().get(format!("{}{path}", self.url())).timeout(Duration::from_secs(5));
        get.send().await.ok().map(|answer| answer.status().as_u16())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn address(&self) -> (&'static str, u16) {
        ("127.0.0.1", self.port)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Everything all runs of this server wrote.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("angelia.log")).unwrap_or_default()
    }

    /// Memory the process has in RAM.
    pub(crate) fn rss_kib(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The part of it that is its own, without what it maps of files.
    pub(crate) fn own_kib(&self) -> u64 {
        self.memory("RssAnon:")
    }

    /// The most it ever had there.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, what: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(what));
        let number = line.and_then(|text| text.trim().trim_end_matches("kB").trim().parse().ok());
        number.unwrap_or_else(|| panic!("no {what} of process {}", self.process.id()))
    }

    /// Makes a gateway, and its tenant if that is new.
    pub(crate) async fn gateway(&self, tenant: &str, id: &str) -> Credentials {
        let tenants = self.admin_request(reqwest::Method::GET, "/admin/tenants", None).await;
        if !tenants["tenants"].as_array().expect("tenants").contains(&json!(tenant)) {
            self.admin("/admin/tenants", &json!({ "tenant": tenant })).await;
        }
        let made = self.admin("/admin/gateways", &json!({ "tenant": tenant, "gateway_id": id })).await;
        Credentials { id: id.to_owned(), secret: made["secret"].as_str().expect("a secret").to_owned() }
    }

    /// Shuts a gateway out.
    pub(crate) async fn revoke(&self, tenant: &str, id: &str) {
        self.admin(&format!("/admin/gateways/{id}/revoke"), &json!({ "tenant": tenant })).await;
    }

    /// Invites `user` to a room served by `gateway`; returns the key.
    pub(crate) async fn invite(&self, room: &str, user: &str, gateway: &str) -> String {
        let body = json!({ "room": room, "user": user, "gateway": gateway });
        let made = self.admin("/admin/webchat/invites", &body).await;
        made["key"].as_str().expect("a key").to_owned()
    }

    /// Numbers of dead letters: entries taken out after three strikes.
    pub(crate) async fn dead_letters(&self) -> usize {
        let listed = self.admin_request(reqwest::Method::GET, "/admin/inbox/entries?dead=true", None).await;
        listed["entries"].as_array().map_or(0, Vec::len)
    }

    /// Runs a command beside the server, or without one; its exit code and all it said.
    pub(crate) async fn command(&self, line: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_angelia"));
        command.args(line).current_dir(&self.folder).env("ANGELIA_SERVER__DATA_DIR", &self.data);
        let output = command.output().await.expect("run a command");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// What inboxes lost, chat by chat.
    pub(crate) async fn gaps(&self) -> Value {
        let listed = self.admin_request(reqwest::Method::GET, "/admin/inbox", None).await;
        let inboxes = listed["inboxes"].as_array().expect("inboxes");
        inboxes.iter().flat_map(|inbox| inbox["gaps"].as_array().cloned().unwrap_or_default()).collect()
    }

    async fn admin(&self, path: &str, body: &Value) -> Value {
        self.admin_request(reqwest::Method::POST, path, Some(body)).await
    }

    /// Asks the admin API; it must answer.
    pub(crate) async fn admin_request(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<&Value>,
    ) -> Value {
        let read = |name: &str| fs::read_to_string(self.data.join(name)).expect(name).trim().to_owned();
        let request = self.operator.request(method, format!("{}{path}", read("admin-url")));
        let mut request = request.bearer_auth(read("admin-token"));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).expect("the admin API answers in JSON")
    }

    /// The server's last word: no part of it ever panicked.
    pub(crate) fn assert_never_panicked(&self) {
        let log = self.log();
        let line = log.lines().find(|line| line.contains("panicked"));
        assert!(line.is_none(), "the server panicked: {line:?}\nsee {}", self.folder.display());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// An empty folder under the build directory.
pub(crate) fn fresh_folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{test}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("make the test's folder");
    folder
}

/// One HTTP client for all runtimes; it keeps no connection open, because one
/// does not outlive the runtime it was made in.
pub(crate) fn client() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
        angelia_connector::ssrf_guard::install_tls_provider();
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build();
        client.expect("an HTTP client")
    });
    &CLIENT
}

/// A client whose connections stay open, for one poster inside one runtime.
pub(crate) fn keep_alive_client() -> reqwest::Client {
    angelia_connector::ssrf_guard::install_tls_provider();
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().expect("an HTTP client")
}

/// A port below the range from which clients are given theirs: a restarted
/// server must find its port free.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let spread = u16::try_from(std::process::id() % 97).unwrap() * 100;
    loop {
        let port = 20_000 + (spread + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn spawn(folder: &Path, data: &Path, port: u16, wrap: &[String], fail: Option<&str>) -> Process {
    let binary = env!("CARGO_BIN_EXE_angelia").to_owned();
    let line: Vec<String> = wrap.iter().cloned().chain([binary, "serve".into()]).collect();
    let mut command = Command::new(&line[0]);
    command
        .args(&line[1..])
        .current_dir(folder)
        .env("ANGELIA_SERVER__LISTEN", format!("127.0.0.1:{port}"))
        .env("ANGELIA_SERVER__ADMIN_LISTEN", "127.0.0.1:0")
        .env("ANGELIA_SERVER__DATA_DIR", data)
        .envs(WIDE_PACE)
        .env_remove("ANGELIA_FAIL");
    if let Some(fail) = fail {
        command.env("ANGELIA_FAIL", fail);
    }
    Process::spawn("angelia", command, folder.join("angelia.log"))
}
