//! What can be seen of a text, and characters Telegram changes.

/// Columns a tab stands for in code: Telegram makes it a single space, which
/// would flatten what is indented with tabs.
const TAB: &str = "    ";

/// Whether there is anything to see. Telegram refuses messages without.
pub(super) fn any(text: &str) -> bool {
    !text.chars().all(is_blank)
}

fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{30a}' | '\u{333}' | '\u{33f}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Adds text as Telegram would leave it, so that offsets hold.
///
/// Carriage returns and direction overrides are taken out, other control
/// characters become spaces. Line feeds stay.
pub(super) fn push(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\r' | '\u{202a}'..='\u{202e}' => {}
            '\0' => out.push('\u{fffd}'),
            '\n' => out.push('\n'),
            '\u{2028}' | '\u{2029}' => out.push(' '),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
}

/// The same for code.
pub(super) fn push_code(out: &mut String, text: &str) {
    for (at, piece) in text.split('\t').enumerate() {
        if at > 0 {
            out.push_str(TAB);
        }
        push(out, piece);
    }
}
