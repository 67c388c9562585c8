//! The words both halves of the relay contract speak.
//!
//! Everything here is a pure function or a plain type: no sockets, no clock,
//! no disk. A gateway and a connector that share this crate agree on frames,
//! events, session keys, upgrade tokens and on how long texts are cut.
//!
//! | Question | Module |
//! |---|---|
//! | What travels on the socket? | [`frame`], [`mod@line`], [`close`] |
//! | What is inside a frame? | [`event`], [`source`], [`action`], [`descriptor`] |
//! | Who may open a socket? | [`token`] |
//! | Which conversation is this? | [`mod@session_key`] |
//! | How is a long text cut? | [`mod@split`], [`length`] |
//! | What may never change? | [`mod@schema`] |

pub mod action;
pub mod close;
pub mod descriptor;
pub mod event;
mod fence;
pub mod frame;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod length;
mod lenient;
pub mod limit;
pub mod line;
pub mod passthrough;
pub mod platform;
mod result;
pub mod schema;
pub mod session_key;
pub mod source;
pub mod split;
pub mod token;

pub use action::{Action, ActionResult, ChatInfo, Metadata};
pub use descriptor::{Descriptor, DescriptorError};
pub use event::{ContextItem, Event, EventFile, Media, PromptResponse, ReplyTo};
pub use frame::{
    ConnectorFrame, FrameError, GatewayFrame, Hello, Inbound, Interrupt, Outbound, inbound_line,
    passthrough_line,
};
pub use length::LenUnit;
pub use line::{LineBuffer, LineError};
pub use passthrough::PassthroughForward;
pub use session_key::{KeyOptions, Rules, session_key};
pub use source::Source;

/// The contract version this crate speaks, as written into every descriptor.
pub const CONTRACT_VERSION: u32 = 1;

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[limit::Group] = &[
    ("Frames of gateways", frame::LIMITS),
    ("Frames of gateways", line::LIMITS),
    ("Frames of gateways", action::LIMITS),
];
