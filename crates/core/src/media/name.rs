//! The name of a file as strangers gave it, made safe to show, to save, and to put into the
//! `Content-Disposition` header of an answer.

use crate::visible::is_hidden;
use std::fmt::Write;

/// The characters that a name may have: as much as is read in a line.
const MAX_CHARS: usize = 120;

/// The bytes that it may have as UTF-8. File systems take 255; the rest is for whoever saves
/// it with something in front or behind, such as ` (1)` or `.part`.
const MAX_BYTES: usize = 200;

/// The longest ending that tells what a file is, such as `numbers`; beyond it is a text with a dot.
const MAX_EXTENSION_CHARS: usize = 10;

/// What Windows takes for a device, whatever extension follows.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// The same with a digit behind.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// The name that is shown and saved for the one that was `given`: of a path the last part,
/// without what hides, steers or is refused by a file system. The media type tells the
/// extension where nothing is left of it. A safe name stays as it is.
pub fn safe_name(given: &str, media_type: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last.chars().filter_map(cleaned).collect();
    let bare = clean.trim_matches(is_edge);
    if bare.is_empty() {
        return format!("file{}", extension_for(media_type));
    }
    let short = shortened(bare);
    if is_device(&short) { shortened(&format!("_{short}")) } else { short }
}

/// The value of a `Content-Disposition` header for a file of that name: to be shown in place
/// or to be saved. Clients that know only ASCII read a name with `_` for the rest.
pub fn disposition(name: &str, inline: bool) -> String {
    let way = if inline { "inline" } else { "attachment" };
    // Nothing for a name that is safe already. For another it is what keeps the header whole.
    let name = safe_name(name, "");
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let mut value = format!("{way}; filename=\"{plain}\"");
    if plain != name {
        value.push_str("; filename*=UTF-8''");
        percent_encode(&name, &mut value);
    }
    value
}

/// The character that stands for this one; `None` where nothing does.
fn cleaned(c: char) -> Option<char> {
    match c {
        _ if c.is_control() || is_hidden(c) => None,
        '<' | '>' | ':' | '"' | '|' | '?' | '*' => Some('_'),
        _ if c.is_whitespace() => Some(' '),
        _ => Some(c),
    }
}

/// What no name begins or ends with: a leading dot hides a file, trailing ones Windows drops.
fn is_edge(c: char) -> bool {
    c == '.' || c.is_whitespace()
}

/// The name within both bounds. What is too long is cut before its extension.
fn shortened(name: &str) -> String {
    if name.len() <= MAX_BYTES && name.chars().count() <= MAX_CHARS {
        return name.to_owned();
    }
    let (stem, extension) = split_extension(name);
    let chars = MAX_CHARS - extension.chars().count();
    let bytes = MAX_BYTES - extension.len();
    let fitting = stem.char_indices().take(chars).map(|(at, c)| at + c.len_utf8());
    let end = fitting.take_while(|end| *end <= bytes).last().unwrap_or_default();
    format!("{}{extension}", stem[..end].trim_end_matches(is_edge))
}

/// The name and its extension, with the dot; an empty one where there is none.
fn split_extension(name: &str) -> (&str, &str) {
    let Some(dot) = name.rfind('.') else { return (name, "") };
    let (stem, extension) = name.split_at(dot);
    let letters = &extension[1..];
    let short = letters.chars().count() <= MAX_EXTENSION_CHARS;
    if short && !letters.is_empty() && letters.chars().all(char::is_alphanumeric) {
        (stem, extension)
    } else {
        (name, "")
    }
}

/// Whether Windows opens a device instead of a file of that name.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = NUMBERED_DEVICES.iter().filter_map(|device| stem.strip_prefix(device));
    DEVICES.contains(&stem.as_str()) || numbered.into_iter().any(is_device_number)
}

/// One digit; Windows counts the raised ones of Latin-1 among them.
fn is_device_number(rest: &str) -> bool {
    let mut chars = rest.chars();
    matches!((chars.next(), chars.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
}

/// The extension for a file of which only the media type is known.
fn extension_for(media_type: &str) -> &'static str {
    let bare = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        "image/jpeg" => ".jpg",
        "image/png" => ".png",
        "image/gif" => ".gif",
        "image/webp" => ".webp",
        "audio/ogg" => ".ogg",
        "audio/mpeg" => ".mp3",
        "audio/mp4" => ".m4a",
        "video/mp4" => ".mp4",
        "application/pdf" => ".pdf",
        "text/plain" => ".txt",
        _ => ".bin",
    }
}

/// Whether every client reads a character between quotes as what it is. Some decode `%41` there.
fn is_plain(c: char) -> bool {
    (c == ' ' || c.is_ascii_graphic()) && !matches!(c, '"' | '\\' | '%')
}

/// Writes a value as RFC 5987 has it: everything but its `attr-char` as bytes in hexadecimal.
fn percent_encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
