//! The connector is killed again and again while people write, and Telegram
//! itself is away for a while: nothing is lost, and each place stays in order.

use super::telegram_stage::{Stage, binary};
use angelia_core::directory::BotKey;
use angelia_core::inbox::Quota;
use angelia_core::store::StreamStore;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use angelia_testkit::process::Process;
use angelia_testkit::telegram::FakeTelegram;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

const MESSAGES: usize = 2_000;
const KILLS: usize = 12;
/// Messages per kill; the last ones are left in peace.
const SHARE: usize = (MESSAGES - 100) / KILLS;
const OUTAGE: Duration = Duration::from_secs(4);
/// Frames the connector may have in flight on one socket.
const IN_FLIGHT: usize = 8;
/// How far people are ahead of the agent at most: otherwise all is said during
/// the first start.
const AHEAD: usize = 150;
/// How long the last message may take after the last kill.
const SETTLED: Duration = Duration::from_secs(60);

/// Somewhere people write.
struct Place {
    name: &'static str,
    chat: i64,
    thread: Option<i64>,
}

/// Randomness that can be played again (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll() -> Self {
        let seed = match std::env::var("CHAOS_SEED") {
            Ok(text) => text.trim().parse().unwrap(),
            Err(_) => RandomState::new().build_hasher().finish() % 1_000_000_000,
        };
        println!("telegram loss: seed {seed} (again: CHAOS_SEED={seed})");
        Self(seed)
    }

    fn within(&mut self, low: usize, high: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + usize::try_from(z ^ (z >> 31)).unwrap() % (high - low)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_and_an_outage_during_two_thousand_messages_lose_none() {
    let (mut dice, began) = (Dice::roll(), Instant::now());
    let mut stage = Stage::new("loss").await;
    stage.route("acme", "*", &["--allow", "any", "--free"]).await;
    let places = places(&stage.telegram).await;
    let agent = agent(&stage);
    // From here on the process is killed and started by hand, without waiting for it.
    stage.connector.kill().await;
    let (telegram, folder) = (&stage.telegram, &stage.folder);
    let mut server = serve(folder);

    let log = folder.join("gw-acme.jsonl");
    let moments: Vec<usize> = (0..KILLS).map(|number| number * SHARE + dice.within(1, SHARE)).collect();
    let (mut kills, mut in_startup) = (0, 0);
    let killing = async {
        for (number, moment) in moments.into_iter().enumerate() {
            // In the middle of what is being delivered, and then a random moment more.
            while arrived(&log) < moment {
                sleep(Duration::from_millis(10)).await;
            }
            sleep(Duration::from_micros(dice.within(0, 20_000) as u64)).await;
            if number == KILLS / 2 {
                telegram.outage(OUTAGE).await;
            }
            server.kill().await;
            kills += 1;
            confirmed_is_committed(telegram, folder).await;
            server = serve(folder);
            // Some find the server still busy with coming back.
            if dice.within(0, 4) == 0 {
                sleep(Duration::from_millis(dice.within(0, 400) as u64)).await;
                server.kill().await;
                (kills, in_startup) = (kills + 1, in_startup + 1);
                confirmed_is_committed(telegram, folder).await;
                server = serve(folder);
            }
        }
    };
    let (posted, ()) = tokio::join!(write(telegram, &places, &log), killing);

    wait_for(&log, posted.values().map(Vec::len).sum(), SETTLED).await;
    let verdict = judge(&posted, &frames(&log));
    assert!(kills >= 10, "{kills} kills");
    assert!(4 * verdict.sockets >= 3 * KILLS, "the kills met a server at work: {verdict:?}");
    stage.until_heard().await;
    println!(
        "telegram loss: {MESSAGES} messages in {} places, {kills} kills ({in_startup} during a start), an outage of \
         {OUTAGE:?}: {verdict:?}; {:.1?}",
        places.len(),
        began.elapsed()
    );
    drop(agent);
    server.kill().await;
    stage.close().await;
}

async fn places(telegram: &FakeTelegram) -> Vec<Place> {
    let (ann, bob) = (telegram.person("Ann").await, telegram.person("Bob").await);
    let small = telegram.group("Small", &[ann, bob]).await;
    let large = telegram.supergroup("Large", &[ann, bob]).await;
    let forum = telegram.forum("Forum", &[ann, bob]).await;
    let (one, two) = (telegram.topic(forum, ann, "One").await, telegram.topic(forum, ann, "Two").await);
    let channel = telegram.channel("News", ann).await;
    let place = |name, chat, thread| Place { name, chat, thread };
    vec![
        place("ann", ann, None),
        place("bob", bob, None),
        place("small", small, None),
        place("large", large, None),
        place("general", forum, None),
        place("one", forum, Some(one)),
        place("two", forum, Some(two)),
        place("channel", channel, None),
    ]
}

/// Writes everywhere in turn; answers what was written in each place.
async fn write(telegram: &FakeTelegram, places: &[Place], log: &Path) -> BTreeMap<&'static str, Vec<String>> {
    let mut posted: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for number in 0..MESSAGES {
        let place = &places[number % places.len()];
        let from = if place.name == "bob" { place.chat } else { places[0].chat };
        let text = format!("{}-{number:05}", place.name);
        let mut ask = json!({ "chat": place.chat, "from": from, "text": text });
        if let Some(thread) = place.thread {
            ask["thread"] = thread.into();
        }
        telegram.say_with(&ask).await;
        posted.entry(place.name).or_default().push(text);
        while number % places.len() == 0 && arrived(log) + AHEAD < number {
            sleep(Duration::from_millis(10)).await;
        }
    }
    posted
}

fn serve(folder: &Path) -> Process {
    let mut command = Command::new(binary());
    command.arg("--config").arg(folder.join("angelia.toml")).arg("serve");
    Process::spawn("angelia", command, folder.join("angelia.log"))
}

fn agent(stage: &Stage) -> Process {
    let program = binary().with_file_name("log-agent");
    assert!(
        program.exists(),
        "{} is missing: run ./test, or cargo build --workspace --bins",
        program.display()
    );
    let mut command = Command::new(program);
    command.args(["--url", &stage.connector.url()]);
    command.args(["--id", &stage.gateway.gateway_id, "--secret", &stage.gateway.secret]);
    command.arg("--log").arg(stage.folder.join("gw-acme.jsonl"));
    Process::spawn("log-agent", command, stage.folder.join("log-agent.err"))
}

/// Telegram throws away what was confirmed, so that must be in the store. The
/// server is dead; a question of its that is still on the way carries no more
/// than what it had committed.
async fn confirmed_is_committed(telegram: &FakeTelegram, folder: &Path) {
    let bot = BotKey::new("telegram", &telegram.bot_id().to_string());
    let committed = {
        let bus = Arc::new(LocalBus::default());
        let store = Sqlite::open(&folder.join("data"), Quota::default(), bus).unwrap();
        let cursors = store.cursors(&bot).await.unwrap();
        cursors.first().map(|cursor| cursor.position.parse::<i64>().unwrap())
    };
    let confirmed = telegram.confirmed().await;
    assert!(confirmed <= committed, "confirmed {confirmed:?}, committed {committed:?}");
}

/// A frame: the socket it came on, the number in its `bufferId`, its first word.
type Frame = ((u64, u64), String, String);

fn frames(log: &Path) -> Vec<Frame> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("whole lines"));
    let inbound = records.filter(|record| record["kind"] == "inbound");
    let text = |record: &Value, name: &str| record[name].as_str().unwrap().to_owned();
    inbound
        .map(|record| {
            let socket = (record["process"].as_u64().unwrap(), record["socket"].as_u64().unwrap());
            (socket, text(&record, "buffer"), text(&record, "text"))
        })
        .collect()
}

/// How many frames came so far.
fn arrived(log: &Path) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().matches("\"kind\":\"inbound\"").count()
}

async fn wait_for(log: &Path, count: usize, limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        let texts: HashSet<String> = frames(log).into_iter().map(|(_, _, text)| text).collect();
        if texts.len() >= count {
            return;
        }
        assert!(Instant::now() < deadline, "{} of {count} messages arrived", texts.len());
        sleep(Duration::from_millis(100)).await;
    }
}

/// What came of a run.
#[derive(Debug, PartialEq)]
struct Verdict {
    arrived: usize,
    sockets: usize,
    /// Frames that came again, and the most on one socket.
    again: usize,
    most: usize,
}

/// Everything that was written arrived, first deliveries of each place in
/// order, one entry per message, and only what was in flight came again.
fn judge(posted: &BTreeMap<&'static str, Vec<String>>, log: &[Frame]) -> Verdict {
    let mut firsts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut entries: HashMap<&str, &str> = HashMap::new();
    let (mut again, mut sockets): (usize, HashMap<(u64, u64), usize>) = (0, HashMap::new());
    for (socket, buffer, text) in log {
        sockets.entry(*socket).or_default();
        match entries.insert(text, buffer) {
            None => firsts.entry(text.split_once('-').unwrap().0).or_default().push(text),
            Some(before) => {
                assert_eq!(before, buffer, "{text} was appended twice");
                again += 1;
                *sockets.entry(*socket).or_default() += 1;
            }
        }
    }
    for (place, texts) in posted {
        let came = firsts.remove(place).unwrap_or_default();
        let missing: Vec<&String> =
            texts.iter().filter(|text| !entries.contains_key(text.as_str())).collect();
        assert!(missing.is_empty(), "never delivered in {place}: {missing:?}");
        let wrong = came.iter().zip(texts).find(|(came, posted)| *came != posted);
        assert!(wrong.is_none(), "first deliveries of {place} are out of order at {wrong:?}");
        assert_eq!(came.len(), texts.len(), "{place} delivered more than was written");
    }
    assert!(firsts.is_empty(), "messages nobody wrote: {firsts:?}");
    let most = sockets.values().copied().max().unwrap_or_default();
    assert!(most <= IN_FLIGHT, "{most} came again on one socket");
    Verdict { arrived: entries.len(), sockets: sockets.len(), again, most }
}

/// The judge itself: each rule is broken once and must be noticed.
mod judging {
    use super::{Frame, Verdict, judge};
    use std::collections::BTreeMap;

    fn posted() -> BTreeMap<&'static str, Vec<String>> {
        BTreeMap::from([("ann", (1..=3).map(|n| format!("ann-{n}")).collect())])
    }

    fn frame(socket: u64, n: u64) -> Frame {
        ((1, socket), format!("b{n}"), format!("ann-{n}"))
    }

    #[test]
    fn a_good_run_passes() {
        let verdict = judge(&posted(), &[frame(1, 1), frame(1, 2), frame(2, 2), frame(2, 3)]);
        assert_eq!(verdict, Verdict { arrived: 3, sockets: 2, again: 1, most: 1 });
    }

    #[test]
    #[should_panic(expected = "never delivered")]
    fn a_lost_message_is_noticed() {
        judge(&posted(), &[frame(1, 1), frame(1, 2)]);
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn a_swapped_message_is_noticed() {
        judge(&posted(), &[frame(1, 1), frame(1, 3), frame(1, 2)]);
    }

    #[test]
    #[should_panic(expected = "appended twice")]
    fn two_entries_of_one_message_are_noticed() {
        judge(&posted(), &[frame(1, 1), frame(1, 2), ((1, 1), "b9".into(), "ann-1".into())]);
    }
}
