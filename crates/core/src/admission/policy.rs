//! What a gateway asked to be spared on a platform.

/// A gateway's policy for one platform, as `POST /relay/policy` declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether messages in groups must address the bot.
    pub require_address: bool,
    /// Chats, channels or guilds where they need not.
    pub free_scopes: Vec<String>,
    /// Whether messages of other bots are delivered.
    pub allow_other_bots: bool,
}

impl Policy {
    /// Whether it names one of a chat's ids as free.
    pub fn is_free_in(&self, scopes: &[&str]) -> bool {
        self.free_scopes.iter().any(|free| scopes.contains(&free.as_str()))
    }
}

impl Default for Policy {
    /// What holds where nothing was declared.
    fn default() -> Self {
        Self { require_address: true, free_scopes: Vec::new(), allow_other_bots: false }
    }
}
