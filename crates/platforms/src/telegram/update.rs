//! From one update to what is committed of it.

use super::Telegram;
use super::address::{self, Me};
use super::commands::{self, Own};
use super::normalize::{self, Author, Beside};
use super::parse::{ChatType, MemberChange, Message, Raw, Update};
use super::sent_messages::echoes;
use super::{NAME, STREAM, learn};
use crate::admission::Which;
use crate::inbound;
use crate::ingress::Ingress;
use angelia_core::admission::{DropReason, Observed, link_command};
use angelia_core::clock;
use angelia_core::error::Result;
use angelia_core::seal;
use angelia_core::store::{Cursor, Intake, NewQuarantined};

/// What one update comes to.
#[derive(Default)]
pub(super) struct Digest {
    /// What is committed.
    pub(super) intake: Intake,
    /// What was said, where admission has a say in it.
    pub(super) sighting: Option<Sighting>,
    /// Why nobody gets it.
    pub(super) dropped: Option<DropReason>,
    /// What the connector itself has to do about it, apart from other updates.
    pub(super) own: Option<Own>,
}

/// A message, as far as admission cares.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) bot: String,
    pub(super) chat_id: String,
    pub(super) thread_id: Option<String>,
    pub(super) message_id: String,
    pub(super) author: String,
    pub(super) private: bool,
    pub(super) author_is_bot: bool,
    pub(super) addressed: bool,
}

impl Sighting {
    fn of(message: &Message, me: &Me) -> Self {
        let author = Author::of(message);
        let private = message.chat.is_private();
        Self {
            bot: me.id.to_string(),
            chat_id: message.chat.id(),
            thread_id: message.topic().map(|topic| topic.to_string()),
            message_id: message.message_id.to_string(),
            // A channel post without an author is the channel's own.
            author: author.id.unwrap_or(message.chat.id).to_string(),
            private,
            author_is_bot: author.is_bot,
            addressed: private || address::addresses(me, message),
        }
    }

    /// Asks admission about it.
    pub(super) fn observe<T>(&self, ask: impl FnOnce(Observed<'_>) -> T) -> T {
        let topic = self.thread_id.as_ref().map(|thread| format!("{}/{thread}", self.chat_id));
        let scopes: Vec<&str> =
            [Some(self.chat_id.as_str()), topic.as_deref()].into_iter().flatten().collect();
        ask(Observed {
            platform: NAME,
            bot: &self.bot,
            places: &[&self.chat_id, "*"],
            author: &self.author,
            private: self.private,
            author_is_bot: self.author_is_bot,
            addressed: self.addressed,
            engaged: None,
            scopes: &scopes,
        })
    }

    /// Takes note of why nobody got it.
    pub(super) fn dropped(&self, ingress: &Ingress, reason: DropReason) {
        let which = Which {
            chat_id: &self.chat_id,
            thread_id: self.thread_id.as_deref(),
            message_id: &self.message_id,
        };
        self.observe(|observed| ingress.admission.dropped(observed, which, reason));
    }
}

impl Telegram {
    /// Reads one update. An error means that the store could not be asked, and
    /// that nothing was done.
    pub(super) async fn digest(&self, ingress: &Ingress, me: &Me, raw: &Raw) -> Result<Digest> {
        let mut digest = match serde_json::from_str::<Update>(&raw.json) {
            Ok(_) if raw.id.is_none() => self.unreadable(ingress, raw, "it has no number".into())?,
            Ok(update) => self.read(ingress, me, update).await?,
            Err(error) => {
                // The error's own words may quote the message.
                let why = format!("it is not what an update looks like (at byte {})", error.column());
                self.unreadable(ingress, raw, why)?
            }
        };
        let position = |id: i64| Cursor { stream: STREAM.into(), position: id.saturating_add(1).to_string() };
        digest.intake.cursor = raw.id.map(position);
        Ok(digest)
    }

    fn unreadable(&self, ingress: &Ingress, raw: &Raw, why: String) -> Result<Digest> {
        let what = raw.id.map_or_else(|| "update without a number".to_owned(), |id| format!("update {id}"));
        tracing::warn!(bot = %self.config.name, %what, %why, "an update went to quarantine");
        self.health.count("quarantined");
        let sealed = ingress.seal.seal(&raw.json, &seal::quarantine(NAME, &self.bot.bot))?;
        let quarantined = Some(NewQuarantined { what, why, sealed, at: clock::wall() });
        Ok(Digest { intake: Intake { quarantined, ..Intake::default() }, ..Digest::default() })
    }

    async fn read(&self, ingress: &Ingress, me: &Me, update: Update) -> Result<Digest> {
        if let Some(message) = update.message.or(update.channel_post) {
            return self.said(ingress, me, &message).await;
        }
        if let Some(message) = update.edited_message.or(update.edited_channel_post) {
            return self.changed(ingress, me, &message).await;
        }
        match update.my_chat_member {
            Some(change) => self.membership(change).await,
            None => Ok(Digest::default()),
        }
    }

    /// A new message.
    async fn said(&self, ingress: &Ingress, me: &Me, message: &Message) -> Result<Digest> {
        if let Some(own) = commands::migration(message) {
            // The chat it is in goes, or comes with the move.
            return Ok(Digest { own: Some(own), ..Digest::default() });
        }
        let mut digest = Digest::default();
        digest.intake.chats = self.learn_from(message).await?;
        if self.is_own(me, message) {
            return Ok(digest);
        }
        let sighting = Sighting::of(message, me);
        let text = address::said(me, message.words().0);
        if let Some(consumed) = commands::command(me, message, &text, sighting.addressed) {
            digest.own = consumed;
            digest.dropped = Some(DropReason::Consumed);
            digest.sighting = Some(sighting);
            return Ok(digest);
        }
        let beside = self.beside(ingress, me, message, false);
        let Some(event) = normalize::event(message, beside) else { return Ok(digest) };
        // In company only somebody who speaks to the bot waits for an answer to what nobody can read.
        if event.text == normalize::UNSUPPORTED && message.words().0.is_empty() && !sighting.addressed {
            return Ok(digest);
        }
        match sighting.observe(|observed| ingress.admission.decide(observed)) {
            Ok(admitted) => {
                digest.intake.entry = Some(inbound::entry(&self.bot, &event, admitted, clock::wall())?);
            }
            Err(reason) => digest.dropped = Some(reason),
        }
        digest.sighting = Some(sighting);
        Ok(digest)
    }

    /// A message that its author changed: what waits says the new thing. Who may
    /// speak there is asked anew; that it was meant for the bot is settled, or
    /// it would not wait.
    async fn changed(&self, ingress: &Ingress, me: &Me, message: &Message) -> Result<Digest> {
        let mut digest = Digest::default();
        digest.intake.chats = self.learn_from(message).await?;
        let text = address::said(me, message.words().0);
        if self.is_own(me, message)
            || link_command(&text).is_some()
            || commands::start_command(&text).is_some()
        {
            return Ok(digest);
        }
        let beside = self.beside(ingress, me, message, true);
        let Some(event) = normalize::event(message, beside) else { return Ok(digest) };
        let sighting = Sighting { addressed: true, ..Sighting::of(message, me) };
        if let Ok(admitted) = sighting.observe(|observed| ingress.admission.decide(observed)) {
            digest.intake.revision = Some(inbound::revision(&self.bot, &event, admitted, clock::wall())?);
        }
        Ok(digest)
    }

    /// The bot came into a chat, or has to leave it.
    async fn membership(&self, change: MemberChange) -> Result<Digest> {
        let gone = matches!(change.new_chat_member.status.as_str(), "left" | "kicked");
        let mut digest = Digest::default();
        match (gone, change.chat.is_private()) {
            // The person may come back; until then sends are refused.
            (true, true) => self.health.count("blocked"),
            (true, false) => digest.own = Some(Own::Gone(change.chat.id())),
            (false, _) => {
                digest.intake.chats = self.directory.learn_all(vec![learn::described(&change.chat)]).await?
            }
        }
        Ok(digest)
    }

    /// Whether the bot itself wrote it, or another bot of this server: in a
    /// channel everybody writes in the channel's name.
    fn is_own(&self, me: &Me, message: &Message) -> bool {
        let wrote =
            message.sender_chat.is_none() && message.from.as_ref().is_some_and(|user| user.id == me.id);
        wrote
            || self.shown.knows(&message.chat.id(), &message.message_id.to_string())
            || message.chat.kind == ChatType::Channel
                && echoes().knows(&message.chat.id(), message.words().0, clock::mono())
    }

    fn beside<'a>(&self, ingress: &Ingress, me: &'a Me, message: &Message, edited: bool) -> Beside<'a> {
        Beside { me, topic_name: self.topic_name(message), edited, source_flags: ingress.source_flags }
    }
}
