//! The configuration and the decisions know no platform by name: each says itself what is
//! to be known of it (docs/decisions/0039).

use angelia_platforms::{ALL, blocks};
use std::fs;
use std::path::{Path, PathBuf};

/// What names a platform all the same, because it is stored, typed or told by that name: the
/// end of a file's path, and the words.
const KNOWN: [(&str, &str); 6] = [
    ("core/src/records/rows/mod.rs", "\"webchat_people\""),
    ("core/src/records/rows/mod.rs", "\"webchat_lines\""),
    ("core/src/rooms/people.rs", "\"webchat.invite\""),
    ("core/src/rooms/people.rs", "\"webchat.revoke\""),
    ("core/src/rooms/people.rs", "angelia webchat list"),
    ("angelia/src/config/template.toml", "(web chat, SMS, WeCom)"),
];

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The part of a source that is not its tests.
fn production(path: &Path) -> String {
    // The default file is what the template and the platforms' parts come to.
    let is_test = |part: &str| {
        part == "tests" || part.trim_end_matches(".rs").ends_with("tests") || part == "default.toml"
    };
    if path.components().any(|part| is_test(&part.as_os_str().to_string_lossy())) {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

#[test]
fn neither_the_decisions_nor_the_configuration_name_a_platform() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = Vec::new();
    files(&crates.join("core/src"), &mut sources);
    files(&crates.join("angelia/src/config"), &mut sources);
    let places = ALL.iter().map(|manifest| manifest.places.platform);
    let names: Vec<String> =
        places.chain(blocks().map(|block| block.title)).chain(["twilio"]).map(str::to_lowercase).collect();
    let mut found = Vec::new();
    let mut read = 0;
    for path in sources {
        let mut text = production(&path);
        read += usize::from(!text.is_empty());
        for (_, words) in KNOWN.iter().filter(|(file, _)| path.ends_with(file)) {
            assert!(text.contains(words), "{words} is not in {} any more", path.display());
            text = text.replace(words, "");
        }
        let lines = text.lines().enumerate();
        let named = lines.filter(|(_, line)| names.iter().any(|name| line.to_lowercase().contains(name)));
        found.extend(named.map(|(at, line)| format!("{}:{}: {line}", path.display(), at + 1)));
    }
    assert!(read > 100, "the sources are where they were: {read}");
    assert!(found.is_empty(), "{found:#?}");
}
