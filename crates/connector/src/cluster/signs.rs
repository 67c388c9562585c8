//! What a node says with its signs of life: what has to arrive although the bus may be gone, here
//! or there. Every node reads those of all others twice a second, so it arrives within one.

use angelia_core::clock::Mono;
use angelia_core::ports::Control;
use angelia_core::records::rows::NodeRow;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// For how long it is said: a few signs, of which every node reads one.
const SAID_FOR: Duration = Duration::from_secs(4);
/// Most that is said at a time; of more the oldest goes. A row of a few KiB is written twice
/// a second.
const MOST_SAID: usize = 64;
/// Under which name it is in what a node tells of itself.
const SAID: &str = "said";

/// What this node says, and what it heard of others.
#[derive(Default)]
pub(super) struct Signs {
    spoken: Mutex<Spoken>,
    /// By node, the last that was heard.
    heard: Mutex<HashMap<String, u64>>,
}

#[derive(Default)]
struct Spoken {
    last: u64,
    lately: VecDeque<(Mono, u64, Control)>,
}

impl Signs {
    /// Says something with the next signs.
    pub(super) fn say(&self, control: Control, now: Mono) {
        let mut spoken = self.spoken.lock();
        spoken.last += 1;
        let number = spoken.last;
        spoken.lately.push_back((now, number, control));
        if spoken.lately.len() > MOST_SAID {
            spoken.lately.pop_front();
        }
    }

    /// Adds what is said to what a node tells of itself.
    pub(super) fn with(&self, mut facts: Value, now: Mono) -> Value {
        let mut spoken = self.spoken.lock();
        spoken.lately.retain(|(at, ..)| now.since(*at) < SAID_FOR);
        if !spoken.lately.is_empty()
            && let Some(facts) = facts.as_object_mut()
        {
            let said = spoken.lately.iter().map(|(_, number, control)| json!([number, control]));
            facts.insert(SAID.to_owned(), said.collect());
        }
        facts
    }

    /// What other nodes say that was not heard before.
    pub(super) fn hear(&self, ours: &str, nodes: &[NodeRow]) -> Vec<Control> {
        let mut heard = self.heard.lock();
        heard.retain(|node, _| nodes.iter().any(|there| there.node == *node));
        let mut news = Vec::new();
        for node in nodes.iter().filter(|node| node.node != ours) {
            let last = heard.entry(node.node.clone()).or_default();
            for (number, control) in said(&node.facts) {
                if number > *last {
                    *last = number;
                    news.push(control);
                }
            }
        }
        news
    }
}

/// What a node says. What a later release says that this one cannot read is left out.
fn said(facts: &str) -> Vec<(u64, Control)> {
    let Ok(mut facts) = serde_json::from_str::<Value>(facts) else { return Vec::new() };
    let Some(Value::Array(said)) = facts.get_mut(SAID).map(Value::take) else { return Vec::new() };
    said.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::clock::UnixMillis;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn node(name: &str, facts: &Value) -> NodeRow {
        let (started_at, until) = (UnixMillis(0), UnixMillis(0));
        NodeRow { node: name.into(), owner: 1, started_at, until, takes: true, facts: facts.to_string() }
    }

    #[test]
    fn what_is_said_is_heard_once_by_whoever_reads_the_signs() {
        let (a, b) = (Signs::default(), Signs::default());
        let changed = |id| Control::Changed { id };
        assert_eq!(a.with(json!({"x": 1}), at(0)), json!({"x": 1}), "nothing is said");
        a.say(changed(1), at(0));
        let first = a.with(json!({"x": 1}), at(1));
        assert_eq!((&first["x"], first[SAID].as_array().map(Vec::len)), (&json!(1), Some(1)));
        assert_eq!(b.hear("b", &[node("a", &first), node("b", &first)]), [changed(1)]);
        a.say(changed(2), at(2));
        let both = a.with(json!({}), at(2));
        assert_eq!(b.hear("b", &[node("a", &both)]), [changed(2)]);
        assert!(b.hear("b", &[node("a", &both)]).is_empty());
        assert_eq!(a.with(json!({}), at(60)), json!({}), "it is not said for ever");
        for id in 0..1_000 {
            a.say(changed(id), at(61));
        }
        assert_eq!(said(&a.with(json!({}), at(61)).to_string()).len(), MOST_SAID);
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_else() {
        let said = json!({ SAID: [[1, {"dances": {}}], "x", [2, {"changed": {"id": 7}}]] });
        assert_eq!(Signs::default().hear("b", &[node("a", &said)]), [Control::Changed { id: 7 }]);
    }
}
