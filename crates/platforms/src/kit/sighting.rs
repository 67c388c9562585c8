//! A sighting: a message that a bot saw, as far as admission cares.

use crate::admission::Which;
use crate::ingress::Ingress;
use angelia_core::admission::{Admitted, DropReason, Observed};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::inbox::InstanceId;
use angelia_core::own_words::Language;

/// A message as it was seen: where, by whom, and whether it is meant for the bot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sighting {
    /// The places that cover it, most specific first.
    pub(crate) places: Vec<String>,
    /// The ids an access rule may name for it.
    pub(crate) scopes: Vec<String>,
    /// Its chat, as gateways know it.
    pub(crate) chat_id: String,
    /// The thread or topic in that chat.
    pub(crate) thread_id: Option<String>,
    /// The provider's id of it.
    pub(crate) message_id: String,
    /// Who said it.
    pub(crate) author: String,
    /// Whether the chat is that person and the bot.
    pub(crate) private: bool,
    /// Whether that is a bot.
    pub(crate) author_is_bot: bool,
    /// Whether it is meant for the bot.
    pub(crate) addressed: bool,
    /// Whom the thread was begun with.
    pub(crate) engaged: Option<InstanceId>,
    /// When it was said, by the provider's clock where it tells.
    pub(crate) at: UnixMillis,
    /// In which language its author is answered.
    pub(crate) language: Language,
}

impl Sighting {
    /// What a person wrote to the bot alone, where each person is a chat; places call the bot `bot`.
    pub(crate) fn of_person(bot: &str, person: &str, message_id: &str) -> Self {
        Self {
            places: places_of(bot, person),
            scopes: vec![person.to_owned()],
            chat_id: person.to_owned(),
            message_id: message_id.to_owned(),
            author: person.to_owned(),
            private: true,
            addressed: true,
            ..Self::default()
        }
    }

    /// Shows it to whoever asks.
    pub(crate) fn observe<T>(&self, bot: &BotKey, ask: impl FnOnce(Observed<'_>, Which<'_>) -> T) -> T {
        let places: Vec<&str> = self.places.iter().map(String::as_str).collect();
        let scopes: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        let observed = Observed {
            platform: &bot.platform,
            bot: &bot.bot,
            places: &places,
            author: &self.author,
            private: self.private,
            author_is_bot: self.author_is_bot,
            addressed: self.addressed,
            engaged: self.engaged,
            scopes: &scopes,
        };
        let thread_id = self.thread_id.as_deref();
        ask(observed, Which { chat_id: &self.chat_id, thread_id, message_id: &self.message_id })
    }

    /// Whom it is for, or why it is for nobody. It leaves no trace.
    pub(crate) fn decide(&self, ingress: &Ingress, bot: &BotKey) -> Result<Admitted, DropReason> {
        self.observe(bot, |observed, _| ingress.admission.decide(observed))
    }

    /// Takes note of why nobody got it.
    pub(crate) fn dropped(&self, ingress: &Ingress, bot: &BotKey, reason: DropReason) {
        self.observe(bot, |observed, which| ingress.admission.dropped(observed, which, reason));
    }
}

/// The places that cover a person who writes to the bot alone, most specific first.
pub(crate) fn places_of(bot: &str, person: &str) -> Vec<String> {
    vec![format!("{bot}/{person}"), bot.to_owned(), "*".to_owned()]
}
