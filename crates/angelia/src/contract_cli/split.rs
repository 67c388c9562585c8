//! `angelia contract split`

use super::fields::Fields;
use super::write_json;
use angelia_contract::length::Unit;
use angelia_contract::split::{self, Part};
use serde::Serialize;

/// What `--help` shows.
pub(super) const EXAMPLES: &str = r#"Example:
  echo '{"text":"one two three four","limit":16,"unit":"chars"}' | angelia contract split
  {"parts":[{"text":"one two three ","added_front":0,"added_back":0},
            {"text":"four","added_front":0,"added_back":0}]}
  (on one line). Units are chars (code points, the default), utf16 and bytes."#;

#[derive(Serialize)]
struct Parts<'a> {
    parts: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    text: &'a str,
    added_front: usize,
    added_back: usize,
}

impl<'a> From<&'a Part> for Shown<'a> {
    fn from(part: &'a Part) -> Self {
        Self { text: &part.text, added_front: part.added_front, added_back: part.added_back }
    }
}

/// Cuts one text.
pub(super) fn answer(mut fields: Fields, out: &mut Vec<u8>) -> Result<(), String> {
    let text = fields.text("text")?;
    let limit = fields.opt_number("limit")?.ok_or("`limit` is missing")?;
    let unit = match fields.opt_text("unit")?.as_deref() {
        None | Some("chars") => Unit::Chars,
        Some("utf16") => Unit::Utf16,
        Some("bytes") => Unit::Bytes,
        Some(_) => return Err("`unit` must be chars, utf16 or bytes".into()),
    };
    fields.finish()?;
    let limit = usize::try_from(limit).map_err(|_| "`limit` is too large")?;
    let parts = split::split(&text, limit, unit).map_err(|error| error.to_string())?;
    write_json(out, &Parts { parts: parts.iter().map(Shown::from).collect() })
}
