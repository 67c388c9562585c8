//! The connector's own words: few, and never waited for.

use super::api::Failure;
use super::{Wecom, send};
use angelia_core::clock::{self, Mono};
use angelia_core::limit::{GcraOf, Rate};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Commands cost their sender nothing, and what they make the app say counts
/// against that person's limits. So there is room for three at once, and for one again
/// after a minute: a code that was mistyped, and the right one.
pub(super) const OWN: Rate = Rate::a_minute(1, 3);
/// People remembered as told.
const PEOPLE: usize = 20_000;
/// Answers on their way at once. What is more than that is not said.
const UNDER_WAY: usize = 8;

/// What bounds the connector's own words.
pub(super) struct Words {
    under_way: Arc<Semaphore>,
    people: Mutex<GcraOf<String>>,
}

impl Default for Words {
    fn default() -> Self {
        let people = Mutex::new(GcraOf::new(PEOPLE));
        Self { under_way: Arc::new(Semaphore::new(UNDER_WAY)), people }
    }
}

impl Words {
    /// Whether somebody may be told something now; if so, it counts as told.
    fn room(&self, user: &str, now: Mono) -> bool {
        self.people.lock().take(user, OWN, now).is_ok()
    }
}

impl Wecom {
    /// Answers a person without waiting for it; where that fails, or they were
    /// told enough for now, it is not said.
    pub(super) fn answer(self: &Arc<Self>, user: &str, text: String) {
        let Ok(place) = self.words.under_way.clone().try_acquire_owned() else {
            tracing::warn!(bot = %self.config.name, "too many answers of the connector are on their way");
            return;
        };
        let (bot, user) = (self.clone(), user.to_owned());
        tokio::spawn(async move {
            let _place = place;
            if let Err(why) = bot.say_own(&user, &text).await {
                tracing::warn!(bot = %bot.config.name, %why, "an answer of the connector was not sent");
            }
        });
    }

    /// Says something of the connector's own, once.
    pub(super) async fn say_own(&self, user: &str, text: &str) -> Result<(), Failure> {
        if !self.words.room(user, clock::mono()) {
            self.health.count("unanswered");
            return Err(Failure::Limited(OWN.per));
        }
        for part in send::parts(text) {
            self.write_once(user, &part, || true).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_person_is_told_a_few_things_and_then_one_a_minute() {
        let words = Words::default();
        let room = |user: &str, second| words.room(user, Mono(Duration::from_secs(second)));
        let told: Vec<u64> = (0..200).filter(|second| room("ann", *second)).collect();
        assert_eq!(told, [0, 1, 2, 60, 120, 180]);
        assert!(room("bob", 3));
    }
}
