//! Where log lines go: to standard error, with what hides in them made visible.

use angelia_core::visible::{escape, is_hidden};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// Standard error. Every line of the log passes here, so that no field can be
/// forgotten into which somebody wrote a name that turns the line around.
pub(crate) struct Visible<W> {
    out: W,
    /// Whether escape characters are ours.
    colours: bool,
    /// Whether a line is an object, in which characters are written in another way.
    json: bool,
}

impl Visible<io::Stderr> {
    pub(crate) fn stderr() -> Self {
        Self { out: io::stderr(), colours: colours(), json: false }
    }

    /// The same for lines that are objects.
    pub(crate) fn stderr_json() -> Self {
        Self { out: io::stderr(), colours: false, json: true }
    }
}

/// A journal or a container's log would keep the colours as noise.
pub(crate) fn colours() -> bool {
    io::stderr().is_terminal()
}

impl<W: Write> Write for Visible<W> {
    /// Takes a whole line at a time, as the log gives it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let colours = self.colours;
        let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t') && !(colours && c == '\u{1b}');
        let text = String::from_utf8_lossy(line);
        let hides = |c: char| is_hidden(c) || steers(c);
        let shown = if self.json { escape_json(&text, hides) } else { escape(&text, hides) };
        self.out.write_all(shown.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What hides is written as JSON writes it, so that a line stays an object.
fn escape_json(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hides) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().fold(String::with_capacity(text.len() + 16), |mut shown, c| {
        if hides(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
        shown
    });
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(line: &str, colours: bool) -> String {
        let mut sink = Visible { out: Vec::new(), colours, json: false };
        sink.write_all(line.as_bytes()).unwrap();
        String::from_utf8(sink.out).unwrap()
    }

    #[test]
    fn an_object_stays_one_and_hides_nothing() {
        let mut sink = Visible { out: Vec::new(), colours: false, json: true };
        sink.write_all("{\"gateway\":\"a\u{202e}b\u{e0001}\"}\n".as_bytes()).unwrap();
        let line = String::from_utf8(sink.out).unwrap();
        assert_eq!(line, "{\"gateway\":\"a\\u202eb\\udb40\\udc01\"}\n");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["gateway"], "a\u{202e}b\u{e0001}");
    }

    #[test]
    fn no_line_is_turned_around() {
        assert_eq!(logged("INFO gateway=gw\u{202e}txt\n", true), "INFO gateway=gw\\u{202e}txt\n");
        assert_eq!(logged("\u{1b}[2mINFO\u{1b}[0m Zoë\n", true), "\u{1b}[2mINFO\u{1b}[0m Zoë\n");
        assert_eq!(logged("a\u{1b}[2J\n", false), "a\\u{1b}[2J\n", "where colours are not ours");
    }
}
