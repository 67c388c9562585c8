//! The law of the splitter, on friendly and hostile texts.

use angelia_contract::length::Unit;
use angelia_contract::split::{MIN_FENCED_LIMIT, Part, split};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use crate::support::{Dice, cases, rounds};

const FRAGMENTS: &[&str] = &[
    "word ",
    "Sentence end. ",
    "line\n",
    "\n",
    "\n\n",
    " ",
    "   ",
    "\t",
    "\r\n",
    "x",
    "0123456789",
    "```\n",
    "```rust\n",
    "~~~\n",
    "~~~ python x\n",
    "````\n",
    "   ```\n",
    "    ```\n",
    "``` a`b\n",
    "```",
    "~~~",
    "`",
    "~",
    "``` \n",
    "é",
    "e\u{301}",
    "👩‍👩‍👧‍👦",
    "🇩🇪",
    "🇩",
    "\u{200d}",
    "한국어",
    "。",
    "नमस्ते",
    "\u{a0}",
    "fn main() {}\n",
    "`````` long `````` run",
    "\u{301}",
];

const UNITS: [Unit; 3] = [Unit::Chars, Unit::Utf16, Unit::Bytes];

/// Whether a fence is left open, by a reading of CommonMark kept apart from
/// the one under test.
fn left_open(text: &str, longest: usize) -> bool {
    let mut open: Option<(u8, usize)> = None;
    for line in text.split('\n') {
        let line = line.trim_end_matches([' ', '\t', '\r']).as_bytes();
        let indent = line.iter().take_while(|b| **b == b' ').count();
        let body = &line[indent..];
        let Some(mark) = body.first().copied().filter(|b| matches!(b, b'`' | b'~')) else { continue };
        let run = body.iter().take_while(|b| **b == mark).count();
        if indent > 3 || run < 3 {
            continue;
        }
        let bare = run == body.len();
        open = match open {
            Some((m, len)) if m == mark && run >= len && bare => None,
            Some(fence) => Some(fence),
            None if run > longest || mark == b'`' && body[run..].contains(&b'`') => None,
            None => Some((mark, run)),
        };
    }
    open.is_some()
}

fn check(text: &str, limit: usize, unit: Unit) -> Result<Vec<Part>, String> {
    let Ok(parts) = split(text, limit, unit) else {
        return if limit < unit.of_char(char::MAX) { Ok(Vec::new()) } else { Err("refused".into()) };
    };
    let joined: String = parts.iter().map(Part::content).collect();
    if joined != text {
        return Err("the parts do not join to the text".into());
    }
    for part in &parts {
        let size = unit.measure(&part.text);
        if part.content().is_empty() || size > limit {
            return Err(format!("a part of {size}: {:?}", part.text));
        }
        let longest = (limit / 4).saturating_sub(1).min(64);
        if limit >= MIN_FENCED_LIMIT && left_open(&part.text, longest) {
            return Err(format!("an open fence: {:?}", part.text));
        }
        if limit < MIN_FENCED_LIMIT && part.text != part.content() {
            return Err("fences were added without room for them".into());
        }
    }
    clusters_are_whole(&parts, limit, unit)?;
    Ok(parts)
}

/// A cut inside a cluster is right only if that cluster is over the limit.
///
/// Clusters are found part by part, as a very long one may itself be cut.
fn clusters_are_whole(parts: &[Part], limit: usize, unit: Unit) -> Result<(), String> {
    for pair in parts.windows(2) {
        let (before, after) = (pair[0].content(), pair[1].content());
        let seam = format!("{before}{after}");
        if seam.grapheme_indices(true).any(|(at, _)| at == before.len()) {
            continue;
        }
        let torn = seam
            .grapheme_indices(true)
            .find(|(at, cluster)| *at < before.len() && before.len() < at + cluster.len());
        let (at, cluster) = torn.ok_or("no cluster at the seam")?;
        // The cluster filled its part from the first byte, and room for the
        // fences may have been taken from the limit.
        if at != 0 || unit.measure(cluster) * 4 <= limit {
            return Err(format!("the cluster {cluster:?} was cut"));
        }
    }
    Ok(())
}

fn text_of(dice: &mut Dice, most: usize) -> String {
    (0..dice.below(most)).map(|_| dice.pick(FRAGMENTS)).collect()
}

#[test]
fn hostile_texts_obey_the_law() {
    for seed in 0..rounds() {
        let mut dice = Dice::new(seed);
        let text = text_of(&mut dice, 40);
        let limit = match dice.below(3) {
            0 => 1 + dice.below(MIN_FENCED_LIMIT),
            _ => MIN_FENCED_LIMIT + dice.below(100),
        };
        let unit = UNITS[dice.below(3)];
        if let Err(why) = check(&text, limit, unit) {
            panic!("seed {seed}, limit {limit} {unit:?}: {why}\n{text:?}");
        }
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn any_text_obeys_the_law(text in "\\PC{0,200}", limit in 1..80usize, unit in 0..3usize) {
        prop_assert_eq!(check(&text, limit, UNITS[unit]).map(|_| ()), Ok(()));
    }

    #[test]
    fn fragments_obey_the_law(
        fragments in prop::collection::vec(prop::sample::select(FRAGMENTS.to_vec()), 0..60),
        limit in 1..160usize, unit in 0..3usize,
    ) {
        prop_assert_eq!(check(&fragments.concat(), limit, UNITS[unit]).map(|_| ()), Ok(()));
    }
}

#[test]
fn prose_is_never_cut_inside_a_word() {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(100);
    for part in check(&text, 200, Unit::Chars).unwrap() {
        assert!(part.text.ends_with(". "), "{:?}", part.text);
        assert!(part.text.len() > 100);
    }
}

#[test]
fn large_texts_take_linear_time() {
    let size = 1 << 18;
    for pattern in ["word ", "🇩🇪", "`", "```\n", "```a ", "\n", " ", "a", "x\u{301}", "``` ```\n~~~\n"]
    {
        let text = pattern.repeat(size / pattern.len());
        for limit in [40, 2_000, 39_000] {
            let parts = split(&text, limit, Unit::Utf16).unwrap();
            assert_eq!(parts.iter().map(|part| part.content().len()).sum::<usize>(), text.len());
        }
    }
}
