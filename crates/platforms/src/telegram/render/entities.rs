//! Styles as Telegram names them.

use angelia_contract::length::Unit;
use serde::Serialize;

/// What an entity does to its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A quotation; may hold any other kind, but no quotation.
    Blockquote,
    /// A link whose text is not its address.
    TextLink,
    /// Bold text, and headings.
    Bold,
    /// Italic text.
    Italic,
    /// Text that is struck through.
    Strikethrough,
    /// Code inside a line.
    Code,
    /// A block of code, or a table.
    Pre,
}

/// One style over one stretch of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entity {
    /// What it does.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Where it begins, in UTF-16 units.
    pub offset: u32,
    /// How long it is, in UTF-16 units.
    pub length: u32,
    /// Where a [`Kind::TextLink`] leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The language of a [`Kind::Pre`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// A style over bytes of the whole document, before it is cut.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The address of a link, the language of code.
    pub(super) detail: Option<String>,
}

impl Span {
    /// Bytes it takes as JSON at most.
    pub(super) fn weight(&self) -> usize {
        /// `{"type":"strikethrough","offset":4095,"length":4096,"language":""},`
        const FRAME: usize = 68;
        FRAME + self.detail.as_ref().map_or(0, String::len)
    }

    /// The entity for it, in UTF-16 units of the message it is in.
    pub(super) fn entity(self, shown: &str) -> Entity {
        // A message has 4096 units, so both fit.
        let units = |text: &str| Unit::Utf16.measure(text) as u32;
        let (offset, length) = (units(&shown[..self.start]), units(&shown[self.start..self.end]));
        let (url, language) = match self.kind {
            Kind::TextLink => (self.detail, None),
            _ => (None, self.detail),
        };
        Entity { kind: self.kind, offset, length, url, language }
    }

    /// What is missed most if it is left out comes first.
    pub(super) fn importance(&self) -> u8 {
        match self.kind {
            Kind::TextLink => 0,
            Kind::Pre => 1,
            Kind::Blockquote => 2,
            Kind::Code => 3,
            Kind::Bold => 4,
            Kind::Strikethrough => 5,
            Kind::Italic => 6,
        }
    }
}
