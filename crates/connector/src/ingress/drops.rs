//! What reached nobody lately: for `explain`, and for whoever has to add a
//! route. In memory only, bounded, and never with a text. And the notice that tells a
//! place, once, why nothing answers there, if the operator wants that.

use super::Bots;
use angelia_core::admission::{DropReason, Observed};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::egress::Target;
use angelia_core::error::{Kind, Result};
use angelia_core::limit::LogThrottle;
use angelia_core::records::Records;
use angelia_core::store::{NoticeKind, NoticeStore};
use angelia_platforms::Which;
use hashlink::LruCache;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Drops that are remembered: an operator asks about one that was just missed.
const REMEMBERED: usize = 1_024;
/// Places without a route that are remembered; more than anybody reads through.
const PLACES: usize = 256;
/// Notices being given at the same time; more are left for the next occasion.
const AT_ONCE: usize = 4;

/// An event that reached nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Dropped {
    /// When.
    pub at: UnixMillis,
    /// The platform it came from.
    pub platform: String,
    /// The bot that received it.
    pub bot: String,
    /// The chat it came from.
    pub chat_id: String,
    /// Its place.
    pub place: String,
    /// The provider's id.
    pub message_id: String,
    /// Who wrote it.
    pub author: String,
    /// Why it reached nobody, in a word.
    pub reason: String,
}

/// How often a place without a route was heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) count: u64,
    pub(crate) last_at: UnixMillis,
}

/// The most specific place, and the bot that heard it.
pub(crate) type Spot = (String, String);

struct Memory {
    /// Each with its reason, which is told in a word.
    recent: VecDeque<(DropReason, Dropped)>,
    unrouted: LruCache<Spot, Heard>,
    /// Which drops the log tells of, each now and then.
    told: LruCache<(DropReason, String), LogThrottle>,
}

/// What reached nobody lately.
pub(crate) struct Drops(Mutex<Memory>);

impl Default for Drops {
    fn default() -> Self {
        let (unrouted, told) = (LruCache::new(PLACES), LruCache::new(PLACES));
        Self(Mutex::new(Memory { recent: VecDeque::new(), unrouted, told }))
    }
}

/// What the log says for a next step: it names no chat, as that may be somebody's telephone number.
const ASK: &str =
    "angelia messages --state dropped shows where they came from, angelia explain --last what to do";

/// Says in the log that messages to a bot reach nobody, once a minute: never what they say, or who says
/// it. What people say to each other is nobody's concern, and what the server answered itself is no loss.
fn log(
    reason: DropReason,
    (platform, bot): (&str, &str),
    told: &mut LruCache<(DropReason, String), LogThrottle>,
) {
    if matches!(reason, DropReason::NotAddressed | DropReason::Consumed | DropReason::Keyword) {
        return;
    }
    let throttle = told.entry((reason, format!("{platform}:{bot}"))).or_insert_with(LogThrottle::default);
    let Some(times) = throttle.note(clock::mono()) else { return };
    let problem = reason.problem();
    tracing::info!(
        event = "message_dropped",
        reason = problem.word,
        platform,
        bot,
        times,
        next = ASK,
        "a message reached nobody: {}",
        problem.means
    );
}

impl Drops {
    /// Takes note of an event that reached nobody.
    pub(crate) fn note(&self, observed: Observed<'_>, which: Which<'_>, reason: DropReason, at: UnixMillis) {
        let path = observed.places.first().copied().unwrap_or("*");
        let place = format!("{}:{path}", observed.platform);
        let mut memory = self.0.lock();
        log(reason, (observed.platform, observed.bot), &mut memory.told);
        if reason == DropReason::NoRoute {
            memory.heard((place.clone(), observed.bot.to_owned()), at);
        }
        if memory.recent.len() >= REMEMBERED {
            memory.recent.pop_front();
        }
        let dropped = Dropped {
            at,
            platform: observed.platform.to_owned(),
            bot: observed.bot.to_owned(),
            chat_id: which.chat_id.to_owned(),
            place,
            message_id: which.message_id.to_owned(),
            author: observed.author.to_owned(),
            reason: reason.as_str().to_owned(),
        };
        memory.recent.push_back((reason, dropped));
    }

    /// The drops of a message, oldest first: by its id, or as `CHAT/MESSAGE` where
    /// ids are a chat's own.
    pub(crate) fn of(&self, message: &str) -> Vec<Dropped> {
        let in_chat = message.rsplit_once('/');
        let is_meant = |dropped: &&Dropped| {
            dropped.message_id == message
                || in_chat == Some((dropped.chat_id.as_str(), dropped.message_id.as_str()))
        };
        self.0.lock().recent.iter().map(|(_, dropped)| dropped).filter(is_meant).cloned().collect()
    }

    /// All that is remembered, the newest first.
    pub(crate) fn recent(&self) -> Vec<Dropped> {
        self.0.lock().recent.iter().rev().map(|(_, dropped)| dropped.clone()).collect()
    }

    /// Why a message of a chat was dropped the last time, and when.
    pub(crate) fn why(&self, which: Which<'_>) -> Option<(DropReason, UnixMillis)> {
        let is_meant = |(_, dropped): &&(DropReason, Dropped)| {
            (&*dropped.chat_id, &*dropped.message_id) == (which.chat_id, which.message_id)
        };
        self.0.lock().recent.iter().rev().find(is_meant).map(|(reason, dropped)| (*reason, dropped.at))
    }

    /// The places without a route, the one heard of last first.
    pub(crate) fn unrouted(&self) -> Vec<(Spot, Heard)> {
        self.0.lock().unrouted.iter().rev().map(|(spot, heard)| (spot.clone(), *heard)).collect()
    }
}

impl Memory {
    fn heard(&mut self, spot: Spot, at: UnixMillis) {
        let before = self.unrouted.peek(&spot).map_or(0, |heard| heard.count);
        self.unrouted.insert(spot, Heard { count: before + 1, last_at: at });
    }
}

/// Gives hints where the bot answers nobody.
pub(super) struct NoRouteNotices {
    records: Arc<dyn Records>,
    bots: Arc<Bots>,
    /// What is said; `None`: nothing.
    text: Option<String>,
    turns: Arc<Semaphore>,
}

impl NoRouteNotices {
    pub(super) fn new(records: Arc<dyn Records>, bots: Arc<Bots>, text: Option<String>) -> Arc<Self> {
        Arc::new(Self { records, bots, text, turns: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// Tells a place once why nothing answers, if somebody was waiting for an answer.
    pub(super) fn give(self: &Arc<Self>, observed: Observed<'_>, which: Which<'_>, reason: DropReason) {
        let Some(text) = self.text.clone() else { return };
        let expected = (observed.private || observed.addressed) && !observed.author_is_bot;
        let puzzling =
            matches!(reason, DropReason::NoRoute | DropReason::AuthorNotAllowed | DropReason::NoInstance);
        let Ok(turn) = self.turns.clone().try_acquire_owned() else { return };
        if !expected || !puzzling {
            return;
        }
        let bot = BotKey::new(observed.platform, observed.bot);
        let target =
            Target { chat_id: which.chat_id.to_owned(), thread_id: which.thread_id.map(str::to_owned) };
        let hints = self.clone();
        tokio::spawn(async move {
            let _turn = turn;
            if let Err(error) = hints.hint(&bot, &target, &text).await {
                tracing::debug!(%error, "a hint could not be given");
            }
        });
    }

    async fn hint(&self, bot: &BotKey, target: &Target, text: &str) -> Result<()> {
        let Some(position) = self.bots.position_of_others(bot) else { return Ok(()) };
        if self.records.notice(NoticeKind::Hint, bot, &target.chat_id, None).await? {
            let told = self.bots[position].tell(target, text).await;
            // What the provider refuses it would refuse again.
            if told.as_ref().is_err_and(|error| error.kind() == Kind::Unavailable) {
                self.records.clear_notice(NoticeKind::Hint, bot, &target.chat_id).await?;
            }
            return told;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drop_in(drops: &Drops, place: &str, message_id: &str, reason: DropReason) {
        let observed = Observed {
            platform: "discord",
            bot: "b1",
            places: &[place, "*"],
            author: "ann",
            private: false,
            author_is_bot: false,
            addressed: false,
            engaged: None,
            scopes: &[],
        };
        drops.note(observed, Which { chat_id: "c1", thread_id: None, message_id }, reason, UnixMillis(5));
    }

    #[test]
    fn the_ring_is_bounded_and_tells_everything_but_the_text() {
        let drops = Drops::default();
        for n in 0..=REMEMBERED {
            drop_in(&drops, "10/20", &format!("m{n}"), DropReason::NotAddressed);
        }
        assert!(drops.of("m0").is_empty(), "the oldest went");
        let told = serde_json::to_value(drops.of("m1")).unwrap();
        let expected = json!([{
            "at": 5, "platform": "discord", "bot": "b1", "chat_id": "c1", "place": "discord:10/20",
            "message_id": "m1", "author": "ann", "reason": "not_addressed",
        }]);
        assert_eq!(told, expected);
        assert_eq!([drops.of("c1/m1").len(), drops.of("c2/m1").len()], [1, 0], "in its chat");
        assert!(drops.unrouted().is_empty(), "these places have a route");
    }

    #[test]
    fn the_place_heard_of_longest_ago_goes() {
        let drops = Drops::default();
        for n in 0..PLACES {
            drop_in(&drops, &format!("p{n}"), "m", DropReason::NoRoute);
        }
        drop_in(&drops, "p0", "m", DropReason::NoRoute);
        drop_in(&drops, "new", "m", DropReason::NoRoute);
        let places: Vec<(String, u64)> =
            drops.unrouted().into_iter().map(|((place, _), heard)| (place, heard.count)).collect();
        assert_eq!(places.len(), PLACES);
        assert_eq!(places[..2], [("discord:new".into(), 1), ("discord:p0".into(), 2)]);
        assert!(!places.iter().any(|(place, _)| place == "discord:p1"));
    }
}
