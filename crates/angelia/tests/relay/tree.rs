//! What the tree of sources keeps to: one crate knows the database, and what tests need
//! to look into it is in no build that is shipped.

use super::docs::{children, root};
use angelia_engines::store::sqlite::DATABASE;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate that speaks to databases.
const LIBRARY: &str = "rusqlite";

/// Who names them outside `engines`, and may: what they are called is all that is said.
const NAMED: [(&str, &str); 3] = [
    // The help of a command, which is a comment and cannot quote a constant.
    ("crates/angelia/src/cli/mod.rs", DATABASE),
    ("crates/angelia/tests/relay/tree.rs", LIBRARY),
    // What a gateway must not carry.
    ("crates/gateway/tests/gateway/dependencies.rs", LIBRARY),
];

/// Every source and every manifest of the crates but `engines`.
fn sources() -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), children(&root().join("crates")));
    folders.retain(|folder| !folder.ends_with("engines"));
    while let Some(folder) = folders.pop() {
        let (below, files): (Vec<_>, Vec<_>) = children(&folder).into_iter().partition(|path| path.is_dir());
        folders.extend(below.into_iter().filter(|path| !path.ends_with("target")));
        found.extend(files.into_iter().filter(|path| {
            path.ends_with("Cargo.toml") || path.extension().is_some_and(|extension| extension == "rs")
        }));
    }
    assert!(found.len() > 500, "only {} sources were found", found.len());
    found
}

fn named_in(path: &Path) -> Vec<&'static str> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    [LIBRARY, DATABASE].into_iter().filter(|word| text.contains(word)).collect()
}

#[test]
fn only_engines_know_the_database() {
    let root = root();
    let mut named = Vec::new();
    for path in sources() {
        let shown = path.strip_prefix(&root).unwrap().display().to_string();
        named.extend(named_in(&path).into_iter().map(|word| (shown.clone(), word)));
    }
    named.sort();
    let expected = NAMED.map(|(path, word)| (path.to_owned(), word));
    assert_eq!(
        named, expected,
        "ask a port, or angelia_engines::inspect, which holds for every database; \
         the name of the file is angelia_engines::store::sqlite::DATABASE"
    );
}

/// The features of `angelia-engines` that a build of the server turns on, and for whom.
fn features(edges: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "angelia", "--invert", "angelia-engines", "--edges", edges])
        .current_dir(root())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_is_shipped_cannot_inspect() {
    let inspect = "feature \"inspect\"";
    let (tests, shipped) = (features("features"), features("features,no-dev"));
    assert!(tests.contains(inspect), "it is found where it is: {tests}");
    assert!(shipped.contains("angelia v") && !shipped.contains(inspect), "{shipped}");
}
