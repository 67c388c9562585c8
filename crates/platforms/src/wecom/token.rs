//! The one access token of an app. WeCom wants it fetched rarely and shared.

use super::api::{Api, Failure, GET_TOKEN};
use angelia_core::clock::{self, Mono};
use angelia_core::limit::Backoff;
use angelia_core::secret::Secret;
use serde::Deserialize;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long before its end a token is replaced: nobody is to use one that ends under way.
const BEFORE_END: Duration = Duration::from_secs(300);
/// For how long a failure answers whoever asks next. WeCom bars those who ask too often.
const FAILED_FOR: Duration = Duration::from_secs(2);
/// How long after a token was replaced because WeCom did not take it, the new one may be
/// replaced as well; it doubles up to the other one while that goes on.
const LEAST_REFUSED: Duration = Duration::from_secs(10);
const MOST_REFUSED: Duration = Duration::from_secs(300);
/// Longest life believed.
const LONGEST: Duration = Duration::from_secs(7200);

/// Fetches the token and keeps it. Whoever comes while it is fetched waits for
/// that, and asks nobody.
pub(super) struct Token {
    corp_id: Secret,
    secret: Secret,
    held: Mutex<Holding>,
}

#[derive(Default)]
struct Holding {
    held: Option<Held>,
    refused: Refused,
}

struct Held {
    token: Result<Secret, Failure>,
    until: Mono,
}

#[derive(Deserialize)]
struct Fetched {
    access_token: String,
    #[serde(default)]
    expires_in: u64,
}

impl Token {
    pub(super) fn new(corp_id: &str, secret: Secret) -> Self {
        Self { corp_id: Secret::new(corp_id), secret, held: Mutex::default() }
    }

    /// The token as it is now.
    pub(super) async fn get(&self, api: &Api) -> Result<Secret, Failure> {
        self.get_unless(api, None).await
    }

    /// Another token than `bad`, which WeCom did not take. Of many who say so of the
    /// same one, the first fetches.
    pub(super) async fn other_than(&self, api: &Api, bad: &Secret) -> Result<Secret, Failure> {
        self.get_unless(api, Some(bad)).await
    }

    async fn get_unless(&self, api: &Api, bad: Option<&Secret>) -> Result<Secret, Failure> {
        let mut holding = self.held.lock().await;
        let Holding { held, refused } = &mut *holding;
        if let Some(Held { token, until }) = held
            && clock::mono() < *until
        {
            if !token.as_ref().is_ok_and(|token| bad.is_some_and(|bad| bad.matches(token.expose()))) {
                return token.clone();
            }
            if let Some(until) = refused.hold_until(clock::mono()) {
                // Nobody is to try it meanwhile.
                *held = Some(Held { token: Err(Failure::Token), until });
                return Err(Failure::Token);
            }
        }
        let query = [("corpid", &self.corp_id), ("corpsecret", &self.secret)];
        let fetched = api.get::<Fetched>(GET_TOKEN, &query).await;
        let now = clock::mono();
        let (token, until) = match fetched {
            Ok(Fetched { access_token, expires_in }) => {
                (Ok(Secret::new(access_token)), now + life(expires_in))
            }
            // Nothing depends on whether it was done.
            Err(Failure::Unknown(why)) => (Err(Failure::Unavailable(why)), now + FAILED_FOR),
            Err(failure) => (Err(failure), now + FAILED_FOR),
        };
        *held = Some(Held { token: token.clone(), until });
        token
    }
}

/// Tokens that WeCom gave and does not take. It may give the same one again, and bars
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
    /// WeCom does not take the token: until when none is fetched; `None` if one may be now.
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
