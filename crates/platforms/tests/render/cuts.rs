//! Long documents: where they are cut, and what goes on in the next message.

use angelia_platforms::telegram::render::{Kind, MAX_ENTITIES, Part, render};

use crate::judge::verdict;

fn checked(markdown: &str) -> Vec<Part> {
    let parts = render(markdown);
    assert_eq!(verdict(markdown, &parts), Ok(()));
    parts
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn kinds(part: &Part) -> Vec<Kind> {
    part.entities.iter().map(|entity| entity.kind).collect()
}

#[test]
fn a_message_is_filled_to_the_last_unit() {
    for (text, count) in
        [("a".repeat(4096), 1), ("a".repeat(4097), 2), ("😀".repeat(2048), 1), ("😀".repeat(2049), 2)]
    {
        let parts = checked(&text);
        assert_eq!(parts.len(), count);
        assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<String>(), text);
        assert_eq!(parts.iter().map(|part| part.source.as_str()).collect::<String>(), text);
    }
}

#[test]
fn paragraphs_come_before_lines_and_lines_before_words() {
    let paragraph = "word ".repeat(300);
    let parts = checked(&format!("{paragraph}\n\n{paragraph}\n\n{paragraph}"));
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[1].text, paragraph.trim());
    assert_eq!(parts[1].source, paragraph);
    let parts = checked(&format!("{paragraph}\n{paragraph}\n{paragraph}"));
    assert_eq!(parts[1].text, paragraph.trim());
    let parts = checked(&"longer words ".repeat(400));
    assert!(
        parts[0].text.ends_with("longer words") || parts[0].text.ends_with("longer"),
        "{}",
        parts[0].text
    );
    assert!(units(&parts[0].text) > 4000);
    let parts = checked(&"A sentence of words. ".repeat(300));
    assert!(parts.iter().all(|part| part.text.starts_with("A ") && part.text.ends_with("words.")));
}

#[test]
fn clusters_stay_whole_unless_one_is_too_long() {
    let parts = checked(&"👩‍👩‍👧‍👦".repeat(1000));
    assert!(
        parts.len() > 2 && parts.iter().all(|part| part.text.starts_with('👩') && part.text.ends_with('👦'))
    );
    let zalgo = format!("a{}", "\u{301}".repeat(9000));
    let parts = checked(&zalgo);
    assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<String>(), zalgo);
}

#[test]
fn styles_go_on_in_the_next_message() {
    let parts = checked(&format!("**{}** end", "bold words ".repeat(600).trim()));
    assert_eq!(parts.len(), 2);
    for part in &parts {
        assert_eq!(kinds(part), [Kind::Bold]);
        assert_eq!(part.entities[0].offset, 0);
    }
    assert_eq!(parts[0].entities[0].length as usize, units(&parts[0].text));
    assert_eq!(parts[1].entities[0].length as usize, units(&parts[1].text) - " end".len());
    let parts = checked(&format!("[{}](https://example.com/)", "text of a link ".repeat(400)));
    assert!(parts.len() == 2 && parts.iter().all(|part| kinds(part) == [Kind::TextLink]));
    let quote: String = "> quoted words and more of them\n>\n".repeat(300);
    let parts = checked(&quote);
    assert!(parts.len() > 2 && parts.iter().all(|part| kinds(part) == [Kind::Blockquote]));
}

#[test]
fn code_goes_on_as_code() {
    let body = "fn f() {\n    call();\n}\n".repeat(400);
    let parts = checked(&format!("Before.\n\n```rust\n{body}```\n\nAfter."));
    assert!(parts.len() > 2);
    for part in &parts {
        assert_eq!(kinds(part), [Kind::Pre]);
        assert_eq!(part.entities[0].language.as_deref(), Some("rust"));
    }
    assert!(parts[0].text.starts_with("Before.\n\nfn f()"));
    assert!(parts[1..].iter().all(|part| part.text.starts_with("fn f()") || part.text.starts_with('}')));
    let last = parts.last().unwrap();
    assert!(last.text.ends_with("}\n\nAfter."), "{}", last.text);
    assert!(last.source.ends_with("```\n\nAfter."));
}

#[test]
fn code_that_fits_is_not_cut() {
    let code = "let x = 1;\n".repeat(150);
    let parts = checked(&format!("{}\n\n```\n{code}```\n", "word ".repeat(550)));
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[1].text, code.trim_end());
    assert!(parts[1].source.starts_with("```\n"), "the source has its fence: {}", parts[1].source);
}

#[test]
fn too_many_entities_make_another_message() {
    let lines: String = (0..250).map(|number| format!("- **{number}** and `code`\n")).collect();
    let parts = checked(&lines);
    assert!(parts.len() >= 5, "{}", parts.len());
    assert_eq!(parts.iter().map(|part| part.entities.len()).sum::<usize>(), 500, "none is lost");
    assert!(parts.iter().all(|part| part.text.starts_with("• ")));
}

#[test]
fn a_crowded_line_loses_what_is_missed_least() {
    let links: String = (0..60).map(|n| format!("[l{n}](https://a.b/{n}) *i{n}* **b{n}** ")).collect();
    let parts = checked(&format!("Before.\n\n{links}\n\nAfter, *calm*."));
    let crowded = parts.iter().find(|part| part.text.contains("l59")).unwrap();
    let count = |kind| kinds(crowded).into_iter().filter(|found| *found == kind).count();
    assert_eq!((count(Kind::TextLink), count(Kind::Bold), count(Kind::Italic)), (60, 40, 0));
    assert!(crowded.text.contains("i59 b59"), "the words are all there");
    assert!(crowded.entities.len() <= MAX_ENTITIES);
    assert_eq!(kinds(parts.last().unwrap()), [Kind::Italic], "others lose nothing");
}

#[test]
fn long_addresses_do_not_make_a_message_too_large() {
    let long = "x".repeat(1900);
    let lines: String = (0..9).map(|n| format!("- [link {n}](https://a.b/{long}{n})\n")).collect();
    let parts = checked(&lines);
    assert_eq!(parts.iter().map(|part| part.entities.len()).sum::<usize>(), 9);
    let parts = checked(&format!("[a](https://a.b/{})", "y".repeat(3000)));
    assert!(parts[0].entities.is_empty() && parts[0].text.starts_with("a (https://a.b/yyy"));
}

#[test]
fn every_part_has_its_own_source() {
    let section =
        |n: usize| format!("## Heading {n}\n\nSome *styled* text, {}.\n\n- item\n", "and more ".repeat(40));
    let text: String = (0..60).map(section).collect::<Vec<_>>().join("\n");
    let parts = checked(&text);
    assert!(parts.len() > 4);
    assert_eq!(parts.iter().map(|part| part.source.as_str()).collect::<String>(), text);
    let heads = parts.iter().filter(|part| part.text.starts_with("Heading")).count();
    assert!(heads > 0);
    for part in parts.iter().filter(|part| part.text.starts_with("Heading")) {
        assert!(part.source.starts_with("## Heading"), "{}", part.source);
    }
}

#[test]
fn a_source_too_long_for_a_message_is_replaced_by_the_text() {
    let parts = checked(&format!("a{}b", "&nbsp;".repeat(1000)));
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].source, parts[0].text);
}
