//! Where a target is: ids as Telegram writes them, and nothing else.

use super::parse::GENERAL;
use super::{NAME, Telegram};
use angelia_contract::action::ActionResult;
use angelia_contract::source::chat_type;
use angelia_core::directory::{ChatKind, KnownChat};
use angelia_core::egress::{Bot, Rate, Target, Whereabouts};
use angelia_core::error::Result;
use serde_json::Value;
use std::time::Duration;

/// Where a message is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// The chat, by the id it has now.
    pub(super) chat_id: String,
    /// The topic in it.
    pub(super) thread: Option<i64>,
    /// Whether that is another id than the target's. Messages of before the
    /// move stayed with the old one: the ids of those are other messages here.
    pub(super) moved: bool,
}

impl Spot {
    /// Reads a target; `None` if there cannot be such a one.
    pub(super) fn of(target: &Target) -> Option<Self> {
        let id = number(&target.chat_id)?;
        let thread = match &target.thread_id {
            None => None,
            Some(thread) => Some(number(thread).filter(|thread| *thread > 0)?),
        };
        let thread = thread.filter(|thread| *thread != GENERAL || id > 0);
        Some(Self { chat_id: target.chat_id.clone(), thread, moved: false })
    }

    /// Where that is by what is known of the chat. Telegram moves a chat once,
    /// so one step leads there; everybody takes the same.
    fn followed(mut self, known: Option<&KnownChat>) -> Self {
        if let Some(to) = known.and_then(|known| known.moved_to.as_ref()) {
            self.move_to(to);
        }
        self
    }

    /// The chat has this id now.
    pub(super) fn move_to(&mut self, chat_id: &str) {
        self.moved |= self.chat_id != chat_id;
        self.chat_id = chat_id.to_owned();
    }

    /// The chat's id as a number.
    pub(super) fn chat(&self) -> i64 {
        self.chat_id.parse().unwrap_or_default()
    }

    /// What is asked of Telegram, with the topic it is about.
    pub(super) fn in_topic(&self, mut asked: Value) -> Value {
        if let Some(thread) = self.thread {
            asked["message_thread_id"] = thread.into();
        }
        asked
    }
}

/// An id, only as Telegram writes it: the same written otherwise would be another place to
/// everybody else.
pub(super) fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|id: &i64| *id != 0 && id.to_string() == text)
}

/// Telegram lets a bot write some 30 messages a second. In any second these
/// are at most 29: what comes at once after a silence and what is earned in it.
pub(super) const BOT_RATE: Rate = Rate { calls: 26, per: Duration::from_secs(1), burst: 3 };
/// One message a second in a private chat, with small bursts.
const PRIVATE: Rate = Rate { calls: 1, per: Duration::from_secs(1), burst: 2 };
/// Twenty messages a minute in a group or channel. In any minute these are at
/// most 19, which leaves one for the connector's own words.
const GROUP: Rate = Rate { calls: 15, per: Duration::from_secs(60), burst: 4 };

/// How often a bot may write to a chat.
pub(super) fn chat_rate(target: &Target) -> Rate {
    match Spot::of(target) {
        // Telegram gives people the positive ids.
        Some(spot) if spot.chat() > 0 => PRIVATE,
        _ => GROUP,
    }
}

impl Bot for Telegram {
    fn platform(&self) -> &str {
        NAME
    }

    fn id(&self) -> &str {
        &self.config.id
    }

    fn places(&self, target: &Target) -> Whereabouts {
        let Some(spot) = Spot::of(target) else { return Whereabouts::Nowhere };
        // While it moves its route is at either id, and the new one counts: it may be somebody else's.
        let moving_to = self.moves.of(&spot.chat_id);
        match self.account.directory.at_hand(&spot.chat_id) {
            Some(known) => {
                let here = spot.followed(Some(&known)).chat_id;
                let ids = [moving_to.filter(|to| *to != here), Some(here), Some("*".to_owned())];
                Whereabouts::Places(ids.into_iter().flatten().collect())
            }
            None => Whereabouts::Unknown,
        }
    }
}

impl Telegram {
    /// The id that a target is written to, as far as that is at hand.
    pub(super) fn written_to(&self, target: &Target) -> String {
        let known = self.account.directory.at_hand(&target.chat_id);
        known.and_then(|known| known.moved_to.clone()).unwrap_or_else(|| target.chat_id.clone())
    }

    /// Where a target is written to now; `None` if there cannot be such a one.
    pub(super) async fn spot(&self, target: &Target) -> Result<Option<Spot>> {
        let Some(spot) = Spot::of(target) else { return Ok(None) };
        let known = self.account.directory.find(&spot.chat_id).await?;
        Ok(Some(spot.followed(known.as_deref())))
    }

    /// Name and type of a chat, as the directory has them.
    pub(super) async fn info(&self, target: &Target) -> Result<ActionResult> {
        let Some(spot) = self.spot(target).await? else {
            return Ok(ActionResult::failed("this is not a chat"));
        };
        let known = self.account.directory.find(&spot.chat_id).await?;
        let name = |known: &KnownChat| known.chat.name.clone().unwrap_or_else(|| spot.chat_id.clone());
        Ok(match known {
            Some(known) => ActionResult::chat(name(&known), type_of(known.chat.kind, spot.thread)),
            None => ActionResult::failed("this chat is not known yet"),
        })
    }
}

/// The sort of a conversation, as gateways know it.
pub(super) fn type_of(kind: ChatKind, thread: Option<i64>) -> &'static str {
    match (kind, thread) {
        (ChatKind::Dm, _) => chat_type::DM,
        (ChatKind::Channel, _) => chat_type::CHANNEL,
        (_, Some(_)) => chat_type::FORUM,
        (_, None) => chat_type::GROUP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(chat_id: &str, thread_id: Option<&str>) -> Target {
        Target { chat_id: chat_id.into(), thread_id: thread_id.map(str::to_owned) }
    }

    #[test]
    fn ids_are_numbers_written_in_one_way() {
        let spot =
            |chat_id, thread_id| Spot::of(&target(chat_id, thread_id)).map(|spot| (spot.chat(), spot.thread));
        assert_eq!(spot("1001", None), Some((1001, None)));
        assert_eq!(spot("-100200", Some("5")), Some((-100200, Some(5))));
        assert_eq!(spot("-100200", Some("1")), Some((-100200, None)), "General has no number");
        assert_eq!(spot("1001", Some("1")), Some((1001, Some(1))), "private chats have no General");
        for (chat_id, thread_id) in [
            ("", None),
            ("0", None),
            ("+5", None),
            ("05", None),
            ("-0", None),
            (" 5", None),
            ("@channel", None),
            ("5/7", None),
            ("99999999999999999999", None),
            ("5", Some("")),
            ("5", Some("0")),
            ("5", Some("-3")),
            ("5", Some("+3")),
            ("5", Some("03")),
            ("5", Some("-100999")),
            ("5", Some("x")),
            ("5", Some("[]")),
        ] {
            assert_eq!(spot(chat_id, thread_id), None, "{chat_id} {thread_id:?}");
        }
    }

    #[test]
    fn a_chat_that_moved_is_found_in_one_step_and_told_of() {
        let mut known: KnownChat =
            angelia_core::directory::Chat::new("-5".to_owned(), ChatKind::Group).into();
        let spot = || Spot::of(&target("-5", Some("7"))).unwrap();
        assert_eq!(spot().followed(Some(&known)), spot());
        assert_eq!(spot().followed(None), spot());
        known.moved_to = Some("-1005".into());
        let there = Spot { chat_id: "-1005".into(), thread: Some(7), moved: true };
        assert_eq!(spot().followed(Some(&known)), there);
    }

    /// Calls in the busiest window of a bucket that was full: what it held, and
    /// what it earned until the window closed.
    fn busiest(rate: Rate, window: Duration) -> u128 {
        let interval = rate.per / rate.calls;
        u128::from(rate.burst) + window.as_nanos() / interval.as_nanos()
    }

    #[test]
    fn the_rates_stay_below_telegrams_in_any_window() {
        assert!(busiest(BOT_RATE, Duration::from_secs(1)) < 30);
        assert!(busiest(GROUP, Duration::from_secs(60)) < 20);
        assert!(busiest(PRIVATE, Duration::from_secs(60)) < 63);
        assert_eq!(chat_rate(&target("5", None)), PRIVATE);
        assert_eq!(chat_rate(&target("-5", None)), GROUP);
    }
}
