//! Reading an action as it comes: field by field, each within its bounds, and
//! without a tree of values. What is too much is passed over, and the action is
//! one that can only be refused.

use super::hints::Hints;
use super::{Action, Metadata, PromptOption, TaskChunk};
use crate::lenient::{Any, FromAny, Keys, Other, Texts, Truth, Unfit, Word, bound};
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

crate::limits! {
    /// Agents write pages, not books; the platforms' own limits are far below. A longer text is refused, and the agent is told.
    pub const MAX_TEXT: usize = 256 * 1024, bytes "text of one action";
    /// Everything beside its text: ids, hints, buttons. An action with more is refused, and the agent is told.
    pub const MAX_REST: usize = 64 * 1024, bytes "the rest of one action, all together";
    /// No platform has ids of a hundred bytes. An action that names a longer one is refused.
    pub const MAX_ID: usize = 512, bytes "an id, name or word in a frame";
    /// They are made of a handful of ids. A frame with a longer one is refused.
    pub const MAX_SESSION_KEY: usize = 1024, bytes "a session key in a frame";
    /// As long as browsers take one. An action with a longer one is refused.
    const MAX_URL: usize = 2048, bytes "an address in an action";
    /// More than any platform shows below one message. An action with more is refused.
    const MAX_ITEMS: usize = 64, count "buttons or steps in one action";
}

/// Every field that is a text, and its bound.
const TEXTS: Keys<16> = [
    ("op", MAX_ID),
    ("chat_id", MAX_ID),
    ("message_id", MAX_ID),
    ("reply_to", MAX_ID),
    ("content", MAX_TEXT),
    ("session_key", MAX_SESSION_KEY),
    ("kind", MAX_ID),
    ("media_kind", MAX_ID),
    ("source_url", MAX_URL),
    ("filename", MAX_ID),
    ("prompt_kind", MAX_ID),
    ("prompt_id", MAX_ID),
    ("emoji", MAX_ID),
    ("thread_name", MAX_ID),
    ("only_if_current_name", MAX_ID),
    ("card_id", MAX_ID),
];

/// How much longer a text is on the wire at the most: `\u0007` is one byte.
const ESCAPED: usize = 6;

/// A field that is no text: read, not there, or of another shape.
pub(super) type Field<T> = Option<Result<T, String>>;

/// What was found of an action.
#[derive(Default)]
struct Found {
    texts: Texts<{ TEXTS.len() }>,
    metadata: Field<Metadata>,
    options: Field<Vec<PromptOption>>,
    chunks: Field<Vec<TaskChunk>>,
    timeout_s: Field<f64>,
    draft_id: Field<i64>,
    flags: [Option<bool>; FLAGS.len()],
}

const FLAGS: [&str; 3] = ["remove", "final", "only_if_connector_created"];

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Any(AnyAction).deserialize(deserializer)
    }
}

struct AnyAction;

impl<'de> FromAny<'de> for AnyAction {
    type Value = Action;

    fn map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Action, A::Error> {
        let mut found = Found::default();
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            found.read(&key, &mut entries)?;
        }
        Ok(found.into_action())
    }

    fn other(self, _: Other<'_>) -> Action {
        Action::unreadable(None, "the action is not an object")
    }
}

impl Found {
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, entries: &mut A) -> Result<(), A::Error> {
        if self.texts.read(&TEXTS, key, entries)?.is_some() {
            return Ok(());
        }
        if let Some(place) = FLAGS.iter().position(|name| *name == key) {
            self.flags[place] = entries.next_value_seed(Any(Truth))?;
            return Ok(());
        }
        match key {
            "metadata" => self.metadata = entries.next_value_seed(Any(Hints))?,
            "options" => self.options = items(entries)?,
            "chunks" => self.chunks = items(entries)?,
            "timeout_s" => self.timeout_s = number(entries, Value::as_f64)?,
            "draft_id" => self.draft_id = number(entries, Value::as_i64)?,
            _ => drop(entries.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }

    fn into_action(mut self) -> Action {
        let op = match self.texts.take(&TEXTS, "op") {
            Word::Text(op) => op,
            Word::TooLong => return Action::unreadable(None, too_long("op", MAX_ID)),
            _ => return Action::unreadable(None, "the action has no op"),
        };
        match self.build(&op) {
            Ok(action) if action.size() - action.content().len() > MAX_REST => {
                let why = format!("the action has more than {MAX_REST} bytes beside its text");
                Action::unreadable(Some(op), why)
            }
            Ok(action) => action,
            Err(reason) => Action::unreadable(Some(op), reason),
        }
    }

    fn build(&mut self, op: &str) -> Result<Action, String> {
        Ok(match op {
            "send" => Action::Send {
                chat_id: self.text("chat_id")?,
                content: self.text_or_empty("content")?,
                reply_to: self.opt_text("reply_to")?,
                metadata: self.metadata()?,
            },
            "edit" => Action::Edit {
                chat_id: self.text("chat_id")?,
                message_id: self.text("message_id")?,
                content: self.text_or_empty("content")?,
                metadata: self.metadata()?,
            },
            "typing" => Action::Typing {
                chat_id: self.text("chat_id")?,
                content: self.opt_text("content")?,
                metadata: self.metadata()?,
            },
            "follow_up" => Action::FollowUp {
                session_key: self.text("session_key")?,
                kind: self.text("kind")?,
                content: self.text_or_empty("content")?,
                metadata: self.metadata()?,
            },
            "get_chat_info" => Action::GetChatInfo { chat_id: self.text("chat_id")? },
            _ => return self.build_rich(op),
        })
    }

    /// The operations of later gateways.
    fn build_rich(&mut self, op: &str) -> Result<Action, String> {
        Ok(match op {
            "send_media" => Action::SendMedia {
                chat_id: self.text("chat_id")?,
                media_kind: self.text("media_kind")?,
                source_url: self.text("source_url")?,
                content: self.text_or_empty("content")?,
                filename: self.opt_text("filename")?,
                reply_to: self.opt_text("reply_to")?,
                metadata: self.metadata()?,
            },
            "prompt" => Action::Prompt {
                chat_id: self.text("chat_id")?,
                prompt_kind: self.text("prompt_kind")?,
                prompt_id: self.text("prompt_id")?,
                content: self.text_or_empty("content")?,
                options: self.options.take().transpose()?.unwrap_or_default(),
                timeout_s: self.timeout_s.take().transpose()?,
                reply_to: self.opt_text("reply_to")?,
                metadata: self.metadata()?,
            },
            "react" => Action::React {
                chat_id: self.text("chat_id")?,
                message_id: self.text("message_id")?,
                emoji: self.text("emoji")?,
                remove: self.flags[0].unwrap_or_default(),
                metadata: self.metadata()?,
            },
            "draft" => Action::Draft {
                chat_id: self.text("chat_id")?,
                draft_id: self.draft_id.take().transpose()?.ok_or("draft_id is missing")?,
                content: self.text_or_empty("content")?,
                is_final: self.flags[1].unwrap_or_default(),
                metadata: self.metadata()?,
            },
            "delete" => Action::Delete {
                chat_id: self.text("chat_id")?,
                message_id: self.text("message_id")?,
                metadata: self.metadata()?,
            },
            _ => return self.build_place(op),
        })
    }

    /// Threads and cards; what is left is an operation nobody here knows.
    fn build_place(&mut self, op: &str) -> Result<Action, String> {
        Ok(match op {
            "thread_create" => Action::ThreadCreate {
                chat_id: self.text("chat_id")?,
                thread_name: self.text_or_empty("thread_name")?,
                message_id: self.opt_text("message_id")?,
                metadata: self.metadata()?,
            },
            "thread_rename" => Action::ThreadRename {
                chat_id: self.text("chat_id")?,
                message_id: self.text("message_id")?,
                thread_name: self.text_or_empty("thread_name")?,
                only_if_current_name: self.opt_text("only_if_current_name")?,
                only_if_connector_created: self.flags[2],
                metadata: self.metadata()?,
            },
            "task_card" => Action::TaskCard {
                chat_id: self.text("chat_id")?,
                card_id: self.text("card_id")?,
                chunks: self.chunks.take().transpose()?.unwrap_or_default(),
                metadata: self.metadata()?,
            },
            "task_card_stop" => Action::TaskCardStop {
                chat_id: self.text("chat_id")?,
                card_id: self.text("card_id")?,
                metadata: self.metadata()?,
            },
            other => {
                let chat_id = self.opt_text("chat_id").unwrap_or_default();
                let hints = Some(self.metadata()?).filter(|hints| !hints.is_empty());
                let hints = hints.map(|hints| ("metadata".to_owned(), Value::Object(hints)));
                Action::Other { op: other.to_owned(), chat_id, body: hints.into_iter().collect() }
            }
        })
    }

    fn opt_text(&mut self, name: &'static str) -> Result<Option<String>, String> {
        self.texts.take(&TEXTS, name).into_text().map_err(|unfit| match unfit {
            Unfit::Shape(why) => format!("{name}: {why}"),
            Unfit::TooLong => too_long(name, bound(&TEXTS, name)),
        })
    }

    fn text(&mut self, name: &'static str) -> Result<String, String> {
        self.opt_text(name)?.ok_or_else(|| format!("{name} is missing"))
    }

    fn text_or_empty(&mut self, name: &'static str) -> Result<String, String> {
        Ok(self.opt_text(name)?.unwrap_or_default())
    }

    fn metadata(&mut self) -> Result<Metadata, String> {
        Ok(self.metadata.take().transpose()?.unwrap_or_default())
    }
}

pub(super) fn too_long(name: &str, max: usize) -> String {
    match name {
        "content" => format!("the text is longer than {max} bytes"),
        _ => format!("{name} is longer than {max} bytes"),
    }
}

/// A number, from its text: whatever else stands there is kept short.
fn number<'de, A: MapAccess<'de>, T>(
    entries: &mut A,
    of: impl Fn(&Value) -> Option<T>,
) -> Result<Field<T>, A::Error> {
    Ok(match entries.next_value_seed(Small)? {
        Some(Value::Null) => None,
        Some(value) => Some(of(&value).ok_or_else(|| "a number is needed".to_owned())),
        None => Some(Err("a number is needed".to_owned())),
    })
}

/// A value whose text is short; `None` for a longer one, which is passed over.
struct Small;

impl<'de> DeserializeSeed<'de> for Small {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Option<Value>, D::Error> {
        let raw = Box::<RawValue>::deserialize(d)?;
        let small = raw.get().len() <= ESCAPED * MAX_ID;
        Ok(small.then(|| serde_json::from_str(raw.get()).ok()).flatten())
    }
}

/// A short list of buttons or steps.
fn items<'de, A: MapAccess<'de>, T: DeserializeOwned>(entries: &mut A) -> Result<Field<Vec<T>>, A::Error> {
    let raw = entries.next_value::<Box<RawValue>>()?;
    let read = || {
        if raw.get().len() > ESCAPED * MAX_REST {
            return Err("the list is too long".to_owned());
        }
        // What the parser says may repeat what was sent.
        let items: Vec<T> =
            serde_json::from_str(raw.get()).map_err(|_| "a list is not of the shape it needs".to_owned())?;
        if items.len() > MAX_ITEMS {
            return Err(format!("the list has more than {MAX_ITEMS} items"));
        }
        Ok(items)
    };
    Ok(Some(read()))
}
