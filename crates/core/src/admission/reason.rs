//! Why an event reached nobody.

/// Why an event reached nobody. Each is counted and can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// No route covers the place.
    NoRoute,
    /// The route does not let this author speak.
    AuthorNotAllowed,
    /// The tenant has no instance that could receive it: whoever served it was revoked.
    NoInstance,
    /// A bot wrote it, and the receiver does not listen to bots.
    BotNotAllowed,
    /// It was said in company and not to the bot.
    NotAddressed,
    /// It was for the connector itself, which has answered it.
    Consumed,
    /// It was for the network that carries it: STOP, START, HELP.
    Keyword,
    /// More waits for its agent than is kept; whoever sent it was told, or sends it again.
    InboxFull,
}

impl DropReason {
    /// Every reason, for counters.
    pub const ALL: [Self; 8] = [
        Self::NoRoute,
        Self::AuthorNotAllowed,
        Self::NoInstance,
        Self::BotNotAllowed,
        Self::NotAddressed,
        Self::Consumed,
        Self::Keyword,
        Self::InboxFull,
    ];

    /// The reason a word means.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// The word for counters and `explain`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoRoute => "no_route",
            Self::AuthorNotAllowed => "author_not_allowed",
            Self::NoInstance => "no_instance",
            Self::BotNotAllowed => "bot_not_allowed",
            Self::NotAddressed => "not_addressed",
            Self::Consumed => "consumed",
            Self::Keyword => "carrier_keyword",
            Self::InboxFull => "inbox_full",
        }
    }
}
