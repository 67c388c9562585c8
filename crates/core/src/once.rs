//! What nodes say to each other counts once, and while it is fresh. Whoever can write to the bus
//! could say again what was said before: an interrupt of an hour ago would end another turn.

use crate::clock::UnixMillis;
use crate::inbox::InstanceId;
use crate::ports::Said;
use std::collections::VecDeque;
use std::time::Duration;

/// How long something that was said counts, by the store's clock: far longer than it takes to be
/// heard, whichever way it comes.
pub const FRESH_FOR: Duration = Duration::from_secs(10);
/// Things that were heard and are remembered. People ask for an end now and then, and each
/// socket a few times in a second at most.
const MAX_HEARD: usize = 4_096;
/// Of these, what one instance may have: nobody uses up the room of others.
const MAX_OF_ONE: usize = 64;

/// Whether something that was said at a time counts still.
pub fn is_fresh(at: UnixMillis, now: UnixMillis) -> bool {
    at.after(FRESH_FOR) >= now && at <= now.after(FRESH_FOR)
}

/// What was heard lately.
#[derive(Debug, Default)]
pub struct Heard(VecDeque<(InstanceId, Said)>);

impl Heard {
    /// Whether something that was said of an instance counts: it is fresh and was not heard before.
    pub fn counts(&mut self, of: InstanceId, said: &Said, now: UnixMillis) -> bool {
        // What is not fresh needs not be remembered: it does not count again either.
        self.0.retain(|(_, heard)| is_fresh(heard.at, now));
        let is_known = self.0.iter().any(|(_, heard)| heard == said);
        // With no room to remember it, it might count twice.
        let of_one = self.0.iter().filter(|(instance, _)| *instance == of).count();
        let is_full = self.0.len() >= MAX_HEARD || of_one >= MAX_OF_ONE;
        if !is_fresh(said.at, now) || is_known || is_full {
            return false;
        }
        self.0.push_back((of, said.clone()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: InstanceId = InstanceId(1);

    fn said(number: u64, at: i64) -> Said {
        Said { node: "a".into(), number, at: UnixMillis(at) }
    }

    #[test]
    fn it_counts_once_and_while_it_is_fresh() {
        let mut heard = Heard::default();
        let now = UnixMillis(100_000);
        assert!(heard.counts(ONE, &said(1, 99_000), now));
        assert!(!heard.counts(ONE, &said(1, 99_000), now), "it came both ways");
        assert!(heard.counts(ONE, &said(2, 99_000), now) && heard.counts(ONE, &said(3, 104_000), now));
        assert!(
            heard.counts(ONE, &Said { node: "b".into(), ..said(1, 99_000) }, now),
            "another node's first"
        );
        assert!(!heard.counts(ONE, &said(4, 89_999), now), "somebody says it again");
        assert!(!heard.counts(ONE, &said(4, 110_001), now), "no clock is that far off");
        assert!(!heard.counts(ONE, &said(1, 99_000), UnixMillis(109_001)), "and again when it was forgotten");
        assert_eq!(heard.0, [(ONE, said(3, 104_000))], "nothing else is kept");
    }

    #[test]
    fn whoever_says_much_uses_up_only_what_is_theirs() {
        let (mut heard, now) = (Heard::default(), UnixMillis(100_000));
        let taken = (0..1_000).filter(|number| heard.counts(ONE, &said(*number, 99_000), now)).count();
        assert_eq!(taken, MAX_OF_ONE);
        assert!(heard.counts(InstanceId(2), &said(1_001, 99_000), now));
        assert!(heard.counts(ONE, &said(1_002, 105_000), UnixMillis(110_000)), "room comes back");
    }
}
