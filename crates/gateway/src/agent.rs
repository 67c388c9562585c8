//! The trait that an agent implements, or a plain async function does for it.

use std::future::Future;

use angelia_contract::{Event, PassthroughForward};

use crate::conversation::Conversation;
use crate::handle::GatewayHandle;

/// Something that answers events.
///
/// Every `Fn(Event, Conversation) -> impl Future<Output = ()> + Send` is one;
/// implement the trait to also hear of interrupts and webhook requests.
pub trait Agent: Send + Sync + 'static {
    /// Handles one event: one turn of a conversation.
    ///
    /// The next event of the same conversation waits until the future is
    /// done. When the turn is interrupted the future is dropped, unless the
    /// gateway was built with
    /// [`cooperative_interrupts`](crate::GatewayBuilder::cooperative_interrupts).
    /// A panic ends the turn and nothing else.
    fn on_event(&self, event: Event, conversation: Conversation) -> impl Future<Output = ()> + Send;

    /// Hears of an interrupt, after the turn was told.
    ///
    /// Runs on the task that reads the socket: it must not block.
    fn on_interrupt(&self, interrupted: &Interrupted) {
        let _ = interrupted;
    }

    /// Handles a forwarded webhook request that is not a Discord interaction.
    ///
    /// By default it is dropped, with a line in the log. Requests of one
    /// platform and bot come one after the other.
    fn on_passthrough(
        &self,
        forward: PassthroughForward,
        gateway: GatewayHandle,
    ) -> impl Future<Output = ()> + Send {
        let _ = gateway;
        async move {
            tracing::info!(
                platform = forward.platform,
                bytes = forward.body.len(),
                "a forwarded request was dropped: the agent does not handle any"
            );
        }
    }
}

/// An interrupt that came from the connector.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interrupted {
    /// The key the connector gave; it may be an older generation's spelling.
    pub session_key: String,
    /// The chat the connector gave; may be empty.
    pub chat_id: String,
    /// How many running turns it stopped; usually one, or none.
    pub turns: usize,
}

impl<F, Fut> Agent for F
where
    F: Fn(Event, Conversation) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send,
{
    fn on_event(&self, event: Event, conversation: Conversation) -> impl Future<Output = ()> + Send {
        self(event, conversation)
    }
}
