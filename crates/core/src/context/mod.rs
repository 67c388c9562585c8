//! What an agent in company gets to know of what was not said to it: the lines just before,
//! and what a reply refers to (docs/decisions/0051).
//!
//! Lines are kept in memory only, for as long as they are worth anything; [`RecentLines`] has
//! them. Who may be heard is [`Audience`](crate::admission::Audience)'s to say, when a line is
//! kept and once more when it is used.

mod recent;
#[cfg(test)]
mod tests;

pub use recent::{Asking, ChatKey, RecentLines};

use crate::admission::may_hold_code;
use crate::clock::UnixMillis;
use angelia_contract::event::{ContextItem, ContextSource, Event, ReplyTo};
use serde_json::Map;
use std::time::Duration;

angelia_contract::limits! {
    /// What was said longer ago is another matter.
    pub const KEPT_FOR: Duration = Duration::from_secs(30 * 60), time "what was said in company is remembered for whoever is asked next";
    /// As much as is needed to know what it was about; the rest is cut off. Replies show as much of what they refer to.
    pub const LINE_CHARS: usize = 500, count "characters of a line that was not for the agent";
    /// An event is read by a model, which pays for each of them. The oldest lines stay out.
    pub const EVENT_BYTES: usize = 16 * 1024, bytes "lines that go along with one event";
    /// A hundred lines of the longest sort. Beyond it the oldest go.
    pub const CHAT_BYTES: usize = 64 * 1024, bytes "lines remembered of one chat";
    /// Chats in which nobody spoke for longest are forgotten first, of the same tenant.
    pub const TENANT_BYTES: usize = 1024 * 1024, bytes "lines remembered for one tenant";
    /// The same over all tenants.
    pub const ALL_BYTES: usize = 16 * 1024 * 1024, bytes "lines remembered for all tenants together";
}

/// Longest name that is shown; platforms have shorter ones.
const NAME_CHARS: usize = 64;
/// Longest id of a message or a person that is remembered.
const ID_BYTES: usize = 128;
/// What stands for the end of a line within one: whoever speaks must not seem to be two.
const LINE_END: &str = " ⏎ ";
/// What comes before the name of whoever wrote what is replied to, where only lines are read.
const IN_REPLY_TO: &str = "(in reply to) ";
/// Whoever is the bot itself, there.
const OWN: &str = "you";

/// Something that was said in company, and not to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The provider's id of it.
    pub message_id: String,
    /// Who said it.
    pub author: String,
    /// Whether that is a bot.
    pub author_is_bot: bool,
    /// What the others there call them.
    pub name: Option<String>,
    /// What was said, in one line.
    pub text: String,
    /// When, by the provider's clock where it tells.
    pub at: UnixMillis,
}

impl Said {
    /// What is remembered of an event; `None` if nothing: a command is for somebody else, and a
    /// code for nobody.
    pub fn of(event: &Event, author: &str, author_is_bot: bool, at: UnixMillis) -> Option<Self> {
        let message_id = event.message_id.clone().filter(|id| id.len() <= ID_BYTES)?;
        let name = event.source.user_display_name.as_ref().or(event.source.user_name.as_ref());
        let name = name.map(|name| in_one_line(name, NAME_CHARS)).filter(|name| !name.is_empty());
        let text = worth_telling(&event.text)?;
        let author = Some(author.to_owned()).filter(|author| author.len() <= ID_BYTES)?;
        Some(Self { message_id, author, author_is_bot, name, text, at })
    }

    /// What a gateway reads of it.
    pub fn item(&self) -> ContextItem {
        let source = ContextSource {
            user_name: self.name.clone(),
            user_id: Some(self.author.clone()),
            extra: Map::new(),
        };
        ContextItem { text: self.text.clone(), source, extra: Map::new() }
    }

    fn bytes(&self) -> usize {
        let name = self.name.as_ref().map_or(0, String::len);
        self.message_id.len() + self.author.len() + name + self.text.len()
    }
}

/// A text as it is remembered; `None` if it is not.
pub fn worth_telling(text: &str) -> Option<String> {
    let is_command = text.trim_start().starts_with('/');
    let text = in_one_line(text, LINE_CHARS);
    (!text.is_empty() && !is_command && !may_hold_code(&text)).then_some(text)
}

/// What is shown of a message that is replied to; `None` if nothing is.
pub fn quoted(text: &str) -> Option<String> {
    (!text.is_empty() && !may_hold_code(text)).then(|| cut(text, LINE_CHARS))
}

/// At most so many characters; what was longer ends with an ellipsis.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A text without the ends of its lines, and no longer than that.
fn in_one_line(text: &str, most: usize) -> String {
    let is_end = |c: char| c.is_control() && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}');
    let pieces = text.split(is_end).map(str::trim).filter(|piece| !piece.is_empty());
    cut(&pieces.collect::<Vec<_>>().join(LINE_END), most)
}

/// Says with a last line of its context what an event refers to, for gateways that read lines
/// and no `reply_to`.
pub fn reply_as_line(event: &mut Event) {
    let Some(ReplyTo { text: Some(text), author, is_own, .. }) = &event.reply_to else { return };
    let author = author.as_deref().filter(|_| !is_own).unwrap_or(if *is_own { OWN } else { "somebody" });
    let name = format!("{IN_REPLY_TO}{}", in_one_line(author, NAME_CHARS));
    let source = ContextSource { user_name: Some(name), ..ContextSource::default() };
    let text = in_one_line(text, LINE_CHARS);
    event.context.push(ContextItem { text, source, extra: Map::new() });
}

/// As many of these lines as may go along with one event: the newest.
#[must_use]
pub fn newest(mut lines: Vec<ContextItem>) -> Vec<ContextItem> {
    let mut room = EVENT_BYTES;
    let fits = |line: &&ContextItem| {
        let name = line.source.user_name.as_ref().map_or(0, String::len);
        let left = room.checked_sub(line.text.len() + name);
        left.map(|left| room = left).is_some()
    };
    let kept = lines.iter().rev().take_while(fits).count();
    lines.split_off(lines.len() - kept)
}
