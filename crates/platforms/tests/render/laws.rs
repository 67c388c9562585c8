//! Laws that hold whatever an agent writes.

use angelia_platforms::telegram::render::render;
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::judge::verdict;
use crate::soup::{Dice, document, scraps};

/// A proptest configuration that `PROPTEST_CASES` can still override.
fn cases(count: u32) -> Config {
    let config = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => Config::default(),
        None => Config::with_cases(count),
    };
    Config { failure_persistence: None, ..config }
}

/// Rounds of a hostile loop; `HOSTILE_CASES` overrides.
fn rounds() -> u64 {
    std::env::var("HOSTILE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(4_000)
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn any_text_is_taken(text in any::<String>(), times in 1usize..40) {
        let text = text.repeat(times);
        prop_assert_eq!(verdict(&text, &render(&text)), Ok(()));
    }

    #[test]
    fn any_markup_is_taken(text in "([*_~`>#|\\[\\]()!<&;:\\\\\n \ta-c1.-]|日|😀){0,200}") {
        prop_assert_eq!(verdict(&text, &render(&text)), Ok(()));
    }
}

#[test]
fn scraps_of_markup_are_taken() {
    for seed in 0..rounds() {
        let mut dice = Dice::new(seed);
        let text = scraps(&mut dice, 120);
        let parts = render(&text);
        if let Err(wrong) = verdict(&text, &parts) {
            panic!("seed {seed}: {wrong}\n{text:?}");
        }
    }
}

#[test]
fn documents_are_taken_at_every_moment_while_they_stream() {
    for seed in 0..rounds() / 200 {
        let text = document(&mut Dice::new(seed), 4);
        for (end, _) in text.char_indices() {
            if let Err(wrong) = verdict(&text[..end], &render(&text[..end])) {
                panic!("seed {seed} up to {end}: {wrong}\n{:?}", &text[..end]);
            }
        }
    }
}

#[test]
fn long_documents_are_taken() {
    for seed in 0..rounds() / 40 {
        let text = document(&mut Dice::new(seed), 400);
        let parts = render(&text);
        if let Err(wrong) = verdict(&text, &parts) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

#[test]
fn what_can_be_seen_is_never_lost() {
    for text in [
        "#",
        "```",
        "```rust",
        "> ",
        "[a]: https://a.b",
        "![](",
        "***",
        "&nbsp;x",
        "<!-- -->",
        "- [ ]",
        "[]()",
    ] {
        assert!(!render(text).is_empty(), "{text:?}");
    }
    for text in ["", " ", "\n\n", "\u{200b}", "\u{feff}\u{ad}", "&nbsp;", "\u{2800} \r\n"] {
        let parts = render(text);
        let nothing = parts.is_empty();
        assert_eq!(nothing, text != "&nbsp;", "{text:?} gives {parts:?}");
    }
}

/// Hostile documents take time in proportion to their length: were it the
/// square, this test would not end.
#[test]
fn hostile_documents_do_not_take_forever() {
    let scraps = [
        "- ",
        "> ",
        ">",
        "*a",
        "**a* ",
        "[",
        "![a](b)",
        "|a",
        "`",
        "<",
        "&amp;",
        "[a](b) ",
        "1. ",
        "_a_ ",
        "[a](",
        "<a ",
        "\n- a\n\n",
        "> - ",
        "~~a~",
        "```\n",
        "[x]: y\n",
        "🇩",
    ];
    let mut texts: Vec<String> = scraps.iter().map(|scrap| scrap.repeat(100_000 / scrap.len())).collect();
    for depth in [30, 10_000] {
        texts.push(format!("{}{}", "- ".repeat(depth), "a\n".repeat(20_000)));
        texts.push(format!("{}{}", "> ".repeat(depth), "a\n".repeat(20_000)));
    }
    texts.push(format!("|{}|\n|-|\n{}", "w".repeat(30_000), "|x|\n".repeat(20_000)));
    texts.push(format!("|{}\n|{}\n{}", "a|".repeat(5_000), "-|".repeat(5_000), "|x|\n".repeat(5_000)));
    for text in texts {
        let parts = render(&text);
        let start: String = text.chars().take(20).collect();
        assert_eq!(verdict(&text, &parts), Ok(()), "{start:?}");
        let shown: usize = parts.iter().map(|part| part.text.len()).sum();
        assert!(shown < 100 * text.len(), "{shown} bytes shown for {} of {start:?}", text.len());
    }
}
