//! The verdict: from the sender's log and the gateway's log alone.

use crate::agent::Seen;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

/// Frames the connector may have in flight on one socket, settled ones whose
/// settlement a crash undid included.
pub(crate) const IN_FLIGHT: usize = 8;

/// What the senders were told, per chat, in the order it was accepted.
pub(crate) type Accepted = HashMap<String, Vec<String>>;

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) messages: usize,
    pub(crate) sockets: usize,
    pub(crate) redeliveries: usize,
    pub(crate) most_per_socket: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, sockets, redeliveries, most_per_socket } = self;
        write!(
            f,
            "{messages} messages over {sockets} sockets, {redeliveries} redeliveries, at most {most_per_socket} on one socket"
        )
    }
}

/// Judges a run: nothing accepted is missing, first deliveries are in order,
/// and only what was in flight came again.
pub(crate) fn judge(accepted: &Accepted, log: &[Seen]) -> Verdict {
    all_handled_in_order(accepted, log);
    one_entry_per_message(log);
    redeliveries(log)
}

/// Every accepted message was handled, and each chat's first deliveries are in
/// the order in which they were accepted.
fn all_handled_in_order(accepted: &Accepted, log: &[Seen]) {
    let mut firsts: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut known = HashSet::new();
    for seen in log {
        if known.insert(seen.text.as_str()) {
            firsts.entry(&seen.chat).or_default().push(&seen.text);
        }
    }
    for (chat, texts) in accepted {
        let handled = firsts.remove(chat.as_str()).unwrap_or_default();
        let missing: Vec<_> = texts.iter().filter(|text| !known.contains(text.as_str())).collect();
        assert!(missing.is_empty(), "accepted and never delivered in {chat}: {missing:?}");
        let wrong = handled.iter().zip(texts).find(|(handled, posted)| *handled != posted);
        assert!(wrong.is_none(), "first deliveries of {chat} are out of order at {wrong:?}");
        assert_eq!(handled.len(), texts.len(), "{chat} delivered more than was posted");
    }
    assert!(firsts.is_empty(), "messages of chats nobody wrote in: {:?}", firsts.keys());
}

/// A post that was repeated under its client id made one entry, not two.
fn one_entry_per_message(log: &[Seen]) {
    let mut entries: HashMap<&str, u64> = HashMap::new();
    for seen in log {
        let entry = *entries.entry(&seen.text).or_insert(seen.buffer);
        assert_eq!(entry, seen.buffer, "{} was appended twice", seen.text);
    }
}

/// On no socket does a frame come twice; on a new one only the last few that
/// were pushed before come again.
fn redeliveries(log: &[Seen]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut before: BTreeSet<u64> = BTreeSet::new();
    for on_socket in log.chunk_by(|one, next| one.socket == next.socket) {
        let tail: BTreeSet<u64> = before.iter().rev().take(IN_FLIGHT).copied().collect();
        let (mut here, mut again) = (HashSet::new(), 0);
        for seen in on_socket {
            assert!(here.insert(seen.buffer), "b{} came twice on socket {:?}", seen.buffer, seen.socket);
            if before.contains(&seen.buffer) {
                again += 1;
                assert!(
                    tail.contains(&seen.buffer),
                    "b{} came again on socket {:?} although only {tail:?} can have been in flight",
                    seen.buffer,
                    seen.socket
                );
            }
        }
        before.extend(here);
        verdict.sockets += 1;
        verdict.redeliveries += again;
        verdict.most_per_socket = verdict.most_per_socket.max(again);
    }
    assert!(verdict.most_per_socket <= IN_FLIGHT, "{verdict}");
    verdict.messages = before.len();
    verdict
}

/// The judge itself: each rule is broken once and must be noticed.
mod tests {
    use super::*;

    fn frame(socket: u64, buffer: u64) -> Seen {
        Seen { socket: (1, socket), buffer, chat: "web-den".into(), text: format!("den-{buffer}") }
    }

    fn accepted(count: u64) -> Accepted {
        Accepted::from([("web-den".into(), (1..=count).map(|n| format!("den-{n}")).collect())])
    }

    #[test]
    fn a_good_run_passes() {
        let log: Vec<Seen> = (1..=9).map(|n| frame(1, n)).chain((2..=12).map(|n| frame(2, n))).collect();
        let verdict = judge(&accepted(12), &log);
        assert_eq!((verdict.messages, verdict.sockets, verdict.redeliveries), (12, 2, 8));
    }

    #[test]
    #[should_panic(expected = "never delivered")]
    fn a_lost_message_is_noticed() {
        judge(&accepted(3), &[frame(1, 1), frame(1, 2)]);
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn a_swapped_message_is_noticed() {
        judge(&accepted(3), &[frame(1, 1), frame(1, 3), frame(1, 2)]);
    }

    #[test]
    #[should_panic(expected = "came twice")]
    fn a_second_push_on_the_same_socket_is_noticed() {
        judge(&accepted(2), &[frame(1, 1), frame(1, 2), frame(1, 1)]);
    }

    #[test]
    #[should_panic(expected = "can have been in flight")]
    fn a_redelivery_from_before_the_window_is_noticed() {
        let log: Vec<Seen> = (1..=9).map(|n| frame(1, n)).chain([frame(2, 1)]).collect();
        judge(&accepted(9), &log);
    }

    #[test]
    #[should_panic(expected = "appended twice")]
    fn two_entries_of_one_post_are_noticed() {
        let twin = Seen { text: "den-1".into(), ..frame(1, 2) };
        judge(&accepted(1), &[frame(1, 1), twin]);
    }
}
