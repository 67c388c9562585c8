//! Pipelining: requests that are sent ahead of an answer give way to those that are not.

use std::time::Duration;

/// So many who send ahead are clients with a habit; more are a crowd.
const CROWD: usize = 16;
/// A crowd has one part of so many of the time.
const PART_OF: u32 = 5;
/// What timers can tell apart, and what the next one can bear.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);

/// Whether so many who wait are too many to be clients with a habit.
pub fn is_crowd(waiting: usize) -> bool {
    waiting > CROWD
}

/// How long nothing more that was sent ahead is begun, after one such request
/// took so long and so many others wait.
pub fn rest_after(waiting: usize, took: Duration) -> Option<Duration> {
    is_crowd(waiting).then(|| (took * (PART_OF - 1)).clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_gets_a_part_of_the_time_and_a_few_all_they_want() {
        let millis = Duration::from_millis;
        assert_eq!(rest_after(0, millis(3)), None);
        assert_eq!(rest_after(CROWD, millis(3)), None);
        assert_eq!(rest_after(CROWD + 1, millis(3)), Some(millis(12)));
        assert_eq!(rest_after(700, Duration::from_micros(20)), Some(SHORTEST));
        assert_eq!(rest_after(700, millis(50)), Some(LONGEST));
    }
}
