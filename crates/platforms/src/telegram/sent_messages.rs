//! Small memories of a writing bot: what was posted, whom Telegram asked to wait.

use super::render::Part;
use crate::platform::Reach;
use angelia_core::clock::Mono;
use angelia_core::secret::fingerprint;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

/// Texts remembered as posted by any bot of this server, some 100 bytes each.
const ECHOES: usize = 10_000;
/// How long after it was written a text may come back as somebody's post.
const ECHO_WITHIN: Duration = Duration::from_secs(60);
/// Within this time a second chat that has to wait may mean that the bot has to.
const SAME_FLOOD: Duration = Duration::from_secs(5);
/// It does if both pauses end at the same moment, give or take the second that
/// Telegram rounds to and the time the answers took. Two chats in slow mode
/// have pauses of their own.
const SAME_END: Duration = Duration::from_secs(2);

/// What a part shows, in one text.
pub(super) fn print(part: &Part) -> String {
    // Entities are plain data: they can be written.
    let entities = serde_json::to_string(&part.entities).unwrap_or_default();
    format!("{entities}\n{}", part.text)
}

/// What the bots of this server wrote where everybody writes in the chat's
/// name. Each sees what the others wrote, and must not answer it; it may see it
/// before they hear that it was written.
#[derive(Default)]
pub(super) struct Echoes(Mutex<HashMap<(String, [u8; 32]), Mono>>);

/// Those of this process.
pub(super) fn echoes() -> &'static Echoes {
    static OF_ALL: LazyLock<Echoes> = LazyLock::new(Echoes::default);
    &OF_ALL
}

impl Echoes {
    /// This text is about to be written.
    pub(super) fn note(&self, chat_id: &str, text: &str, now: Mono) {
        // Channels have such ids, and nobody else but supergroups.
        if !chat_id.starts_with("-100") {
            return;
        }
        let mut texts = self.0.lock();
        if texts.len() >= ECHOES {
            texts.retain(|_, at| now.since(*at) < ECHO_WITHIN);
        }
        // More than that within the time is beyond what Telegram lets bots write.
        if texts.len() < ECHOES {
            texts.insert((chat_id.to_owned(), fingerprint(text.trim())), now);
        }
    }

    /// Whether a bot of this server wrote it not long ago.
    pub(super) fn knows(&self, chat_id: &str, text: &str, now: Mono) -> bool {
        let texts = self.0.lock();
        let written = texts.get(&(chat_id.to_owned(), fingerprint(text.trim())));
        written.is_some_and(|at| now.since(*at) < ECHO_WITHIN)
    }
}

/// Whom Telegram asked to wait last. It does not say whether a pause is for
/// the chat or for the bot: two chats that may go on at the same moment mean
/// the bot.
#[derive(Default)]
pub(super) struct Floods(Mutex<Option<Flood>>);

struct Flood {
    chat_id: String,
    at: Mono,
    until: Mono,
}

impl Floods {
    /// What has to wait now that a call for `chat_id` was too many, and how long.
    pub(super) fn reach(&self, chat_id: &str, after: Duration, now: Mono) -> (Reach, Duration) {
        let mut last = self.0.lock();
        let until = now + after;
        let other = last.as_ref().filter(|flood| {
            flood.chat_id != chat_id
                && now.since(flood.at) < SAME_FLOOD
                && flood.until.since(until).max(until.since(flood.until)) <= SAME_END
        });
        let found = match other {
            Some(flood) => (Reach::Bot, after.min(flood.until.since(now))),
            None => (Reach::Chat, after),
        };
        *last = Some(Flood { chat_id: chat_id.to_owned(), at: now, until });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn two_chats_that_may_go_on_together_mean_the_bot() {
        let (floods, seconds) = (Floods::default(), Duration::from_secs);
        assert_eq!(floods.reach("5", seconds(30), at(0)), (Reach::Chat, seconds(30)));
        assert_eq!(floods.reach("5", seconds(29), at(1)), (Reach::Chat, seconds(29)));
        assert_eq!(floods.reach("6", seconds(29), at(2)), (Reach::Bot, seconds(28)), "until 30 and 31");
        assert_eq!(floods.reach("7", seconds(28), at(60)), (Reach::Chat, seconds(28)), "another flood");
    }

    #[test]
    fn two_chats_with_pauses_of_their_own_do_not_stop_the_bot() {
        let (floods, seconds) = (Floods::default(), Duration::from_secs);
        assert_eq!(floods.reach("5", seconds(30), at(0)), (Reach::Chat, seconds(30)));
        assert_eq!(floods.reach("6", seconds(3600), at(1)), (Reach::Chat, seconds(3600)), "slow mode");
        assert_eq!(floods.reach("5", seconds(27), at(2)), (Reach::Chat, seconds(27)));
    }

    #[test]
    fn what_a_bot_wrote_is_not_somebody_elses_post() {
        let echoes = Echoes::default();
        echoes.note("-100300", "news ", at(0));
        assert!(echoes.knows("-100300", "news", at(1)));
        assert!(!echoes.knows("-100300", "other news", at(1)) && !echoes.knows("-100301", "news", at(1)));
        assert!(!echoes.knows("-100300", "news", at(60)), "by then it is somebody's own");
        for n in 0..2 * ECHOES {
            echoes.note("-100300", &n.to_string(), at(100));
        }
        assert_eq!(echoes.0.lock().len(), ECHOES);
        echoes.note("-100300", "later", at(200));
        assert!(echoes.knows("-100300", "later", at(200)), "what is old made room");
    }
}
