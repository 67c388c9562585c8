//! Which capability an answer uses.

use super::key::{Named, names};
use super::{Capability, CapabilityId, Stage, Use};
use crate::clock::UnixMillis;

/// A message an agent sends, as far as it may answer an interaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answering {
    /// The chat that is really written to: of a thread, the thread.
    pub chat_id: String,
    /// A capability it names outright, by `follow_up`.
    pub named: Option<CapabilityId>,
    /// The message it answers.
    pub reply_to: Option<String>,
    /// Whether it is meant for the person, and not a remark of the gateway's own.
    pub notify: bool,
    /// The person it is for, if it says so.
    pub user_id: Option<String>,
}

/// The capability that a `send` into the chat of `all` uses: the one it answers;
/// or, if it names no message and is meant for the person, the one that waits
/// for longest. `all` are the capabilities of the sender's instance there.
pub fn choose_for_send(all: &[Capability], answering: &Answering, now: UnixMillis) -> Option<Use> {
    let live = || all.iter().filter(|it| it.is_live(now) && it.stage != Stage::Noticed);
    let chosen = if let Some(named) = answering.named {
        live().find(|it| it.id == named)
    } else if let Some(answered) = &answering.reply_to {
        live().find(|it| it.interaction_id == *answered)
    } else if answering.notify {
        let is_for = |it: &&Capability| answering.user_id.as_ref().is_none_or(|user| *user == it.user_id);
        live().filter(|it| it.stage == Stage::Open).filter(is_for).min_by_key(|it| it.id)
    } else {
        None
    };
    chosen.map(|it| Use { capability: it.id, way: it.way() })
}

/// The capability that a `follow_up` naming `key` uses: the newest of that
/// conversation. A key that names no person is only clear if one interaction
/// waits; a private chat's is clear as long as all of them are of one person.
/// `all` are the capabilities of the sender's instance.
pub fn choose_for_key<'a>(
    all: &'a [Capability],
    kind: &str,
    key: &str,
    now: UnixMillis,
) -> Option<&'a Capability> {
    let live = all.iter().filter(|it| it.kind == kind && it.is_live(now) && it.stage != Stage::Noticed);
    let matching: Vec<_> = live.filter_map(|it| names(key, it).map(|named| (named, it))).collect();
    let (named, newest) = matching.iter().max_by_key(|(_, it)| it.id)?;
    let is_clear = match named {
        Named::Person => true,
        Named::Private => matching.iter().all(|(_, it)| it.user_id == newest.user_id),
        Named::Chat => matching.len() == 1,
    };
    is_clear.then_some(newest)
}
