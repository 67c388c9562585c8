//! `GatewayHandle`: sending, editing and asking through a gateway from anywhere in a program.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use angelia_contract::{Action, ActionResult, ChatInfo, Descriptor, GatewayFrame, Interrupt};

use crate::chat::Chat;
use crate::connection::{Link, Want};
use crate::error::CallError;
use crate::shared::{Shared, Stats};

/// A way to speak through a gateway from outside its handler; cheap to clone.
///
/// Every call that finds no connection waits for one
/// ([`connect_wait`](crate::GatewayBuilder::connect_wait)), then fails with
/// [`CallError::NotSent`]; when the gateway has stopped it fails at once.
#[derive(Clone)]
pub struct GatewayHandle {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for GatewayHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayHandle").field("connected", &self.is_connected()).finish_non_exhaustive()
    }
}

impl GatewayHandle {
    /// Posts a message, marked as meant for people.
    pub async fn send(&self, chat: &Chat, text: &str) -> Result<ActionResult, CallError> {
        self.send_reply(chat, text, None).await
    }

    /// Posts a message that answers another one.
    pub async fn send_reply(
        &self,
        chat: &Chat,
        text: &str,
        reply_to: Option<&str>,
    ) -> Result<ActionResult, CallError> {
        let mut metadata = chat.metadata();
        metadata.insert("notify".to_owned(), true.into());
        let action = Action::Send {
            chat_id: chat.chat_id.clone(),
            content: text.to_owned(),
            reply_to: reply_to.map(str::to_owned),
            metadata,
        };
        self.perform(chat, action).await
    }

    /// Replaces the text of a message this gateway sent.
    pub async fn edit(&self, chat: &Chat, message_id: &str, text: &str) -> Result<ActionResult, CallError> {
        let action = Action::Edit {
            chat_id: chat.chat_id.clone(),
            message_id: message_id.to_owned(),
            content: text.to_owned(),
            metadata: chat.metadata(),
        };
        self.perform(chat, action).await
    }

    /// Takes back a message this gateway sent.
    ///
    /// Refused where the platform cannot, and for what others sent.
    pub async fn delete(&self, chat: &Chat, message_id: &str) -> Result<(), CallError> {
        let action = Action::Delete {
            chat_id: chat.chat_id.clone(),
            message_id: message_id.to_owned(),
            metadata: chat.metadata(),
        };
        self.perform(chat, action).await.map(drop)
    }

    /// Shows that an answer is being written; repeat it every few seconds.
    pub async fn typing(&self, chat: &Chat) -> Result<(), CallError> {
        self.show_typing(chat, None).await
    }

    /// The same in words, where the platform can show them; empty ones take it away.
    pub async fn typing_in_words(&self, chat: &Chat, words: &str) -> Result<(), CallError> {
        self.show_typing(chat, Some(words.to_owned())).await
    }

    async fn show_typing(&self, chat: &Chat, content: Option<String>) -> Result<(), CallError> {
        let action = Action::Typing { chat_id: chat.chat_id.clone(), content, metadata: chat.metadata() };
        self.perform(chat, action).await.map(drop)
    }

    /// Puts a reaction on a message, as far as the platform has that one.
    ///
    /// Connectors read 👀 as the begin of a turn on that message, and ✅, ❌, 👍 and 👎 as its end.
    pub async fn react(&self, chat: &Chat, message_id: &str, emoji: &str) -> Result<(), CallError> {
        self.mark(chat, message_id, emoji, false).await
    }

    /// Takes a reaction of this gateway's away.
    pub async fn take_reaction_back(
        &self,
        chat: &Chat,
        message_id: &str,
        emoji: &str,
    ) -> Result<(), CallError> {
        self.mark(chat, message_id, emoji, true).await
    }

    async fn mark(&self, chat: &Chat, message_id: &str, emoji: &str, remove: bool) -> Result<(), CallError> {
        let action = Action::React {
            chat_id: chat.chat_id.clone(),
            message_id: message_id.to_owned(),
            emoji: emoji.to_owned(),
            remove,
            metadata: chat.metadata(),
        };
        self.perform(chat, action).await.map(drop)
    }

    /// Shows a text that is not complete, in the place of what was shown under the same number. It is
    /// gone with the next message, or after a while: send the whole text then.
    ///
    /// [`Conversation::stream`](crate::Conversation::stream) does all of that, and edits where there
    /// are no drafts.
    pub async fn draft(&self, chat: &Chat, draft_id: i64, text: &str) -> Result<(), CallError> {
        let action = Action::Draft {
            chat_id: chat.chat_id.clone(),
            draft_id,
            content: text.to_owned(),
            is_final: false,
            metadata: chat.metadata(),
        };
        self.perform(chat, action).await.map(drop)
    }

    /// Uses a capability the connector keeps for a session.
    ///
    /// `kind` starts with a platform, as in `discord.interaction_token`.
    pub async fn follow_up(
        &self,
        session_key: &str,
        kind: &str,
        text: &str,
    ) -> Result<ActionResult, CallError> {
        let action = Action::FollowUp {
            session_key: session_key.to_owned(),
            kind: kind.to_owned(),
            content: text.to_owned(),
            metadata: Default::default(),
        };
        let platform = kind.split('.').next().unwrap_or_default();
        let bot_id = self.shared.bot_for(platform, None);
        let platform = bot_id.is_some().then(|| platform.to_owned());
        self.shared.call(action, platform, bot_id).await
    }

    /// Asks for the name and type of a chat.
    pub async fn get_chat_info(&self, chat: &Chat) -> Result<ChatInfo, CallError> {
        let action = Action::GetChatInfo { chat_id: chat.chat_id.clone() };
        let result = self.perform(chat, action).await?;
        let mut info = result.chat_info.unwrap_or_default();
        if info.name.is_empty() {
            info.name.clone_from(&chat.chat_id);
        }
        if info.chat_type.is_empty() {
            info.chat_type = angelia_contract::source::chat_type::DM.to_owned();
        }
        Ok(info)
    }

    /// Any other action, for which `chat` gives platform and bot.
    ///
    /// Ask [`Descriptor::offers`] first: what a connector does not offer it
    /// refuses.
    pub async fn perform(&self, chat: &Chat, action: Action) -> Result<ActionResult, CallError> {
        let platform = chat.named_platform();
        let bot_id = platform.and_then(|name| self.shared.bot_for(name, chat.bot_id.as_deref()));
        self.shared.call(action, platform.map(str::to_owned), bot_id).await
    }

    /// Asks the connector to stop the turn of a session, wherever it runs.
    ///
    /// There is no answer to this; success means that it was queued.
    pub async fn interrupt(&self, session_key: &str, reason: Option<&str>) -> Result<(), CallError> {
        let frame = GatewayFrame::Interrupt(Interrupt {
            session_key: session_key.to_owned(),
            reason: reason.map(str::to_owned),
        });
        self.shared.tell(&frame).await
    }

    /// Announces idleness, lets turns end, closes the connection and stays
    /// away until [`wake`](Self::wake).
    ///
    /// From the announcement on the connector keeps events back. Events that
    /// wait here and were not acknowledged yet are left to it, too; those that
    /// were are run to their end like the turns that run already, as far as
    /// [`shutdown_grace`](crate::GatewayBuilder::shutdown_grace) allows before
    /// the connection is closed. Returns when it is; [`CallError::TimedOut`]
    /// says that the connector did not confirm, so that events of the last
    /// moment may have been sent into the closing connection. A turn that
    /// awaits this waits for its own end, until the grace is over: spawn it
    /// there.
    pub async fn go_idle(&self) -> Result<(), CallError> {
        self.want(Want::Idle);
        self.quiet().await
    }

    /// Connects again after [`go_idle`](Self::go_idle).
    pub fn wake(&self) {
        self.want(Want::Run);
    }

    /// The same as [`go_idle`](Self::go_idle), but for good: `run` returns.
    ///
    /// Turns have their grace without a connection as well. What it does not
    /// suffice for is dropped.
    pub async fn shutdown(&self) -> Result<(), CallError> {
        self.want(Want::Stop);
        self.quiet().await
    }

    /// Whether a handshake was completed on the connection that is open now.
    pub fn is_connected(&self) -> bool {
        matches!(*self.shared.link.borrow(), Link::Up(_))
    }

    /// The connector's first descriptor, once there is one.
    pub fn descriptor(&self) -> Option<Arc<Descriptor>> {
        self.shared.primary()
    }

    /// The latest descriptor of every platform.
    pub fn descriptors(&self) -> BTreeMap<String, Arc<Descriptor>> {
        self.shared.descriptors()
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    fn want(&self, want: Want) {
        self.shared.want.send_if_modified(|now| {
            let changes = *now != want && *now != Want::Stop;
            if changes {
                *now = want;
            }
            changes
        });
    }

    async fn quiet(&self) -> Result<(), CallError> {
        let mut link = self.shared.link.subscribe();
        let settled = link.wait_for(|link| matches!(link, Link::Idle { .. } | Link::Over { .. })).await;
        match settled.as_deref() {
            Ok(Link::Idle { acked: true } | Link::Over { acked: true }) => Ok(()),
            Ok(_) => Err(CallError::TimedOut),
            Err(_) => Err(CallError::Stopped),
        }
    }
}
