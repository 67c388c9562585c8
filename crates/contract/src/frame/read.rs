//! Reading a gateway's frame as it comes: one pass, every field within its
//! bounds, no tree of values. Of a key that comes twice the last one counts.

use super::{FrameError, GatewayFrame, Hello, Interrupt, Outbound, no_action, relay};
use crate::action::{Action, MAX_ID, MAX_SESSION_KEY};
use crate::lenient::{self, Any, FromAny, Keys, Other, Texts, Unfit, Word, bound};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

crate::limits! {
    /// A platform, a bot and a few dozen commands. A larger hello is answered all the same, without its commands: a gateway that gets no answer hangs for half a minute.
    pub const MAX_HELLO: usize = 64 * 1024, bytes "a hello, and any line before it";
}

/// Every key of an envelope that is a text, and its bound.
const TEXTS: Keys<7> = [
    ("type", MAX_ID),
    ("platform", MAX_ID),
    ("botId", MAX_ID),
    ("requestId", MAX_ID),
    ("bufferId", MAX_ID),
    ("session_key", MAX_SESSION_KEY),
    ("reason", MAX_SESSION_KEY),
];
const ACTION: &str = "action";
const MANIFEST: &str = "command_manifest";

/// What was found of a frame.
#[derive(Default)]
struct Envelope {
    texts: Texts<{ TEXTS.len() }>,
    action: Option<Action>,
    manifest: Option<Vec<Value>>,
    /// Keys that some frame has.
    seen: Vec<&'static str>,
    /// Keys that no frame has.
    strangers: usize,
    is_object: bool,
}

/// Reads one line; tells how many keys of its envelope nobody knows.
pub(super) fn parse(line: &[u8]) -> Result<(GatewayFrame, usize), FrameError> {
    let envelope = lenient::read(line, |text| {
        let mut envelope = Envelope::default();
        let mut json = serde_json::Deserializer::from_str(text);
        Any(&mut envelope).deserialize(&mut json)?;
        json.end()?;
        Ok(envelope)
    });
    envelope.map_err(FrameError::NotJson)?.into_frame()
}

/// What the beginning of a frame tells that is too large to be read whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glimpse {
    /// Its type.
    pub kind: String,
    /// The id under which it wants an answer.
    pub request_id: Option<String>,
    /// The platform it names.
    pub platform: Option<String>,
    /// The bot it names.
    pub bot_id: Option<String>,
}

/// Reads what there is of a frame's beginning; `None` if not even its type is there.
pub fn glimpse(begins: &[u8]) -> Option<Glimpse> {
    let text = String::from_utf8_lossy(begins);
    let mut envelope = Envelope::default();
    // It breaks off in the middle, which is an error; what came before it counts.
    let _ = Any(&mut envelope).deserialize(&mut serde_json::Deserializer::from_str(&text));
    let mut text = |name| match envelope.texts.take(&TEXTS, name) {
        Word::Text(text) | Word::Number(text) => Some(text),
        _ => None,
    };
    Some(Glimpse {
        kind: text("type")?,
        request_id: text("requestId"),
        platform: text("platform"),
        bot_id: text("botId"),
    })
}

impl<'de> FromAny<'de> for &mut Envelope {
    type Value = ();

    fn map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.is_object = true;
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            self.read(&key, &mut entries)?;
        }
        Ok(())
    }

    fn other(self, _: Other<'_>) {}
}

impl Envelope {
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, entries: &mut A) -> Result<(), A::Error> {
        if let Some(name) = self.texts.read(&TEXTS, key, entries)? {
            self.saw(name);
        } else if key == ACTION {
            self.action = Some(entries.next_value()?);
            self.saw(ACTION);
        } else if key == MANIFEST {
            self.manifest = manifest(&entries.next_value::<Box<RawValue>>()?);
            self.saw(MANIFEST);
        } else {
            entries.next_value::<IgnoredAny>()?;
            self.strangers += 1;
        }
        Ok(())
    }

    fn saw(&mut self, key: &'static str) {
        if !self.seen.contains(&key) {
            self.seen.push(key);
        }
    }

    fn into_frame(mut self) -> Result<(GatewayFrame, usize), FrameError> {
        if !self.is_object {
            return Err(FrameError::NotAnObject);
        }
        let kind = match self.texts.take(&TEXTS, "type") {
            Word::Text(kind) => kind,
            Word::TooLong => return Err(FrameError::TooLarge { field: "type", max: MAX_ID }),
            _ => return Err(FrameError::NoType),
        };
        let known = known_keys(&kind);
        let unknown = self.strangers + self.seen.iter().filter(|key| !known.contains(key)).count();
        let frame = match kind.as_str() {
            "hello" => GatewayFrame::Hello(self.hello()?),
            "outbound" => GatewayFrame::Outbound(self.outbound()?),
            "interrupt" => GatewayFrame::Interrupt(Interrupt {
                session_key: self.text(&kind, "session_key")?,
                reason: self.opt_text(&kind, "reason").unwrap_or_default(),
            }),
            "going_idle" => GatewayFrame::GoingIdle,
            "inbound_ack" => GatewayFrame::InboundAck { buffer_id: self.text(&kind, "bufferId")? },
            _ => GatewayFrame::Unknown { kind },
        };
        Ok((frame, unknown))
    }

    /// A hello is never refused: what cannot be taken of it is left out.
    fn hello(&mut self) -> Result<Hello, FrameError> {
        Ok(Hello {
            platform: self.opt_text("hello", "platform").ok().flatten().unwrap_or_else(relay),
            bot_id: self.opt_text("hello", "botId").ok().flatten().unwrap_or_default(),
            command_manifest: self.manifest.take(),
        })
    }

    /// Whoever gave an id waits for an answer: what is wrong beside it is told in one.
    fn outbound(&mut self) -> Result<Outbound, FrameError> {
        let kind = "outbound";
        let request_id = self.text(kind, "requestId")?;
        let action = self.action.take().unwrap_or_else(no_action);
        let named = self.opt_text(kind, "platform").and_then(|it| Ok((it, self.opt_text(kind, "botId")?)));
        Ok(match named {
            Ok((platform, bot_id)) => Outbound { request_id, action, platform, bot_id },
            Err(error) => {
                let op = Some(action.op().to_owned()).filter(|op| !op.is_empty());
                let action = Action::Unreadable { op, reason: error.to_string() };
                Outbound { request_id, action, platform: None, bot_id: None }
            }
        })
    }

    fn opt_text(&mut self, kind: &str, field: &'static str) -> Result<Option<String>, FrameError> {
        self.texts.take(&TEXTS, field).into_text().map_err(|unfit| match unfit {
            Unfit::Shape(why) => malformed(kind, format!("{field}: {why}")),
            Unfit::TooLong => FrameError::TooLarge { field, max: bound(&TEXTS, field) },
        })
    }

    fn text(&mut self, kind: &str, field: &'static str) -> Result<String, FrameError> {
        self.opt_text(kind, field)?.ok_or_else(|| malformed(kind, format!("{field} is missing")))
    }
}

fn malformed(kind: &str, reason: String) -> FrameError {
    FrameError::Malformed { kind: kind.to_owned(), reason }
}

/// The commands of a hello. One with too many has none, but says that it has:
/// that tells which gateway it is. Another shape is no reason to leave a hello unanswered.
fn manifest(raw: &RawValue) -> Option<Vec<Value>> {
    if raw.get().len() > MAX_HELLO {
        return raw.get().starts_with('[').then(Vec::new);
    }
    serde_json::from_str(raw.get()).ok()
}

/// The keys of a gateway frame's envelope; of an unknown type only `type` is known.
fn known_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "hello" => &["type", "platform", "botId", "command_manifest"],
        "outbound" => &["type", "requestId", "action", "platform", "botId"],
        "interrupt" => &["type", "session_key", "reason"],
        "inbound_ack" => &["type", "bufferId"],
        _ => &["type"],
    }
}
