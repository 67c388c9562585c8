//! Interrupts: one finds the socket on which its turn runs.

use super::Relay;
use super::mailbox::Interrupt;
use crate::telemetry::Counter;
use angelia_contract::session_key::{may_belong_to, parse_key};
use angelia_core::ports::Conversation;

/// Conversations looked at when the exact key is unknown.
const LOOK_BACK: usize = 1_000;

impl Relay {
    /// Delivers an interrupt inside `tenant`, to the instance that got the conversation's last message.
    pub(super) async fn interrupt(&self, tenant: &str, session_key: &str) {
        let found = match self.ports.inboxes.conversation(tenant, session_key).await {
            Ok(Some(conversation)) => Some(conversation),
            _ => self.by_structure(tenant, session_key).await,
        };
        let sent = found.is_some_and(|conversation| {
            // The sender's own spelling of the key: its gateway built it.
            let session_key = session_key.to_owned();
            let mailbox = self.sessions.mailbox(conversation.instance);
            let interrupt = Interrupt { session_key, chat_id: conversation.chat_id };
            mailbox.is_some_and(|mailbox| mailbox.interrupt(interrupt))
        });
        if !sent {
            self.metrics.count(Counter::InterruptsUnresolved);
        }
    }

    /// Operators can change how a gateway builds its keys; the chat is in it all the same.
    async fn by_structure(&self, tenant: &str, session_key: &str) -> Option<Conversation> {
        let recent = self.ports.inboxes.recent_conversations(tenant, LOOK_BACK).await.ok()?;
        recent.into_iter().find(|conversation| {
            let platform = parse_key(&conversation.session_key).map_or("relay", |parts| parts.platform);
            may_belong_to(session_key, platform, &conversation.chat_id, None, None)
        })
    }
}
