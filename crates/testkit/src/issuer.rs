//! An identity issuer whose keys and tokens are made by PyJWT and
//! `cryptography`, as an oracle that nobody here wrote.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::hermes::Version;
use crate::process::Process;
use crate::webchat::http_client;

/// How long Python may take to start on a busy machine.
const START: Duration = Duration::from_secs(30);

/// A running issuer.
#[derive(Debug)]
pub struct Issuer {
    url: String,
    http: reqwest::Client,
    _process: Process,
}

impl Issuer {
    /// Starts one, with its log in `folder`.
    ///
    /// # Panics
    ///
    /// When it does not start. It uses the Python of the newest published
    /// gateway, which brings PyJWT.
    pub async fn start(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("create the issuer's folder");
        let python = Version::V0_19_0.command().with_file_name("python");
        let mut command = Command::new(python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/issuer.py"));
        let log = folder.join("issuer.log");
        let mut process = Process::spawn("issuer", command, &log);
        let port = || fs::read_to_string(&log).ok()?.lines().next()?.parse::<u16>().ok();
        process.wait_until("the issuer's port", START, || port().is_some()).await;
        let url = format!("http://127.0.0.1:{}", port().unwrap());
        Self { url, http: http_client(), _process: process }
    }

    /// What its tokens name as `iss`.
    pub fn name(&self) -> String {
        format!("{}/", self.url)
    }

    /// Where its keys are.
    pub fn jwks_url(&self) -> String {
        format!("{}/jwks", self.url)
    }

    /// Where it tells whose a bearer is.
    pub fn account_url(&self) -> String {
        format!("{}/account", self.url)
    }

    /// Makes and publishes a key.
    pub async fn make_key(&self, kid: &str, alg: &str) {
        self.ask("/keys", &json!({ "kid": kid, "alg": alg })).await;
    }

    /// Signs claims with a key; `header` adds to the token's header.
    pub async fn sign(&self, kid: &str, claims: &Value, header: &Value) -> String {
        token(&self.ask("/sign", &json!({ "kid": kid, "claims": claims, "header": header })).await)
    }

    /// A token that must not be taken.
    pub async fn forge(&self, kid: &str, claims: &Value, how: &str) -> String {
        token(&self.ask("/forge", &json!({ "kid": kid, "claims": claims, "how": how })).await)
    }

    /// Lets it know a bearer.
    pub async fn know(&self, bearer: &str, answer: &Value) {
        self.ask("/account", &json!({ "bearer": bearer, "answer": answer })).await;
    }

    /// How often its keys were fetched.
    pub async fn fetched(&self) -> u64 {
        let answer = self.http.get(format!("{}/jwks/count", self.url)).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["count"].as_u64().unwrap()
    }

    async fn ask(&self, path: &str, body: &Value) -> Value {
        let answer = self.http.post(format!("{}{path}", self.url)).json(body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path} {body}: {}", answer.status());
        answer.json().await.unwrap()
    }
}

fn token(answer: &Value) -> String {
    answer["token"].as_str().unwrap_or_else(|| panic!("no token in {answer}")).to_owned()
}
