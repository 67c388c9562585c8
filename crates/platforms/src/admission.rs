//! The `Admission` trait: whose message it is, and `/link`. Decided in core, implemented by the connector.

use crate::overheard::Overheard;
use angelia_core::admission::{Admitted, DropReason, Observed, Place};
use angelia_core::clock::UnixMillis;
use angelia_core::commands::Command;
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::own_words::Language;
use angelia_core::secret::Secret;
use angelia_core::store::BoxFuture;
use std::sync::Arc;

/// The message an admission is about.
#[derive(Clone, Copy, Debug)]
pub struct Which<'a> {
    /// Its chat, as gateways know it.
    pub chat_id: &'a str,
    /// The thread or topic in that chat, where it has one.
    pub thread_id: Option<&'a str>,
    /// The provider's id.
    pub message_id: &'a str,
}

/// Whether the agent that would get something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is connected.
    Here,
    /// It is not, and what is written waits for it.
    Away,
    /// There is none yet, and what is written waits for the first.
    Awaited,
}

/// A `/link` somebody typed, found with [`link_command`](angelia_core::admission::link_command).
/// Such a text is never delivered, and its code is never stored.
#[derive(Clone, Debug)]
pub struct Linking {
    /// The platform it was typed on.
    pub platform: &'static str,
    /// The bot that received it, where the platform has several: the route is
    /// made for that one.
    pub bot: Option<String>,
    /// The place to be linked: the most specific one.
    pub place: Place,
    /// Who typed it.
    pub author: String,
    /// Whether the chat is that person and the bot.
    pub private: bool,
    /// Whether that person administers the chat.
    pub administrator: bool,
    /// What followed the command.
    pub code: Secret,
    /// In which language they are answered.
    pub language: Language,
}

/// Who decides whose message it is.
pub trait Admission: Send + Sync {
    /// Decides, and leaves no trace: what is dropped is noted with [`Admission::dropped`].
    fn decide(&self, observed: Observed<'_>) -> Result<Admitted, DropReason>;

    /// Takes note of an event that reached nobody.
    fn dropped(&self, observed: Observed<'_>, which: Which<'_>, reason: DropReason);

    /// Who remembers what was said in company and was for no agent.
    fn overheard(&self) -> &dyn Overheard;

    /// Whether the agent that would get this is there now, on whichever node; `None` if none would.
    /// Asked once a second by whoever looks.
    fn presence(&self, observed: Observed<'_>) -> BoxFuture<'_, Option<Presence>>;

    /// What people know the agent by that would get this; `None` if it has no name.
    fn agent_name(&self, _observed: Observed<'_>) -> Option<String> {
        None
    }

    /// The commands that the agent knows that would get this; none if nobody would, or it did not
    /// say.
    fn commands(&self, _observed: Observed<'_>) -> Arc<[Command]> {
        Arc::default()
    }

    /// Why a message reached nobody, and when, for as long as that is remembered.
    fn why_dropped(&self, which: Which<'_>) -> Option<(DropReason, UnixMillis)>;

    /// Uses up a link code; answers what to tell the person who typed it,
    /// whether it was good or not. An error means that nothing was tried.
    fn link(&self, typed: Linking) -> BoxFuture<'_, Result<String>>;

    /// Something that was taken in waits for a thread of its own in a chat.
    fn opens(&self, _bot: &BotKey, _chat_id: &str) {}

    /// A chat has a new id: its routes and what is known of it move, durably,
    /// before anything is read from the new one.
    fn moved<'a>(&'a self, bot: &'a BotKey, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<()>>;
}
