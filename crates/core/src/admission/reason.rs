//! Why an event reached nobody.

use crate::own_words::OwnWords;
use crate::words::words;

words! {
    /// Why an event reached nobody. Each is counted and can be asked for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum DropReason {
        /// No route covers the place.
        NoRoute = "no_route",
        /// The route does not let this author speak.
        AuthorNotAllowed = "author_not_allowed",
        /// The tenant has no instance that could receive it: whoever served it was revoked.
        NoInstance = "no_instance",
        /// A bot wrote it, and the receiver does not listen to bots.
        BotNotAllowed = "bot_not_allowed",
        /// It was said in company and not to the bot.
        NotAddressed = "not_addressed",
        /// It was for the connector itself, which has answered it.
        Consumed = "consumed",
        /// It was for the network that carries it: STOP, START, HELP.
        Keyword = "carrier_keyword",
        /// More waits for its agent than is kept; whoever sent it was told, or sends it again.
        InboxFull = "inbox_full",
    }
}

impl DropReason {
    /// What to say to somebody whose command or press reaches nobody. Names nobody.
    pub fn own_words(self) -> OwnWords {
        match self {
            Self::NoRoute => OwnWords::NobodyAnswersHere,
            Self::AuthorNotAllowed => OwnWords::YouMayNot,
            Self::NoInstance => OwnWords::AgentNotSetUp,
            Self::InboxFull => OwnWords::TryAgain,
            Self::BotNotAllowed => OwnWords::NoBots,
            Self::NotAddressed | Self::Keyword | Self::Consumed => OwnWords::NotUnderstood,
        }
    }
}
