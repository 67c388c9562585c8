//! What a file is: told by its first bytes, else by what was claimed of it and by its name.
//! And whether a page may show it in place. What a browser could run is never shown.

use crate::words::words;
use serde::{Deserialize, Serialize};

/// How much of a file is looked at. Every mark that is looked for lies within it.
pub const SNIFF_BYTES: usize = 512;

/// The longest media type that is believed: those of office documents have 73 characters.
const MAX_TYPE_CHARS: usize = 100;

/// Bytes of which nothing is known.
const OCTETS: &str = "application/octet-stream";

words! {
    /// As what a file is sent and shown.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum MediaKind {
        /// A picture.
        Image = "image",
        /// Somebody's voice, recorded to be heard as a message.
        Voice = "voice",
        /// Other sound.
        Audio = "audio",
        /// Moving pictures.
        Video = "video",
        /// Anything else.
        Document = "document",
    }
}

/// What may be shown in place: what browsers decode and never run.
const INLINE: [&str; 13] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "audio/mpeg",
    "audio/ogg",
    "audio/mp4",
    "audio/aac",
    "audio/wav",
    "audio/flac",
    "audio/webm",
    "video/mp4",
    "video/webm",
];

/// What is a recording if it is said to be one: the bytes do not tell that there is no picture.
const VOICE_CONTAINERS: [&str; 4] = ["application/ogg", "video/mp4", "video/webm", "video/3gpp"];

/// The first bytes of files that have the same ones always.
const MAGIC: [(&[u8], &str); 23] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"MThd\0\0\0\x06", "audio/midi"),
    (b"\0\0\x01\xba", "video/mpeg"),
    (b"\0\0\x01\xb3", "video/mpeg"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-asf"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"\x7fELF", "application/x-executable"),
];

/// What an extension says of a file of which nothing else is known.
const EXTENSIONS: [(&[&str], &str); 32] = [
    (&["jpg", "jpeg"], "image/jpeg"),
    (&["png"], "image/png"),
    (&["gif"], "image/gif"),
    (&["webp"], "image/webp"),
    (&["svg"], "image/svg+xml"),
    (&["ogg", "oga", "opus"], "audio/ogg"),
    (&["mp3"], "audio/mpeg"),
    (&["m4a"], "audio/mp4"),
    (&["wav"], "audio/wav"),
    (&["flac"], "audio/flac"),
    (&["aac"], "audio/aac"),
    (&["mp4"], "video/mp4"),
    (&["webm"], "video/webm"),
    (&["ogv"], "video/ogg"),
    (&["wmv"], "video/x-ms-wmv"),
    (&["wma"], "audio/x-ms-wma"),
    (&["pdf"], "application/pdf"),
    (&["txt", "log"], "text/plain"),
    (&["md"], "text/markdown"),
    (&["csv"], "text/csv"),
    (&["html", "htm"], "text/html"),
    (&["js", "mjs"], "text/javascript"),
    (&["json"], "application/json"),
    (&["xml"], "application/xml"),
    (&["zip"], "application/zip"),
    (&["doc"], "application/msword"),
    (&["xls"], "application/vnd.ms-excel"),
    (&["ppt"], "application/vnd.ms-powerpoint"),
    (&["docx"], "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (&["xlsx"], "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (&["pptx"], "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    (&["odt"], "application/vnd.oasis.opendocument.text"),
];

/// The elements by which browsers know a page, and some that can run something.
const HTML_TAGS: [&str; 30] = [
    "html", "head", "body", "script", "iframe", "style", "title", "h1", "div", "font", "table", "a", "b",
    "br", "p", "img", "link", "meta", "base", "object", "embed", "form", "input", "video", "audio", "span",
    "math", "template", "frameset", "center",
];

/// The media type that is kept of a file: what its first bytes are, else what was claimed or
/// what its name says, as far as the bytes do not speak against it. A picture, sound or film
/// that is none in its bytes is only bytes.
pub fn media_type(claimed: Option<&str>, name: &str, head: &[u8]) -> String {
    let claimed = claimed.and_then(well_formed).filter(|claimed| claimed != OCTETS);
    let said = claimed.or_else(|| by_extension(name)).unwrap_or_else(|| OCTETS.to_owned());
    match sniff(head) {
        Some(found) if bears_out(found, &said) => said,
        Some(found) => found.to_owned(),
        None if is_decoded(&said) => OCTETS.to_owned(),
        None => said,
    }
}

/// As what a file of that type is sent. A recording has to be said to be one.
pub fn kind_of(media_type: &str, voice: bool) -> MediaKind {
    let Some(media_type) = well_formed(media_type) else { return MediaKind::Document };
    if voice && (media_type.starts_with("audio/") || VOICE_CONTAINERS.contains(&media_type.as_str())) {
        return MediaKind::Voice;
    }
    match media_type.split('/').next() {
        _ if !is_decoded(&media_type) => MediaKind::Document,
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        _ => MediaKind::Video,
    }
}

/// As what a page shows a file of a type that [`media_type`] told: its bytes are what it says. Of what
/// is not only decoded it shows no more than that it is there.
pub fn shown_as(media_type: &str, voice: bool) -> MediaKind {
    if INLINE.contains(&media_type) { kind_of(media_type, voice) } else { MediaKind::Document }
}

/// A claimed type in lower case, without parameters and under its usual name; `None` if it is
/// none. The characters are those of RFC 6838, so `image/*` is none.
fn well_formed(claimed: &str) -> Option<String> {
    let bare = claimed.split(';').next()?.trim().to_ascii_lowercase();
    let (family, rest) = bare.split_once('/')?;
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    if bare.len() > MAX_TYPE_CHARS || !is_name(family) || !is_name(rest) {
        return None;
    }
    let usual = match bare.as_str() {
        "image/jpg" | "image/pjpeg" => "image/jpeg",
        "image/x-png" => "image/png",
        "audio/mp3" | "audio/x-mp3" | "audio/x-mpeg" => "audio/mpeg",
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
        "audio/x-flac" => "audio/flac",
        "audio/m4a" | "audio/x-m4a" => "audio/mp4",
        "audio/x-aac" | "audio/aacp" => "audio/aac",
        "audio/opus" => "audio/ogg",
        "video/x-m4v" => "video/mp4",
        "application/x-zip-compressed" => "application/zip",
        _ => return Some(bare),
    };
    Some(usual.to_owned())
}

fn by_extension(name: &str) -> Option<String> {
    let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
    let known = EXTENSIONS.iter().find(|(endings, _)| endings.contains(&extension.as_str()));
    known.map(|(_, media_type)| (*media_type).to_owned())
}

/// Whether a type is one that players and viewers decode, and whose bytes therefore show it.
fn is_decoded(media_type: &str) -> bool {
    ["image/", "audio/", "video/"].iter().any(|family| media_type.starts_with(family))
        && !is_active(media_type)
}

/// Whether a browser may run something in it.
fn is_active(media_type: &str) -> bool {
    media_type.ends_with("+xml")
        || media_type.ends_with("script")
        || ["text/html", "text/xml", "application/xml"].contains(&media_type)
}

/// Whether bytes in which `found` was found may well be what is said: the same, or what is
/// known of a container more precisely than the bytes tell.
fn bears_out(found: &str, said: &str) -> bool {
    found == said
        || match found {
            "video/mp4" => said == "audio/mp4",
            "video/3gpp" => said == "audio/3gpp",
            "video/webm" => said == "audio/webm",
            "video/x-matroska" => said == "audio/x-matroska",
            "video/x-ms-asf" => ["video/x-ms-wmv", "audio/x-ms-wma"].contains(&said),
            "application/ogg" => ["audio/ogg", "video/ogg"].contains(&said),
            "image/heic" => said == "image/heif",
            "application/zip" => {
                said.starts_with("application/vnd.")
                    || said.ends_with("+zip")
                    || said == "application/java-archive"
            }
            "application/x-ole-storage" => {
                said == "application/msword" || said.starts_with("application/vnd.ms-")
            }
            _ => is_active(found) && is_active(said),
        }
}

/// What the first bytes are; `None` where they do not tell.
fn sniff(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(SNIFF_BYTES)];
    let magic = || MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, found)| *found);
    // Markup is first: it may contain the marks of those that have theirs further inside.
    markup(head)
        .or_else(magic)
        .or_else(|| riff(head))
        .or_else(|| ogg(head))
        .or_else(|| mp4(head))
        .or_else(|| matroska(head).or_else(|| frames(head)).or_else(|| bitmap(head)))
}

/// HTML, SVG or XML, behind what may stand before it: a mark of the byte order, white space,
/// comments, and the declarations of XML.
fn markup(head: &[u8]) -> Option<&'static str> {
    let text = lower_case(head);
    let (mut rest, mut is_xml, mut is_commented) = (text.trim_ascii_start(), false, false);
    loop {
        let (skipped, end) = if rest.starts_with("<!--") {
            is_commented = true;
            (4, "-->")
        } else if rest.starts_with("<?xml") {
            is_xml = true;
            (5, "?>")
        } else if rest.starts_with("<!doctype") && !rest[9..].trim_ascii_start().starts_with("html") {
            is_xml = true;
            (9, ">")
        } else {
            break;
        };
        let after = rest[skipped..].split_once(end).map_or("", |(_, after)| after);
        rest = after.trim_ascii_start();
    }
    let root = rest.strip_prefix('<').unwrap_or_default();
    let name =
        root.split(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')).next().unwrap_or_default();
    let bare = name.rsplit(':').next().unwrap_or_default();
    match bare {
        "svg" => Some("image/svg+xml"),
        "html" if is_xml => Some("application/xhtml+xml"),
        _ if is_xml => Some("application/xml"),
        "!doctype" => Some("text/html"),
        _ if is_commented || HTML_TAGS.contains(&bare) => Some("text/html"),
        _ => None,
    }
}

/// The bytes as text in which ASCII can be looked for, in lower case. UTF-16 loses its zeros.
fn lower_case(head: &[u8]) -> String {
    let is_wide = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    let bytes = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(if is_wide { &head[2..] } else { head });
    let kept = bytes.iter().filter(|byte| !is_wide || **byte != 0);
    kept.map(|byte| char::from(byte.to_ascii_lowercase())).collect()
}

fn riff(head: &[u8]) -> Option<&'static str> {
    match (head.get(..4)?, head.get(8..12)?) {
        (b"RIFF", b"WEBP") => Some("image/webp"),
        (b"RIFF", b"WAVE") => Some("audio/wav"),
        (b"RIFF", b"AVI ") => Some("video/x-msvideo"),
        (b"FORM", b"AIFF" | b"AIFC") => Some("audio/aiff"),
        _ => None,
    }
}

/// Ogg says in its first packet, behind the table of its page, what is inside.
fn ogg(head: &[u8]) -> Option<&'static str> {
    let page = head.strip_prefix(b"OggS\0")?;
    let packet = page.get(22 + usize::from(*page.get(21)?)..).unwrap_or_default();
    let starts = |marks: &[&[u8]]| marks.iter().any(|mark| packet.starts_with(mark));
    if starts(&[b"OpusHead", b"\x01vorbis", b"Speex   ", b"\x7fFLAC"]) {
        Some("audio/ogg")
    } else if starts(&[b"\x80theora"]) {
        Some("video/ogg")
    } else {
        Some("application/ogg")
    }
}

/// The family of MP4 has its brands in a first box, which is short.
fn mp4(head: &[u8]) -> Option<&'static str> {
    let brands = head.strip_prefix(b"\0\0")?.get(2..)?.strip_prefix(b"ftyp")?;
    let size = usize::from(head[2]) << 8 | usize::from(head[3]);
    let brands = &brands[..brands.len().min(size.saturating_sub(8))];
    // The second word is a version. The first brand that is known decides.
    let words = brands.chunks_exact(4).enumerate().filter(|(at, _)| *at != 1);
    words.map(|(_, brand)| brand).find_map(|brand| match brand {
        b"M4A " | b"M4B " => Some("audio/mp4"),
        b"qt  " => Some("video/quicktime"),
        b"heic" | b"heix" | b"mif1" | b"msf1" => Some("image/heic"),
        b"avif" | b"avis" => Some("image/avif"),
        b"mp41" | b"mp42" | b"avc1" | b"M4V " | b"MSNV" | b"dash" => Some("video/mp4"),
        _ if brand.starts_with(b"iso") => Some("video/mp4"),
        _ if brand.starts_with(b"3g") => Some("video/3gpp"),
        _ => None,
    })
}

/// Matroska names its kind in the element `4282` of its header.
fn matroska(head: &[u8]) -> Option<&'static str> {
    let header = head.strip_prefix(b"\x1a\x45\xdf\xa3")?;
    let at = header.windows(2).position(|id| id == b"\x42\x82")?;
    let kind = header.get(at + 3..)?;
    if kind.starts_with(b"webm") {
        Some("video/webm")
    } else {
        kind.starts_with(b"matroska").then_some("video/x-matroska")
    }
}

/// MP3 and AAC without a header: a frame begins with set bits and fields that are not all valid.
fn frames(head: &[u8]) -> Option<&'static str> {
    let [0xff, kind, rates, ..] = *head else { return None };
    let (version, layer) = (kind >> 3 & 3, kind >> 1 & 3);
    if kind & 0xf6 == 0xf0 {
        return (rates >> 2 & 15 < 13).then_some("audio/aac");
    }
    let is_mpeg = kind & 0xe0 == 0xe0 && version != 1 && matches!(layer, 1 | 2);
    (is_mpeg && !matches!(rates >> 4, 0 | 15) && rates >> 2 & 3 != 3).then_some("audio/mpeg")
}

/// A bitmap begins with two letters, so its reserved zeros are asked for too.
fn bitmap(head: &[u8]) -> Option<&'static str> {
    (head.starts_with(b"BM") && head.get(6..10)? == [0; 4]).then_some("image/bmp")
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
