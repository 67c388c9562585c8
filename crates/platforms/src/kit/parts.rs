//! Texts that take several messages, where the provider cannot tell a repetition: once the
//! first part is out, nobody else can finish the rest.

use super::ApiError;
use crate::platform::{Outcome, Progress};
use angelia_contract::length::Unit;
use angelia_contract::split::split;
use angelia_core::clock::{self, Mono};
use angelia_core::fail;
use std::collections::VecDeque;
use std::time::Duration;

/// How long the rest of a text that has begun to appear is tried for: as long as an
/// action lives.
const REST_WITHIN: Duration = Duration::from_secs(600);

/// A text on its way, part by part: whoever writes it asks for the next part, writes that,
/// and tells how it went, until there is none.
pub(crate) struct TextInParts<'a, P = String> {
    /// What is not written yet.
    parts: VecDeque<P>,
    progress: &'a dyn Progress,
    /// The id of the first part, and until when the others are tried.
    begun: Option<(String, Mono)>,
    failed: Option<Outcome>,
}

impl<'a, P: Clone> TextInParts<'a, P> {
    /// A text of these parts.
    pub(crate) fn new(parts: Vec<P>, progress: &'a dyn Progress) -> Self {
        let failed = parts.is_empty().then(|| refused("there is no text to send"));
        Self { parts: parts.into(), progress, begun: None, failed }
    }

    /// The part to write now; waits until the bot may call again. `None` if all is over.
    pub(crate) async fn next(&mut self) -> Option<P> {
        if self.failed.is_some() {
            return None;
        }
        let part = self.parts.front()?.clone();
        // The first call was granted with the delivery.
        if self.begun.is_some() && !self.progress.next_call().await {
            self.failed = Some(ApiError::withdrawn().outcome());
            return None;
        }
        fail::point("action_sending");
        Some(part)
    }

    /// The id of the first part, if that is written.
    pub(crate) fn first(&self) -> Option<&str> {
        self.begun.as_ref().map(|(first, _)| first.as_str())
    }

    /// The part was written and has this id, or was not: waits where the provider wants that.
    pub(crate) async fn wrote(&mut self, written: Result<String, Outcome>) {
        match (written, &self.begun) {
            (Ok(message_id), begun) => {
                self.parts.pop_front();
                if begun.is_none() {
                    if !self.parts.is_empty() {
                        self.progress.first_part(&message_id);
                    }
                    self.begun = Some((message_id, clock::mono() + REST_WITHIN));
                }
            }
            (Err(Outcome::Later { after, reach, .. }), Some((_, until)))
                if clock::mono() + after < *until =>
            {
                self.progress.pause(reach, after);
                tokio::time::sleep(after).await;
            }
            (Err(outcome), _) => self.failed = Some(outcome),
        }
    }

    /// What became of the text.
    pub(crate) fn outcome(self) -> Outcome {
        match (self.failed, self.begun) {
            (Some(failed), _) => failed,
            (None, Some((message_id, _))) => Outcome::Sent { message_id, recorded: false },
            (None, None) => Outcome::Unknown { why: "nothing is known of the text".into() },
        }
    }
}

/// A text, cut into messages that a platform takes.
pub(crate) fn cut(text: &str, limit: usize, unit: Unit) -> Vec<String> {
    let parts = split(text, limit, unit).unwrap_or_default();
    parts.into_iter().map(|part| part.text).collect()
}

/// What is said of a `send_media` whose file is not at hand.
pub(crate) const NO_FILE: &str = "the file is not there";

/// An outcome that would be the same again.
pub(crate) fn refused(why: impl Into<String>) -> Outcome {
    Outcome::Refused { why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Reach;
    use futures_util::future::BoxFuture;
    use parking_lot::Mutex;

    /// What it was told, and how many further calls it lets through.
    struct Told(Mutex<(Vec<String>, usize)>);

    impl Progress for Told {
        fn first_part(&self, message_id: &str) {
            self.0.lock().0.push(format!("first {message_id}"));
        }

        fn next_call(&self) -> BoxFuture<'_, bool> {
            let mut told = self.0.lock();
            told.1 = told.1.saturating_sub(1);
            let may = told.1 > 0;
            Box::pin(async move { may })
        }

        fn pause(&self, _reach: Reach, after: Duration) {
            self.0.lock().0.push(format!("pause {}", after.as_secs()));
        }

        fn still_allowed(&self) -> bool {
            true
        }
    }

    async fn write(
        parts: &[&str],
        further: usize,
        mut answers: Vec<Result<String, Outcome>>,
    ) -> (Outcome, Vec<String>, Vec<String>) {
        let progress = Told(Mutex::new((Vec::new(), further + 1)));
        let mut text = TextInParts::new(parts.iter().map(|part| part.to_string()).collect(), &progress);
        let mut wrote = Vec::new();
        while let Some(part) = text.next().await {
            wrote.push(format!("{part} {:?}", text.first()));
            text.wrote(answers.remove(0)).await;
        }
        let outcome = text.outcome();
        (outcome, wrote, progress.0.into_inner().0)
    }

    fn later(seconds: u64) -> Result<String, Outcome> {
        let after = Duration::from_secs(seconds);
        Err(Outcome::Later { after, reach: Reach::Bot, why: "slow down".into() })
    }

    fn id(text: &str) -> Result<String, Outcome> {
        Ok(text.into())
    }

    #[tokio::test]
    async fn the_rest_of_a_text_waits_and_its_beginning_does_not() {
        let sent = Outcome::Sent { message_id: "1".into(), recorded: false };
        let (outcome, wrote, told) = write(&["a", "b"], 9, vec![id("1"), later(0), id("2")]).await;
        assert_eq!(outcome, sent);
        assert_eq!(wrote, ["a None", "b Some(\"1\")", "b Some(\"1\")"]);
        assert_eq!(told, ["first 1", "pause 0"]);
        let (outcome, _, told) = write(&["a"], 9, vec![id("1")]).await;
        assert_eq!((outcome, told.len()), (sent, 0), "there is no rest");
        let (outcome, ..) = write(&["a", "b"], 9, vec![later(7)]).await;
        assert!(matches!(outcome, Outcome::Later { .. }), "nothing is out: it can be given again");
        let (outcome, ..) = write(&["a", "b"], 9, vec![id("1"), later(3600)]).await;
        assert!(matches!(outcome, Outcome::Later { .. }), "longer than an action lives");
    }

    #[tokio::test]
    async fn whoever_may_not_write_any_more_makes_no_call() {
        let (outcome, wrote, _) = write(&["a", "b", "c"], 1, vec![id("1"), id("2")]).await;
        assert_eq!(wrote.len(), 2);
        assert_eq!(outcome, ApiError::withdrawn().outcome());
        let (outcome, wrote, _) = write(&[], 9, Vec::new()).await;
        assert!(wrote.is_empty() && matches!(outcome, Outcome::Refused { .. }));
    }
}
