//! The verdict over a run with faults, from what people were told, what gateways wrote down and
//! what the platforms saw. It knows nothing of the nodes.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Frames that may be in flight on one socket: what was among them when it ended comes again.
const IN_FLIGHT: usize = 8;
/// A node gives a bot away, and gets it back, with two signs of life at least, half a second each.
const GIVEN_AWAY_AND_BACK: f64 = 1.0;

/// Everything that was said in one chat and accepted, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chat {
    /// The gateway it belongs to.
    pub(crate) gateway: String,
    pub(crate) accepted: Vec<String>,
    /// What stands in the chat by the bot.
    pub(crate) answers: Vec<String>,
}

/// A frame, as its gateway saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) socket: u64,
    pub(crate) buffer: u64,
    pub(crate) chat: String,
    pub(crate) text: String,
}

/// What a gateway wrote down, as far as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diary {
    pub(crate) seen: Vec<Seen>,
    /// The texts whose answers were reported as sent.
    pub(crate) sent: HashSet<String>,
    /// The different texts that came.
    arrived: HashSet<String>,
    /// The texts that requests for answers were about.
    requests: HashMap<String, String>,
    read: u64,
}

impl Diary {
    /// Reads on in its log, up to the last whole line.
    pub(crate) fn read_on(&mut self, log: &Path) {
        let mut more = Vec::new();
        let read = File::open(log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut more)
        });
        let whole = more.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if read.is_err() || whole == 0 {
            return;
        }
        self.read += whole as u64;
        for line in more[..whole].split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<Value>(line) {
                self.note(&line);
            }
        }
    }

    fn note(&mut self, line: &Value) {
        let field = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        match line["kind"].as_str() {
            Some("inbound") => {
                self.arrived.insert(field("text"));
                self.seen.push(Seen {
                    socket: line["socket"].as_u64().unwrap(),
                    buffer: field("buffer").trim_start_matches('b').parse().unwrap(),
                    chat: field("chat"),
                    text: field("text"),
                });
            }
            Some("send") => drop(self.requests.insert(field("request"), field("text"))),
            Some("result") => {
                let text = self.requests.remove(&field("request"));
                self.sent.extend(text.filter(|_| line["result"]["success"] == true));
            }
            _ => {}
        }
    }

    /// How many different texts came.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.len()
    }
}

/// A call that a provider got.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// When, in seconds.
    pub(crate) at: f64,
    /// The address of the node that made it.
    pub(crate) node: String,
}

/// Calls of one bot by a node while another had it: the other called before and after it, with a
/// pause in which nothing is given away and back.
pub(crate) fn past_the_fence(bot: &str, calls: &[Call]) -> Vec<String> {
    let turns: Vec<&[Call]> = calls.chunk_by(|one, next| one.node == next.node).collect();
    let between = turns.windows(3).filter(|turns| {
        let [before, _, after] = turns else { return false };
        let pause = after[0].at - before[before.len() - 1].at;
        before[0].node == after[0].node && pause < GIVEN_AWAY_AND_BACK
    });
    between
        .map(|turns| {
            let (other, holder) = (&turns[1][0], &turns[0][0].node);
            format!("{} called for {bot} at {:.3}, which {holder} had", other.node, other.at)
        })
        .collect()
}

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) messages: usize,
    pub(crate) answers: usize,
    pub(crate) sockets: usize,
    pub(crate) redeliveries: usize,
    /// Every rule that was broken.
    pub(crate) faults: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, answers, sockets, redeliveries, faults } = self;
        write!(
            f,
            "{messages} messages, {answers} answers, {sockets} sockets, {redeliveries} redeliveries, {} rules broken",
            faults.len()
        )
    }
}

/// Judges a run by chat (by its id) and by gateway.
pub(crate) fn judge(chats: &BTreeMap<String, Chat>, diaries: &BTreeMap<String, Diary>) -> Verdict {
    let mut verdict = Verdict::default();
    for (gateway, diary) in diaries {
        verdict.only_its_own(gateway, diary, chats);
        verdict.redelivered_only_what_was_open(gateway, diary);
    }
    for (id, chat) in chats {
        verdict.all_in_order(id, chat, &diaries[&chat.gateway]);
        verdict.answered_once(id, chat, diaries);
    }
    verdict
}

impl Verdict {
    /// No frame of somebody else's chat.
    fn only_its_own(&mut self, gateway: &str, diary: &Diary, chats: &BTreeMap<String, Chat>) {
        for seen in &diary.seen {
            if chats.get(&seen.chat).is_none_or(|chat| chat.gateway != gateway) {
                self.faults.push(format!("{gateway} was given {} of {}", seen.text, seen.chat));
            }
        }
    }

    /// Nothing that was accepted is missing, and what came first came in order.
    fn all_in_order(&mut self, id: &str, chat: &Chat, diary: &Diary) {
        let mut known = HashSet::new();
        let here = diary.seen.iter().filter(|seen| seen.chat == id);
        let firsts: Vec<&str> =
            here.map(|seen| seen.text.as_str()).filter(|text| known.insert(*text)).collect();
        let missing: Vec<_> = chat.accepted.iter().filter(|text| !known.contains(text.as_str())).collect();
        if !missing.is_empty() {
            self.faults.push(format!("lost in {id}: {missing:?}"));
        } else if let Some((came, said)) = firsts.iter().zip(&chat.accepted).find(|(came, said)| came != said)
        {
            self.faults.push(format!("out of order in {id}: {came} came where {said} was said"));
        }
        self.messages += firsts.len();
    }

    /// On no socket does a frame come twice, and on a later one only what was in flight before.
    fn redelivered_only_what_was_open(&mut self, gateway: &str, diary: &Diary) {
        let mut before: BTreeSet<u64> = BTreeSet::new();
        for on_socket in diary.seen.chunk_by(|one, next| one.socket == next.socket) {
            let tail: BTreeSet<u64> = before.iter().rev().take(IN_FLIGHT).copied().collect();
            let mut here = HashSet::new();
            for seen in on_socket {
                if !here.insert(seen.buffer) {
                    self.faults.push(format!("{gateway}: b{} came twice on one socket", seen.buffer));
                }
                if before.contains(&seen.buffer) {
                    self.redeliveries += 1;
                    if !tail.contains(&seen.buffer) {
                        self.faults
                            .push(format!("{gateway}: b{} came again, long acknowledged", seen.buffer));
                    }
                }
            }
            before.extend(here);
            self.sockets += 1;
        }
    }

    /// What stands in a chat is the answers to what was said there, each once; and what a gateway
    /// was told was sent stands there.
    fn answered_once(&mut self, id: &str, chat: &Chat, diaries: &BTreeMap<String, Diary>) {
        let accepted: HashSet<&str> = chat.accepted.iter().map(String::as_str).collect();
        let mut known = HashSet::new();
        for answer in &chat.answers {
            if !known.insert(answer.as_str()) {
                self.faults.push(format!("{answer} stands twice in {id}"));
            }
            if !answer.strip_prefix("re:").is_some_and(|text| accepted.contains(text)) {
                self.faults.push(format!("{answer} stands in {id}, where nobody said that"));
            }
        }
        for text in chat.accepted.iter().filter(|text| diaries[&chat.gateway].sent.contains(*text)) {
            if !known.contains(format!("re:{text}").as_str()) {
                self.faults.push(format!("the answer to {text} was reported as sent and is not in {id}"));
            }
        }
        self.answers += chat.answers.len();
    }
}

/// The auditor itself: each rule is broken once and must be noticed.
mod tests {
    use super::*;

    fn seen(socket: u64, buffer: u64) -> Seen {
        Seen { socket, buffer, chat: "c".into(), text: format!("m{buffer}") }
    }

    fn verdict(count: u64, seen: Vec<Seen>, answers: &[&str], sent: &[&str]) -> Verdict {
        let chat = Chat {
            gateway: "gw".into(),
            accepted: (1..=count).map(|n| format!("m{n}")).collect(),
            answers: answers.iter().map(|text| (*text).to_owned()).collect(),
        };
        let sent = sent.iter().map(|text| (*text).to_owned()).collect();
        judge(
            &BTreeMap::from([("c".to_owned(), chat)]),
            &BTreeMap::from([("gw".to_owned(), Diary { seen, sent, ..Diary::default() })]),
        )
    }

    fn is_noticed(verdict: &Verdict, fault: &str) {
        assert!(verdict.faults.iter().any(|it| it.contains(fault)), "{fault}: {:?}", verdict.faults);
    }

    #[test]
    fn a_good_run_passes() {
        let log = (1..=9).map(|n| seen(1, n)).chain((2..=12).map(|n| seen(2, n))).collect();
        let verdict = verdict(12, log, &["re:m1", "re:m2"], &["m1"]);
        assert!(verdict.faults.is_empty(), "{:?}", verdict.faults);
        assert_eq!((verdict.messages, verdict.sockets, verdict.redeliveries), (12, 2, 8));
    }

    #[test]
    fn every_fault_is_noticed() {
        is_noticed(&verdict(3, vec![seen(1, 1), seen(1, 2)], &[], &[]), "lost");
        is_noticed(&verdict(3, vec![seen(1, 1), seen(1, 3), seen(1, 2)], &[], &[]), "out of order");
        is_noticed(&verdict(2, vec![seen(1, 1), seen(1, 2), seen(1, 1)], &[], &[]), "twice on one socket");
        let late = (1..=9).map(|n| seen(1, n)).chain([seen(2, 1)]).collect();
        is_noticed(&verdict(9, late, &[], &[]), "long acknowledged");
        let stray = Seen { chat: "other".into(), ..seen(1, 2) };
        is_noticed(&verdict(1, vec![seen(1, 1), stray], &[], &[]), "was given");
        is_noticed(&verdict(1, vec![seen(1, 1)], &["re:m1", "re:m1"], &[]), "stands twice");
        is_noticed(&verdict(1, vec![seen(1, 1)], &["re:m7"], &[]), "nobody said");
        is_noticed(&verdict(1, vec![seen(1, 1)], &[], &["m1"]), "reported as sent");
    }

    #[test]
    fn a_node_that_calls_while_another_has_the_bot_is_noticed() {
        let calls = |all: &[(&str, f64)]| -> Vec<Call> {
            all.iter().map(|(node, at)| Call { at: *at, node: (*node).to_owned() }).collect()
        };
        let handed_on = calls(&[("a", 0.0), ("a", 0.1), ("b", 0.2), ("b", 4.0), ("a", 4.1)]);
        assert!(past_the_fence("bot", &handed_on).is_empty());
        let late = calls(&[("a", 0.0), ("b", 4.0), ("a", 4.2), ("b", 4.4)]);
        assert_eq!(past_the_fence("bot", &late).len(), 1, "a was late");
    }
}
