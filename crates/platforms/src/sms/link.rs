//! A `/link` somebody sent, and the connector's own words about it.

use super::parse::Received;
use super::{NAME, Sms};
use crate::admission::Linking;
use crate::ingress::Ingress;
use angelia_core::admission::DropReason;
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Kind, Result};
use angelia_core::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use angelia_core::secret::Secret;
use angelia_core::store::Intake;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Answers to one person within [`WINDOW`]: a code that was mistyped, and the
/// right one. Each costs money, and anybody can ask for one.
const MAX_TO_PERSON: usize = 3;
const WINDOW: Duration = Duration::from_secs(60);
/// People remembered. With more in a minute nobody else is answered.
const MAX_REMEMBERED: usize = 4_096;
/// Answers on their way at once.
const MAX_ANSWERS: usize = 8;

/// What whoever typed a code is told if it is our fault that it could not be tried.
const TRY_LATER: &str = "Something went wrong here. Please try again later.";

/// Who was answered when.
pub(super) struct Words {
    people: Mutex<SlidingWindowOf<String>>,
    answers: Arc<Semaphore>,
}

impl Default for Words {
    fn default() -> Self {
        let of_one = SlidingWindow::new(MAX_TO_PERSON, WINDOW);
        let people = Mutex::new(SlidingWindowOf::new(MAX_REMEMBERED, WhenCrowded::TurnAway, of_one));
        Self { people, answers: Arc::new(Semaphore::new(MAX_ANSWERS)) }
    }
}

impl Words {
    /// Whether somebody may be answered; if so, it counts.
    fn may_answer(&self, person: &str, now: Mono) -> bool {
        self.people.lock().take(person, now).is_ok()
    }
}

impl Sms {
    /// Uses up a code, once however often its message comes, and tells how it
    /// went. Beyond a few in a while nothing is tried, and nothing said.
    pub(super) async fn link(
        self: &Arc<Self>,
        ingress: &Ingress,
        received: &Received,
        code: &str,
    ) -> Result<()> {
        let mut reading = self.reading.lock().await;
        let position = self.position(ingress, &mut reading).await?;
        if position.knows(&received.sid) {
            return Ok(());
        }
        let chats = self.learn(received).await?;
        let answer = match self.words.may_answer(&received.from, clock::mono()) {
            true => Some(self.use_code(ingress, received, code).await.inspect_err(|_| self.unlearn(&chats))?),
            false => None,
        };
        // Whatever becomes of the commit: a code that was used would be found used.
        position.settle(&received.sid);
        let intake = Intake { chats, cursor: Some(position.cursor()), ..Intake::default() };
        let committed = self.commit(ingress, intake).await;
        drop(reading);
        self.note_dropped(ingress, received, DropReason::Consumed);
        match answer {
            Some(answer) => self.answer(&received.from, answer),
            None => self.health.count("unanswered"),
        }
        committed.map(drop)
    }

    async fn use_code(&self, ingress: &Ingress, received: &Received, code: &str) -> Result<String> {
        let typed = Linking {
            platform: NAME,
            bot: Some(self.config.id.clone()),
            place: format!("{NAME}:{}/{}", self.config.id, received.from).parse()?,
            author: received.from.clone(),
            private: true,
            administrator: true,
            code: Secret::new(code),
        };
        match ingress.admission.link(typed).await {
            // Trying again would not help.
            Err(error) if error.kind() != Kind::Unavailable => {
                tracing::error!(bot = %self.config.name, %error, "a code could not be tried");
                Ok(TRY_LATER.to_owned())
            }
            linked => linked,
        }
    }

    /// Says something of the connector's own without waiting for it.
    fn answer(self: &Arc<Self>, person: &str, text: String) {
        let Ok(place) = self.words.answers.clone().try_acquire_owned() else {
            self.health.count("unanswered");
            return;
        };
        let (bot, person) = (self.clone(), person.to_owned());
        tokio::spawn(async move {
            let _place = place;
            if let Err(why) = bot.say_own(&person, &text).await {
                tracing::warn!(bot = %bot.config.name, %why, "an answer of the connector was not sent");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_answered_now_and_then() {
        let words = Words::default();
        let may = |person: &str, second: u64| words.may_answer(person, Mono(Duration::from_secs(second)));
        assert!(may("+1555", 0) && may("+1555", 1) && may("+1555", 2));
        assert!(!may("+1555", 3) && !may("+1555", 59));
        assert!(may("+1666", 3), "somebody else");
        assert!(may("+1555", 60));
        for n in 0..2 * MAX_REMEMBERED {
            may(&n.to_string(), 100);
        }
        assert!(words.people.lock().remembered() <= MAX_REMEMBERED);
    }
}
