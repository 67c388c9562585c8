//! A styled document becomes messages.
//!
//! Cuts are looked for in this order: after a blank line, after a line, after
//! a sentence, after a space, between grapheme clusters, between characters;
//! and outside code before inside it. Styles that a cut goes through end in
//! one message and go on in the next.

use std::cmp::Reverse;

use angelia_contract::length::Unit;
use angelia_contract::split::after_word;
use unicode_segmentation::GraphemeCursor;

use super::entities::{Entity, Kind, Span};
use super::writer::Styled;
use super::{MAX_ENTITIES, MAX_ENTITY_BYTES, MAX_UNITS, Part, visible};

/// Cuts a document; parts in which nothing can be seen are left out.
pub(super) fn parts(styled: &Styled, source: &str) -> Vec<Part> {
    let text = styled.text.as_str();
    let mut spans = styled.spans.iter().cloned().peekable();
    // Spans the part may need: those a cut went through, and later ones.
    let mut near: Vec<Span> = Vec::new();
    let mut found: Vec<(usize, Part)> = Vec::new();
    let mut start = 0;
    loop {
        start += text[start..].len() - text[start..].trim_start().len();
        if start == text.len() {
            break;
        }
        let limit = furthest(text, start);
        near.retain(|span| span.end > start);
        while let Some(span) = spans.next_if(|span| span.start < limit) {
            if span.end > start {
                near.push(span);
            }
        }
        let cut = Window { text, start, limit, spans: &near }.cut();
        let shown = text[start..cut].trim_end();
        if visible::any(shown) {
            let entities = entities(&near, shown, start);
            let part = Part { text: shown.to_owned(), entities, source: String::new() };
            found.push((start, part));
        }
        start = cut;
    }
    add_sources(&mut found, styled, source);
    found.into_iter().map(|(_, part)| part).collect()
}

/// The furthest a message can reach.
fn furthest(text: &str, start: usize) -> usize {
    let mut used = 0;
    let over = text[start..].char_indices().find(|(_, c)| {
        used += c.len_utf16();
        used > MAX_UNITS
    });
    over.map_or(text.len(), |(at, _)| start + at)
}

/// Gives every part its stretch of the source; together they cover it.
fn add_sources(found: &mut [(usize, Part)], styled: &Styled, source: &str) {
    let mut starts: Vec<usize> = vec![0];
    for (start, _) in found.iter().skip(1) {
        let previous = starts.last().copied().unwrap_or_default();
        let mut at = line_start(source, styled.source_of(*start)).clamp(previous, source.len());
        while !source.is_char_boundary(at) {
            at += 1;
        }
        starts.push(at);
    }
    starts.push(source.len());
    for ((_, part), ends) in found.iter_mut().zip(starts.windows(2)) {
        let own = &source[ends[0]..ends[1]];
        let fits = Unit::Utf16.measure(own) <= MAX_UNITS && visible::any(own);
        part.source = if fits { own } else { &part.text }.to_owned();
    }
}

/// The start of the line, if only white space is before `at`.
fn line_start(source: &str, at: usize) -> usize {
    let Some(before) = source.get(..at) else { return at };
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    if before[start..].trim().is_empty() { start } else { at }
}

/// The text that could go into the next part.
struct Window<'t> {
    text: &'t str,
    start: usize,
    limit: usize,
    spans: &'t [Span],
}

impl Window<'_> {
    /// Where the part ends.
    fn cut(&self) -> usize {
        let whole = self.limit == self.text.len();
        let after_line = match self.crowded() {
            Some(arrivals) => self.before_crowd(arrivals),
            None if whole => None,
            None => self.after_line(self.limit),
        };
        let other = || if whole { None } else { self.after_word().or_else(|| self.after_cluster()) };
        after_line.or_else(other).unwrap_or(self.limit)
    }

    /// Where the first span begins that is one too many.
    fn crowded(&self) -> Option<usize> {
        let mut bytes = 0;
        let too_many = self.spans.iter().enumerate().find(|(number, span)| {
            bytes += span.weight();
            *number >= MAX_ENTITIES || bytes > MAX_ENTITY_BYTES
        });
        too_many.map(|(_, span)| span.start.max(self.start))
    }

    /// A line end before the arrivals; or else the end of the line it is in, which
    /// then loses some of its styles.
    fn before_crowd(&self, arrivals: usize) -> Option<usize> {
        let before = self.after_line(arrivals).or_else(|| self.line_starts(arrivals).next());
        let line_end = || self.text[arrivals..self.limit].find('\n').map(|at| arrivals + at + 1);
        before.or_else(line_end)
    }

    /// Where lines start, from the last one before `end` backwards.
    fn line_starts(&self, end: usize) -> impl Iterator<Item = usize> {
        let own = &self.text[self.start..end];
        own.rmatch_indices('\n').map(|(at, _)| self.start + at + 1)
    }

    /// The last good line end, by falling standards.
    fn after_line(&self, end: usize) -> Option<usize> {
        let size = end - self.start;
        let last = |least: usize, good: &dyn Fn(usize) -> bool| {
            self.line_starts(end).take_while(|at| at - self.start >= least).find(|at| good(*at))
        };
        let outside = |at: usize| !self.in_code(at);
        let blank = |at: usize| self.text[..at].ends_with("\n\n");
        // The white space a message begins with is lost, so code rather goes on
        // with a line that has none.
        let flush = |at: usize| !self.text[at..].starts_with(char::is_whitespace);
        last(size / 2, &|at| outside(at) && blank(at))
            .or_else(|| last(size / 2, &outside))
            .or_else(|| last(size / 2, &flush))
            .or_else(|| last(size / 4, &|_| true))
    }

    fn in_code(&self, at: usize) -> bool {
        self.spans.iter().any(|span| span.kind == Kind::Pre && span.start < at && at < span.end)
    }

    /// After the last sentence, or else after the last word.
    fn after_word(&self) -> Option<usize> {
        let own = &self.text[self.start..self.limit];
        after_word(own, |at| self.is_boundary(self.start + at)).map(|at| self.start + at)
    }

    /// Between the last two clusters, unless one alone is too long.
    fn after_cluster(&self) -> Option<usize> {
        if self.is_boundary(self.limit) {
            return Some(self.limit);
        }
        let rest = &self.text[self.start..];
        let mut cursor = GraphemeCursor::new(self.limit - self.start, rest.len(), true);
        let at = cursor.prev_boundary(rest, 0).ok().flatten()?;
        (at > 0).then_some(self.start + at)
    }

    fn is_boundary(&self, at: usize) -> bool {
        let rest = &self.text[self.start..];
        GraphemeCursor::new(at - self.start, rest.len(), true).is_boundary(rest, 0).unwrap_or(true)
    }
}

/// The spans of one message, which begins at `start`, as entities.
fn entities(spans: &[Span], shown: &str, start: usize) -> Vec<Entity> {
    let clipped = spans.iter().filter_map(|span| clip(span, shown, start)).collect();
    let mut kept = most_important(clipped);
    kept.sort_by_key(|span: &Span| (span.start, Reverse(span.end), span.kind as u8));
    kept.into_iter().map(|span| span.entity(shown)).collect()
}

/// What of a span is in the message, without white space at its ends; only
/// blocks keep the indentation of their first line.
fn clip(span: &Span, shown: &str, start: usize) -> Option<Span> {
    let from = span.start.saturating_sub(start).min(shown.len());
    let to = span.end.saturating_sub(start).min(shown.len());
    let own = shown.get(from..to)?;
    let front = match span.kind {
        Kind::Pre | Kind::Blockquote => 0,
        _ => own.len() - own.trim_start().len(),
    };
    let own = own[front..].trim_end();
    let from = from + front;
    visible::any(own).then(|| Span { start: from, end: from + own.len(), ..span.clone() })
}

/// Leaves out what is missed least, until the rest is taken.
fn most_important(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(Span::importance);
    let mut bytes = 0;
    spans.retain(|span| {
        bytes += span.weight();
        bytes <= MAX_ENTITY_BYTES
    });
    spans.truncate(MAX_ENTITIES);
    spans
}
