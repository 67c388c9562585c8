//! `angelia limits`: the bounds that others can run into, with their reasons. The table in the
//! documents is made by this, so it says what the code does.

use angelia_contract::limit::{Group, Limit};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Where limits are declared.
const CRATES: [&[Group]; 5] = [
    angelia_contract::LIMITS,
    angelia_connector::LIMITS,
    angelia_core::LIMITS,
    angelia_engines::LIMITS,
    angelia_platforms::LIMITS,
];

/// All limits, by what they are about, in the order in which that first comes up.
fn by_title() -> Vec<(&'static str, Vec<&'static Limit>)> {
    let mut groups: Vec<(&str, Vec<&Limit>)> = Vec::new();
    for (title, limits) in CRATES.into_iter().flatten() {
        match groups.iter_mut().find(|(known, _)| known == title) {
            Some((_, group)) => group.extend(*limits),
            None => groups.push((title, limits.iter().collect())),
        }
    }
    groups
}

/// For people at a terminal.
pub(crate) fn text() -> String {
    let mut text = String::new();
    for (title, limits) in by_title() {
        let _ = writeln!(text, "{}", title.to_uppercase());
        for limit in limits {
            let _ = writeln!(text, "  {:>10}  {}", limit.amount.to_string(), limit.of);
            let _ = writeln!(text, "              {}", why(limit));
        }
        text.push('\n');
    }
    text
}

/// For the documents.
pub(crate) fn markdown() -> String {
    let mut text = String::from("| Limit | Of what | Why, and what happens beyond it |\n|---|---|---|\n");
    for (title, limits) in by_title() {
        let _ = writeln!(text, "| | **{title}** | |");
        for limit in limits {
            let _ = writeln!(text, "| {} | {} | {} |", limit.amount, limit.of, why(limit));
        }
    }
    text
}

/// For scripts.
pub(crate) fn value() -> Value {
    let described =
        |limit: &&Limit| json!({ "of": limit.of, "limit": limit.amount.to_string(), "why": why(limit) });
    let groups = by_title().into_iter().map(|(title, limits)| {
        json!({ "about": title, "limits": limits.iter().map(described).collect::<Vec<_>>() })
    });
    json!({ "limits": groups.collect::<Vec<_>>() })
}

/// A reason in one line.
fn why(limit: &Limit) -> String {
    limit.why.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- made by: angelia limits --markdown -->\n";
    const END: &str = "<!-- end -->";

    #[test]
    fn the_table_in_the_documents_is_made_from_the_constants() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
        let document = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = document.split_once(BEGIN).unwrap();
        let (table, after) = rest.split_once(END).unwrap();
        if table != markdown() && std::env::var_os("ANGELIA_WRITE_DOCS").is_some() {
            let renewed = [before, BEGIN, &markdown(), END, after].concat();
            std::fs::write(&path, renewed).unwrap();
            return;
        }
        assert_eq!(table, markdown(), "renew it: ANGELIA_WRITE_DOCS=1 cargo test -p angelia --lib limits");
    }

    #[test]
    fn every_limit_has_a_reason() {
        let groups = by_title();
        let count: usize = groups.iter().map(|(_, limits)| limits.len()).sum();
        assert!(count > 40, "only {count} limits are listed");
        for limit in groups.iter().flat_map(|(_, limits)| limits) {
            assert!(why(limit).len() > 20 && why(limit).ends_with('.'), "{}: {}", limit.of, why(limit));
            assert!(!limit.of.contains('|') && !why(limit).contains('|'), "{}", limit.of);
        }
    }
}
