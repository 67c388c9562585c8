//! From a frame to the one place it would write to, or a refusal.

use super::{Sender, authorize};
use crate::admission::{Route, Routes};
use crate::prompts;
use crate::threads;
use angelia_contract::action::{Action, Metadata};
use angelia_contract::frame::Outbound;
use serde_json::Value;
use std::sync::Arc;

/// Longest text of one action. Agents write pages, not books; the platforms'
/// limits are far below.
pub const MAX_CONTENT: usize = 256 * 1024;

/// How a `follow_up` is answered that no capability is found for. Whether there
/// is none, is none any more, or is somebody else's: the words are the same. They
/// are none by which gateways try again.
pub const NO_CAPABILITY: &str = "there is no capability for this session";

/// What an action would write to. A platform writes there and nowhere else:
/// it takes no other hint for a place, because only this one was checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The chat.
    pub chat_id: String,
    /// The thread in it, if the action names one.
    pub thread_id: Option<String>,
}

impl Target {
    /// A chat without a thread.
    pub fn chat(chat_id: impl Into<String>) -> Self {
        Self { chat_id: chat_id.into(), thread_id: None }
    }

    /// Where an action would write; `None` if it names no chat.
    pub fn of(action: &Action) -> Option<Self> {
        if let Action::ThreadRename { chat_id, message_id, .. } = action {
            // What is renamed counts, whichever chat the frame names beside it.
            let thread_id = Some(message_id.clone()).filter(|thread| thread != chat_id);
            return Some(Self { chat_id: chat_id.clone(), thread_id });
        }
        let thread_id = action.metadata().and_then(thread_id);
        action.chat_id().map(|chat_id| Self { chat_id: chat_id.to_owned(), thread_id })
    }
}

/// The thread a gateway asks for. What is neither text nor number is kept as
/// it is written, so that no platform takes it for the absence of a thread.
fn thread_id(metadata: &Metadata) -> Option<String> {
    match metadata.get("thread_id")? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        other => Some(other.to_string()),
    }
}

/// One shared identity, as far as it matters where an action goes.
pub trait Bot {
    /// The platform's name on the wire.
    fn platform(&self) -> &str;

    /// The bot's id.
    fn id(&self) -> &str;

    /// What covers what would really be written to.
    fn places(&self, target: &Target) -> Whereabouts;
}

/// Where a target is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// In these places, most specific first, without the platform.
    Places(Vec<String>),
    /// The directory at hand does not tell; the store may, or the provider.
    Unknown,
    /// There is no such target here.
    Nowhere,
}

/// An action that may be performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The position of the bot that performs it.
    pub bot: usize,
    /// Where it writes to.
    pub target: Target,
}

/// Why an action is not performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The target is not the sender's. It is not told whose it is, or whether it exists.
    Declined,
    /// Nobody knows yet: these bots may find out.
    Unknown(Vec<usize>),
    /// It names a conversation: only the vault knows where that is.
    InVault,
    /// The action itself cannot be taken.
    Unusable(String),
}

/// Decides where a frame of `sender` goes.
///
/// Nothing in the frame grants anything. Its `platform` may leave out bots of
/// other platforms, if there is a bot of that name here at all; gateways also
/// write names that mean nothing to us. Its `botId` is preferred among several
/// bots that may. `scope_id` is not read.
pub fn decide<B: Bot + ?Sized>(
    routes: &Routes,
    bots: &[Arc<B>],
    sender: Sender<'_>,
    frame: &Outbound,
) -> Result<Goal, Refusal> {
    let target = usable(&frame.action)?;
    let candidates = || candidates(bots, frame);
    let may = |bot: &B| may_write(routes, bot, sender, &target);
    let preferred = frame.bot_id.as_deref().filter(|id| !id.is_empty());
    let by_name = candidates().find(|(_, bot)| preferred == Some(bot.id()) && may(bot) == Some(true));
    if let Some((bot, _)) = by_name.or_else(|| candidates().find(|(_, bot)| may(bot) == Some(true))) {
        return Ok(Goal { bot, target });
    }
    let unknown = |(_, bot): &(usize, &Arc<B>)| may(bot).is_none() && has_route(routes, &***bot, sender);
    let unknown: Vec<usize> = candidates().filter(unknown).map(|(bot, _)| bot).collect();
    Err(if unknown.is_empty() { Refusal::Declined } else { Refusal::Unknown(unknown) })
}

/// Whether a route of the sender names a chat itself. Then it is no secret to them that
/// there is one, and whether it is theirs is what they ask.
pub fn is_named(routes: &Routes, sender: Sender<'_>, chat_id: &str) -> bool {
    routes.iter().any(|route| {
        let path = route.place.path();
        let named = path == chat_id || path.rsplit_once('/').is_some_and(|(_, last)| last == chat_id);
        named && route.tenant == sender.tenant && route.instance.is_none_or(|it| it == sender.instance)
    })
}

/// The bots that could know a chat of the sender's, whatever they know of the
/// one that is named.
pub fn could_know<B: Bot + ?Sized>(
    routes: &Routes,
    bots: &[Arc<B>],
    sender: Sender<'_>,
    frame: &Outbound,
) -> Vec<usize> {
    let could = |(_, bot): &(usize, &Arc<B>)| has_route(routes, &***bot, sender);
    candidates(bots, frame).filter(could).map(|(bot, _)| bot).collect()
}

/// The bots that a frame may be meant for.
fn candidates<'a, B: Bot + ?Sized>(
    bots: &'a [Arc<B>],
    frame: &'a Outbound,
) -> impl Iterator<Item = (usize, &'a Arc<B>)> {
    let hint = frame.platform.as_deref().filter(|name| bots.iter().any(|bot| bot.platform() == *name));
    bots.iter().enumerate().filter(move |(_, bot)| hint.is_none_or(|name| name == bot.platform()))
}

/// Whoever has no route on a platform has no chat there: nothing is asked for them.
fn has_route<B: Bot + ?Sized>(routes: &Routes, bot: &B, sender: Sender<'_>) -> bool {
    let ours = |route: &Route| route.tenant == sender.tenant && route.place.platform() == bot.platform();
    routes.iter().any(ours)
}

/// Whether `sender` may write to `target` through `bot`, by the routes as they
/// stand now; `None` if nobody knows yet where the target is.
pub fn may_write<B: Bot + ?Sized>(
    routes: &Routes,
    bot: &B,
    sender: Sender<'_>,
    target: &Target,
) -> Option<bool> {
    match bot.places(target) {
        Whereabouts::Places(places) => {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            Some(authorize(routes, sender, bot.platform(), bot.id(), &places))
        }
        Whereabouts::Unknown => None,
        Whereabouts::Nowhere => Some(false),
    }
}

/// The target of an action that can be taken at all.
fn usable(action: &Action) -> Result<Target, Refusal> {
    let unusable = |why: String| Err(Refusal::Unusable(why));
    match action {
        Action::Unreadable { reason, .. } => unusable(format!("this action cannot be read: {reason}")),
        Action::Send { content, .. }
        | Action::Edit { content, .. }
        | Action::Prompt { content, .. }
        | Action::Draft { content, .. }
        | Action::FollowUp { content, .. }
        | Action::SendMedia { content, .. }
            if content.len() > MAX_CONTENT =>
        {
            unusable(format!("the text is longer than {MAX_CONTENT} bytes"))
        }
        Action::FollowUp { .. } => Err(Refusal::InVault),
        Action::ThreadCreate { thread_name, .. } | Action::ThreadRename { thread_name, .. }
            if threads::clean(thread_name).is_none() =>
        {
            unusable("a thread needs a name".into())
        }
        Action::Prompt { .. } if let Err(why) = prompts::usable(action) => unusable(why.to_owned()),
        _ => Target::of(action).ok_or_else(|| Refusal::Unusable("this action names no chat".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn target(action: Value) -> Option<Target> {
        Target::of(&Action::from_value(action))
    }

    #[test]
    fn the_thread_is_part_of_the_target() {
        let with = |thread: Value| {
            target(json!({"op": "send", "chat_id": 7, "metadata": {"thread_id": thread}})).unwrap().thread_id
        };
        assert_eq!(with(json!("9")).as_deref(), Some("9"));
        assert_eq!(with(json!(9)).as_deref(), Some("9"));
        assert_eq!((with(json!("")), with(json!(null))), (None, None));
        assert!(with(json!(false)).is_some(), "that is not the absence of a thread");
        for odd in [json!([]), json!({"id": "9"})] {
            let odd = json!({"op": "send", "chat_id": 7, "metadata": {"thread_id": odd}});
            assert_eq!(target(odd), None, "and so is not written at all");
        }
        assert_eq!(target(json!({"op": "get_chat_info", "chat_id": "7"})), Some(Target::chat("7")));
        assert_eq!(target(json!({"op": "fly"})), None);
        let renamed = |thread: &str| {
            let elsewhere = json!({ "thread_id": "8" });
            target(
                json!({"op": "thread_rename", "chat_id": "7", "message_id": thread, "metadata": elsewhere}),
            )
        };
        assert_eq!(renamed("9"), Some(Target { chat_id: "7".into(), thread_id: Some("9".into()) }));
        assert_eq!(renamed("7"), Some(Target::chat("7")));
    }
}
