//! Credentials that act as a shared bot for a while, such as the token of an
//! interaction: to whom each is bound, and which one an answer uses.
//!
//! Gateways never see one. They name the conversation they are in, or simply
//! answer; the decisions here say what that uses.

mod choose;
mod key;
mod notice;

#[cfg(test)]
mod tests;

pub use choose::{Answering, choose_for_key, choose_for_send};
pub use key::chat_of;
pub use notice::VaultStore;

use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::egress::ActionState;
use crate::inbox::InstanceId;
use crate::ports::NewAction;
use crate::seal::Sealed;
use crate::words::words;
use std::time::Duration;

/// How long an interaction's token works.
pub const LIVES_FOR: Duration = Duration::from_secs(15 * 60);
/// How long before its end somebody who still waits is told that no answer came.
pub const NOTICE_BEFORE: Duration = Duration::from_secs(30);

/// The number of a capability in the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct CapabilityId(pub i64);

words! {
    /// What the person sees until the answer comes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Deferral {
        /// A message that says the bot is thinking; the answer takes its place.
        Message = "message",
        /// Nothing: what was pressed stays as it is, and the answer is a message of its own.
        Update = "update",
    }
}

impl Deferral {
    /// Reads [`Deferral::as_str`] back. What is not known takes nothing's place.
    pub fn stored(word: &str) -> Self {
        Self::parse(word).unwrap_or(Self::Update)
    }
}

words! {
    /// How far the answer is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stage {
        /// Somebody waits, and nobody has answered.
        Open = "open",
        /// An action in the ledger is answering; open again should it fail.
        Claimed = "claimed",
        /// It was answered; what follows goes behind that answer.
        Answered = "answered",
        /// The person is being told, or was told, that no answer came.
        Noticed = "noticed",
    }
}

impl Stage {
    /// Reads [`Stage::as_str`] back. What is not known is not used.
    pub fn stored(word: &str) -> Self {
        Self::parse(word).unwrap_or(Self::Answered)
    }

    /// The stage once an action is accepted that uses it; `None` if that claims nothing.
    pub fn claim(self) -> Option<Self> {
        (self == Self::Open).then_some(Self::Claimed)
    }

    /// The stage once an action has ended that used it, and claimed it or not; `None`
    /// if that changes nothing. What was claimed is answered, or open again if nothing
    /// was said. What another had claimed, which failed, is answered too: somebody was heard.
    pub fn release(self, claimed: bool, end: ActionState) -> Option<Self> {
        match (self, claimed, end.may_be_heard()) {
            (Self::Claimed, true, true) | (Self::Open, _, true) => Some(Self::Answered),
            (Self::Claimed, true, false) => Some(Self::Open),
            _ => None,
        }
    }
}

words! {
    /// How an answer uses a capability.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Way {
        /// It takes the place of what says that the bot is thinking.
        Original = "original",
        /// It is a further message behind it.
        Further = "further",
    }
}

/// Which capability an action uses, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Which.
    pub capability: CapabilityId,
    /// How.
    pub way: Way,
}

/// A capability on its way into the vault, together with the entry it came with:
/// tenant, instance and bot are the entry's.
#[derive(Clone, Debug)]
pub struct NewCapability {
    /// What it is, as `follow_up` names it: its platform says.
    pub kind: &'static str,
    /// The chat it answers in, as gateways know it.
    pub chat_id: String,
    /// The person who waits.
    pub user_id: String,
    /// What it answers.
    pub interaction_id: String,
    /// What that person sees meanwhile.
    pub deferral: Deferral,
    /// The credential, sealed for what [`seal::capability`](crate::seal::capability) says.
    pub sealed: Sealed,
    /// When it ends.
    pub expires_at: UnixMillis,
}

/// A capability in the vault.
#[derive(Clone, Debug)]
pub struct Capability {
    /// Its number; later ones are higher.
    pub id: CapabilityId,
    /// What it is.
    pub kind: String,
    /// The tenant whose gateway may use it.
    pub tenant: String,
    /// The instance that may use it.
    pub instance: InstanceId,
    /// The platform of the bot it acts as.
    pub platform: String,
    /// That bot.
    pub bot: String,
    /// The chat it answers in.
    pub chat_id: String,
    /// The person who waits.
    pub user_id: String,
    /// What it answers.
    pub interaction_id: String,
    /// What that person sees meanwhile.
    pub deferral: Deferral,
    /// How far the answer is.
    pub stage: Stage,
    /// When the person was told that no answer came.
    pub noticed_at: Option<UnixMillis>,
    /// The credential, sealed.
    pub sealed: Vec<u8>,
    /// When it ends.
    pub expires_at: UnixMillis,
}

impl Capability {
    /// What its seal is bound to.
    pub fn bound_to(&self) -> String {
        let Self { tenant, instance, chat_id, user_id, interaction_id, .. } = self;
        crate::seal::capability(tenant, *instance, &self.bot_key(), [chat_id, user_id, interaction_id])
    }

    /// The bot it acts as.
    pub fn bot_key(&self) -> BotKey {
        BotKey::new(&self.platform, &self.bot)
    }

    /// Whether an action may use it that writes to `chat_id`: in its chat, for its
    /// holder alone, as its bot, in its time.
    pub fn is_usable_by(&self, action: &NewAction, chat_id: &str, now: UnixMillis) -> bool {
        let holder = self.tenant == action.tenant && self.instance == action.instance;
        let bot = self.platform == action.platform && self.bot == action.bot;
        holder && bot && self.chat_id == chat_id && self.is_live(now)
    }

    /// Whether it can be used at `now`.
    pub fn is_live(&self, now: UnixMillis) -> bool {
        now < self.expires_at
    }

    /// How an answer uses it now.
    pub fn way(&self) -> Way {
        match (self.deferral, self.stage) {
            (Deferral::Message, Stage::Open) => Way::Original,
            _ => Way::Further,
        }
    }
}
