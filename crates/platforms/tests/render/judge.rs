//! The laws every rendered document keeps.

use angelia_platforms::telegram::render::{Entity, Kind, MAX_ENTITIES, MAX_ENTITY_BYTES, MAX_UNITS, Part};

/// What is wrong with the parts of a document.
pub(crate) fn verdict(markdown: &str, parts: &[Part]) -> Result<(), String> {
    for part in parts {
        one(part).map_err(|wrong| format!("{wrong}: {part:?}"))?;
    }
    sources(markdown, parts)
}

fn one(part: &Part) -> Result<(), String> {
    let units: Vec<u16> = part.text.encode_utf16().collect();
    ensure(!units.is_empty() && units.len() <= MAX_UNITS, "the length")?;
    ensure(part.text.trim() == part.text, "white space around the text")?;
    ensure(!part.text.contains(['\r', '\0', '\u{202e}']), "a character Telegram takes out")?;
    ensure(part.source.encode_utf16().count() <= MAX_UNITS, "the source's length")?;
    ensure(!part.source.trim().is_empty(), "a source of nothing")?;
    ensure(part.entities.len() <= MAX_ENTITIES, "the number of entities")?;
    let json = serde_json::to_string(&part.entities).unwrap();
    ensure(json.len() <= MAX_ENTITY_BYTES + 2, "the size of the entities")?;
    for (number, entity) in part.entities.iter().enumerate() {
        covers_words(entity, &units)?;
        for later in &part.entities[number + 1..] {
            together(entity, later)?;
        }
    }
    Ok(())
}

fn covers_words(entity: &Entity, units: &[u16]) -> Result<(), String> {
    let (start, end) = (entity.offset as usize, (entity.offset + entity.length) as usize);
    ensure(entity.length > 0 && end <= units.len(), "an entity out of range")?;
    let covered =
        String::from_utf16(&units[start..end]).map_err(|_| "an entity cuts a character".to_owned())?;
    ensure(covered.trim_end() == covered, "an entity with white space at its end")?;
    let block = matches!(entity.kind, Kind::Pre | Kind::Blockquote) && start > 0;
    ensure(block || covered.trim_start() == covered, "an entity with white space at its start")?;
    ensure(entity.url.is_some() == (entity.kind == Kind::TextLink), "an address")?;
    ensure(entity.language.is_none() || entity.kind == Kind::Pre, "a language")
}

/// Two entities of a message, sorted as they are there.
fn together(a: &Entity, b: &Entity) -> Result<(), String> {
    ensure(a.offset <= b.offset, "the order")?;
    let (a_end, b_end) = (a.offset + a.length, b.offset + b.length);
    if b.offset >= a_end {
        return Ok(());
    }
    ensure(b_end <= a_end, "crossing entities")?;
    ensure(a.kind != b.kind, "an entity in one of its kind")?;
    let whole = |entity: &Entity| matches!(entity.kind, Kind::Code | Kind::Pre);
    ensure(!whole(a), "an entity in code")?;
    ensure(!whole(b) || a.kind == Kind::Blockquote, "code in an entity")?;
    ensure(b.kind != Kind::Blockquote, "a quotation in an entity")
}

/// Sources are stretches of the Markdown in order, without a gap; only one
/// that is too long or blank is replaced by the text, which takes a document
/// that is so itself.
fn sources(markdown: &str, parts: &[Part]) -> Result<(), String> {
    let blank = markdown.chars().all(|c| c.is_whitespace() || c.is_control());
    let special = blank || markdown.encode_utf16().count() > MAX_UNITS;
    let (mut at, mut replaced) = (0, false);
    for part in parts {
        let found = markdown[at..].find(&part.source);
        if found.is_some_and(|gap| gap == 0 || replaced) {
            at += found.unwrap_or_default() + part.source.len();
        } else {
            ensure(special && part.source == part.text, "a source that is not there")?;
        }
        replaced |= special && part.source == part.text;
    }
    ensure(replaced || parts.is_empty() || at == markdown.len(), "sources that do not cover the Markdown")
}

fn ensure(good: bool, what: &str) -> Result<(), String> {
    if good { Ok(()) } else { Err(what.to_owned()) }
}
