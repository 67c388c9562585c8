//! CONTRIBUTING's one-guess test: somebody who has read the contract and not our code
//! takes a word of it and guesses the file. The first guess has to be right.
//!
//! A reader looks at names first: a file or a folder that is called like the word, then
//! one that has it in its name. Where none does, the headers tell: their first sentence,
//! then the rest. Among equals the one nearest to the top comes first.

use super::docs::{children, code_spans, prose, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that no reader of the contract looks into.
const ASIDE: [&str; 4] = ["bench", "corpus", "sim", "testkit"];
/// The heading of the table in which every word has to be guessed.
const WORDS: &str = "| A word | The file |";

/// A file as a reader sees it who has not opened it yet.
struct Seen {
    path: String,
    /// Its name, or that of its folder where it stands for it.
    name: String,
    depth: usize,
    /// The folders it is in.
    folders: Vec<String>,
    /// The first sentence of its header, and all of it; small letters, no underscores.
    first: String,
    header: String,
}

fn seen(path: &Path, root: &Path) -> Seen {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let header = text.lines().map_while(|line| line.strip_prefix("//!")).collect::<Vec<_>>().join(" ");
    let header = header.to_lowercase().replace('_', " ").replace('`', "");
    let first = header.split(". ").next().unwrap_or_default().to_owned();
    let shown = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let mut folders: Vec<String> =
        shown.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if folders.last().is_some_and(|last| last == "mod") {
        folders.pop();
    }
    let name = folders.pop().unwrap_or_default();
    let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
    Seen { path, name, depth: folders.len(), folders, first, header }
}

fn sources() -> Vec<Seen> {
    let root = root();
    let crates = children(&root.join("crates")).into_iter();
    let mut folders: Vec<PathBuf> = crates
        .filter(|folder| !ASIDE.iter().any(|aside| folder.ends_with(aside)))
        .map(|folder| folder.join("src"))
        .collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let (below, files): (Vec<_>, Vec<_>) = children(&folder).into_iter().partition(|path| path.is_dir());
        folders.extend(below);
        let sources = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
        found.extend(sources.map(|path| seen(path, &root)));
    }
    found.retain(|file| !file.name.contains("tests") && file.name != "fuzzing");
    found
}

/// How soon a reader tries a file for a word; `None` for never.
fn tried(file: &Seen, word: &str) -> Option<usize> {
    let word = word.to_lowercase().replace('_', " ");
    let parts: Vec<&str> = word.split_whitespace().collect();
    let (name, joined) = (file.name.as_str(), parts.join("_"));
    let elsewhere = |part: &&str| file.folders.iter().any(|folder| folder == part) || has(&file.first, part);
    let ways = [
        name == joined,
        name == format!("{joined}s"),
        parts.contains(&name) && parts.iter().all(|part| *part == name || elsewhere(part)),
        parts.iter().all(|part| name.contains(part)),
        has(&file.first, &word),
        has(&file.header, &word),
    ];
    ways.iter().position(|is_so| *is_so)
}

/// Whether a text has these words in it, also in the plural.
fn has(text: &str, words: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(words).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + words.len()..]);
        let behind = behind.strip_prefix('s').unwrap_or(behind);
        is_edge(before.chars().next_back()) && is_edge(behind.chars().next())
    })
}

fn guess<'a>(files: &'a [Seen], word: &str) -> Option<&'a str> {
    let tried = files.iter().filter_map(|file| Some((tried(file, word)?, file.depth, file.path.as_str())));
    tried.min().map(|(_, _, path)| path)
}

#[test]
fn the_first_guess_finds_the_file() {
    let (files, mut words, mut wrong) = (sources(), 0, Vec::new());
    let lines = prose(&root().join("CONTRIBUTING.md"));
    let table =
        lines.iter().skip_while(|line| *line != WORDS).skip(2).take_while(|line| line.starts_with('|'));
    for row in table {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [said, file] = cells[..] else { panic!("{row} has not two cells") };
        let file = code_spans(file)[0];
        for word in code_spans(said) {
            words += 1;
            let guessed = guess(&files, word);
            if guessed != Some(file) {
                wrong.push(format!("{word}: the first guess is {guessed:?}, the table says {file}"));
            }
        }
    }
    assert!(words > 30, "only {words} words were found");
    assert!(wrong.is_empty(), "a name or a header has to be better, or the table:\n{}", wrong.join("\n"));
}

#[test]
fn names_are_tried_before_headers_and_the_top_before_what_is_below() {
    let file = |path: &str, header: &str| {
        let folders: Vec<String> = path.split('/').map(str::to_owned).collect();
        let (name, folders) = folders.split_last().unwrap();
        Seen {
            path: path.to_owned(),
            name: name.clone(),
            depth: folders.len(),
            folders: folders.to_vec(),
            first: header.split(". ").next().unwrap().to_owned(),
            header: header.to_owned(),
        }
    };
    let files = [
        file("a/b/retry", ""),
        file("a/retry_after", "of a retry"),
        file("a/b/c/token", "the upgrade token"),
        file("token", "another"),
        file("x", "first. Tells of going idle"),
        file("y", "retries"),
    ];
    assert_eq!(guess(&files, "retry"), Some("a/b/retry"));
    assert_eq!(guess(&files, "upgrade token"), Some("a/b/c/token"));
    assert_eq!(guess(&files, "token"), Some("token"));
    assert_eq!(guess(&files, "idle"), Some("x"));
    assert_eq!(guess(&files, "retried"), None);
}
