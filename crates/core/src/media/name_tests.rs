use super::*;
use proptest::prelude::*;

/// Whether a name keeps every promise that is made of it, and its header too.
fn check(given: &str, media_type: &str) -> Result<(), TestCaseError> {
    let name = safe_name(given, media_type);
    prop_assert!(!name.is_empty(), "{given:?}");
    prop_assert!(name.len() <= MAX_BYTES && name.chars().count() <= MAX_CHARS, "{name:?}");
    prop_assert!(!name.contains(['/', '\\', '<', '>', ':', '"', '|', '?', '*']), "{name:?}");
    prop_assert!(!name.contains(|c: char| c.is_control() || is_hidden(c)), "{name:?}");
    prop_assert!(!name.starts_with(is_edge) && !name.ends_with(is_edge), "{name:?}");
    prop_assert!(!is_device(&name), "{name:?}");
    prop_assert_eq!(&safe_name(&name, media_type), &name, "of {:?}", given);
    for said in [given, &name] {
        let header = disposition(said, false);
        prop_assert!(header.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{header:?}");
        prop_assert_eq!(header.matches('"').count(), 2, "{}", header);
        prop_assert!(!header.contains('\\'), "{header:?}");
    }
    Ok(())
}

#[test]
fn a_name_of_people_stays() {
    for name in [
        "plan.pdf",
        "Zoë.txt",
        "张三.pdf",
        "año 2024 (1).tar.gz",
        "отчёт.docx",
        "קובץ.png",
        "🦀.gif",
        "a'b;c%20.txt",
    ] {
        assert_eq!(safe_name(name, "image/png"), name);
    }
}

#[test]
fn what_is_no_name_goes() {
    for (given, name) in [
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("C:\\dir/mixed\\a.txt", "a.txt"),
        ("C:evil.txt", "C_evil.txt"),
        ("a\0b\r\nSet-Cookie: x.txt", "abSet-Cookie_ x.txt"),
        ("invoice\u{202e}fdp.exe", "invoicefdp.exe"),
        ("\u{200e}\u{200f}\u{61c}\u{2066}a\u{2069}\u{200b}\u{feff}.txt", "a.txt"),
        ("a\u{2028}b\u{2029}c", "abc"),
        ("<a>:\"b\"|?*.txt", "_a___b____.txt"),
        ("...hidden.txt. . ", "hidden.txt"),
        (" \u{3000}a\u{a0}b.txt\u{2003}", "a b.txt"),
        (".png", "png"),
    ] {
        assert_eq!(safe_name(given, "image/png"), name, "{given:?}");
    }
}

#[test]
fn where_nothing_is_left_the_type_tells() {
    for (media_type, name) in [
        ("image/jpeg", "file.jpg"),
        ("IMAGE/PNG; a=b", "file.png"),
        ("image/gif", "file.gif"),
        ("image/webp", "file.webp"),
        ("audio/ogg", "file.ogg"),
        ("audio/mpeg", "file.mp3"),
        ("audio/mp4", "file.m4a"),
        ("video/mp4", "file.mp4"),
        ("application/pdf", "file.pdf"),
        ("text/plain", "file.txt"),
        ("text/html", "file.bin"),
        ("", "file.bin"),
    ] {
        for given in ["", ".", "..", "dir/", "C:\\", " . .\t", "\u{202e}\u{200b}", "\0\n"] {
            assert_eq!(safe_name(given, media_type), name, "{given:?}");
        }
    }
}

#[test]
fn a_long_name_keeps_its_extension() {
    let long = safe_name(&format!("{}.pdf", "a".repeat(500)), "");
    assert_eq!(long, format!("{}.pdf", "a".repeat(116)));
    let wide = safe_name(&format!("{}.pdf", "张".repeat(500)), "");
    assert_eq!(wide, format!("{}.pdf", "张".repeat(65)), "199 bytes; another would be 202");
    let fits = format!("{}.pdf", "a".repeat(116));
    assert_eq!(safe_name(&fits, ""), fits);
    let no_extension = safe_name(&format!("a.{}", "b".repeat(500)), "");
    assert_eq!(no_extension, format!("a.{}", "b".repeat(118)));
    let sentence = safe_name(&format!("{} Mr. Smith", "a".repeat(500)), "");
    assert_eq!(sentence, "a".repeat(120), "no extension has a space");
    assert_eq!(safe_name(&format!("a{}.txt", " .".repeat(200)), ""), "a.txt", "no edge where it was cut");
}

#[test]
fn a_device_is_no_file() {
    for (given, name) in [
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("Com1.tar.gz", "_Com1.tar.gz"),
        ("lpt³", "_lpt³"),
        ("aux .txt", "_aux .txt"),
        ("conin$", "_conin$"),
        ("dir\\prn", "_prn"),
        ("n\u{200b}ul", "_nul"),
        ("console.txt", "console.txt"),
        ("COM", "COM"),
        ("com10", "com10"),
        ("lptx.txt", "lptx.txt"),
    ] {
        assert_eq!(safe_name(given, ""), name, "{given:?}");
    }
    let cut = safe_name(&format!("con{}x", " ".repeat(300)), "");
    assert_eq!(cut, "_con", "it became one when it was cut");
    let full = safe_name(&format!("con.{}.txt", "a".repeat(112)), "");
    assert_eq!(full, format!("_con.{}.txt", "a".repeat(111)), "the mark has its place within the bound");
}

#[test]
fn a_header_names_the_file() {
    for (name, header) in [
        ("plan.pdf", r#"attachment; filename="plan.pdf""#),
        ("a b;c,d'e.txt", r#"attachment; filename="a b;c,d'e.txt""#),
        ("Zoë.txt", r#"attachment; filename="Zo_.txt"; filename*=UTF-8''Zo%C3%AB.txt"#),
        ("张三.pdf", r#"attachment; filename="__.pdf"; filename*=UTF-8''%E5%BC%A0%E4%B8%89.pdf"#),
        ("50%41.txt", r#"attachment; filename="50_41.txt"; filename*=UTF-8''50%2541.txt"#),
        (
            "é 'a'(1).txt",
            r#"attachment; filename="_ 'a'(1).txt"; filename*=UTF-8''%C3%A9%20%27a%27%281%29.txt"#,
        ),
        ("a\"; x=\"b.txt", r#"attachment; filename="a_; x=_b.txt""#),
        ("a\\\"b\r\n\r\n<script>.txt", r#"attachment; filename="_b_script_.txt""#),
    ] {
        assert_eq!(disposition(name, false), header);
    }
    assert_eq!(disposition("cat.png", true), r#"inline; filename="cat.png""#);
}

#[test]
fn nasty_names_end_well() {
    let pieces = [
        "",
        ".",
        "..",
        " ",
        "/",
        "\\",
        "con",
        "NUL.",
        "a",
        "é",
        "张",
        "🦀",
        "\u{301}",
        "\u{202e}",
        "\u{200d}",
        "\u{feff}",
        "\0",
        "\r\n",
        "\u{85}",
        "\u{2028}",
        "\"",
        "%00",
        "..txt",
        ".tar.gz",
        ".verylongextension",
        ".张张张张张张张张张张",
    ];
    for first in pieces {
        for second in pieces {
            for third in pieces {
                for times in [1, 60, 150] {
                    let name = format!("{first}{}{third}", second.repeat(times));
                    check(&name, "image/png").unwrap();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_name_ends_well(given in any::<String>(), media_type in any::<String>()) {
        check(&given, &media_type)?;
    }

    #[test]
    fn long_ones_too(given in "(con|nul)?[a. é张🦀\u{202e}]{0,300}(\\.[a-z张]{0,12})?[ .]{0,3}") {
        check(&given, "")?;
    }
}
