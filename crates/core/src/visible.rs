//! Making visible what hides in the words of strangers: marks that turn the
//! direction of a line, characters without a shape, and what steers a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character is there without being seen, or changes how others are
/// seen: Unicode's direction marks and its other invisible formatting characters.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text with everything hidden, and every control character, written out as `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_hidden(c) || c.is_control())
}

/// The same, for at most so many characters; what is written out is not cut in two.
pub fn visible_up_to(text: &str, most: usize) -> String {
    let (mut shown, mut count) = (String::new(), 0);
    for c in text.chars() {
        let piece = visible(c.encode_utf8(&mut [0; 4])).into_owned();
        count += piece.chars().count();
        if count > most {
            break;
        }
        shown.push_str(&piece);
    }
    shown
}

/// The text with those characters written out as `\u{202e}`.
pub fn escape(text: &str, which: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&which) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if which(c) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_written_out() {
        for (text, shown) in [
            ("ann", "ann"),
            ("Zoë 李 🦀", "Zoë 李 🦀"),
            ("gw\u{202e}txt.exe", "gw\\u{202e}txt.exe"),
            ("\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("a\u{1b}[2J\n", "a\\u{1b}[2J\\u{a}"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
        ] {
            assert_eq!(visible(text), shown);
            assert!(!visible(text).chars().any(is_hidden));
        }
        assert!(matches!(visible("nothing hidden"), Cow::Borrowed(_)), "costs nothing");
    }

    #[test]
    fn a_cut_leaves_no_half_of_what_is_written_out() {
        assert_eq!(visible_up_to("ab\u{202e}cd", 9), "ab");
        assert_eq!(visible_up_to("ab\u{202e}cd", 10), "ab\\u{202e}");
        assert_eq!(visible_up_to(&"\u{202e}".repeat(1_000), 200).len(), 200);
        assert_eq!(visible_up_to("李李李", 2), "李李");
    }
}
