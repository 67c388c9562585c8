//! What the bots of this server wrote, as it is recognised when it comes back.

use super::render::Part;
use angelia_core::clock::Mono;
use angelia_core::secret::fingerprint;
use hashlink::LruCache;
use parking_lot::Mutex;
use std::sync::LazyLock;
use std::time::Duration;

/// Texts remembered as posted by any bot of this server, some 100 bytes each. More within
/// [`ECHO_WITHIN`] is beyond what Telegram lets bots write.
const ECHOES: usize = 10_000;
/// How long after it was written a text may come back as somebody's post.
const ECHO_WITHIN: Duration = Duration::from_secs(60);

/// What a part shows, in one text.
pub(super) fn print(part: &Part) -> String {
    // Entities are plain data: they can be written.
    let entities = serde_json::to_string(&part.entities).unwrap_or_default();
    format!("{entities}\n{}", part.text)
}

/// What the bots of this server wrote where everybody writes in the chat's
/// name. Each sees what the others wrote, and must not answer it; it may see it
/// before they hear that it was written.
pub(super) struct Echoes(Mutex<LruCache<(String, [u8; 32]), Mono>>);

impl Default for Echoes {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(ECHOES)))
    }
}

/// Those of this process.
pub(super) fn echoes() -> &'static Echoes {
    static OF_ALL: LazyLock<Echoes> = LazyLock::new(Echoes::default);
    &OF_ALL
}

impl Echoes {
    /// This text is about to be written.
    pub(super) fn note(&self, chat_id: &str, text: &str, now: Mono) {
        // Channels have such ids, and nobody else but supergroups.
        if chat_id.starts_with("-100") {
            self.0.lock().insert((chat_id.to_owned(), fingerprint(text.trim())), now);
        }
    }

    #[cfg(test)]
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Whether a bot of this server wrote it not long ago.
    pub(super) fn knows(&self, chat_id: &str, text: &str, now: Mono) -> bool {
        let mut texts = self.0.lock();
        let written = texts.get(&(chat_id.to_owned(), fingerprint(text.trim())));
        written.is_some_and(|at| now.since(*at) < ECHO_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
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
