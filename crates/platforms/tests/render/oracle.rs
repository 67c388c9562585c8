//! markdown-it-py reads every document again and must see the same; aiogram
//! must take every entity.
//!
//! Compared are lines. What is normalised away, and nothing else: blank lines;
//! white space at the ends of lines of running text (list indentation);
//! inside tables, white space and bars, because only the layout puts them
//! there; what Telegram drops or replaces (carriage returns, control
//! characters, tabs, the white space a message begins with). Lines of code are compared exactly. Bullets, boxes,
//! thematic breaks and addresses behind links are laid out by the oracle from
//! its own tokens.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use angelia_platforms::telegram::render::{Kind, Part, render};
use serde_json::{Value, json};

use crate::judge::verdict;
use crate::soup::{Dice, document};
use crate::table::cases;

struct Oracle {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/python/render_oracle.py");
        let mut process = Command::new(python())
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the oracle");
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output) }
    }

    fn ask(&mut self, markdown: &str, parts: &[Part]) -> Value {
        let parts: Vec<Value> =
            parts.iter().map(|part| json!({ "text": part.text, "entities": part.entities })).collect();
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{}", json!({ "markdown": markdown, "parts": parts })).unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("the oracle fell silent over {markdown:?}"))
    }

    /// What is seen otherwise, or refused.
    fn objections(&mut self, markdown: &str) -> Option<String> {
        let parts = render(markdown);
        let answer = self.ask(markdown, &parts);
        if answer["refused"] != json!([]) {
            return Some(format!("refused: {}", answer["refused"]));
        }
        let expected: Vec<(String, String)> = serde_json::from_value(answer["lines"].clone()).unwrap();
        match &parts[..] {
            [part] => compare(&expected, &lines(part)),
            // A cut may go through a line, so only the characters are compared.
            _ => squeezed(&expected, &parts),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}

fn python() -> PathBuf {
    let folder = std::env::var_os("ANGELIA_TEST_ENV")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-env"), Into::into);
    let python = folder.join("oracles/bin/python");
    assert!(python.is_file(), "{} is missing: run ./test, which installs it", python.display());
    python
}

/// The lines of a part that are not blank, and whether they are code.
fn lines(part: &Part) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in part.text.split('\n') {
        let covers = |entity: &&_| covers(entity, at);
        let code = part.entities.iter().find(covers).is_some();
        if !line.trim().is_empty() {
            found.push((code, if code { line.to_owned() } else { line.trim().to_owned() }));
        }
        at += line.encode_utf16().count() as u32 + 1;
    }
    found
}

fn covers(entity: &angelia_platforms::telegram::render::Entity, at: u32) -> bool {
    entity.kind == Kind::Pre && entity.offset <= at && at < entity.offset + entity.length
}

fn compare(expected: &[(String, String)], seen: &[(bool, String)]) -> Option<String> {
    let same = |at: usize| {
        let ((kind, expected), (code, seen)) = (&expected[at], &seen[at]);
        match kind.as_str() {
            "text" => !code && expected == seen,
            "code" if at == 0 => *code && expected.trim_start() == seen,
            "code" => *code && expected == seen,
            "row" => *code && *expected == bare(seen),
            "rule" => *code && seen.chars().all(|c| matches!(c, '-' | '|')),
            _ => false,
        }
    };
    let good = expected.len() == seen.len() && (0..seen.len()).all(same);
    (!good).then(|| format!("expected {expected:#?}\nseen {seen:#?}"))
}

/// A row of a table without what its layout adds.
fn bare(row: &str) -> String {
    row.chars().filter(|c| !c.is_whitespace() && *c != '|').collect()
}

fn squeezed(expected: &[(String, String)], parts: &[Part]) -> Option<String> {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '|' | '-')).collect()
    };
    let expected: String = expected.iter().map(|(_, line)| plain(line)).collect();
    let seen: String = parts.iter().map(|part| plain(&part.text)).collect();
    let same = expected.chars().zip(seen.chars()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| text.chars().skip(same.saturating_sub(40)).take(120).collect::<String>();
    (expected != seen).then(|| format!("expected …{}\nseen …{}", from(&expected), from(&seen)))
}

#[test]
fn an_independent_reader_sees_the_same_in_the_table() {
    let mut oracle = Oracle::start();
    let mut wrong = Vec::new();
    for case in cases() {
        if let Some(objections) = oracle.objections(&case.markdown) {
            wrong.push(format!("{}: {objections}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn an_independent_reader_sees_the_same_in_documents_made_by_chance() {
    let mut oracle = Oracle::start();
    let mut parts = 0;
    for seed in 0..600 {
        let text = document(&mut Dice::new(seed), if seed % 20 == 0 { 200 } else { 6 });
        let rendered = render(&text);
        assert_eq!(verdict(&text, &rendered), Ok(()), "seed {seed}");
        parts += rendered.len();
        if let Some(objections) = oracle.objections(&text) {
            panic!("seed {seed}\n{text}\n{objections}");
        }
    }
    assert!(parts > 700, "some are longer than a message: {parts}");
}

/// The comparison would notice: text that differs, code that is no code,
/// entities that cross.
#[test]
fn the_oracle_objects() {
    let mut oracle = Oracle::start();
    assert_eq!(oracle.objections("**a** `b`\n\n    c"), None);
    let answer = oracle.ask("a *b*", &render("a b"));
    let expected: Vec<(String, String)> = serde_json::from_value(answer["lines"].clone()).unwrap();
    assert_eq!(compare(&expected, &lines(&render("a b")[0])), None);
    assert!(compare(&expected, &lines(&render("a c")[0])).is_some());
    assert!(compare(&expected, &lines(&render("    a b")[0])).is_some());
    let mut crossing = render("**one** *two*");
    crossing[0].entities[0].length = 5;
    assert_ne!(oracle.ask("", &crossing)["refused"], json!([]));
    crossing[0].entities[0].length = 500;
    assert_ne!(oracle.ask("", &crossing)["refused"], json!([]));
}
