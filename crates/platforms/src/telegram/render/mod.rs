//! What an agent writes becomes text with `entities`, cut into messages.
//!
//! Agents write Markdown: CommonMark with the strikethrough, tables and task
//! lists of GitHub. Telegram's own Markdown refuses a message for one missing
//! escape, so nothing is escaped here: the markup is read, taken off, and what
//! it meant is said beside the text in UTF-16 offsets. Any input gives parts
//! that Telegram takes; a document that shows nothing when rendered (a lone
//! `#` while an answer streams) is shown as it was typed.

mod address;
mod cut;
mod entities;
mod markdown;
mod table;
mod visible;
mod writer;

pub use entities::{Entity, Kind};

/// What Telegram takes in one message, in UTF-16 units.
pub const MAX_UNITS: usize = 4096;

/// What Telegram looks at in one message; further entities it ignores.
pub const MAX_ENTITIES: usize = 100;

/// How large the entities of one message may be as JSON.
///
/// Telegram refuses messages whose entities take about ten thousand bytes; the
/// exact figure is not documented, so there is a margin.
pub const MAX_ENTITY_BYTES: usize = 9_000;

/// One message's worth of text with its styles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The text, without white space at either end.
    pub text: String,
    /// Its styles, outer ones first.
    pub entities: Vec<Entity>,
    /// The untouched Markdown this part came from: what goes out plain if
    /// Telegram refuses. The rendered text where the Markdown is too long.
    pub source: String,
}

/// Renders Markdown and cuts it into messages.
///
/// Every part has 1 to [`MAX_UNITS`] units of text and at most
/// [`MAX_ENTITIES`] entities. There is none if nothing can be seen.
pub fn render(markdown: &str) -> Vec<Part> {
    let styled = markdown::read(markdown);
    if visible::any(&styled.text) {
        return cut::parts(&styled, markdown);
    }
    cut::parts(&markdown::as_typed(markdown), markdown)
}
