//! A demo, its page in a browser, and somebody's own agent that joins.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, timeout};

use super::note;
use crate::hermes::{self, Version};
use crate::model::Model;
use crate::process::{Process, free_port};
use crate::twilio::{environment, node};

/// The script gives up earlier, and says why.
const PAGE: Duration = Duration::from_secs(180);

/// Where Debian has the browser.
const CHROMIUM: &str = "/usr/bin/chromium";

/// What a demo's page shows is pasted into a shell; the agent appears in the room
/// and answers there.
pub async fn join(version: Version, binary: &Path, folder: &Path, script: &Path) {
    let (mut demo, link) = demo(binary, &folder.join("demo")).await;
    let model = Model::start().await;
    let mut page = Page::open(script, &link).await;
    let shown = page.news().await;
    assert!(shown["state"].as_str().is_some_and(|state| state.starts_with("waiting")), "{shown}");
    let lines = shown["lines"].as_str().unwrap_or_else(|| panic!("no lines in {shown}"));

    let begun = Instant::now();
    let mut agent = hermes::paste(version, &folder.join("hermes"), &model.url(), lines);
    let connected = page.news().await;
    assert_eq!(connected["connected"], true, "{connected}\n{}", agent.log_text());
    note(version, "on the page", begun);
    let answered = page.news().await;
    note(version, "answered on the page", begun);
    // Nothing but the answer: no question about where its home is.
    assert_eq!(answered["answer"], serde_json::json!(["echo: hello-from-the-page"]), "{answered}");
    assert_eq!(answered["faults"], serde_json::json!([]), "{answered}");
    assert!(agent.is_running() && demo.is_running());
}

/// A demo with a folder of its own, and the link it prints.
async fn demo(binary: &Path, folder: &Path) -> (Process, String) {
    std::fs::create_dir_all(folder).expect("create the demo's folder");
    let mut command = Command::new(binary);
    let listen = format!("127.0.0.1:{}", free_port());
    command.arg("demo").current_dir(folder).env("TMPDIR", folder).env("ANGELIA_SERVER__LISTEN", listen);
    let mut demo = Process::spawn("angelia demo", command, folder.join("output.log"));
    demo.wait_for_log("Stop with Ctrl-C", super::BOOT).await;
    let text = demo.log_text();
    let link = text.split_whitespace().find(|word| word.contains("/chat#"));
    let link = link.unwrap_or_else(|| panic!("no link in {text}")).to_owned();
    (demo, link)
}

/// The script that looks at the page, and what it tells.
struct Page {
    news: Lines<BufReader<ChildStdout>>,
    // Ends when this is dropped, and the browser with it.
    child: Child,
}

impl Page {
    async fn open(script: &Path, link: &str) -> Self {
        let chromium = std::env::var("ANGELIA_CHROMIUM").unwrap_or_else(|_| CHROMIUM.to_owned());
        assert!(Path::new(&chromium).is_file(), "{chromium} is missing: run ./test, which installs it");
        let mut command = Command::new(node().await);
        command.arg(script).env("ANGELIA_TEST_ENV", environment()).env("ANGELIA_CHROMIUM", chromium);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("start node");
        let mut input = child.stdin.take().expect("its standard input");
        input.write_all(format!("{link}\n").as_bytes()).await.expect("tell the script its link");
        let news = BufReader::new(child.stdout.take().expect("its standard output")).lines();
        Self { news, child }
    }

    /// What it tells next.
    async fn news(&mut self) -> Value {
        let told = timeout(PAGE, self.news.next_line()).await.expect("the page in time");
        let Some(line) = told.expect("read from the script") else {
            panic!("the script ended: {:?}", self.child.wait().await)
        };
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"))
    }
}
