//! The least of XML that callbacks need: a root and the texts of its children.
//!
//! The envelope of a callback has to be read before it can be verified, because
//! what is signed is inside it. So there is no DTD here, no entity but the five
//! of XML itself, nothing that grows, and no attribute is looked at.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// How deep elements may be in each other; WeCom's are four deep.
const MAX_DEPTH: usize = 8;
/// Children that are read; WeCom's longest messages have some twenty.
const MAX_FIELDS: usize = 64;

/// Why something is not such a document. It quotes nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) &'static str);

/// The texts of a root's children.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The text of the first child of this name, without white space around it.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, text)| text.trim()).filter(|text| !text.is_empty())
    }

    /// The same as it was written.
    pub(super) fn exact(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str())
    }
}

/// Reads a document.
pub(super) fn read(bytes: &[u8]) -> Result<Fields, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unreadable("it is not UTF-8"))?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut walk = Walk::default();
    loop {
        match reader.read_event().map_err(|_| Unreadable("it is not XML"))? {
            Event::Eof => return walk.end(),
            event => walk.step(event)?,
        }
    }
}

/// How far a document is read.
#[derive(Default)]
struct Walk {
    depth: usize,
    began: bool,
    fields: Fields,
}

impl Walk {
    fn step(&mut self, event: Event<'_>) -> Result<(), Unreadable> {
        match event {
            Event::Start(tag) => {
                self.open(tag.name().as_ref())?;
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(Unreadable("its elements are too deep in each other"));
                }
            }
            Event::Empty(tag) => self.open(tag.name().as_ref())?,
            Event::End(_) => self.depth = self.depth.saturating_sub(1),
            Event::Text(text) => self.write(&text.xml10_content())?,
            Event::CData(text) => self.write(&text.xml10_content())?,
            Event::GeneralRef(reference) => self.write(resolved(&reference)?.encode_utf8(&mut [0; 4]))?,
            Event::Decl(_) | Event::Comment(_) => {}
            Event::DocType(_) => return Err(Unreadable("it has a DTD")),
            Event::PI(_) => return Err(Unreadable("it has a processing instruction")),
            Event::Eof => {}
        }
        Ok(())
    }

    fn open(&mut self, name: impl AsRef<[u8]>) -> Result<(), Unreadable> {
        let name = name.as_ref();
        match self.depth {
            0 if self.began || name != b"xml" => Err(Unreadable("its root is not one xml element")),
            0 => {
                self.began = true;
                Ok(())
            }
            1 if self.fields.0.len() >= MAX_FIELDS => Err(Unreadable("it has too many fields")),
            1 => {
                self.fields.0.push((String::from_utf8_lossy(name).into_owned(), String::new()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Unreadable> {
        match (self.depth, self.fields.0.last_mut()) {
            (2, Some((_, field))) => field.push_str(text),
            (0, _) if !text.trim().is_empty() => return Err(Unreadable("there is text outside of its root")),
            _ => {}
        }
        Ok(())
    }

    fn end(self) -> Result<Fields, Unreadable> {
        if self.began && self.depth == 0 { Ok(self.fields) } else { Err(Unreadable("it ends too early")) }
    }
}

/// The character behind a reference.
fn resolved(reference: &BytesRef<'_>) -> Result<char, Unreadable> {
    let number = reference.resolve_char_ref().map_err(|_| Unreadable("it refers to no character"))?;
    let named = match &*reference.xml10_content() {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "apos" => Some('\''),
        "quot" => Some('"'),
        _ => None,
    };
    number.or(named).ok_or(Unreadable("it has an entity of its own"))
}

#[cfg(test)]
#[path = "xml_tests.rs"]
mod tests;
