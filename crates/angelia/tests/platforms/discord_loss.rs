//! The connector is killed again and again while people write on Discord.

use super::discord_stage::{Stage, binary};
use angelia_testkit::process::Process;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const MESSAGES: u64 = 2_000;
const KILLS: u64 = 12;
/// Pause between two messages of one chat: all of them together last for about
/// half a minute, which is enough for every kill to find people writing.
const PACE: Duration = Duration::from_millis(110);
/// How long a session lives on for the outage that is longer.
const SHORT_LIFE: f64 = 3.0;
/// Frames that may be in flight when a connection breaks.
const IN_FLIGHT: usize = 8;

/// A frame, as the agent saw it.
struct Seen {
    socket: u64,
    buffer: String,
    chat: String,
    text: String,
}

/// A process that writes down and acknowledges what it gets.
struct LogAgent {
    log: PathBuf,
    _process: Process,
}

impl LogAgent {
    fn start(stage: &Stage) -> Self {
        let program = binary().with_file_name("log-agent");
        assert!(program.exists(), "{} is missing: cargo build --workspace --bins", program.display());
        let log = stage.folder().join("agent.jsonl");
        let mut command = Command::new(program);
        command.args(["--url", &stage.connector.url(), "--id", &stage.acme.gateway_id]);
        command.args(["--secret", &stage.acme.secret]).arg("--log").arg(&log);
        let process = Process::spawn("log-agent", command, stage.folder().join("agent.err"));
        Self { log, _process: process }
    }

    fn seen(&self) -> Vec<Seen> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let word = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let seen = |line: Value| Seen {
            socket: line["socket"].as_u64().unwrap_or_default(),
            buffer: word(&line, "buffer"),
            chat: word(&line, "chat"),
            text: word(&line, "text"),
        };
        lines.filter(|line| line["kind"] == "inbound").map(seen).collect()
    }

    /// Waits until it saw every text.
    async fn wait_for(&self, expected: &HashMap<String, Vec<String>>) {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let texts: HashSet<String> = self.seen().into_iter().map(|seen| seen.text).collect();
            let missing: Vec<_> = expected.values().flatten().filter(|text| !texts.contains(*text)).collect();
            if missing.is_empty() {
                return;
            }
            let some: Vec<_> = missing.iter().take(20).collect();
            assert!(Instant::now() < deadline, "{} messages never came: {some:?}", missing.len());
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Choices that can be played again with `CHAOS_SEED`.
struct Dice(u64);

impl Dice {
    fn roll() -> Self {
        let seed = std::env::var("CHAOS_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() % 1_000_000_000);
        report(&format!("seed {seed} (again: CHAOS_SEED={seed})"));
        Self(seed)
    }

    fn within(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (z ^ (z >> 31)) % (high - low)
    }
}

fn report(text: &str) {
    let _ = writeln!(std::io::stderr(), "[discord_loss] {text}");
}

/// A chat, what its messages are called, and whether they have to name the bot.
struct Corner {
    chat: String,
    name: &'static str,
    mention: bool,
}

/// Free and unfree channels, threads and people.
async fn corners(stage: &Stage) -> Vec<Corner> {
    let Stage { discord, guild, quay, ann, .. } = stage;
    let open = discord.guild("Open").await;
    stage.route("acme", &["--allow", "any", "--free"], &format!("discord:{}", open.id)).await;
    let square = discord.channel(&open.id, "square").await;
    let market = discord.channel(&open.id, "market").await;
    let stall = discord.thread(&market, "stall", ann, None).await;
    let ropes = discord.thread(quay, "ropes", ann, None).await;
    let den = discord.channel(&guild.id, "den").await;
    let dm = discord.dm(ann).await;
    // A thread in which the bot was addressed before.
    discord.mention(&ropes, ann, "ropes-begin").await;
    let corner = |chat: &str, name, mention| Corner { chat: chat.to_owned(), name, mention };
    vec![
        corner(&square, "square", false),
        corner(&market, "market", false),
        corner(&stall, "stall", false),
        corner(&ropes, "ropes", false),
        corner(quay, "quay", true),
        corner(&den, "den", true),
        corner(&dm, "dm", false),
    ]
}

/// Somebody writes on and on; the texts in their order.
async fn write(
    stage: Arc<Stage>,
    corner: Corner,
    count: u64,
    written: Arc<AtomicU64>,
) -> (String, Vec<String>) {
    let mut texts = Vec::new();
    for number in 0..count {
        let text = format!("{}-{number}", corner.name);
        let (channel, author) = (&corner.chat, &stage.ann);
        if corner.mention {
            stage.discord.mention(channel, author, &text).await
        } else {
            stage.discord.say(channel, author, &text).await
        };
        texts.push(text);
        written.fetch_add(1, Ordering::Relaxed);
        sleep(PACE).await;
    }
    (corner.chat, texts)
}

/// The process of the connector, and the hand that kills it.
struct Victim<'a> {
    stage: &'a Stage,
    process: Process,
    kills: u64,
    in_start: u64,
}

impl Victim<'_> {
    async fn kill(&mut self) {
        self.process.kill().await;
        self.kills += 1;
    }

    fn start(&mut self) {
        self.process = self.stage.spawn();
    }

    /// Waits until it has come so far that Discord sees it.
    async fn until_connected(&self) {
        self.stage.until_session().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_kills_and_a_long_outage_lose_nothing() {
    let mut dice = Dice::roll();
    let begun = Instant::now();
    let mut stage = Stage::listening(json!({ "heartbeat_interval": 1000, "identify_seconds": 0 })).await;
    let agent = LogAgent::start(&stage);
    let corners = corners(&stage).await;
    let ropes = corners[3].chat.clone();
    stage.connector.kill().await;
    let stage = Arc::new(stage);
    let written = Arc::new(AtomicU64::new(0));
    let mut people = JoinSet::new();
    let share = MESSAGES.div_ceil(corners.len() as u64);
    let total = share * corners.len() as u64;
    for corner in corners {
        people.spawn(write(stage.clone(), corner, share, written.clone()));
    }

    let mut victim = Victim { stage: &stage, process: stage.spawn(), kills: 1, in_start: 0 };
    // Each part of the flow has its kill, at a random moment of it.
    let part = total / (KILLS + 1);
    for number in 0..KILLS {
        let moment = number * part + dice.within(part / 4, part);
        while written.load(Ordering::Relaxed) < moment {
            sleep(Duration::from_millis(5)).await;
        }
        match number {
            3 => outage(&mut victim).await,
            6 => goodbye(&mut victim).await,
            _ => {
                victim.kill().await;
                victim.start();
                if number % 3 == 1 {
                    // Once more while it still comes back.
                    sleep(Duration::from_millis(dice.within(0, 250))).await;
                    victim.kill().await;
                    victim.in_start += 1;
                    victim.start();
                }
            }
        }
    }
    let mut expected: HashMap<String, Vec<String>> = people.join_all().await.into_iter().collect();
    expected.get_mut(&ropes).unwrap().insert(0, "ropes-begin".into());
    agent.wait_for(&expected).await;
    let seen = agent.seen();
    let figures = judge(&expected, &seen);
    let state = stage.discord.state().await;
    let gateway = &state["gateway"];
    let Victim { kills, in_start, .. } = victim;
    report(&format!(
        "{} messages in {} chats, {kills} kills ({in_start} during a start), one outage of {SHORT_LIFE} s: \
         nothing lost; {figures}; {} resumes, {} identifies, {} failed resumes; {:.1?}",
        total + 1,
        expected.len(),
        gateway["resumes"],
        gateway["identifies"],
        gateway["resume_failures"],
        begun.elapsed()
    ));
    assert!(kills >= 10 && total >= MESSAGES, "{kills} kills, {total} messages");
    assert!(gateway["resumes"].as_u64().unwrap() >= 8, "{gateway:#}");
    assert!(gateway["identifies"].as_u64().unwrap() >= 2, "the outage cost a session: {gateway:#}");
    assert!(!stage.log().contains("panicked"), "see {}", keep(stage.folder()).display());
}

/// An outage that Discord's memory does not outlive.
async fn outage(victim: &mut Victim<'_>) {
    let discord = &victim.stage.discord;
    // Nobody is read back whose first word was not heard.
    victim.until_connected().await;
    let identifies = discord.count("/gateway/identifies").await;
    discord.set(json!({ "session_life": SHORT_LIFE })).await;
    victim.kill().await;
    let is_over = |state: &Value| state["gateway"]["sessions"] == json!([]);
    discord.until_state(Duration::from_secs(30), is_over).await;
    discord.set(json!({ "session_life": 120.0 })).await;
    victim.start();
    let is_new = |state: &Value| state["gateway"]["identifies"].as_u64() > Some(identifies);
    discord.until_state(Duration::from_secs(30), is_new).await;
}

/// A restart as an init system does it: the session is kept.
async fn goodbye(victim: &mut Victim<'_>) {
    let discord = &victim.stage.discord;
    victim.until_connected().await;
    let before = discord.state().await;
    victim.process.terminate(Duration::from_secs(15)).await;
    let closes = discord.state().await["gateway"]["client_closes"].clone();
    assert_eq!(closes.as_array().unwrap().last(), Some(&json!(4000)), "{closes}");
    victim.start();
    let resumed = |state: &Value| state["gateway"]["resumes"] != before["gateway"]["resumes"];
    let after = discord.until_state(Duration::from_secs(30), resumed).await;
    for count in ["identifies", "resume_failures"] {
        assert_eq!(after["gateway"][count], before["gateway"][count], "{count}");
    }
}

/// Nothing is missing, first deliveries are in order, every message is one
/// entry, and only what was in flight came again. The figures in words.
fn judge(expected: &HashMap<String, Vec<String>>, seen: &[Seen]) -> String {
    let (mut firsts, mut entries) = (HashMap::<&str, Vec<&str>>::new(), HashMap::<&str, &str>::new());
    let (mut again, mut most) = (0, 0);
    let mut known = HashSet::new();
    for on_socket in seen.chunk_by(|one, next| one.socket == next.socket) {
        let repeated = on_socket.iter().filter(|seen| known.contains(seen.text.as_str())).count();
        (again, most) = (again + repeated, most.max(repeated));
        for Seen { buffer, chat, text, .. } in on_socket {
            let entry = *entries.entry(text).or_insert(buffer);
            assert_eq!(entry, buffer, "{text} was taken in twice");
            if known.insert(text.as_str()) {
                firsts.entry(chat).or_default().push(text);
            }
        }
    }
    for (chat, texts) in expected {
        let got = firsts.remove(chat.as_str()).unwrap_or_default();
        let wrong = got.iter().zip(texts).find(|(got, said)| *got != said);
        assert!(wrong.is_none(), "chat {chat} is out of order at (got, said) {wrong:?}");
        assert_eq!(got.len(), texts.len(), "chat {chat}");
    }
    assert!(firsts.is_empty(), "from chats nobody wrote in: {:?}", firsts.keys());
    assert!(most <= IN_FLIGHT, "{most} frames came again on one socket");
    format!("{again} redeliveries, at most {most} on one socket")
}

/// Copies a log to where it survives the test.
fn keep(folder: &Path) -> PathBuf {
    let kept = std::env::temp_dir().join("angelia-discord-loss.log");
    let _ = fs::copy(folder.join("angelia.log"), &kept);
    kept
}
