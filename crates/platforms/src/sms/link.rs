//! A `/link` somebody sent, and how often people are answered.

use super::Sms;
use crate::ingress::Ingress;
use crate::kit::Sighting;
use angelia_core::admission::DropReason;
use angelia_core::clock::{self, Mono};
use angelia_core::error::Result;
use angelia_core::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use angelia_core::store::Intake;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Answers to one person within [`WINDOW`]: a code that was mistyped, and the
/// right one. Each costs money, and anybody can ask for one.
const MAX_TO_PERSON: usize = 3;
const WINDOW: Duration = Duration::from_secs(60);
/// People remembered. With more in a minute nobody else is answered.
const MAX_REMEMBERED: usize = 4_096;

/// Who was answered when.
pub(super) struct Pace(Mutex<SlidingWindowOf<String>>);

impl Default for Pace {
    fn default() -> Self {
        let of_one = SlidingWindow::new(MAX_TO_PERSON, WINDOW);
        Self(Mutex::new(SlidingWindowOf::new(MAX_REMEMBERED, WhenCrowded::TurnAway, of_one)))
    }
}

impl Pace {
    /// Whether somebody may be answered; if so, it counts.
    fn may_answer(&self, person: &str, now: Mono) -> bool {
        self.0.lock().take(person, now).is_ok()
    }
}

impl Sms {
    /// Uses up a code, once however often its message comes, and tells how it
    /// went. Beyond a few in a while nothing is tried, and nothing said.
    pub(super) async fn link(
        self: &Arc<Self>,
        ingress: &Ingress,
        sighting: &Sighting,
        code: &str,
    ) -> Result<()> {
        let (account, person) = (&self.account, sighting.author.as_str());
        let mut position = self.position(ingress).await?;
        if position.knows(&sighting.message_id) {
            return Ok(());
        }
        let chats = self.learn(person).await?;
        let mut answer = None;
        if self.pace.may_answer(person, clock::mono()) {
            let used = account.use_code(ingress, sighting, true, code).await;
            answer = Some(used.inspect_err(|_| account.directory.unlearn(&chats))?);
        }
        // Whatever becomes of the commit: a code that was used would be found used.
        position.settle(&sighting.message_id);
        let intake = Intake { chats, cursor: Some(position.cursor()), ..Intake::default() };
        let committed = account.commit(&position.ingress(ingress), intake).await;
        drop(position);
        sighting.dropped(ingress, &account.key, DropReason::Consumed);
        match answer {
            Some(answer) => {
                let (bot, person) = (self.clone(), person.to_owned());
                account.reply(async move { bot.say_own(&person, &answer).await });
            }
            None => account.health.count("unanswered"),
        }
        committed.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_answered_now_and_then() {
        let pace = Pace::default();
        let may = |person: &str, second: u64| pace.may_answer(person, Mono(Duration::from_secs(second)));
        assert!(may("+1555", 0) && may("+1555", 1) && may("+1555", 2));
        assert!(!may("+1555", 3) && !may("+1555", 59));
        assert!(may("+1666", 3), "somebody else");
        assert!(may("+1555", 60));
        for n in 0..2 * MAX_REMEMBERED {
            may(&n.to_string(), 100);
        }
        assert!(pace.0.lock().remembered() <= MAX_REMEMBERED);
    }
}
