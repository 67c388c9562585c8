//! The gateway half of the relay contract, for agents written in Rust.
//!
//! An agent is an async function from an event to replies. This crate dials
//! the connector, keeps the socket alive, hands each event to the agent and
//! carries its replies back. It knows nothing about any chat platform.
//!
//! ```no_run
//! use angelia_gateway::{Conversation, Event, Gateway};
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder("https://connector.example")
//!     .id("gw-1")
//!     .secret("the secret the connector issued")
//!     .identity("discord", "bot1")
//!     .build()?;
//! gateway
//!     .run(|event: Event, conversation: Conversation| async move {
//!         let _ = conversation.send(&event.text).await;
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What happens to an event
//!
//! Events of one conversation (one session key) are handled one after the
//! other, in the order they came; conversations run beside each other. An
//! event that carries a `bufferId` is acknowledged once, at the moment chosen
//! with [`AckWhen`], but never before those that came earlier: connectors take
//! the acknowledgement of an event for that of all before it. By default that
//! moment is when the event stands in the queue of its conversation. What was
//! acknowledged and not yet handled is lost if the process dies; a
//! [`shutdown`](GatewayHandle::shutdown) lets it end first. The other moments
//! leave it with the connector, at the price that one slow conversation holds
//! up the others.
//!
//! A repeated delivery of an event that is waiting, running or was among the
//! last few hundred is acknowledged and not handled again.
//!
//! An `interrupt_inbound` stops the running turn of its session and nothing
//! else: the agent's future is dropped at the `await` it stands at.
//!
//! # What happens to a call
//!
//! A call made while there is no connection waits for one, for a bounded
//! time. When it fails, [`CallError::is_ambiguous`] tells whether it may have
//! taken effect all the same.
//!
//! # Files
//!
//! [`Event::files`] tells of the files that came along; [`Conversation::open_file`] reads one, piece by
//! piece. [`Conversation::send_file`] sends one, of the disk or of bytes. Both ask the connector over HTTP,
//! with the token of the socket, and nobody else.
//!
//! # What is logged
//!
//! This crate logs neither texts nor secrets. The WebSocket library beneath
//! it does log whole frames and the upgrade request at `TRACE`: keep
//! `tungstenite` above that level.

mod acks;
mod agent;
mod backoff;
mod builder;
mod calls;
mod chat;
mod clock;
mod connection;
mod conversation;
mod dial;
mod dial_url;
mod dispatch;
mod error;
mod files;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod http;
mod interaction;
mod lanes;
mod question;
mod reconnect;
mod repeated_events;
mod send_file;
mod session;
mod shared;
mod stream;
mod thread;

pub use agent::{Agent, Interrupted};
pub use angelia_contract::{
    Action, ActionResult, ChatInfo, Descriptor, Event, EventFile, KeyOptions, Metadata, PassthroughForward,
    PromptResponse, Source,
};
pub use builder::{AckWhen, GatewayBuilder};
pub use chat::Chat;
pub use conversation::Conversation;
pub use error::{BuildError, CallError, FileError, GatewayError, SendFileError};
pub use files::{FileStream, MAX_FILE_BYTES};
pub use handle::GatewayHandle;
pub use interaction::interaction_event;
pub use question::{Chosen, Question};
pub use reconnect::Gateway;
pub use send_file::{FileKind, OutgoingFile};
pub use shared::Stats;
pub use stream::ReplyStream;
pub use thread::RenameIf;
