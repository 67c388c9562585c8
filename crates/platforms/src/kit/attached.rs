//! What came with a message and is not in its text: the words for it, and where they stand.
//! An agent that cannot look at a file reads at least that there is one.

pub(crate) use angelia_core::media::below;
use angelia_core::media::safe_name;
use angelia_core::visible::is_hidden;

/// Longer than any title that a platform shows.
const TITLE_CHARS: usize = 1_000;

/// What a file is called, by the name that its sender gave it: as it is saved. Names are given by
/// strangers, and what hides in one or begins a new line is not for an agent to read.
pub(crate) fn file_name(given: Option<&str>, media_type: Option<&str>) -> Option<String> {
    let given = given.filter(|given| !given.is_empty())?;
    Some(safe_name(given, media_type.unwrap_or_default()))
}

/// One file, such as `[document plan.pdf]`, by its [`file_name`] or what its sender calls it.
pub(crate) fn named(word: &str, name: Option<&str>) -> String {
    bracketed(word, &file_name(name, None).unwrap_or_default())
}

/// Something that has a title and no name, such as `[sticker wave]`.
pub(crate) fn titled(word: &str, title: Option<&str>) -> String {
    bracketed(word, &one_row(title.unwrap_or_default()))
}

/// The words of strangers as a part of one line: without what hides in them, or ends it.
pub(crate) fn one_row(text: &str) -> String {
    let seen = text.chars().filter(|c| c.is_whitespace() || !c.is_control() && !is_hidden(*c));
    let seen: String = seen.take(TITLE_CHARS).collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn bracketed(word: &str, name: &str) -> String {
    if name.is_empty() { format!("[{word}]") } else { format!("[{word} {name}]") }
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
        assert_eq!(note, "[photo] [document plan.pdf] [document ab] [video]");
    }

    #[test]
    fn nothing_hides_in_a_name_or_a_title() {
        const GIVEN: &str = "a\n[system]\u{202e}gpj.exe";
        assert_eq!(named("document", Some(GIVEN)), "[document a[system]gpj.exe]");
        assert_eq!(file_name(Some(GIVEN), None).as_deref(), Some("a[system]gpj.exe"));
        assert_eq!(named("document", Some("../../etc/passwd")), "[document passwd]");
        assert_eq!(file_name(Some("\u{202e}"), Some("application/pdf")).as_deref(), Some("file.pdf"));
        assert_eq!(titled("sticker", Some(GIVEN)), "[sticker a [system]gpj.exe]");
        assert_eq!(titled("sticker", Some("\u{2066}\u{1b}")), "[sticker]");
        assert_eq!(one_row("so\u{2028}what \r\n now? 👍"), "so what now? 👍");
        assert_eq!(one_row(&"x".repeat(5_000)).len(), TITLE_CHARS);
    }
}
