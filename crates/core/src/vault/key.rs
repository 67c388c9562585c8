//! Conversation keys, as every generation of gateways writes them.
//!
//! A gateway that is given an interaction as a forward files it under another
//! key than one that is given an event, and older ones under `relay`. What they
//! have in common is the chat and, mostly, the person.

use super::Capability;

/// How a key names a capability's conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// Chat and person.
    Person,
    /// A private chat, and with it its person.
    Private,
    /// The chat alone.
    Chat,
}

/// The chat that a conversation key names.
pub fn chat_of(key: &str) -> Option<&str> {
    key.split(':').nth(4).filter(|chat| !chat.is_empty())
}

/// Whether `key` is the conversation a capability belongs to.
///
/// `agent:<profile>:<platform>:<type>:<chat>[:<thread>][:<person>]`, where a
/// thread is its own chat, and the platform may be `relay`.
pub(super) fn names(key: &str, capability: &Capability) -> Option<Named> {
    let mut parts = key.split(':');
    let (agent, profile, platform, kind) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_ours = platform == &*capability.platform || platform == "relay";
    if agent != "agent" || profile.is_empty() || !is_ours || parts.next()? != capability.chat_id {
        return None;
    }
    let private = match kind {
        "dm" => true,
        "group" | "channel" | "thread" => false,
        _ => return None,
    };
    let mut rest = parts.peekable();
    if !private && rest.peek() == Some(&capability.chat_id.as_str()) {
        rest.next();
    }
    match (rest.next(), rest.next()) {
        (None, _) if private => Some(Named::Private),
        (None, _) => Some(Named::Chat),
        (Some(person), None) if !private && person == capability.user_id => Some(Named::Person),
        _ => None,
    }
}
