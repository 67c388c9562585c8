//! Long texts, as messages that waste no segments.
//!
//! A network carries a text in segments, and each is paid for: 153 characters of
//! the GSM alphabet, or 67 UTF-16 units as soon as one character is not in it.
//! Twilio joins up to 1,600 characters into one message. What fits is one
//! message. What does not is cut at the largest number of whole segments below
//! that limit, so that no message but the last begins a segment it cannot fill;
//! a cut at the end of a paragraph or a line is still preferred to that.

use crate::kit::cut;
use angelia_contract::length::Unit;

/// What Twilio takes in one message.
pub(super) const MAX_CHARS: usize = 1_600;
/// Ten whole segments of the GSM alphabet.
const GSM_PART: usize = 10 * 153;
/// Twenty-three whole segments of UTF-16.
const UTF16_PART: usize = 23 * 67;

/// The GSM alphabet beside letters and digits of ASCII, with its extension.
const GSM: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà^{}\\[~]|€\u{c}";

/// The messages a text makes; none if there is nothing to read in it.
pub(super) fn parts(text: &str) -> Vec<String> {
    let text = text.trim_end();
    if text.trim_start().is_empty() {
        return Vec::new();
    }
    let (unit, part) =
        if text.chars().all(is_gsm) { (Unit::Chars, GSM_PART) } else { (Unit::Utf16, UTF16_PART) };
    let limit = if unit.measure(text) <= MAX_CHARS { MAX_CHARS } else { part };
    cut(text, limit, unit)
}

fn is_gsm(c: char) -> bool {
    c.is_ascii_alphanumeric() || GSM.contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_one_message() {
        assert_eq!(parts("hello"), ["hello"]);
        assert_eq!(parts(&"x".repeat(1_600)).len(), 1);
        assert_eq!(parts(&"é".repeat(1_600)).len(), 1);
        assert_eq!(parts(&"漢".repeat(1_600)).len(), 1);
        assert_eq!(parts(&"😀".repeat(800)).len(), 1, "two units each");
        assert!(parts("").is_empty() && parts(" \n ").is_empty());
    }

    #[test]
    fn what_does_not_fit_is_cut_at_whole_segments() {
        let lengths =
            |text: &str| -> Vec<usize> { parts(text).iter().map(|part| part.chars().count()).collect() };
        assert_eq!(lengths(&"x".repeat(1_601)), [1_530, 71]);
        assert_eq!(lengths(&"x".repeat(4_000)), [1_530, 1_530, 940]);
        assert_eq!(lengths(&"漢".repeat(1_601)), [1_541, 60]);
        for text in [format!("{}漢", "word ".repeat(2_000)), "line\n".repeat(3_000), "😀".repeat(5_000)] {
            let parts = parts(&text);
            assert!(
                parts.iter().all(|part| Unit::Utf16.measure(part) <= MAX_CHARS && !part.trim().is_empty())
            );
            assert_eq!(parts.concat(), text.trim_end());
        }
    }

    #[test]
    fn a_paragraph_is_not_torn_for_a_segment() {
        let text = format!("{}\n\n{}", "x".repeat(1_400), "y".repeat(400));
        assert_eq!(parts(&text), [format!("{}\n\n", "x".repeat(1_400)), "y".repeat(400)]);
    }
}
