//! What came with a message and is not in its text: the words for it, and where they stand.
//! No file reaches an agent yet, so the agent is told what it does not see.

use angelia_core::visible::escape;

/// A text and, in the line below it, what came with it. Where nothing was written, that is
/// all there is to read. A bare command stays as it was typed: the note would be its argument.
pub(crate) fn below(text: &str, note: &str) -> String {
    match text.trim() {
        _ if note.is_empty() => text.to_owned(),
        "" => note.to_owned(),
        said if said.starts_with('/') && !said.contains(char::is_whitespace) => text.to_owned(),
        _ => format!("{text}\n{note}"),
    }
}

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
    fn a_note_stands_below_the_words() {
        for (text, note, read) in [
            ("look", "[photo]", "look\n[photo]"),
            ("", "[photo]", "[photo]"),
            (" \n", "[photo]", "[photo]"),
            ("look", "", "look"),
            (" ", "", " "),
            ("/ask what is it?", "[photo]", "/ask what is it?\n[photo]"),
            ("/stop", "[photo]", "/stop"),
            (" /new ", "[photo]", " /new "),
        ] {
            assert_eq!(below(text, note), read, "{text:?}");
        }
    }

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
