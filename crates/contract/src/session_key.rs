//! Which conversation a message belongs to.
//!
//! A gateway files every message under a key built from its source. A
//! connector needs the same key to stop a turn or to find a capability, but
//! cannot be certain of it: two flags of the operator's configuration enter.
//! Hence both directions: build the likely key, and ask of a given key whether
//! it may name a chat.
//!
//! Parts are joined by `:` and never escaped, so a key cannot be taken apart
//! without knowing what went in. [`may_belong_to`] does know.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::lenient::truthy;
use crate::platform;
use crate::source::{RELAY, Source, chat_type};

/// Which generation of gateways a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rules {
    /// The releases 0.17.0, 0.18.2 and 0.19.0.
    Published,
    /// 0.19.1 and later: Slack scope, prospective threads, forgiving types.
    Newer,
}

/// The gateway operator's settings that enter a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOptions {
    /// Whether each member of a group has a conversation of their own.
    pub group_sessions_per_user: bool,
    /// The same inside threads.
    pub thread_sessions_per_user: bool,
    /// The profile, if the gateway serves several; `default` is none.
    ///
    /// Deliberately not taken from the source: gateways do not either.
    pub profile: Option<String>,
}

impl Default for KeyOptions {
    fn default() -> Self {
        Self { group_sessions_per_user: true, thread_sessions_per_user: false, profile: None }
    }
}

/// Why a gateway would not build a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The source is not a JSON object.
    #[error("the source is not an object")]
    NotAnObject,
    /// A part is of a type the gateway stumbles over.
    #[error("`{field}` is not a string")]
    NotText {
        /// The part's key in the source.
        field: &'static str,
    },
}

/// The key a gateway files this source under.
pub fn session_key(source: &Source, options: &KeyOptions, rules: Rules) -> String {
    let parts = Parts {
        platform: platform::canonical(&source.platform),
        chat_type: Cow::Borrowed(&source.chat_type),
        scope: given(source.scope_id.as_deref()),
        chat: given(Some(&source.chat_id)),
        thread: given(source.thread_id.as_deref()),
        prospective: given(source.prospective_thread_id.as_deref()),
        user: given(source.user_id_alt.as_deref()).or(given(source.user_id.as_deref())),
    };
    parts.join(options, rules)
}

/// The same for a source as it stands on the wire, types and all.
///
/// The published gateways stumble over ids that are numbers; here that is an
/// error, where [`session_key`] cannot even express it.
pub fn session_key_from_value(
    source: &Value,
    options: &KeyOptions,
    rules: Rules,
) -> Result<String, KeyError> {
    let map = source.as_object().ok_or(KeyError::NotAnObject)?;
    let chat_type = wire_chat_type(map, rules)?;
    // Published gateways format the parts of a DM, which takes any type, but
    // join the parts of everything else, which takes strings only.
    let strict = rules == Rules::Published && chat_type != chat_type::DM;
    let parts = Parts {
        platform: map.get("platform").and_then(Value::as_str).map_or(RELAY, platform::canonical),
        scope: part(map, "scope_id", false)?,
        chat: part(map, "chat_id", strict)?,
        thread: part(map, "thread_id", strict)?,
        prospective: part(map, "prospective_thread_id", false)?,
        user: match part(map, "user_id_alt", false)? {
            None => part(map, "user_id", false)?,
            alt => alt,
        },
        chat_type,
    };
    Ok(parts.join(options, rules))
}

fn wire_chat_type(map: &Map<String, Value>, rules: Rules) -> Result<Cow<'_, str>, KeyError> {
    let field = "chat_type";
    match map.get(field) {
        None => Ok(Cow::Borrowed(chat_type::DM)),
        Some(Value::String(text)) => Ok(Cow::Borrowed(text)),
        Some(_) if rules == Rules::Published => Err(KeyError::NotText { field }),
        Some(value) => stringified(value).ok_or(KeyError::NotText { field }),
    }
}

/// A part of the key; absent when Python would find it false.
fn part<'a>(
    map: &'a Map<String, Value>,
    field: &'static str,
    strict: bool,
) -> Result<Option<Cow<'a, str>>, KeyError> {
    match map.get(field) {
        Some(Value::String(text)) => Ok(given(Some(text))),
        Some(value) if truthy(value) => match stringified(value) {
            Some(text) if !strict => Ok(Some(text)),
            _ => Err(KeyError::NotText { field }),
        },
        _ => Ok(None),
    }
}

/// Python's `str()` of a scalar.
fn stringified(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => Some(Cow::Borrowed("None")),
        Value::Bool(true) => Some(Cow::Borrowed("True")),
        Value::Bool(false) => Some(Cow::Borrowed("False")),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn given(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty()).map(Cow::Borrowed)
}

/// What enters a key, after types are dealt with.
struct Parts<'a> {
    platform: &'static str,
    chat_type: Cow<'a, str>,
    scope: Option<Cow<'a, str>>,
    chat: Option<Cow<'a, str>>,
    thread: Option<Cow<'a, str>>,
    prospective: Option<Cow<'a, str>>,
    user: Option<Cow<'a, str>>,
}

impl Parts<'_> {
    fn join(&self, options: &KeyOptions, rules: Rules) -> String {
        let mut key = String::with_capacity(64);
        key.push_str("agent:");
        key.push_str(namespace(options.profile.as_deref()));
        append(&mut key, self.platform);
        let scope = self.scope.as_deref().filter(|_| rules == Rules::Newer && self.platform == "slack");
        if self.chat_type == chat_type::DM {
            self.join_dm(&mut key, scope);
        } else {
            self.join_room(&mut key, scope, options, rules);
        }
        key
    }

    fn join_dm(&self, key: &mut String, scope: Option<&str>) {
        append(key, chat_type::DM);
        let chat = self.chat.as_deref().map(|id| self.bare(id));
        let peer = chat.filter(|id| !id.is_empty()).or_else(|| self.participant());
        for part in [scope, peer, self.thread.as_deref()].into_iter().flatten() {
            append(key, part);
        }
    }

    fn join_room(&self, key: &mut String, scope: Option<&str>, options: &KeyOptions, rules: Rules) {
        let prospective = self.prospective.as_deref().filter(|_| rules == Rules::Newer);
        let thread = self.thread.as_deref().or(prospective);
        let slot = match (&self.thread, prospective) {
            // The follow-ups will arrive from inside the thread.
            (None, Some(_)) => chat_type::THREAD,
            _ => &self.chat_type,
        };
        let per_user =
            options.group_sessions_per_user && (thread.is_none() || options.thread_sessions_per_user);
        let user = self.participant().filter(|_| per_user);
        append(key, slot);
        for part in [scope, self.chat.as_deref(), thread, user].into_iter().flatten() {
            append(key, part);
        }
    }

    fn participant(&self) -> Option<&str> {
        let user = self.user.as_deref()?;
        Some(match self.bare(user) {
            "" => user,
            bare => bare,
        })
    }

    /// An id without the device and server a WhatsApp id may carry.
    fn bare<'a>(&self, id: &'a str) -> &'a str {
        if self.platform == "whatsapp" { platform::bare_whatsapp(id) } else { id }
    }
}

fn namespace(profile: Option<&str>) -> &str {
    match profile {
        None | Some("" | "default") => "main",
        Some(profile) => profile,
    }
}

fn append(key: &mut String, part: &str) {
    key.push(':');
    key.push_str(part);
}

/// A key, as far as it can be taken apart without knowing the chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyParts<'a> {
    /// The profile's namespace; `main` for none.
    pub namespace: &'a str,
    /// The platform slot.
    pub platform: &'a str,
    /// The chat-type slot.
    pub chat_type: &'a str,
    /// Everything after: scope, chat, thread and participant, unescaped.
    pub rest: &'a str,
}

/// Takes a key apart; none if it does not look like one.
pub fn parse_key(key: &str) -> Option<KeyParts<'_>> {
    let mut slots = key.strip_prefix("agent:")?.splitn(4, ':');
    let parts = KeyParts {
        namespace: slots.next()?,
        platform: slots.next()?,
        chat_type: slots.next()?,
        rest: slots.next().unwrap_or_default(),
    };
    let slots = [parts.namespace, parts.platform, parts.chat_type];
    slots.iter().all(|slot| !slot.is_empty()).then_some(parts)
}

/// Whether a key may name this chat, in any generation's form.
///
/// The platform slot may be `relay`: that is how gateways file platforms they
/// do not know, and interactions passed through to the published ones. A
/// thread or user that is given must not be contradicted by the key; one that
/// is not given may be anything.
pub fn may_belong_to(
    key: &str,
    platform: &str,
    chat_id: &str,
    thread_id: Option<&str>,
    user_id: Option<&str>,
) -> bool {
    let Some(parts) = parse_key(key) else {
        return false;
    };
    let platform = platform::canonical(platform);
    if parts.platform != platform && parts.platform != RELAY {
        return false;
    }
    let target = Target {
        chat: forms(platform, chat_id),
        thread: thread_id.filter(|id| !id.is_empty()),
        user: user_id.filter(|id| !id.is_empty()).map(|id| forms(platform, id)),
    };
    if target.named_by(parts.rest) {
        return true;
    }
    // Newer gateways put the workspace before a Slack chat.
    platform == "slack" && parts.rest.split_once(':').is_some_and(|(_scope, rest)| target.named_by(rest))
}

/// The spellings of an id that can stand in a key.
fn forms<'a>(platform: &str, id: &'a str) -> [&'a str; 2] {
    match platform {
        "whatsapp" => [id, platform::bare_whatsapp(id)],
        _ => [id, id],
    }
}

struct Target<'a> {
    chat: [&'a str; 2],
    thread: Option<&'a str>,
    user: Option<[&'a str; 2]>,
}

impl Target<'_> {
    /// Whether `rest` is chat, then thread, then user, the latter two optional.
    fn named_by(&self, rest: &str) -> bool {
        self.chat.iter().any(|chat| match after(rest, chat) {
            None => false,
            Some("") => true,
            Some(rest) => match self.thread {
                None => self.is_user(rest),
                Some(thread) => match after(rest, thread) {
                    Some("") => true,
                    Some(user) => self.is_user(user),
                    // Some generations file a thread under chat and user only.
                    None => self.user.is_some() && self.is_user(rest),
                },
            },
        })
    }

    fn is_user(&self, rest: &str) -> bool {
        self.user.is_none_or(|forms| forms.contains(&rest))
    }
}

/// What follows `slot` in `rest`; none if `rest` does not start with it.
fn after<'a>(rest: &'a str, slot: &str) -> Option<&'a str> {
    if slot.is_empty() {
        return None;
    }
    match rest.strip_prefix(slot)? {
        "" => Some(""),
        more => more.strip_prefix(':'),
    }
}
