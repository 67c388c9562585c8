//! The text under construction: lines, list markers, styles, and where in the
//! source each word came from.

use std::cmp::Reverse;
use std::ops::Range;

use super::entities::{Kind, Span};
use super::visible;

/// The deepest indentation of a line; without an end to it, deep lists grow
/// with the square of the input.
const MAX_INDENT: usize = 24;

/// A whole document as text with styles.
#[derive(Debug, Default)]
pub(super) struct Styled {
    pub(super) text: String,
    /// Sorted by where they begin, outer ones first; never crossing.
    pub(super) spans: Vec<Span>,
    marks: Vec<Mark>,
}

/// Where a stretch of text came from.
#[derive(Debug)]
struct Mark {
    text: usize,
    source: usize,
    /// How many bytes from here on are the same in both.
    same: usize,
}

impl Styled {
    /// Where in the source what is at `text` came from.
    pub(super) fn source_of(&self, text: usize) -> usize {
        // At the very start of a block its markup belongs to it, so the first
        // mark of several counts.
        let at = self.marks.partition_point(|mark| mark.text < text);
        let here = self.marks.get(at).filter(|mark| mark.text == text);
        let before = || at.checked_sub(1).and_then(|at| self.marks.get(at));
        let Some(mark) = here.or_else(before) else { return 0 };
        let into = text - mark.text;
        mark.source + if into <= mark.same { into } else { 0 }
    }
}

/// Styles of words, which may be open at once.
const INLINE: [Kind; 3] = [Kind::Bold, Kind::Italic, Kind::Strikethrough];

/// One style: how often it is open, and since where.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    depth: usize,
    start: Option<usize>,
}

/// Writes a document from front to back.
#[derive(Debug, Default)]
pub(super) struct Writer<'s> {
    source: &'s str,
    done: Styled,
    /// Line ends owed before the next word; two make a blank line.
    gap: usize,
    /// List markers owed before the next word, with their indentation.
    markers: String,
    /// How far the lines of each open list item are indented.
    indents: Vec<usize>,
    /// Where the first block begins that has no word yet.
    opened: Option<usize>,
    /// By their kind.
    styles: [Open; Kind::Pre as usize + 1],
}

impl<'s> Writer<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, ..Self::default() }
    }

    /// How much is written.
    pub(super) fn written(&self) -> &str {
        &self.done.text
    }

    /// A block begins; blank lines stay where the author put them.
    pub(super) fn start_block(&mut self, at: usize) {
        // Blocks that begin together are looked at once: looking back over the
        // line for each of many would grow with the square of it.
        if self.opened.is_none() {
            self.gap = self.gap.max(1 + usize::from(self.follows_blank_line(at)));
            self.opened = Some(at);
        }
        self.end_block();
    }

    fn follows_blank_line(&self, at: usize) -> bool {
        let mut lines = self.source[..at].rsplit('\n');
        lines.next();
        lines.next().is_some_and(|line| line.trim_matches(|c: char| c.is_whitespace() || c == '>').is_empty())
    }

    pub(super) fn end_block(&mut self) {
        self.gap = self.gap.max(1);
    }

    pub(super) fn new_line(&mut self) {
        self.gap = (self.gap + 1).min(2);
    }

    fn indent(&self) -> usize {
        self.indents.last().copied().unwrap_or_default()
    }

    /// The block that has begun is a list item.
    pub(super) fn start_item(&mut self, marker: &str) {
        if self.markers.is_empty() {
            self.markers = " ".repeat(self.indent().min(MAX_INDENT));
        }
        self.markers.push_str(marker);
        self.indents.push(self.indent() + marker.chars().count());
    }

    /// Replaces a bullet by a box.
    pub(super) fn tick(&mut self, done: bool) {
        if self.markers.ends_with("• ") {
            self.markers.truncate(self.markers.len() - "• ".len());
        }
        self.markers.push_str(if done { "☑ " } else { "☐ " });
    }

    /// A list item ends; an empty one still shows its marker.
    pub(super) fn end_item(&mut self) {
        self.lone_markers();
        self.indents.pop();
    }

    /// Writes markers that have no word of their own behind them.
    fn lone_markers(&mut self) {
        if !self.markers.is_empty() {
            self.markers.truncate(self.markers.trim_end().len());
            self.begin();
            self.gap = 1;
        }
    }

    /// A style or a quotation begins. Only the outermost of each counts: Telegram's
    /// quotations do not nest.
    pub(super) fn open(&mut self, kind: Kind) {
        self.styles[kind as usize].depth += 1;
    }

    pub(super) fn close(&mut self, kind: Kind) {
        let style = &mut self.styles[kind as usize];
        style.depth = style.depth.saturating_sub(1);
        if style.depth == 0 {
            self.end_style(kind);
        }
    }

    fn end_style(&mut self, kind: Kind) {
        if let Some(start) = self.styles[kind as usize].start.take() {
            self.span(kind, start, None);
        }
    }

    /// All that was written from `start` on has a style.
    pub(super) fn span(&mut self, kind: Kind, start: usize, detail: Option<String>) {
        let end = self.done.text.len();
        self.done.spans.push(Span { kind, start, end, detail });
    }

    /// Writes what is owed before the next word: line ends, markers, indentation.
    fn begin(&mut self) {
        if self.gap == 0 {
            return;
        }
        let (indent, text) = (self.indent().min(MAX_INDENT), &mut self.done.text);
        if !text.is_empty() {
            text.extend(std::iter::repeat_n('\n', self.gap));
        }
        self.gap = 0;
        let quote = &mut self.styles[Kind::Blockquote as usize];
        if quote.depth > 0 {
            // From the start of the line, with the marker: quotations are blocks.
            quote.start.get_or_insert(text.len());
        }
        if let Some(source) = self.opened.take() {
            self.done.marks.push(Mark { text: text.len(), source, same: 0 });
        }
        if self.markers.is_empty() {
            text.extend(std::iter::repeat_n(' ', indent))
        } else {
            text.push_str(&std::mem::take(&mut self.markers))
        }
    }

    /// Writes words of running text; line feeds in them are line ends. Gives
    /// where the first word is.
    pub(super) fn words(&mut self, words: &str, range: Range<usize>) -> Option<usize> {
        let (mut at, mut first) = (range.start, None);
        for (number, line) in words.split('\n').enumerate() {
            if number > 0 {
                self.new_line();
            }
            if !line.is_empty() {
                self.begin();
                self.start_styles();
                first.get_or_insert(self.done.text.len());
                self.push(line, at..range.end);
            }
            at = (at + line.len() + 1).min(range.end);
        }
        first
    }

    fn start_styles(&mut self) {
        for style in INLINE.map(|kind| kind as usize) {
            if self.styles[style].depth > 0 {
                self.styles[style].start.get_or_insert(self.done.text.len());
            }
        }
    }

    fn push(&mut self, words: &str, range: Range<usize>) {
        let text = self.done.text.len();
        visible::push(&mut self.done.text, words);
        self.mark(text, range);
    }

    /// Notes where what was written from `text` on came from.
    fn mark(&mut self, text: usize, range: Range<usize>) {
        let written = &self.done.text[text..];
        let origin = self.source.get(range.clone()).unwrap_or_default();
        let same = if origin.starts_with(written) { written.len() } else { 0 };
        self.done.marks.push(Mark { text, source: range.start, same });
    }

    /// Writes code inside a line. No style reaches into it.
    pub(super) fn code(&mut self, code: &str, range: Range<usize>) {
        self.begin();
        INLINE.into_iter().for_each(|kind| self.end_style(kind));
        let start = self.done.text.len();
        self.push(code, range);
        self.span(Kind::Code, start, None);
    }

    /// Writes lines of fixed width: each with where it is in the source.
    pub(super) fn block_of_code(&mut self, lines: &[(usize, String)], language: Option<String>) {
        let blank = |line: &&(usize, String)| line.1.trim().is_empty();
        let first = lines.iter().take_while(blank).count();
        let last = lines.len() - lines.iter().rev().take_while(blank).count();
        let Some(lines) = lines.get(first..last).filter(|lines| !lines.is_empty()) else { return };
        self.lone_markers();
        // No indentation: it would be copied with the code.
        let indents = std::mem::take(&mut self.indents);
        self.gap = self.gap.max(1);
        self.begin();
        self.indents = indents;
        let start = self.done.text.len();
        for (number, (at, line)) in lines.iter().enumerate() {
            if number > 0 {
                self.done.text.push('\n');
            }
            let text = self.done.text.len();
            self.done.text.push_str(line);
            self.mark(text, *at..self.source.len());
        }
        self.span(Kind::Pre, start, language);
    }

    /// The whole document.
    pub(super) fn finish(mut self) -> Styled {
        self.done.spans.sort_by_key(|span| (span.start, Reverse(span.end), span.kind as u8));
        self.done
    }
}
