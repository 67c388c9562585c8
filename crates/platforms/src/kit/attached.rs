//! What came with a message and is not in its text: the words for it, and where they stand.
//! An agent that cannot look at a file reads at least that there is one.

pub(crate) use angelia_core::media::below;
use angelia_core::visible::escape;

/// One file, such as `[document plan.pdf]`. A name is no second line.
pub(crate) fn named(word: &str, name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("[{word} {}]", escape(name, char::is_control)),
        None => format!("[{word}]"),
    }
}

/// Several files, in one line.
pub(crate) fn note(files: impl Iterator<Item = String>) -> String {
    files.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_breaks_no_line() {
        let files = [
            ("photo", None),
            ("document", Some("plan.pdf")),
            ("document", Some("a\nb")),
            ("video", Some("")),
        ];
        let note = note(files.into_iter().map(|(word, name)| named(word, name)));
        assert_eq!(note, r"[photo] [document plan.pdf] [document a\u{a}b] [video]");
    }
}
