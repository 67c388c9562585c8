use super::*;
use proptest::prelude::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const OPUS: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead\x01\x01";
const ISOM: &[u8] = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41";
const WEBM: &[u8] =
    b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm";
const ZIP: &[u8] = b"PK\x03\x04\x14\0\x06\0";
const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// What may be shown in place, and the bytes it really begins with.
const SHOWN: [(&str, &[u8]); 15] = [
    ("image/png", PNG),
    ("image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF\0"),
    ("image/gif", b"GIF89a\x01\0\x01\0"),
    ("image/gif", b"GIF87a\x01\0\x01\0"),
    ("image/webp", b"RIFF\x24\0\0\0WEBPVP8 "),
    ("audio/mpeg", b"ID3\x04\0\0\0\0\0\0"),
    ("audio/mpeg", b"\xff\xfb\x90\x64\0\0"),
    ("audio/ogg", OPUS),
    ("audio/mp4", b"\0\0\0\x1cftypM4A \0\0\x02\0M4A isomiso2"),
    ("audio/aac", b"\xff\xf1\x50\x80\x02\x1f\xfc"),
    ("audio/wav", b"RIFF\x24\0\0\0WAVEfmt "),
    ("audio/flac", b"fLaC\0\0\0\x22"),
    ("video/mp4", ISOM),
    ("video/mp4", b"\0\0\0\x18ftypXXXX\0\0\0\0mp42isom"),
    ("video/webm", WEBM),
];

/// What is known by its bytes and only saved.
const SAVED: [(&str, &[u8]); 18] = [
    ("image/bmp", b"BM\x46\0\0\0\0\0\0\0\x36\0"),
    ("image/tiff", b"II*\0\x08\0\0\0"),
    ("image/heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
    ("image/avif", b"\0\0\0\x18ftypavif\0\0\0\0avifmif1"),
    ("audio/amr", b"#!AMR\n<\x91"),
    ("audio/aiff", b"FORM\0\0\0\x2eAIFFCOMM"),
    ("video/quicktime", b"\0\0\0\x14ftypqt  \0\0\x02\0qt  "),
    ("video/3gpp", b"\0\0\0\x18ftyp3gp4\0\0\0\0isom3gp4"),
    ("video/ogg", b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x2a\x80theora"),
    ("application/ogg", b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x40fishead\0"),
    ("video/x-matroska", b"\x1a\x45\xdf\xa3\xa3\x42\x82\x88matroska"),
    ("video/x-msvideo", b"RIFF\x24\0\0\0AVI LIST"),
    ("application/pdf", b"%PDF-1.7\n"),
    ("application/zip", ZIP),
    ("application/gzip", b"\x1f\x8b\x08\0"),
    ("application/x-7z-compressed", b"7z\xbc\xaf\x27\x1c\0\x04"),
    ("application/x-ole-storage", OLE),
    ("application/x-executable", b"\x7fELF\x02\x01"),
];

/// Pages and drawings, with what can stand before them.
const MARKUP: [(&str, &[u8]); 17] = [
    ("text/html", b"<!DOCTYPE html><title>x"),
    ("text/html", b"<html>"),
    ("text/html", b"<script>alert(1)</script>"),
    ("text/html", b"<IMG/src=x onerror=alert(1)>"),
    ("text/html", b" \r\n\t\x0c<ScRiPt >"),
    ("text/html", b"\xef\xbb\xbf<script>"),
    ("text/html", b"\xef\xbb\xbf \n<!-- a --> <!-- b -->\n<script>"),
    ("text/html", b"<!-- a comment without an end"),
    ("text/html", b"\xff\xfe<\0s\0c\0r\0i\0p\0t\0>\0"),
    ("text/html", b"\xfe\xff\0<\0h\0t\0m\0l\0>"),
    ("text/html", b"<!--ftypisom--><script>"),
    ("image/svg+xml", b"<svg onload=alert(1)>"),
    ("image/svg+xml", b"<?xml version=\"1.0\"?><!-- x --><!DOCTYPE svg PUBLIC \"x\"><svg xmlns=\"y\">"),
    ("image/svg+xml", b"<s:svg xmlns:s=\"http://www.w3.org/2000/svg\">"),
    ("application/xhtml+xml", b"<?xml version=\"1.0\"?><html xmlns=\"x\">"),
    ("application/xml", b"<?xml version=\"1.0\"?><rss>"),
    ("application/xml", b"<?xml "),
];

#[test]
fn the_bytes_tell_whatever_was_claimed() {
    for (media_type_of, head) in SHOWN.iter().chain(&SAVED) {
        for claimed in [None, Some("text/plain"), Some("text/html"), Some("image/x-other"), Some("nonsense")]
        {
            assert_eq!(media_type(claimed, "a.txt", head), *media_type_of, "{claimed:?} {head:?}");
        }
    }
}

/// Whether a file is shown in place, whatever is claimed of it.
fn in_place(claimed: &str, head: &[u8]) -> bool {
    shown_as(&media_type(Some(claimed), "", head), false) != MediaKind::Document
}

#[test]
fn only_what_is_decoded_is_shown_in_place() {
    for (shown, head) in SHOWN {
        for claimed in [shown, "text/html", "nonsense", &format!("{shown}; a=b").to_uppercase()] {
            assert!(in_place(claimed, head), "{claimed}");
        }
        assert!(!in_place(shown, b"") && !in_place(shown, b"just words"), "{shown}");
        for (other, other_head) in SAVED.iter().chain(&MARKUP) {
            let is_unknown_ogg = (shown, *other) == ("audio/ogg", "application/ogg");
            assert_eq!(in_place(shown, other_head), is_unknown_ogg, "{shown} {other}");
            assert!(!in_place(other, other_head), "{other}");
        }
    }
    assert!(in_place("audio/x-wav", b"RIFF\x24\0\0\0WAVEfmt "), "by another name");
    assert_eq!(shown_as("audio/webm", true), MediaKind::Voice);
    assert_eq!(shown_as("image/svg+xml", false), MediaKind::Document);
}

#[test]
fn markup_is_never_something_harmless() {
    for (found, head) in MARKUP {
        for claimed in
            [None, Some("image/png"), Some("text/plain"), Some("audio/ogg"), Some("application/pdf")]
        {
            for name in ["cat.png", "a.txt", "a"] {
                let kept = media_type(claimed, name, head);
                assert_eq!(kept, found, "{claimed:?} {name} {head:?}");
                assert_eq!(kind_of(&kept, false), MediaKind::Document);
            }
        }
        for claimed in ["text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "text/javascript"]
        {
            assert_eq!(media_type(Some(claimed), "a.png", head), claimed);
        }
    }
    let odd = b"<x onclick=alert(1)>";
    assert_eq!(media_type(Some("image/png"), "a.png", odd), OCTETS);
    assert_eq!(media_type(Some("text/plain"), "a", b"<3 and <ann@example.com>"), "text/plain");
}

#[test]
fn a_picture_with_a_script_inside_is_a_picture() {
    let head = b"GIF89a/*<script>alert(1)</script>*/=1;";
    for claimed in ["text/html", "text/javascript", "image/gif", "image/svg+xml"] {
        assert_eq!(media_type(Some(claimed), "a.html", head), "image/gif");
    }
    let mut late = vec![b' '; SNIFF_BYTES];
    late.extend(PNG);
    assert_eq!(media_type(Some("image/png"), "a.png", &late), OCTETS, "not at its beginning");
}

#[test]
fn what_the_bytes_do_not_tell_is_believed_if_nothing_decodes_it() {
    let words = b"some words";
    for (claimed, name, kept) in [
        (Some("text/plain"), "", "text/plain"),
        (Some(" Text/CSV; charset=utf-8"), "", "text/csv"),
        (Some("text/html"), "a.png", "text/html"),
        (Some("image/svg+xml"), "", "image/svg+xml"),
        (Some("text/javascript"), "", "text/javascript"),
        (Some("application/pdf"), "", "application/pdf"),
        (Some("image/png"), "a.txt", OCTETS),
        (Some("audio/x-unheard"), "", OCTETS),
        (Some("video/mp4"), "", OCTETS),
        (Some("application/octet-stream"), "a.md", "text/markdown"),
        (None, "A.JSON", "application/json"),
        (None, "cat.png", OCTETS),
        (None, "a.unheard", OCTETS),
        (None, "", OCTETS),
    ] {
        assert_eq!(media_type(claimed, name, words), kept, "{claimed:?} {name}");
    }
    for bad in [
        "",
        "text",
        "/",
        "text/",
        "/plain",
        "a/b/c",
        "image/*",
        "text/pl ain",
        "text/plain\r\nx",
        "tëxt/plain",
    ] {
        assert_eq!(media_type(Some(bad), "a.csv", words), "text/csv", "{bad:?}");
    }
    let longest = format!("a/{}", "b".repeat(MAX_TYPE_CHARS - 2));
    assert_eq!(media_type(Some(&longest), "", words), longest);
    assert_eq!(media_type(Some(&format!("{longest}b")), "", words), OCTETS);
}

#[test]
fn a_container_is_what_is_said_of_it() {
    for (claimed, name, head, kept) in [
        (Some(DOCX), "", ZIP, DOCX),
        (None, "a.docx", ZIP, DOCX),
        (Some("application/epub+zip"), "", ZIP, "application/epub+zip"),
        (Some("application/pdf"), "", ZIP, "application/zip"),
        (Some("application/msword"), "", OLE, "application/msword"),
        (None, "a.xls", OLE, "application/vnd.ms-excel"),
        (Some("audio/mp4"), "", ISOM, "audio/mp4"),
        (Some("audio/x-m4a"), "", ISOM, "audio/mp4"),
        (Some("audio/webm;codecs=opus"), "", WEBM, "audio/webm"),
        (Some("audio/opus"), "", OPUS, "audio/ogg"),
        (Some("video/webm"), "", ISOM, "video/mp4"),
    ] {
        assert_eq!(media_type(claimed, name, head), kept, "{claimed:?} {name}");
    }
    assert!(in_place("audio/mp4", ISOM));
}

#[test]
fn an_empty_file_is_no_picture() {
    assert_eq!(media_type(Some("image/png"), "a.png", b""), OCTETS);
    assert_eq!(media_type(None, "", b""), OCTETS);
    assert_eq!(media_type(Some("text/plain"), "", b""), "text/plain");
}

#[test]
fn marks_that_almost_are_there_tell_nothing() {
    let near: [&[u8]; 9] = [
        b"\xff\xfeh\0i\0",
        b"\xff\xff\xff",
        b"\xff\xfb\xf0",
        b"\xff\xf1\xff",
        b"BMW is a car",
        b"RIFF\0\0\0\0",
        b"OggS",
        b"\0\0\0\x08ftypisom",
        b"\x1a\x45\xdf\xa3\x42\x82",
    ];
    for head in near {
        assert_eq!(sniff(head), None, "{head:?}");
    }
}

#[test]
fn a_file_is_sent_as_what_it_is() {
    for (of, kind, spoken) in [
        ("image/png", MediaKind::Image, MediaKind::Image),
        ("image/svg+xml", MediaKind::Document, MediaKind::Document),
        ("audio/ogg", MediaKind::Audio, MediaKind::Voice),
        ("audio/amr", MediaKind::Audio, MediaKind::Voice),
        ("video/webm", MediaKind::Video, MediaKind::Voice),
        ("video/quicktime", MediaKind::Video, MediaKind::Video),
        ("application/pdf", MediaKind::Document, MediaKind::Document),
        ("text/html", MediaKind::Document, MediaKind::Document),
        ("", MediaKind::Document, MediaKind::Document),
    ] {
        assert_eq!((kind_of(of, false), kind_of(of, true)), (kind, spoken), "{of}");
    }
}

#[test]
fn a_kind_is_one_word() {
    for kind in MediaKind::ALL {
        assert_eq!(MediaKind::parse(kind.as_str()), Some(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    assert_eq!(MediaKind::parse("sticker"), None);
}

proptest! {
    #[test]
    fn any_bytes_are_something(claimed in any::<Option<String>>(), name in any::<String>(), head in any::<Vec<u8>>()) {
        let kept = media_type(claimed.as_deref(), &name, &head);
        prop_assert_eq!(well_formed(&kept), Some(kept.clone()));
    }

    /// Whatever stands behind a beginning of markup, and whatever is claimed.
    #[test]
    fn no_page_is_shown(which in 0..MARKUP.len(), behind in any::<Vec<u8>>(), claim in 0..INLINE.len()) {
        let head = [MARKUP[which].1, b" ", &behind].concat();
        let kept = media_type(Some(INLINE[claim]), "cat.png", &head);
        prop_assert_eq!(shown_as(&kept, false), MediaKind::Document, "{}", kept);
    }

    #[test]
    fn cut_heads_are_read(which in 0..SHOWN.len(), length in 0..64usize) {
        let head = SHOWN[which].1;
        let _ = media_type(None, "", &head[..length.min(head.len())]);
    }
}
