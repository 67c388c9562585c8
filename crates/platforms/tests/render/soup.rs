//! Documents made by chance, of what language models write and of what they
//! should not.

/// A small, seeded generator (SplitMix64): a seed names a document exactly.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound as u64) as usize
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

const WORDS: &[&str] = &[
    "word",
    "The",
    "café",
    "naïve",
    "日本語",
    "👩‍👩‍👧‍👦",
    "🇩🇪",
    "e\u{301}",
    "x",
    "42",
    "3.14",
    "(yes)",
    "don't",
    "\"quoted\"",
    "a_b_c",
    "2*3",
    "&amp;",
    "&copy;",
    "&#35;",
    "&nope;",
    "\\*",
    "\\_",
    "<b>",
    "</b>",
    "<br>",
    "C++",
    "#1",
    "@name",
    "/start",
    "~5",
    "half-way",
    "end.",
    "Why?",
    "50%",
    "$5",
    "a|b",
    "…",
    "—",
    "عربى",
];

const ADDRESSES: &[&str] = &[
    "https://example.com/",
    "https://example.com/a_b?c=d&e=f#g",
    "http://127.0.0.1:8080/x",
    "tg://resolve?domain=angelia",
    "mailto:ann@example.org",
    "docs/readme.md",
    "#anchor",
    "http://localhost:3000",
    "ftp://example.com/file",
];

/// A document as a language model writes it.
pub(crate) fn document(dice: &mut Dice, blocks: usize) -> String {
    let mut out = String::new();
    for _ in 0..1 + dice.below(blocks) {
        let one = block(dice, 2);
        out.push_str(one.trim_end_matches('\n'));
        out.push_str("\n\n");
    }
    out
}

fn block(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth == 0 { 6 } else { 11 }) {
        0..=2 => paragraph(dice),
        3 => format!("{} {}\n", "#".repeat(1 + dice.below(6)), inline(dice, 4, 1)),
        4 => code(dice),
        5 => "---\n".into(),
        6 => table(dice),
        7 => prefixed("> ", "> ", &nested(dice, depth)),
        _ => list(dice, depth),
    }
}

fn nested(dice: &mut Dice, depth: usize) -> String {
    let first = paragraph(dice);
    match dice.below(3) {
        0 => first,
        1 => format!("{first}\n{}", block(dice, depth - 1)),
        _ => format!("{}\n{first}", block(dice, depth - 1)),
    }
}

fn paragraph(dice: &mut Dice) -> String {
    let mut out = String::new();
    for _ in 0..1 + dice.below(3) {
        out.push_str(&inline(dice, 8, 2));
        out.push_str(dice.pick(&["\n", "\n", "  \n", "\\\n"]));
    }
    out.truncate(out.trim_end_matches(['\n', '\\', ' ']).len());
    out + "\n"
}

fn inline(dice: &mut Dice, words: usize, depth: usize) -> String {
    let mut pieces = Vec::new();
    for _ in 0..1 + dice.below(words) {
        let kind = dice.below(if depth == 0 { 8 } else { 16 });
        let within = |dice: &mut Dice| inline(dice, 3, depth.saturating_sub(1));
        pieces.push(match kind {
            8 => format!("**{}**", within(dice)),
            9 => format!("*{}*", within(dice)),
            10 => format!("_{}_", within(dice)),
            // Never three tildes in a row or more: readers differ there.
            11 => format!("~~not {}~~", inline(dice, 3, 0)),
            12 => format!("[{}]({})", within(dice), dice.pick(ADDRESSES)),
            13 => format!("![{}]({})", dice.pick(WORDS), dice.pick(ADDRESSES)),
            14 => format!("***{}***", within(dice)),
            15 => dice.pick(&["`code`", "`a*b*`", "`` a`b ``", "<https://example.org/x>", "`<b>`"]).into(),
            _ => dice.pick(WORDS).to_owned(),
        });
    }
    pieces.join(dice.pick(&[" ", " ", " ", ", "]))
}

fn code(dice: &mut Dice) -> String {
    let fence = dice.pick(&["```", "~~~", "````"]);
    let language = dice.pick(&["", "rust", "c++", "python", "no such language"]);
    let mut out = format!("{fence}{language}\n");
    for _ in 0..dice.below(6) {
        out.push_str(dice.pick(&[
            "fn main() {\n",
            "    let x = \"**\";\n",
            "\n",
            "}\n",
            "# no heading\n",
            "\ttab\n",
        ]));
    }
    out + fence + "\n"
}

fn table(dice: &mut Dice) -> String {
    let columns = 1 + dice.below(4);
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let cell = |dice: &mut Dice| inline(dice, 2, 1).replace('|', "\\|");
    let mut out = row((0..columns).map(|_| cell(dice)).collect());
    let rule = |dice: &mut Dice| dice.pick(&["---", ":--", "--:", ":-:"]).to_owned();
    out.push_str(&row((0..columns).map(|_| rule(dice)).collect()));
    for _ in 0..dice.below(4) {
        out.push_str(&row((0..columns).map(|_| cell(dice)).collect()));
    }
    out
}

fn list(dice: &mut Dice, depth: usize) -> String {
    let marker = dice.pick(&["- ", "* ", "1. ", "7. ", "- [ ] ", "- [x] "]);
    let indent = " ".repeat(if marker.starts_with('-') { 2 } else { marker.len() });
    let apart = dice.pick(&["", "", "\n"]);
    let mut out = String::new();
    for _ in 0..1 + dice.below(4) {
        let item = match dice.below(3) {
            0 => format!("{}\n{}", inline(dice, 4, 1), nested(dice, depth)),
            _ => inline(dice, 5, 2) + "\n",
        };
        out.push_str(&prefixed(marker, &indent, &item));
        out.push_str(apart);
    }
    out
}

fn prefixed(first: &str, rest: &str, text: &str) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        out.push_str(if number == 0 { first } else { rest });
        out.push_str(line);
        out.push('\n');
    }
    out
}

const SCRAPS: &[&str] = &[
    "*",
    "**",
    "***",
    "_",
    "__",
    "~",
    "~~",
    "`",
    "``",
    "```",
    "```rust\n",
    "~~~\n",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    " ",
    "  \n",
    "    ",
    "\t",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "99999999999. ",
    "- [ ] ",
    "- [x] ",
    "> ",
    ">",
    ">> ",
    "# ",
    "####### ",
    "===\n",
    "---\n",
    "***\n",
    "|",
    "| a | b |\n",
    "|---|:-:|\n",
    "[",
    "]",
    "(",
    ")",
    "![",
    "](",
    "](https://a.b/)",
    "](javascript:1)",
    "[x]: https://a.b \"t\"\n",
    "[x]",
    "[x][]",
    "<",
    ">",
    "<b>",
    "</b>",
    "<!-- ",
    "-->",
    "<script>\n",
    "<https://a.b>",
    "<a@b.c>",
    "&amp;",
    "&#0;",
    "&#10;",
    "&#13;",
    "&#x1F600;",
    "&",
    "\\",
    "\\\n",
    "\0",
    "\u{7f}",
    "\u{85}",
    "\u{200b}",
    "\u{202e}",
    "\u{2028}",
    "\u{feff}",
    "\u{301}",
    "\u{a0}",
    "\u{3000}",
    "😀",
    "👩‍👩‍👧‍👦",
    "🇩",
    "日本",
    "word",
    "x",
    "a b",
    "0123456789",
    "http://x",
    "$",
    "^",
    "{#id}",
    ":",
    "[^1]",
    "[^1]: ",
    "[!NOTE]\n",
];

/// Anything but a document.
pub(crate) fn scraps(dice: &mut Dice, count: usize) -> String {
    let mut out = String::new();
    for _ in 0..dice.below(count) {
        let scrap = dice.pick(SCRAPS);
        let times = match dice.below(200) {
            0 => 1 + dice.below(600),
            1..=8 => 1 + dice.below(12),
            _ => 1,
        };
        out.push_str(&scrap.repeat(times));
    }
    out
}
