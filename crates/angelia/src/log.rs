//! Where log lines go: to standard error, with what hides in them made visible.

use angelia_core::visible::{escape, is_hidden};
use std::io::{self, IsTerminal, Write};

/// Standard error. Every line of the log passes here, so that no field can be
/// forgotten into which somebody wrote a name that turns the line around.
pub(crate) struct Visible<W> {
    out: W,
    /// Whether escape characters are ours.
    colours: bool,
}

impl Visible<io::Stderr> {
    pub(crate) fn stderr() -> Self {
        Self { out: io::stderr(), colours: colours() }
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
        self.out.write_all(escape(&text, |c| is_hidden(c) || steers(c)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(line: &str, colours: bool) -> String {
        let mut sink = Visible { out: Vec::new(), colours };
        sink.write_all(line.as_bytes()).unwrap();
        String::from_utf8(sink.out).unwrap()
    }

    #[test]
    fn no_line_is_turned_around() {
        assert_eq!(logged("INFO gateway=gw\u{202e}txt\n", true), "INFO gateway=gw\\u{202e}txt\n");
        assert_eq!(logged("\u{1b}[2mINFO\u{1b}[0m Zoë\n", true), "\u{1b}[2mINFO\u{1b}[0m Zoë\n");
        assert_eq!(logged("a\u{1b}[2J\n", false), "a\\u{1b}[2J\n", "where colours are not ours");
    }
}
