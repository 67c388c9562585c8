//! Tests await what they want to see. A fixed pause is either too short for a busy machine
//! or too long for everybody else, so one of half a second or more says why it is there:
//! `Fixed pause:` in a comment right above it, or above the constant it waits for.
//!
//! Pauses on tokio's paused clock cost nothing and are not meant.

use super::docs::{children, root};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// What a long pause is explained with.
const EXPLAINED: &str = "Fixed pause:";
/// Below this it is a poll, or a moment.
const LONG: Duration = Duration::from_millis(500);
/// How many lines above a pause the explanation may be.
const ABOVE: usize = 3;

/// What is test in a file: all of it, or what is behind `#[cfg(test)]`.
struct Source {
    path: PathBuf,
    text: String,
}

fn tests() -> Vec<Source> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join("crates")]);
    while let Some(folder) = folders.pop() {
        for path in children(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.extend(test_of(path));
            }
        }
    }
    assert!(found.len() > 200, "only {} tests were found", found.len());
    found
}

fn test_of(path: PathBuf) -> Option<Source> {
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
    let whole = shown.contains("test") || shown.ends_with("pauses.rs");
    let begins = if whole { 0 } else { text.find("#[cfg(test)]\nmod ")? };
    let text = text[begins..].to_owned();
    (!text.contains("start_paused = true")).then_some(Source { path, text })
}

/// A length of time that is written down: `Duration::from_secs(3)`.
fn written(text: &str) -> Option<Duration> {
    let (unit, rest) =
        text.trim().trim_start_matches("std::time::").strip_prefix("Duration::from_")?.split_once('(')?;
    let number: u64 = rest.strip_suffix(')')?.replace('_', "").parse().ok()?;
    match unit {
        "secs" => Some(Duration::from_secs(number)),
        "millis" => Some(Duration::from_millis(number)),
        _ => None,
    }
}

/// What a constant is, and whether it is explained.
type Constants = HashMap<String, (Duration, bool)>;

fn constants(text: &str) -> Constants {
    let lines: Vec<&str> = text.lines().collect();
    let constant = |(at, line): (usize, &&str)| {
        let (_, rest) = line.split_once("const ")?;
        let (name, value) = rest.trim_end_matches(';').split_once(": Duration = ")?;
        Some((name.to_owned(), (written(value)?, is_explained(&lines[..at]))))
    };
    lines.iter().enumerate().filter_map(constant).collect()
}

/// Whether the comment that ends right here says why.
fn is_explained(above: &[&str]) -> bool {
    let comment = above.iter().rev().take_while(|line| line.trim_start().starts_with("//"));
    comment.into_iter().any(|line| line.contains(EXPLAINED))
}

/// The lines of a source that pause for long and do not say why.
fn unexplained(source: &Source, around: &Constants) -> Vec<usize> {
    let (lines, own): (Vec<&str>, _) = (source.text.lines().collect(), constants(&source.text));
    let is_unexplained = |at: usize| {
        let (_, behind) = lines[at].split_once("sleep(")?;
        let argument = behind.split(").await").next()?.trim_end_matches(");");
        let (length, known) = match written(argument) {
            Some(length) => (length, false),
            None => *own.get(argument).or_else(|| around.get(argument))?,
        };
        let near = lines[at.saturating_sub(ABOVE)..at].iter().any(|line| line.contains(EXPLAINED));
        (length >= LONG && !known && !near).then_some(at + 1)
    };
    (0..lines.len()).filter_map(is_unexplained).collect()
}

#[test]
fn no_test_pauses_for_long_without_saying_why() {
    let tests = tests();
    // Constants of a folder are for all that is in it.
    let mut folders: HashMap<_, Constants> = HashMap::new();
    for source in &tests {
        folders.entry(source.path.parent()).or_default().extend(constants(&source.text));
    }
    let mut found = Vec::new();
    for source in &tests {
        let around = &folders[&source.path.parent()];
        let shown = source.path.strip_prefix(root()).unwrap_or(&source.path).display().to_string();
        found.extend(unexplained(source, around).into_iter().map(|line| format!("{shown}:{line}")));
    }
    assert!(found.is_empty(), "await the event, or say why not ({EXPLAINED} …):\n{}", found.join("\n"));
}

#[test]
fn a_long_pause_is_found_and_an_explained_one_is_not() {
    let source = |text: &str| Source { path: PathBuf::new(), text: text.to_owned() };
    let pause = "    tokio::time::sleep(Duration::from_millis(1_500)).await;";
    let constant = "const QUIET: Duration = Duration::from_secs(2);\nsleep(QUIET).await;";
    let nothing = Constants::new();
    assert_eq!(unexplained(&source(&format!("x\n{pause}")), &nothing), [2]);
    assert_eq!(unexplained(&source(constant), &nothing), [2]);
    assert_eq!(unexplained(&source("sleep(QUIET).await;"), &constants(constant)), [1]);
    let good = [
        format!("// {EXPLAINED} nothing tells.\n{pause}"),
        format!("/// {EXPLAINED} nothing tells.\n{constant}"),
        "sleep(Duration::from_millis(50)).await;".to_owned(),
        "sleep(pause).await;".to_owned(),
    ];
    for text in good {
        assert!(unexplained(&source(&text), &nothing).is_empty(), "{text}");
    }
}
