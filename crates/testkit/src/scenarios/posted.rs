//! People whose messages are posted to the connector: by SMS, and on WeCom.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::bots::{HEARS, Post, secret_file};
use super::{READING, TURN};
use crate::connector::Connector;
use crate::hermes::Version;
use crate::process::free_port;
use crate::twilio::{ACCOUNT, AUTH_TOKEN, Emulate, NUMBER};
use crate::wecom::FakeWecom;

/// How often a bot is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(100);

/// Somebody's phone.
const PHONE: &str = "+15550123";

/// Lines of an answer that neither platform takes in one message.
const LINES: usize = 60;

/// Characters of one SMS, and bytes of one message of WeCom.
const SMS_HOLDS: usize = 1600;
const WECOM_HOLDS: usize = 2048;

/// Somebody writes a text message and somebody writes to a company's app: both
/// have the same agent, each is answered on their way and at whatever length.
pub async fn sms_and_wecom(version: Version, binary: &Path, folder: &Path) {
    let port = free_port();
    let hook = |way: &str| format!("http://127.0.0.1:{port}/webhooks/{way}/main");
    let wecom = FakeWecom::start(folder, &[]).await;
    let twilio = Emulate::start(&folder.join("twilio"), &hook("sms")).await;
    let bots = format!("{}{}", number(&twilio, folder), app(&wecom, folder));
    let places = [format!("sms:{NUMBER}"), "wecom:main".to_owned()];
    let post = Post::set_on(version, binary, folder, port, &bots, &places).await;
    post.model.reply_with(|text| if text.contains("much") { long_answer() } else { format!("echo: {text}") });
    let tried = wecom.callback(&hook("wecom")).await;
    assert_eq!((&tried["status"], &tried["body"]), (&json!(200), &tried["expected"]), "{tried}");
    wecom.person("ann").await;
    until_up(&post.connector).await;

    twilio.text(PHONE, "by-phone").await;
    wecom.say("ann", "in-the-app").await;
    twilio.wait_for_text(PHONE, "echo: by-phone", TURN).await;
    wecom.wait_for_text("ann", "echo: in-the-app", TURN).await;
    sleep(READING).await;
    twilio.text(PHONE, "much-by-phone").await;
    wecom.say("ann", "much-in-the-app").await;
    twilio.wait_for_text(PHONE, &line(LINES - 1), TURN).await;
    wecom.wait_for_text("ann", &line(LINES - 1), TURN).await;

    post.connector.until_quiet().await;
    post.assert_asked_once(&["much-by-phone", "much-in-the-app"]);
    assert_eq!(post.model.texts().len(), 4, "{:?}", post.model.texts());
    let by_phone: Vec<_> = twilio.sent_to(PHONE).await.into_iter().map(|(_, text)| text).collect();
    assert_answers(&by_phone, "echo: by-phone", |text| text.chars().count() <= SMS_HOLDS);
    assert_answers(&wecom.texts("ann").await, "echo: in-the-app", |text| text.len() <= WECOM_HOLDS);
    post.assert_sessions(&[format!("agent:main:sms:dm:{PHONE}"), "agent:main:wecom:dm:ann".to_owned()]);
}

/// The short answer, then the long one: whole, in order, in pieces that fit.
fn assert_answers(texts: &[String], short: &str, fits: impl Fn(&str) -> bool) {
    let (first, pieces) = texts.split_first().expect("answers");
    assert_eq!(first, short);
    assert!(pieces.len() > 1 && pieces.iter().all(|piece| fits(piece)), "{texts:#?}");
    let said: Vec<&str> = pieces.iter().flat_map(|piece| piece.lines()).collect();
    assert_eq!(said, long_answer().lines().collect::<Vec<_>>());
}

fn long_answer() -> String {
    (0..LINES).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{}", line(number));
        text
    })
}

fn line(number: usize) -> String {
    format!("line {number:02} of an answer that is too long for one message")
}

/// Waits until the connector has looked at what Twilio received: what was there
/// before that is history.
async fn until_up(connector: &Connector) {
    let deadline = Instant::now() + HEARS;
    loop {
        let listed = connector.command(&["bot", "list"]).await;
        let bots = listed["bots"].as_array().into_iter().flatten();
        let is_up = |bot: &Value| bot["health"]["state"] == "up";
        if bots.filter(|bot| bot["platform"] == "sms").any(is_up) {
            return;
        }
        assert!(Instant::now() < deadline, "the number is not up: {listed}");
        sleep(POLL).await;
    }
}

fn number(twilio: &Emulate, folder: &Path) -> String {
    format!(
        "[[bots]]\nplatform = \"sms\"\nname = \"main\"\nid = {NUMBER:?}\naccount_sid = {ACCOUNT:?}\n\
         auth_token = {{ file = {:?} }}\napi_url = {:?}\n",
        secret_file(folder, "auth_token", AUTH_TOKEN),
        twilio.url()
    )
}

fn app(wecom: &FakeWecom, folder: &Path) -> String {
    let secret =
        |name: &str, secret: &str| format!("{name} = {{ file = {:?} }}\n", secret_file(folder, name, secret));
    format!(
        "[[bots]]\nplatform = \"wecom\"\nname = \"main\"\nid = {:?}\napi_url = {:?}\n{}{}{}",
        wecom.id(),
        wecom.url(),
        secret("secret", wecom.secret()),
        secret("callback_token", wecom.token()),
        secret("encoding_aes_key", wecom.aes_key()),
    )
}
