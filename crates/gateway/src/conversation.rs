//! What an agent is given for one turn: whom it answers, how, and the signal to stop.

use std::sync::Arc;

use angelia_contract::{Action, ActionResult, Descriptor, Source};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::chat::Chat;
use crate::error::CallError;
use crate::handle::GatewayHandle;
use crate::question::{Chosen, Question};
use crate::stream::ReplyStream;

/// Where an event came from, and the way to answer it; cheap to clone.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub(crate) gateway: GatewayHandle,
    pub(crate) source: Arc<Source>,
    pub(crate) chat: Arc<Chat>,
    pub(crate) session_key: Arc<str>,
    pub(crate) message_id: Option<Arc<str>>,
    pub(crate) cancel: watch::Receiver<bool>,
}

impl Conversation {
    /// Answers the event: a reply to its message, marked as meant for people.
    ///
    /// The text may be of any length, connectors cut it.
    pub async fn send(&self, text: &str) -> Result<ActionResult, CallError> {
        let reply_to = self.message_id.as_deref();
        self.gateway.send_reply(&self.chat, text, reply_to).await
    }

    /// Replaces the text of a message sent before.
    pub async fn edit(&self, message_id: &str, text: &str) -> Result<ActionResult, CallError> {
        self.gateway.edit(&self.chat, message_id, text).await
    }

    /// Takes back a message sent before.
    pub async fn delete(&self, message_id: &str) -> Result<(), CallError> {
        self.gateway.delete(&self.chat, message_id).await
    }

    /// Shows that an answer is being written; repeat it every few seconds.
    pub async fn typing(&self) -> Result<(), CallError> {
        self.gateway.typing(&self.chat).await
    }

    /// The same in words, where the platform can show them; empty ones take it away.
    pub async fn typing_in_words(&self, words: &str) -> Result<(), CallError> {
        self.gateway.typing_in_words(&self.chat, words).await
    }

    /// Puts a reaction on the message of this event; on none if it has no message.
    ///
    /// See [`GatewayHandle::react`] for what connectors read from it.
    pub async fn react(&self, emoji: &str) -> Result<(), CallError> {
        match self.message_id.as_deref() {
            Some(message_id) => self.gateway.react(&self.chat, message_id, emoji).await,
            None => Ok(()),
        }
    }

    /// Takes such a reaction away again.
    pub async fn take_reaction_back(&self, emoji: &str) -> Result<(), CallError> {
        match self.message_id.as_deref() {
            Some(message_id) => self.gateway.take_reaction_back(&self.chat, message_id, emoji).await,
            None => Ok(()),
        }
    }

    /// Asks with buttons and waits for the press; `None` if nobody answered in time.
    ///
    /// Refused where the platform has no buttons: ask
    /// [`Descriptor::offers`](angelia_contract::Descriptor::offers) for `prompt` first, and ask in
    /// words then. A press that comes when nobody waits any more is an event like any other.
    pub async fn ask(&self, question: Question) -> Result<Option<Chosen>, CallError> {
        let Question { kind, text, options, within } = question;
        let mut waiting = self.gateway.shared.questions.open();
        let mut metadata = self.chat.metadata();
        // Whose turn this is: an approval is theirs to give.
        if let Some(person) = &self.source.user_id {
            metadata.insert("user_id".to_owned(), person.clone().into());
        }
        let action = Action::Prompt {
            chat_id: self.chat.chat_id.clone(),
            prompt_kind: kind.to_owned(),
            prompt_id: waiting.id.clone(),
            content: text,
            options,
            timeout_s: Some(within.as_secs_f64()),
            reply_to: self.message_id.as_deref().map(str::to_owned),
            metadata,
        };
        self.gateway.perform(&self.chat, action).await?;
        Ok(timeout(within, &mut waiting.chosen).await.ok().and_then(Result::ok))
    }

    /// Answers the interaction this conversation began with, if it did.
    pub async fn follow_up(&self, text: &str) -> Result<ActionResult, CallError> {
        let kind = format!("{}.interaction_token", self.source.platform);
        self.gateway.follow_up(&self.session_key, &kind, text).await
    }

    /// A reply that appears while it is being written.
    pub fn stream(&self) -> ReplyStream {
        ReplyStream::new(self.clone())
    }

    /// Whether this turn was interrupted.
    pub fn is_cancelled(&self) -> bool {
        *self.cancel.borrow()
    }

    /// Completes when this turn is interrupted, and never if it is not.
    ///
    /// Needed in tasks the agent spawned; its own future is dropped anyway,
    /// unless interrupts are cooperative.
    pub async fn cancelled(&self) {
        let mut cancel = self.cancel.clone();
        if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
            // The turn is over, and was not interrupted.
            std::future::pending::<()>().await;
        }
    }

    /// The conversation's key.
    pub fn session_key(&self) -> &str {
        &self.session_key
    }

    /// Where the event came from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The address of this conversation, to keep for later.
    pub fn chat(&self) -> &Chat {
        &self.chat
    }

    /// Whether Markdown is shown as such here; elsewhere people read its signs.
    pub fn reads_markdown(&self) -> bool {
        self.descriptor().reads_markdown()
    }

    /// What the platform can do, as announced last.
    pub fn descriptor(&self) -> Arc<Descriptor> {
        self.gateway.shared.descriptor_for(&self.source.platform)
    }

    /// The gateway, for everything else.
    pub fn gateway(&self) -> &GatewayHandle {
        &self.gateway
    }
}
