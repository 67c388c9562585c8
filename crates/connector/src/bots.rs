//! The bots of this server, each known by its position.

use angelia_contract::descriptor::Descriptor;
use angelia_core::directory::BotKey;
use angelia_platforms::Platform;
use std::ops::Index;
use std::sync::Arc;

/// All bots, in the order in which they are configured.
pub(crate) struct Bots(Vec<Arc<dyn Platform>>);

impl Bots {
    pub(crate) fn new(bots: Vec<Arc<dyn Platform>>) -> Arc<Self> {
        Arc::new(Self(bots))
    }

    /// Every one of them.
    pub(crate) fn all(&self) -> &[Arc<dyn Platform>] {
        &self.0
    }

    /// The position of a bot, if it is configured.
    pub(crate) fn position(&self, bot: &BotKey) -> Option<usize> {
        let named = |it: &Arc<dyn Platform>| *it.platform() == *bot.platform && *it.id() == *bot.bot;
        self.0.iter().position(named)
    }

    /// The same, unless the bot is the connector's own: nobody is told there that an agent is away.
    pub(crate) fn position_of_others(&self, bot: &BotKey) -> Option<usize> {
        self.position(bot).filter(|position| !self[*position].is_own())
    }

    pub(crate) fn descriptors(&self) -> Vec<Descriptor> {
        self.0.iter().map(|bot| bot.descriptor()).collect()
    }
}

impl Index<usize> for Bots {
    type Output = Arc<dyn Platform>;

    fn index(&self, position: usize) -> &Self::Output {
        &self.0[position]
    }
}
