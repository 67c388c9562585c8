//! What the documents point to is there: files, headings, pictures, and the
//! files that CONTRIBUTING's one-guess test names.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// Longest decision: one page.
const DECISION_LINES: usize = 60;

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The documents of the repository: those beside this one and all below `docs`.
fn documents() -> Vec<PathBuf> {
    let mut found = markdown_in(&root());
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        found.extend(markdown_in(&folder));
        folders.extend(children(&folder).into_iter().filter(|path| path.is_dir()));
    }
    assert!(found.len() > 20, "only {} documents were found", found.len());
    found
}

pub(super) fn children(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn markdown_in(folder: &Path) -> Vec<PathBuf> {
    let is_document = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    children(folder).into_iter().filter(is_document).collect()
}

/// Lines outside code blocks: what stands in those is not Markdown.
pub(super) fn prose(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut in_code = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            kept.push(line.to_owned());
        }
    }
    assert!(!in_code, "{}: a code block does not end", path.display());
    kept
}

/// What the README has people paste to connect a hermes-agent, without the comments.
pub(super) fn hermes_lines() -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
    let block = blocks.filter(|block| block.contains("hermes gateway run")).collect::<Vec<_>>();
    let [block] = block[..] else { panic!("{} blocks connect a hermes-agent", block.len()) };
    block.lines().map(|line| line.split(" #").next().unwrap().trim().to_owned()).collect()
}

/// Everything between two marks, wherever both are in one line.
fn between<'a>(line: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let parts = line.split(open).skip(1);
    parts.filter_map(|part| part.split_once(close)).map(|(inside, _)| inside).collect()
}

/// What stands between backticks.
pub(super) fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The anchors of a document, as GitHub makes them from its headings.
fn anchors(path: &Path) -> BTreeSet<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let lines = prose(path);
    let headings = lines.iter().filter_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
    });
    headings
        .map(|title| {
            let kept = title.trim().to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            let anchor = kept.collect::<String>().replace(' ', "-");
            let earlier = times.entry(anchor.clone()).or_default();
            *earlier += 1;
            if *earlier == 1 { anchor } else { format!("{anchor}-{}", *earlier - 1) }
        })
        .collect()
}

/// Why a link of a document leads nowhere.
fn broken(document: &Path, link: &str) -> Option<String> {
    if link.starts_with("http://") || link.starts_with("https://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { document.to_owned() } else { document.parent().unwrap().join(file) };
    if !target.exists() {
        return Some(format!("{} links to {link}, which is not there", document.display()));
    }
    let missing = anchor.filter(|anchor| target.is_dir() || !anchors(&target).contains(*anchor));
    missing.map(|anchor| format!("{} links to {link}, which has no heading {anchor}", document.display()))
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut faults = Vec::new();
    let mut links = 0;
    for document in documents() {
        for line in prose(&document) {
            let of_line = [
                between(&line, "](", ")"),
                between(&line, "src=\"", "\""),
                between(&line, "srcset=\"", "\""),
            ];
            for link in of_line.concat() {
                links += 1;
                faults.extend(broken(&document, link));
            }
        }
    }
    assert!(links > 100, "only {links} links were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_path_the_documents_name_exists() {
    let (root, mut faults, mut paths) = (root(), Vec::new(), 0);
    for document in documents() {
        for line in prose(&document) {
            for span in code_spans(&line) {
                let ours = ["crates/", "scripts/", "contrib/"].iter().any(|folder| span.starts_with(folder));
                if !ours || span.contains([' ', '*', '{', '…']) {
                    continue;
                }
                paths += 1;
                if !root.join(span).exists() {
                    faults.push(format!("{} names {span}, which is not there", document.display()));
                }
            }
        }
    }
    assert!(paths > 30, "only {paths} paths were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn one_guess_finds_the_file() {
    let (root, mut rows) = (root(), 0);
    // The words of the table before it are guessed, in `guesses`.
    let lines = prose(&root.join("CONTRIBUTING.md")).into_iter();
    for line in lines.skip_while(|line| !line.starts_with("| A question")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [question, file] = cells[..] else { continue };
        let Some(file) = file.strip_prefix('`').and_then(|file| file.strip_suffix('`')) else { continue };
        rows += 1;
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let text = text.to_lowercase();
        let words = code_spans(question);
        assert!(!words.is_empty(), "{question:?} has no word to guess by");
        for word in words.into_iter().filter(|word| *word != "angelia.toml") {
            assert!(text.contains(&word.to_lowercase()), "{file} does not speak of {word:?}");
        }
    }
    assert!(rows > 20, "only {rows} guesses were found");
}

#[test]
fn every_document_can_be_found_and_a_decision_is_one_page() {
    let docs = root().join("docs");
    for folder in [docs.clone(), docs.join("decisions")] {
        let index = fs::read_to_string(folder.join("README.md")).unwrap();
        for document in markdown_in(&folder) {
            let name = document.file_name().unwrap().to_str().unwrap();
            assert!(name == "README.md" || index.contains(&format!("({name})")), "no index names {name}");
        }
    }
    let is_decision = |path: &PathBuf| !path.ends_with("README.md");
    for decision in markdown_in(&docs.join("decisions")).into_iter().filter(is_decision) {
        let lines = fs::read_to_string(&decision).unwrap().lines().count();
        assert!(lines <= DECISION_LINES, "{} has {lines} lines", decision.display());
    }
}
