//! Interrupts: one finds the socket on which its turn runs, on whichever node that is. What
//! people type or press to stop an agent is an entry of the log, and goes the way of all of them
//! (docs/decisions/0047).

use super::Relay;
use super::mailbox::Interrupt;
use crate::telemetry::Counter;
use angelia_contract::session_key::{may_belong_to, parse_key};
use angelia_core::clock::UnixMillis;
use angelia_core::error::Result;
use angelia_core::inbox::{Epoch, InstanceId};
use angelia_core::ports::{Control, Conversation, Said};
use angelia_core::records::look;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Conversations looked at when the exact key is unknown.
const LOOK_BACK: usize = 1_000;

impl Relay {
    /// Delivers an interrupt inside `tenant`, to the instance that got the conversation's last message.
    pub(super) async fn interrupt(&self, tenant: &str, session_key: &str) {
        let found = match self.ports.inboxes.conversation(tenant, session_key).await {
            Ok(Some(conversation)) => Some(conversation),
            _ => self.by_structure(tenant, session_key).await,
        };
        let sent = match found {
            Some(Conversation { instance, chat_id, .. }) => {
                // The sender's own spelling of the key: its gateway built it.
                let interrupt = Interrupt { session_key: session_key.to_owned(), chat_id };
                self.send_interrupt(instance, interrupt).await
            }
            None => false,
        };
        if !sent {
            self.metrics.count(Counter::InterruptsUnresolved);
        }
    }

    /// Sends an interrupt to where the socket of an instance is; `false` if there is none.
    async fn send_interrupt(&self, instance: InstanceId, interrupt: Interrupt) -> bool {
        let elsewhere = self.drained_elsewhere(instance).await;
        let epoch = elsewhere.unwrap_or_default();
        if let Some(mailbox) = self.sessions.mailbox_since(instance, epoch) {
            return mailbox.interrupt(interrupt);
        }
        let (Some(epoch), Ok(at)) = (elsewhere, self.store_time().await) else { return false };
        let Interrupt { session_key, chat_id } = interrupt;
        let number = self.interrupts_said.fetch_add(1, Ordering::Relaxed);
        let said = Said { node: self.cluster.node().to_owned(), number, at };
        self.cluster.say(Control::Interrupt { instance, epoch, session_key, chat_id, said });
        true
    }

    /// The epoch under which another node that is there drains an instance.
    async fn drained_elsewhere(&self, instance: InstanceId) -> Option<Epoch> {
        if !self.cluster.is_shared() {
            return None;
        }
        let state = self.ports.log.states(vec![instance]).await.ok()?.pop()?;
        let node = state.node.filter(|node| node != self.cluster.node())?;
        self.cluster.is_there(&node).then_some(state.epoch)
    }

    /// What other nodes say with their signs of life is heard here, too.
    pub(crate) fn hear_signs(self: &Arc<Self>) {
        let relay = Arc::downgrade(self);
        self.cluster.hear_by(move |control| {
            if let Some(relay) = relay.upgrade() {
                relay.hear(control);
            }
        });
    }

    /// A node says something of a socket. It may have been said before: the store knows the time.
    pub(crate) fn hear(self: &Arc<Self>, control: Control) {
        let relay = self.clone();
        match control {
            Control::Interrupt { instance, epoch, session_key, chat_id, said }
                if self.sessions.mailbox_since(instance, epoch).is_some() =>
            {
                let interrupt = Interrupt { session_key, chat_id };
                tokio::spawn(async move { relay.hear_interrupt(instance, epoch, interrupt, &said).await });
            }
            Control::TookOver { instance, epoch, at } => {
                tokio::spawn(async move { relay.hear_takeover(instance, epoch, at).await });
            }
            _ => {}
        }
    }

    async fn hear_interrupt(&self, instance: InstanceId, epoch: Epoch, interrupt: Interrupt, said: &Said) {
        let Ok(now) = self.store_time().await else { return };
        if !self.interrupts_heard.lock().counts(instance, said, now) {
            return;
        }
        let mailbox = self.sessions.mailbox_since(instance, epoch);
        if !mailbox.is_some_and(|mailbox| mailbox.interrupt(interrupt)) {
            self.metrics.count(Counter::InterruptsUnresolved);
        }
    }

    /// What the store's clock shows, which is one for all nodes.
    pub(super) async fn store_time(&self) -> Result<UnixMillis> {
        look(&*self.ports.records, "read the clock", |view| Ok(view.now())).await
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
