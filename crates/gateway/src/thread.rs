//! Threads: opening one below a chat, and giving it a better name later.

use angelia_contract::Action;

use crate::chat::Chat;
use crate::conversation::Conversation;
use crate::error::CallError;
use crate::handle::GatewayHandle;

/// When a thread is renamed; the connector sees to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RenameIf {
    /// Whatever it is called.
    #[default]
    Always,
    /// While it has this name.
    Named(String),
    /// While it has the name that it was opened with: nobody has chosen another.
    AsOpened,
}

impl GatewayHandle {
    /// Opens a thread below a chat, from one of its messages if that is named; answers its address.
    ///
    /// Refused where the platform has none, or the bot may not: ask
    /// [`Descriptor::offers`](angelia_contract::Descriptor::offers) for `thread_create`, and go on in the
    /// chat itself otherwise.
    pub async fn open_thread(&self, chat: &Chat, name: &str, from: Option<&str>) -> Result<Chat, CallError> {
        let action = Action::ThreadCreate {
            chat_id: chat.chat_id.clone(),
            thread_name: name.to_owned(),
            message_id: from.map(str::to_owned),
            metadata: chat.metadata(),
        };
        let opened = self.perform(chat, action).await?;
        match opened.thread_id.clone().or_else(|| opened.message_id.clone()) {
            Some(thread_id) => Ok(Chat { thread_id: Some(thread_id), ..chat.clone() }),
            // Without an address what is meant for the thread would be said in the chat.
            None => Err(CallError::Refused(Box::new(opened))),
        }
    }

    /// Renames the thread that is the address of `thread`.
    pub async fn rename_thread(&self, thread: &Chat, name: &str, when: RenameIf) -> Result<(), CallError> {
        let (only_if_current_name, only_if_connector_created) = match when {
            RenameIf::Always => (None, None),
            RenameIf::Named(name) => (Some(name), None),
            RenameIf::AsOpened => (None, Some(true)),
        };
        let action = Action::ThreadRename {
            chat_id: thread.chat_id.clone(),
            message_id: thread.thread_id.clone().unwrap_or_else(|| thread.chat_id.clone()),
            thread_name: name.to_owned(),
            only_if_current_name,
            only_if_connector_created,
            metadata: thread.metadata(),
        };
        self.perform(thread, action).await.map(drop)
    }
}

impl Conversation {
    /// Opens a thread from the message of this event; answers its address, to
    /// [`send`](GatewayHandle::send) to. What people say there comes as a conversation of its own.
    pub async fn open_thread(&self, name: &str) -> Result<Chat, CallError> {
        self.gateway.open_thread(&self.chat, name, self.message_id.as_deref()).await
    }
}
