//! The short-lived token that some providers want fetched rarely and shared by all calls.

use super::{ApiError, ErrorKind};
use angelia_core::clock::{self, Mono};
use angelia_core::limit::Backoff;
use angelia_core::secret::Secret;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long before its end a token is replaced: nobody is to use one that ends under way.
const BEFORE_END: Duration = Duration::from_secs(300);
/// For how long a failure answers whoever asks next. Providers bar those who ask too often.
const FAILED_FOR: Duration = Duration::from_secs(2);
/// How long after a token was replaced because it was not taken, the new one may be
/// replaced as well; it doubles up to the other one while that goes on.
const LEAST_REFUSED: Duration = Duration::from_secs(10);
const MOST_REFUSED: Duration = Duration::from_secs(300);
/// Longest life believed.
const LONGEST: Duration = Duration::from_secs(7200);

/// What fetching a token gives: it, and the seconds it is good for.
pub(crate) type Fetched = Result<(Secret, u64), ApiError>;

/// Keeps the token of a bot. Whoever comes while it is fetched waits for that, and
/// asks nobody.
#[derive(Default)]
pub(crate) struct AccessToken(Mutex<Holding>);

#[derive(Default)]
struct Holding {
    held: Option<Held>,
    refused: Refused,
}

struct Held {
    token: Result<Secret, ApiError>,
    until: Mono,
}

impl AccessToken {
    /// The token as it is now. `fetch` gives one, and is waited for if there is none at hand.
    pub(crate) async fn get(&self, fetch: impl Future<Output = Fetched>) -> Result<Secret, ApiError> {
        self.get_unless(fetch, None).await
    }

    /// Another token than `bad`, which was not taken for this reason. Of many who say so of
    /// the same one, the first fetches.
    pub(crate) async fn other_than(
        &self,
        fetch: impl Future<Output = Fetched>,
        bad: &Secret,
        why: ApiError,
    ) -> Result<Secret, ApiError> {
        self.get_unless(fetch, Some((bad, why))).await
    }

    async fn get_unless(
        &self,
        fetch: impl Future<Output = Fetched>,
        bad: Option<(&Secret, ApiError)>,
    ) -> Result<Secret, ApiError> {
        let mut holding = self.0.lock().await;
        let Holding { held, refused } = &mut *holding;
        if let Some(Held { token, until }) = held
            && clock::mono() < *until
        {
            let is_bad = |token: &Secret| bad.as_ref().filter(|(bad, _)| bad.matches(token.expose()));
            let Some((_, why)) = token.as_ref().ok().and_then(is_bad) else { return token.clone() };
            if let Some(until) = refused.hold_until(clock::mono()) {
                // Nobody is to try it meanwhile.
                *held = Some(Held { token: Err(why.clone()), until });
                return Err(why.clone());
            }
        }
        let fetched = fetch.await;
        let now = clock::mono();
        let (token, until) = match fetched {
            Ok((token, seconds)) => (Ok(token), now + life(seconds)),
            // Nothing depends on whether it was done.
            Err(ApiError { kind: ErrorKind::Unknown, why }) => {
                (Err(ApiError::unavailable(why)), now + FAILED_FOR)
            }
            Err(error) => (Err(error), now + FAILED_FOR),
        };
        *held = Some(Held { token: token.clone(), until });
        token
    }
}

/// Tokens that were given and are not taken. The same one may be given again, and providers bar
/// those who ask too often.
struct Refused {
    replaced_at: Option<Mono>,
    backoff: Backoff,
}

impl Default for Refused {
    fn default() -> Self {
        Self { replaced_at: None, backoff: Backoff::new(LEAST_REFUSED, MOST_REFUSED) }
    }
}

impl Refused {
    /// The token is not taken: until when none is fetched; `None` if one may be now.
    fn hold_until(&mut self, now: Mono) -> Option<Mono> {
        let Some(last) = self.replaced_at.filter(|last| now.since(*last) < 2 * MOST_REFUSED) else {
            *self = Self { replaced_at: Some(now), ..Self::default() };
            return None;
        };
        let until = last + self.backoff.pause();
        if now < until {
            return Some(until);
        }
        self.replaced_at = Some(now);
        None
    }
}

/// How long a token is used that ends in so many seconds.
fn life(seconds: u64) -> Duration {
    let whole = Duration::from_secs(seconds).min(LONGEST);
    // A short one is used for half of its life.
    whole.saturating_sub(BEFORE_END).max(whole / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_stays_refused_is_fetched_ever_more_seldom() {
        let (mut refused, mut fetched, mut held) = (Refused::default(), Vec::new(), Mono::default());
        // Somebody writes every second, and no token is ever taken.
        for second in 0..3600 {
            let now = Mono(Duration::from_secs(second));
            if now < held {
                continue;
            }
            match refused.hold_until(now) {
                // What is held for a while is fetched after it.
                Some(until) => held = until,
                None => fetched.push(second),
            }
        }
        assert_eq!(fetched[0], 0, "the first is replaced at once");
        assert!((5..40).contains(&fetched.len()), "{fetched:?}");
        assert!(fetched.windows(2).skip(5).all(|pair| pair[1] - pair[0] >= 200), "{fetched:?}");
        // One that ends a day later is replaced at once again.
        assert_eq!(refused.hold_until(Mono(Duration::from_secs(90_000))), None);
    }

    #[test]
    fn a_token_is_replaced_before_its_end() {
        for (seconds, used) in [(7200, 6900), (600, 300), (100, 50), (0, 0), (u64::MAX, 6900)] {
            assert_eq!(life(seconds), Duration::from_secs(used), "{seconds}");
        }
    }
}
