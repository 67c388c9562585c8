//! What nodes say to each other counts once, and while it is fresh. Whoever can write to the bus
//! could say again what was said before: an interrupt of an hour ago would end another turn.

use crate::clock::UnixMillis;
use crate::ports::Said;
use std::collections::VecDeque;
use std::time::Duration;

/// How long something that was said counts, by the store's clock: far longer than it takes to be
/// heard, whichever way it comes.
pub const FRESH_FOR: Duration = Duration::from_secs(10);
/// Things that were heard and are remembered. People ask for an end now and then, and each
/// socket a few times in a second at most.
const MAX_HEARD: usize = 4_096;

/// Whether something that was said at a time counts still.
pub fn is_fresh(at: UnixMillis, now: UnixMillis) -> bool {
    at.after(FRESH_FOR) >= now && at <= now.after(FRESH_FOR)
}

/// What was heard lately.
#[derive(Debug, Default)]
pub struct Heard(VecDeque<Said>);

impl Heard {
    /// Whether something that was said counts: it is fresh and was not heard before.
    pub fn counts(&mut self, said: &Said, now: UnixMillis) -> bool {
        // What is not fresh needs not be remembered: it does not count again either.
        self.0.retain(|heard| is_fresh(heard.at, now));
        // With no room to remember it, it might count twice.
        if !is_fresh(said.at, now) || self.0.contains(said) || self.0.len() >= MAX_HEARD {
            return false;
        }
        self.0.push_back(said.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(number: u64, at: i64) -> Said {
        Said { node: "a".into(), number, at: UnixMillis(at) }
    }

    #[test]
    fn it_counts_once_and_while_it_is_fresh() {
        let mut heard = Heard::default();
        let now = UnixMillis(100_000);
        assert!(heard.counts(&said(1, 99_000), now));
        assert!(!heard.counts(&said(1, 99_000), now), "it came both ways");
        assert!(heard.counts(&said(2, 99_000), now) && heard.counts(&said(3, 104_000), now));
        assert!(heard.counts(&Said { node: "b".into(), ..said(1, 99_000) }, now), "another node's first");
        assert!(!heard.counts(&said(4, 89_999), now), "somebody says it again");
        assert!(!heard.counts(&said(4, 110_001), now), "no clock is that far off");
        assert!(!heard.counts(&said(1, 99_000), UnixMillis(109_001)), "and again when it was forgotten");
        assert_eq!(heard.0, [said(3, 104_000)], "nothing else is kept");
    }
}
