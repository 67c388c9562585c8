//! `angelia problems`: what a word of `explain`, `status` or the log means, and what mends it.

use crate::show;
use angelia_core::did_you_mean::alike;
use angelia_core::error::{Error, Result};
use angelia_core::problems::{self, Place, Problem, fill};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What the page in the documents begins with.
pub(crate) const HEAD: &str = "# Problems\n\nWhat `angelia explain`, `angelia status` and the log say in a word. \
                               `angelia problems WORD` tells the same.\n\n";

pub(super) fn show(word: Option<&str>, markdown: bool, as_json: bool) -> Result<()> {
    let wanted = word.map(named).transpose()?;
    if markdown {
        return show::text(&page());
    }
    let groups = problems::all().into_iter().map(|(about, all)| {
        let all = all.into_iter().filter(|problem| wanted.is_none_or(|wanted| wanted == *problem));
        (about, all.collect::<Vec<_>>())
    });
    let groups: Vec<_> = groups.filter(|(_, all)| !all.is_empty()).collect();
    if as_json {
        let all = groups.iter().flat_map(|(about, all)| all.iter().map(|one| value(about, one)));
        return show::text(&format!("{}\n", json!({ "problems": all.collect::<Vec<_>>() })));
    }
    show::text(&text(&groups))
}

/// The page in the documents.
pub(crate) fn page() -> String {
    format!("{HEAD}{}", problems::markdown())
}

fn named(word: &str) -> Result<Problem> {
    problems::named(word).ok_or_else(|| {
        let words = problems::all().into_iter().flat_map(|(_, all)| all).map(|one| one.word.to_owned());
        let hint = alike(word, words).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        Error::not_found(format!("nothing here is called {word:?}{hint}; angelia problems lists what is"))
    })
}

fn value(about: &str, Problem { word, means, cause, next }: &Problem) -> Value {
    let next = fill(next, &Place::default());
    json!({ "about": about, "word": word, "means": means, "cause": cause, "next": next })
}

fn text(groups: &[(&str, Vec<Problem>)]) -> String {
    let mut text = String::new();
    for (about, all) in groups {
        let _ = writeln!(text, "{}", about.to_uppercase());
        for Problem { word, means, cause, next } in all {
            let _ = writeln!(text, "  {word}\n    {means}\n    usually: {cause}");
            if !next.is_empty() {
                let _ = writeln!(text, "    next:    {}", fill(next, &Place::default()));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documents_is_made_from_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/problems.md");
        if std::env::var("ANGELIA_WRITE_DOCS").is_ok() {
            std::fs::write(path, page()).unwrap();
        }
        let there = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(there, page(), "renew it: ANGELIA_WRITE_DOCS=1 cargo test -p angelia --lib problems");
    }

    #[test]
    fn a_word_that_is_near_is_suggested() {
        assert!(named("wrong_secrt").unwrap_err().to_string().contains("wrong_secret"));
        assert_eq!(named("herd").unwrap().word, "herd");
    }
}
