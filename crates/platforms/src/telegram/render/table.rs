//! Tables as text of even width.

use pulldown_cmark::Alignment;
use unicode_segmentation::UnicodeSegmentation;

/// The widest column that others are padded to.
///
/// A wider one has no room on a telephone anyway, and padding every row of a
/// long table to one huge cell would grow with the square of the input.
const MAX_COLUMN: usize = 48;

/// A table while it is read.
#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// Where each is in the source, and its cells.
    rows: Vec<(usize, Vec<String>)>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn start_row(&mut self, at: usize) {
        self.rows.push((at, Vec::new()));
    }

    pub(super) fn start_cell(&mut self) {
        if let Some((_, cells)) = self.rows.last_mut() {
            cells.push(String::new());
        }
    }

    /// The cell that is being filled.
    pub(super) fn cell(&mut self) -> Option<&mut String> {
        self.rows.last_mut()?.1.last_mut()
    }

    /// Its lines, each with where it is in the source.
    pub(super) fn lines(&self) -> Vec<(usize, String)> {
        let widths = self.widths();
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        for (number, (at, cells)) in self.rows.iter().enumerate() {
            lines.push((*at, self.line(cells, &widths, number == 0)));
            if number == 0 {
                let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                lines.push((*at, dashes.join("-|-")));
            }
        }
        lines
    }

    fn widths(&self) -> Vec<usize> {
        let cells = |column: usize| self.rows.iter().filter_map(move |(_, cells)| cells.get(column));
        let width = |column| cells(column).map(|cell| columns(cell)).max().unwrap_or(1);
        (0..self.alignments.len()).map(|column| width(column).clamp(1, MAX_COLUMN)).collect()
    }

    fn line(&self, cells: &[String], widths: &[usize], head: bool) -> String {
        let padded = cells.iter().zip(widths).enumerate().map(|(number, (cell, width))| {
            let room = width.saturating_sub(columns(cell));
            let before = match self.alignments.get(number) {
                // A message loses the white space it begins with.
                _ if head && number == 0 => 0,
                Some(Alignment::Right) => room,
                Some(Alignment::Center) => room / 2,
                _ => 0,
            };
            format!("{}{cell}{}", " ".repeat(before), " ".repeat(room - before))
        });
        padded.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    }
}

/// How wide a text is in a fixed-width font.
fn columns(text: &str) -> usize {
    text.graphemes(true).map(|cluster| if cluster.chars().next().is_some_and(is_wide) { 2 } else { 1 }).sum()
}

/// Hangul, Chinese, Japanese, full-width forms and emoji take two columns.
fn is_wide(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{303e}' | '\u{3041}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}' | '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}' | '\u{20000}'..='\u{3fffd}' | '✅' | '❌' | '⭐' | '⚡')
}
