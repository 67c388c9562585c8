//! The frames of the relay socket, both directions.
//!
//! A frame is one JSON object on one line. What a gateway sends is read as it
//! comes, each field within its bounds (`frame/read.rs`); what a connector sends
//! is read by way of a generic value, because its events may hold anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::action::{Action, ActionResult};
use crate::descriptor::{Descriptor, DescriptorError};
use crate::event::Event;
use crate::lenient;
use crate::passthrough::PassthroughForward;

mod read;

pub use read::{Glimpse, LIMITS, MAX_HELLO, glimpse};

/// Frames a gateway sends.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", remote = "Self")]
pub enum GatewayFrame {
    /// Names an identity the gateway fronts; sent on every dial.
    Hello(Hello),
    /// Asks for an action; must be answered.
    Outbound(Outbound),
    /// Asks to stop a running turn.
    Interrupt(Interrupt),
    /// Announces that the gateway is about to go quiet.
    GoingIdle,
    /// Confirms that an inbound frame was handled.
    InboundAck {
        /// The id that came with it.
        #[serde(rename = "bufferId")]
        buffer_id: String,
    },
    /// A frame this crate does not know; to be ignored.
    #[serde(skip)]
    Unknown {
        /// Its type.
        kind: String,
    },
}

/// Frames a connector sends.
#[expect(clippy::large_enum_variant, reason = "frames are handled one by one and never kept in numbers")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", remote = "Self")]
pub enum ConnectorFrame {
    /// Answers a hello.
    Descriptor {
        /// The descriptor.
        descriptor: Descriptor,
    },
    /// Delivers a message.
    Inbound(Inbound),
    /// Answers an outbound.
    OutboundResult {
        /// The id of the request.
        #[serde(rename = "requestId", deserialize_with = "lenient::text")]
        request_id: String,
        /// What came of it.
        #[serde(deserialize_with = "result")]
        result: ActionResult,
    },
    /// Stops a running turn.
    InterruptInbound {
        /// The turn's session.
        #[serde(deserialize_with = "lenient::text")]
        session_key: String,
        /// The chat it runs in.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        chat_id: String,
    },
    /// Delivers a webhook request.
    PassthroughForward {
        /// The request.
        #[serde(deserialize_with = "lenient::object")]
        forward: PassthroughForward,
        /// The id to confirm it with; only the newest gateways do.
        #[serde(
            default,
            rename = "bufferId",
            deserialize_with = "lenient::opt_text",
            skip_serializing_if = "Option::is_none"
        )]
        buffer_id: Option<String>,
        /// The platform it came from.
        #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
        platform: Option<String>,
        /// The bot it came through.
        #[serde(
            default,
            rename = "botId",
            deserialize_with = "lenient::opt_text",
            skip_serializing_if = "Option::is_none"
        )]
        bot_id: Option<String>,
    },
    /// Confirms a going-idle.
    GoingIdleAck,
    /// A frame this crate does not know; to be ignored.
    #[serde(skip)]
    Unknown {
        /// Its type.
        kind: String,
    },
}

/// An identity a gateway fronts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Hello {
    /// Platform name; `relay` when the operator configured none.
    #[serde(default = "relay")]
    pub platform: String,
    /// The bot's id; empty when the operator configured none.
    #[serde(default, rename = "botId")]
    pub bot_id: String,
    /// Slash commands to register, as Discord option objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_manifest: Option<Vec<Value>>,
}

/// A request for an action.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outbound {
    /// The id its result must carry.
    #[serde(rename = "requestId")]
    pub request_id: String,
    /// What to do.
    #[serde(default = "no_action")]
    pub action: Action,
    /// The chat's platform, when the gateway remembers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The chat's bot, when the gateway greeted with it.
    #[serde(default, rename = "botId", skip_serializing_if = "Option::is_none")]
    pub bot_id: Option<String>,
}

/// A request to stop a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Interrupt {
    /// The turn's session.
    pub session_key: String,
    /// Why; written as null when there is none.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A delivered message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inbound {
    /// The message.
    pub event: Event,
    /// The id to confirm it with.
    #[serde(
        default,
        rename = "bufferId",
        deserialize_with = "lenient::opt_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub buffer_id: Option<String>,
    /// The platform it came from.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The bot it came through.
    #[serde(
        default,
        rename = "botId",
        deserialize_with = "lenient::opt_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub bot_id: Option<String>,
}

/// Why a line is not a frame. None of these is a reason to drop a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The line is not JSON, not even after repairs.
    #[error("the line is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// The line is JSON, but not an object.
    #[error("the frame is not an object")]
    NotAnObject,
    /// The object has no `type`, or one that is not a string.
    #[error("the frame has no type")]
    NoType,
    /// A known type whose body cannot be read.
    #[error("the `{kind}` frame is malformed: {reason}")]
    Malformed {
        /// The frame's type.
        kind: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A field with more bytes than are taken.
    #[error("`{field}` of a frame is longer than {max} bytes")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// The most it may have.
        max: usize,
    },
    /// A descriptor frame without a usable descriptor.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
}

impl GatewayFrame {
    /// Reads one line, with or without its newline.
    pub fn parse(line: &[u8]) -> Result<Self, FrameError> {
        Self::parse_counting(line).map(|(frame, _)| frame)
    }

    /// Reads one line and counts the keys of its envelope that nobody knows.
    pub fn parse_counting(line: &[u8]) -> Result<(Self, usize), FrameError> {
        read::parse(line)
    }

    /// Writes one line, newline included.
    pub fn to_line(&self) -> String {
        match self {
            Self::Unknown { kind } => unknown_line(kind),
            known => write_line(|out| GatewayFrame::serialize(known, out)),
        }
    }
}

impl ConnectorFrame {
    /// Reads one line, with or without its newline.
    pub fn parse(line: &[u8]) -> Result<Self, FrameError> {
        let (kind, mut map) = envelope(line)?;
        match kind.as_str() {
            "descriptor" => {
                let descriptor = map.remove("descriptor").unwrap_or_default();
                Ok(Self::Descriptor { descriptor: Descriptor::from_value(descriptor)? })
            }
            "inbound"
            | "outbound_result"
            | "interrupt_inbound"
            | "passthrough_forward"
            | "going_idle_ack" => ConnectorFrame::deserialize(Value::Object(map))
                .map_err(|error| FrameError::Malformed { kind, reason: error.to_string() }),
            _ => Ok(Self::Unknown { kind }),
        }
    }

    /// Writes one line, newline included.
    pub fn to_line(&self) -> String {
        match self {
            Self::Unknown { kind } => unknown_line(kind),
            known => write_line(|out| ConnectorFrame::serialize(known, out)),
        }
    }
}

/// Splices already serialised event JSON into an `inbound` line.
///
/// The hot path: one event fans out to several gateways, so its bytes are
/// copied and never parsed again. `event_json` must be one JSON object
/// without a raw newline, as serialisers write it.
pub fn inbound_line(buffer_id: &str, platform: &str, bot_id: &str, event_json: &[u8]) -> Vec<u8> {
    spliced("inbound", "event", buffer_id, platform, bot_id, event_json)
}

/// Splices already serialised forward JSON into a `passthrough_forward` line.
///
/// The same bargain as [`inbound_line`].
pub fn passthrough_line(buffer_id: &str, platform: &str, bot_id: &str, forward_json: &[u8]) -> Vec<u8> {
    let kind = "passthrough_forward";
    spliced(kind, "forward", buffer_id, platform, bot_id, forward_json)
}

fn spliced(
    kind: &str,
    body_key: &str,
    buffer_id: &str,
    platform: &str,
    bot_id: &str,
    body: &[u8],
) -> Vec<u8> {
    /// Room for the fixed words of the envelope and a few escapes.
    const ENVELOPE: usize = 96;
    let ids = buffer_id.len() + platform.len() + bot_id.len();
    let mut line = Vec::with_capacity(ENVELOPE + ids + body.len());
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.push(b'"');
    for (key, value) in [("bufferId", buffer_id), ("platform", platform), ("botId", bot_id)] {
        line.extend_from_slice(b",\"");
        line.extend_from_slice(key.as_bytes());
        line.extend_from_slice(b"\":");
        line.extend_from_slice(Value::from(value).to_string().as_bytes());
    }
    line.extend_from_slice(b",\"");
    line.extend_from_slice(body_key.as_bytes());
    line.extend_from_slice(b"\":");
    line.extend_from_slice(body);
    line.extend_from_slice(b"}\n");
    line
}

fn envelope(line: &[u8]) -> Result<(String, Map<String, Value>), FrameError> {
    let Value::Object(map) = lenient::parse(line).map_err(FrameError::NotJson)? else {
        return Err(FrameError::NotAnObject);
    };
    match map.get("type") {
        Some(Value::String(kind)) => Ok((kind.clone(), map)),
        _ => Err(FrameError::NoType),
    }
}

type Writer<'a> = &'a mut serde_json::Serializer<Vec<u8>>;

fn write_line(write: impl FnOnce(Writer<'_>) -> Result<(), serde_json::Error>) -> String {
    let mut out = serde_json::Serializer::new(Vec::with_capacity(256));
    // Frames hold strings, numbers and string-keyed maps only, and the sink is
    // memory: there is nothing that could fail. Were it to, an empty line is
    // skipped by every reader.
    let written = write(&mut out);
    debug_assert!(written.is_ok(), "frames always serialise");
    let mut line = String::from_utf8(out.into_inner()).unwrap_or_default();
    line.push('\n');
    line
}

fn unknown_line(kind: &str) -> String {
    let mut line = serde_json::json!({ "type": kind }).to_string();
    line.push('\n');
    line
}

fn relay() -> String {
    crate::source::RELAY.to_owned()
}

fn no_action() -> Action {
    Action::from_value(Value::Null)
}

fn result<'de, D: serde::Deserializer<'de>>(d: D) -> Result<ActionResult, D::Error> {
    ActionResult::from_value(Value::deserialize(d)?).map_err(serde::de::Error::custom)
}
