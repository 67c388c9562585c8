//! A server with two tenants and what an agent's owner does over plain HTTP.

use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::process::free_port;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_angelia"))
}

pub(crate) struct Fixture {
    pub(crate) connector: Connector,
    pub(crate) http: reqwest::Client,
    pub(crate) folder: TempDir,
}

/// Files that the server's fail points look for.
const HOLD: &str = "hold";
const REFUSE: &str = "refuse";

/// A file that is there for as long as this is.
pub(crate) struct While(PathBuf);

impl While {
    fn there_is(file: PathBuf) -> Self {
        std::fs::write(&file, "").unwrap();
        Self(file)
    }

    /// Waits until a commit is held back.
    pub(crate) async fn until_met(&self) {
        while std::fs::read(&self.0).unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for While {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// An OAuth client of a tenant.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Fixture {
    /// Tenants `acme` and `evil`.
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// The same, with more lines of configuration.
    pub(crate) async fn with(lines: &str) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = tempfile::tempdir().unwrap();
        let (hold, refuse) = (folder.path().join(HOLD), folder.path().join(REFUSE));
        let variables =
            [("ANGELIA_HOLD", hold.to_str().unwrap()), ("ANGELIA_REFUSE", refuse.to_str().unwrap())];
        let connector = Connector::start_as(binary(), folder.path(), free_port(), lines, &variables).await;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let fixture = Self { connector, http, folder };
        for tenant in ["acme", "evil"] {
            fixture.run(&["tenant", "create", tenant]).await;
        }
        fixture
    }

    /// Until this is dropped no commit is made: whoever asks for one waits. Needs fail points.
    pub(crate) fn hold_commits(&self) -> While {
        While::there_is(self.folder.path().join(HOLD))
    }

    /// Until this is dropped every commit fails. Needs fail points.
    pub(crate) fn refuse_commits(&self) -> While {
        While::there_is(self.folder.path().join(REFUSE))
    }

    /// Stops the server and starts it again: from now on it knows what the store knows.
    pub(crate) async fn restart(&mut self) {
        self.connector.stop(Duration::from_secs(10)).await;
        self.connector.restart().await;
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Value {
        self.connector.command(args).await
    }

    pub(crate) async fn client(&self, tenant: &str) -> Client {
        let made = self.run(&["client", "create", "--tenant", tenant]).await;
        let text =
            |name: &str| made[name].as_str().unwrap_or_else(|| panic!("no {name} in {made}")).to_owned();
        Client { id: text("client_id"), secret: text("client_secret") }
    }

    /// What the token endpoint answers.
    pub(crate) async fn ask_token(&self, client: &Client) -> (StatusCode, Value) {
        let form = format!(
            "grant_type=client_credentials&client_id={}&client_secret={}&scope=relay",
            client.id, client.secret
        );
        let url = format!("{}/oauth/token", self.connector.url());
        let answer = self
            .http
            .post(url)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form)
            .send()
            .await
            .unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    /// A bearer of a new client of the tenant.
    pub(crate) async fn bearer(&self, tenant: &str) -> String {
        let client = self.client(tenant).await;
        let (status, answer) = self.ask_token(&client).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["access_token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn enroll_token(&self, args: &[&str]) -> String {
        let all = [&["enroll-token"], args].concat();
        let made = self.run(&all).await;
        made["token"].as_str().unwrap_or_else(|| panic!("no token in {made}")).to_owned()
    }

    pub(crate) async fn post(&self, path: &str, bearer: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}{path}", self.connector.url());
        let answer = self.http.post(url).bearer_auth(bearer).json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    pub(crate) async fn enroll(&self, bearer: &str, token: &str, id: &str) -> (u16, Value) {
        let body = json!({ "enrollmentToken": token, "gatewayId": id });
        self.post("/relay/enroll", bearer, &body).await
    }

    pub(crate) async fn provision(&self, bearer: &str, body: &Value) -> (u16, Value) {
        self.post("/relay/provision", bearer, body).await
    }

    /// The refusals that were written down, newest first, as `action: reason`.
    pub(crate) async fn refusals(&self) -> Vec<String> {
        let audit = self.run(&["audit", "list", "--limit", "1000"]).await;
        let lines = audit["audit"].as_array().unwrap().iter();
        let refused = lines.filter(|line| line["outcome"].as_str().unwrap().starts_with("refused"));
        refused
            .map(|line| {
                format!("{}: {}", line["action"].as_str().unwrap(), line["outcome"].as_str().unwrap())
            })
            .collect()
    }
}

/// What an enrolled gateway dials with.
pub(crate) fn credentials(answer: &Value) -> Credentials {
    let text =
        |name: &str| answer[name].as_str().unwrap_or_else(|| panic!("no {name} in {answer}")).to_owned();
    Credentials { gateway_id: text("gatewayId"), secret: text("secret") }
}
