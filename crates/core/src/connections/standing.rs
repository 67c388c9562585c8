//! Which connection deserves its place least.

use super::{RELAY_WRITE_PATIENCE, WRITE_PATIENCE};
use crate::clock::Mono;
use std::time::Duration;

/// Who has been stuck, or asking, for less may only be on a slow line.
const SLOW_LINE: Duration = Duration::from_secs(1);

/// What a connection does with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Its peer has not said all yet: a handshake, a head or a body is incomplete.
    Asking,
    /// Its next request was sent before the answer to the one before, and waits for its turn.
    Ahead,
    /// Its request is being answered, perhaps by a stream.
    Answering,
    /// It has its answer, and has not asked again.
    Quiet,
    /// It is a relay socket.
    Relay,
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it does.
    pub doing: Doing,
    /// Since when.
    pub since: Mono,
    /// Since when its peer has taken nothing of what is to be written.
    pub stuck_since: Option<Mono>,
    /// By when its peer has to ask for more of an answer that has an end.
    pub due: Option<Mono>,
}

/// Whether the peer of a connection has read nothing for too long, or reads too slowly.
pub fn is_given_up(standing: &Standing, now: Mono) -> bool {
    let patience = match standing.doing {
        Doing::Relay => RELAY_WRITE_PATIENCE,
        _ => WRITE_PATIENCE,
    };
    standing.stuck_since.is_some_and(|since| now.since(since) >= patience)
        || standing.due.is_some_and(|due| due <= now)
}

/// Those to close so that `need` others can come: who is stuck, who sends ahead,
/// who has not finished asking; then who is quiet, or began to ask a moment ago;
/// then who has been stuck for a moment. The longest first. Relay sockets and
/// answers that make progress are never among them, so there may be fewer.
///
/// Of the first two sorts up to `spare` more are named, so that the next to come
/// do not need to look again.
pub fn least_deserving<K: Copy + Ord>(
    standings: impl IntoIterator<Item = (K, Standing)>,
    now: Mono,
    need: usize,
    spare: usize,
) -> Vec<K> {
    let ranked = standings.into_iter().filter_map(|(key, standing)| Some((rank(&standing, now)?, key)));
    let mut ranked: Vec<((Rank, Mono), K)> = ranked.collect();
    ranked.sort_unstable();
    let further = ranked.iter().skip(need).take(spare).take_while(|((rank, _), _)| *rank <= Rank::Ahead);
    let count = need.min(ranked.len()) + further.count();
    ranked.into_iter().take(count).map(|(_, key)| key).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Stuck,
    Ahead,
    Asking,
    Waiting,
    Slow,
}

/// Who comes first, and among equals since when; `None` for whom nobody is to take the place.
fn rank(standing: &Standing, now: Mono) -> Option<(Rank, Mono)> {
    match (standing.doing, standing.stuck_since) {
        (Doing::Relay, _) | (Doing::Answering, None) => None,
        (_, Some(since)) if now.since(since) >= SLOW_LINE => Some((Rank::Stuck, since)),
        (Doing::Ahead, _) => Some((Rank::Ahead, standing.since)),
        (_, Some(since)) => Some((Rank::Slow, since)),
        (Doing::Asking, None) if now.since(standing.since) >= SLOW_LINE => {
            Some((Rank::Asking, standing.since))
        }
        (Doing::Asking | Doing::Quiet, None) => Some((Rank::Waiting, standing.since)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 100_000;

    fn ago(millis: u64) -> Mono {
        Mono(Duration::from_millis(NOW - millis))
    }

    fn doing(doing: Doing, since: u64) -> Standing {
        Standing { doing, since: ago(since), stuck_since: None, due: None }
    }

    fn stuck(doing: Doing, for_millis: u64) -> Standing {
        Standing { doing, since: ago(for_millis), stuck_since: Some(ago(for_millis)), due: None }
    }

    fn chosen(standings: &[Standing], need: usize, spare: usize) -> Vec<usize> {
        least_deserving(standings.iter().copied().enumerate(), ago(0), need, spare)
    }

    #[test]
    fn the_longest_of_the_worst_sort_goes_first() {
        let all = [
            doing(Doing::Quiet, 9_000),
            stuck(Doing::Answering, 2_000),
            doing(Doing::Asking, 9_900),
            doing(Doing::Ahead, 10),
            stuck(Doing::Quiet, 500),
            stuck(Doing::Answering, 3_000),
            doing(Doing::Asking, 9_901),
            doing(Doing::Quiet, 9_001),
        ];
        assert_eq!(chosen(&all, 99, 0), [5, 1, 3, 6, 2, 7, 0, 4]);
        assert_eq!(chosen(&all, 1, 0), [5]);
        assert_eq!(chosen(&all, 4, 0), [5, 1, 3, 6]);
    }

    #[test]
    fn who_is_just_asking_goes_after_who_has_been_quiet_for_longer() {
        let all = [
            doing(Doing::Asking, 5),
            doing(Doing::Quiet, 900),
            doing(Doing::Asking, 999),
            doing(Doing::Quiet, 4),
        ];
        assert_eq!(chosen(&all, 4, 0), [2, 1, 0, 3]);
        assert_eq!(chosen(&[doing(Doing::Quiet, 9_000), doing(Doing::Asking, 1_000)], 1, 0), [1]);
    }

    #[test]
    fn who_reads_too_slowly_is_given_up_though_it_reads() {
        let slow = Standing { due: Some(ago(0)), ..stuck(Doing::Answering, 1_000) };
        assert!(is_given_up(&slow, ago(0)) && !is_given_up(&slow, ago(1)));
    }

    #[test]
    fn relay_sockets_and_answers_under_way_keep_their_place() {
        let all = [
            doing(Doing::Relay, 90_000),
            stuck(Doing::Relay, 90_000),
            doing(Doing::Answering, 90_000),
            doing(Doing::Answering, 0),
        ];
        assert_eq!(chosen(&all, 4, 4), [0_usize; 0]);
    }

    #[test]
    fn more_than_needed_are_closed_only_of_the_worst() {
        let all = [
            doing(Doing::Quiet, 9_000),
            doing(Doing::Asking, 9_000),
            doing(Doing::Ahead, 5),
            stuck(Doing::Answering, 1_000),
            stuck(Doing::Answering, 999),
        ];
        assert_eq!(chosen(&all, 1, 9), [3, 2]);
        assert_eq!(chosen(&all, 1, 0), [3]);
        assert_eq!(chosen(&all, 3, 9), [3, 2, 1]);
        assert_eq!(chosen(&all[..2], 1, 9), [1]);
        assert_eq!(chosen(&[], 1, 9), [0_usize; 0]);
    }

    #[test]
    fn a_peer_that_reads_nothing_is_given_up_a_gateway_later() {
        let given_up = |standing: Standing| is_given_up(&standing, ago(0));
        assert!(!given_up(doing(Doing::Answering, 90_000)));
        assert!(!given_up(stuck(Doing::Answering, 19_999)));
        assert!(given_up(stuck(Doing::Answering, 20_000)));
        assert!(given_up(stuck(Doing::Quiet, 20_000)));
        assert!(!given_up(stuck(Doing::Relay, 40_000)));
        let long = Standing { stuck_since: Some(Mono(Duration::ZERO)), ..stuck(Doing::Relay, 0) };
        assert!(!is_given_up(&long, Mono(Duration::from_millis(119_999))));
        assert!(is_given_up(&long, Mono(Duration::from_secs(120))));
    }
}
