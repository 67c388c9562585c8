//! `angelia demo`, as whoever runs it sees it.

use super::world::binary;
use angelia_engines::store::sqlite::DATABASE;
use angelia_testkit::process::{Process, eventually, free_port};
use angelia_testkit::webchat::{Event, Person, http_client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

const SOON: Duration = Duration::from_secs(30);
/// Somebody who pressed Ctrl-C does not wait longer.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A demo that runs, with a directory for temporary files of its own.
struct Demo {
    process: Process,
    folder: TempDir,
}

impl Demo {
    fn start(port: u16, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let mut command = Command::new(binary());
        command
            .arg("demo")
            .args(args)
            .current_dir(folder.path())
            .env("TMPDIR", folder.path().join("tmp"))
            .env("ANGELIA_SERVER__LISTEN", format!("127.0.0.1:{port}"));
        let process = Process::spawn("demo", command, folder.path().join("output"));
        Self { process, folder }
    }

    /// One that answers in JSON, and its answer.
    async fn json(port: u16, args: &[&str]) -> (Self, Value) {
        let mut demo = Self::start(port, &[&["--json"], args].concat());
        demo.process.wait_for_log("}\n", SOON).await;
        let told = serde_json::from_str(&demo.process.log_text()).unwrap();
        (demo, told)
    }

    /// Ends it as a person does, and looks whether it goes quietly.
    async fn interrupt(mut self) {
        let said = self.process.log_text();
        kill_process(Pid::from_raw(self.process.id()).unwrap(), Signal::INT).unwrap();
        let ended = self.process.wait(ENDS_WITHIN).await;
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
        assert_eq!(self.process.log_text(), said, "it has nothing more to say");
        let left: Vec<_> = fs::read_dir(self.folder.path().join("tmp")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The rooms behind a link.
async fn rooms_behind(link: &str) -> Vec<Person> {
    let (url, keys) = link.split_once("/chat#").unwrap();
    let mut people = Vec::new();
    for (room, key) in ["lobby", "dm:you", "hermes"].into_iter().zip(keys.split(',')) {
        let lines = format!("{url}/chat/api/rooms/{room}/messages");
        let answer = http_client().get(lines).bearer_auth(key).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{room}");
        people.push(Person::enter(url, room, "you", key));
    }
    assert_eq!(people.len(), keys.split(',').count());
    people
}

/// What an agent's answers showed so far, one state after the other.
fn shown(person: &Person) -> Vec<Event> {
    let mut events = person.events();
    events.retain(|event| event.author == "agent");
    events
}

async fn shows(person: &Person, words: &str) -> String {
    let newest = || shown(person).pop().map(|event| event.text).filter(|text| text.contains(words));
    eventually(&format!("an answer with {words:?}"), SOON, newest).await
}

#[tokio::test]
async fn the_link_opens_rooms_where_an_answer_grows_and_nothing_is_left() {
    let port = free_port();
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut demo = Demo::start(port, &[]);
    demo.process.wait_for_log("Stop with Ctrl-C", SOON).await;
    let text = demo.process.log_text();
    assert!(text.contains(&format!("Port {port} is taken")) && !text.contains('\u{1b}'), "{text}");
    let link = text.lines().find(|line| line.contains("/chat#")).unwrap().trim();
    assert!(!link.contains(&format!(":{port}/")), "{link}");
    let [lobby, _, hermes] = <[Person; 3]>::try_from(rooms_behind(link).await).unwrap();

    lobby.say("hello *you*").await;
    shows(&lobby, "which one you mean").await;
    let states = shown(&lobby);
    assert_eq!(states[0].kind, "message");
    assert!(states[0].text.starts_with(r"> “hello \*you\*”"), "{:?}", states[0]);
    assert!(states.len() > 3, "it grows by edits: {states:?}");
    for pair in states.windows(2) {
        assert!(pair[1].kind == "edit" && pair[1].message_id == states[0].message_id, "{pair:?}");
        assert!(pair[1].text.starts_with(&pair[0].text) && pair[1].text != pair[0].text, "{pair:?}");
    }
    lobby.say("/hello").await;
    shows(&lobby, "**command**").await;
    hermes.say("is anybody there?").await;
    assert!(shown(&hermes).is_empty(), "nobody is there yet");
    demo.interrupt().await;
    drop(taken);
}

#[tokio::test]
async fn the_slow_agent_says_where_it_was_stopped() {
    let (demo, told) = Demo::json(free_port(), &[]).await;
    let [lobby, private, _] =
        <[Person; 3]>::try_from(rooms_behind(told["link"].as_str().unwrap()).await).unwrap();
    let me = format!("{}/chat/api/me", told["url"].as_str().unwrap());
    let key = told["rooms"][2]["key"].as_str().unwrap();
    let waits = http_client().get(me).bearer_auth(key).send().await.unwrap().json::<Value>().await.unwrap();
    assert_eq!((&waits["room"], &waits["agent"]["connected"]), (&"hermes".into(), &false.into()));
    assert_eq!(waits["guide"]["lines"], told["guide"], "what the page shows");
    the_readme_connects_as(told["guide"].as_array().unwrap());

    let question = private.say("what is truth?").await;
    let explain = format!("{} {question}", waits["explain"].as_str().unwrap());
    let explained = Command::new("sh").args(["-c", &explain]).current_dir("/").output().await.unwrap();
    let text = String::from_utf8(explained.stdout).unwrap();
    assert!(text.contains(&question) && text.contains("received"), "{explain}: {text}");
    shows(&private, "step **2 of").await;
    assert!(private.events().iter().any(|event| event.kind == "typing"));
    private.interrupt().await;
    let stopped = shows(&private, "Stopped at step").await;
    let states = shown(&private);
    assert_eq!(states[0].reply_to.as_ref(), Some(&question));
    // While it would have gone on, the other agent writes.
    lobby.say("help").await;
    shows(&lobby, "/hello").await;
    assert_eq!(shown(&private).last().map(|event| event.text.as_str()), Some(stopped.as_str()));
    assert_eq!(shown(&private).len(), states.len());
    demo.interrupt().await;
}

/// What the page has people paste is tried with a real hermes-agent (`tests/hermes.rs`).
/// The README has the same lines, for other values, and the home in its prose.
fn the_readme_connects_as(guide: &[Value]) {
    let name = |line: &str| line.split('=').next().unwrap().to_owned();
    let is_home = |line: &String| line == "export RELAY_HOME_CHANNEL";
    let (home, shown): (Vec<_>, Vec<_>) =
        guide.iter().map(|line| name(line.as_str().unwrap())).partition(is_home);
    let lines = super::docs::hermes_lines();
    assert_eq!(lines[0], "pip install hermes-agent");
    assert_eq!(lines[1..].iter().map(|line| name(line)).collect::<Vec<_>>(), shown);
    assert_eq!((lines.len(), home.len()), (5, 1), "five lines, and one that spares a question");
}

#[tokio::test]
async fn a_kept_demo_is_the_same_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (data, port) = (folder.path().join("kept"), free_port());
    let keep = ["--keep", data.to_str().unwrap()];
    let (mut demo, first) = Demo::json(port, &keep).await;
    let lobby = rooms_behind(first["link"].as_str().unwrap()).await.remove(0);
    lobby.say("remember me").await;
    demo.process.kill().await;
    assert_eq!(private_mode(&data.join("demo.json")), 0o600);

    let (demo, again) = Demo::json(port, &keep).await;
    assert_eq!(again, first, "link, rooms and the lines to paste");
    let lobby = rooms_behind(again["link"].as_str().unwrap()).await.remove(0);
    let remembered = || lobby.events().iter().any(|event| event.text == "remember me").then_some(());
    eventually("the line from before", SOON, remembered).await;
    demo.interrupt().await;

    // Somebody has its port: only that differs.
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut demo = Demo::start(port, &keep);
    demo.process.wait_for_log("Stop with Ctrl-C", SOON).await;
    let text = demo.process.log_text();
    assert!(text.contains(&format!("The port is not {port}, as it was last time")), "{text}");
    let keys = first["link"].as_str().unwrap().split_once('#').unwrap().1;
    assert!(text.contains(&format!("/chat#{keys}\n")), "{text}");
    demo.interrupt().await;
    drop(taken);

    // What nobody remembers is made anew, beside the rooms as they were.
    fs::write(data.join("demo.json"), "").unwrap();
    let (demo, anew) = Demo::json(port, &keep).await;
    assert_ne!((&anew["link"], &anew["guide"]), (&first["link"], &first["guide"]));
    rooms_behind(anew["link"].as_str().unwrap()).await;
    assert_eq!(private_mode(&data.join("demo.json")), 0o600);
    demo.interrupt().await;
}

#[tokio::test]
async fn a_directory_with_other_things_in_it_is_not_the_demos() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(DATABASE), "somebody's").unwrap();
    let mut demo = Demo::start(free_port(), &["--keep", folder.path().to_str().unwrap()]);
    let ended = demo.process.wait(SOON).await;
    assert_eq!(ended.and_then(|status| status.code()), Some(2));
    let text = demo.process.log_text();
    assert!(text.contains("is not empty") && text.contains("name a new or an empty directory"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was added");
}

fn private_mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
