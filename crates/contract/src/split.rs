//! Cutting long texts to what a platform takes. (Telegram, whose texts have styles, cuts those
//! itself: `telegram/render/cut.rs`.)
//!
//! The law: take the added fence lines off each part, join what remains, and
//! the input is back, byte for byte. No part is empty or over the limit, and
//! in every part each code fence that is opened is closed.
//!
//! Cuts are looked for in this order: after a blank line, after a line, after
//! a sentence, after a space, anywhere. Grapheme clusters stay whole unless a
//! single one is over the limit. A part of nothing but white space, which chat
//! platforms refuse, is avoided at the end of a text; inside one it can still
//! appear where a run of white space is itself longer than the limit.
//!
//! Fences have a price. Below [`MIN_FENCED_LIMIT`] there is no room for them
//! and texts are cut as if they had none; likewise a fence is read as plain
//! text if its run of characters is as long as a quarter of the limit, or
//! longer than 64. A text that ends inside an open fence gets it closed, even
//! if it needs no cut.

use unicode_segmentation::GraphemeCursor;

use crate::fence::{Fence, FenceRules, looks_like_fence};
use crate::length::Unit;

/// Smallest limit at which code fences are kept balanced.
///
/// Reopening and closing the shortest fence takes eight characters; with four
/// times that, three quarters of each part are still the author's.
pub const MIN_FENCED_LIMIT: usize = 32;

/// How many clusters a cut goes back to get out of a run of fence characters.
const MAX_RETREAT: usize = 16;

/// One part of a cut text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The text to send, added fence lines included.
    pub text: String,
    /// Bytes at the front that were added to open a fence again.
    pub added_front: usize,
    /// Bytes at the back that were added to close a fence.
    pub added_back: usize,
}

impl Part {
    /// The author's own text in this part.
    pub fn content(&self) -> &str {
        &self.text[self.added_front..self.text.len() - self.added_back]
    }
}

/// Why a text was not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The limit is smaller than a single character can be.
    #[error("a limit of {limit} cannot hold every character")]
    LimitTooSmall {
        /// The limit that was given.
        limit: usize,
    },
}

/// Cuts `text` into parts of at most `limit` units; an empty text has none.
pub fn split(text: &str, limit: usize, unit: Unit) -> Result<Vec<Part>, SplitError> {
    split_by(FenceRules::for_limit(limit, MIN_FENCED_LIMIT), text, limit, unit)
}

/// The same where code fences mean nothing: none is closed or opened again.
pub fn split_plain(text: &str, limit: usize, unit: Unit) -> Result<Vec<Part>, SplitError> {
    split_by(FenceRules::none(), text, limit, unit)
}

fn split_by(rules: FenceRules, text: &str, limit: usize, unit: Unit) -> Result<Vec<Part>, SplitError> {
    if limit < unit.of_char(char::MAX) {
        return Err(SplitError::LimitTooSmall { limit });
    }
    let cutter = Cutter { text, limit, unit, rules, content_end: text.trim_end().len() };
    let mut parts = Vec::with_capacity(text.len() / limit + 1);
    let (mut start, mut open) = (0, None);
    while start < text.len() {
        let window = cutter.window(start, open);
        let cut = window.cut();
        let after = window.state_at(cut);
        parts.push(window.part(cut, after));
        (start, open) = (cut, after);
    }
    Ok(parts)
}

/// What does not change from part to part.
struct Cutter<'t> {
    text: &'t str,
    limit: usize,
    unit: Unit,
    rules: FenceRules,
    /// Where the trailing white space of the text begins.
    content_end: usize,
}

/// A line start inside a window.
struct Line<'t> {
    start: usize,
    /// Units used up to here, the reopened fence included.
    used: usize,
    open: Option<Fence<'t>>,
}

/// All the text that could go into the next part.
struct Window<'c, 't> {
    cutter: &'c Cutter<'t>,
    start: usize,
    end: usize,
    /// The first character that is not white space, or `end`.
    content: usize,
    front: String,
    lines: Vec<Line<'t>>,
}

impl<'t> Cutter<'t> {
    fn window(&self, start: usize, open: Option<Fence<'t>>) -> Window<'_, 't> {
        let front = open.map_or_else(String::new, |fence| fence.opening(self.limit, self.unit));
        let mut used = self.unit.measure(&front);
        let mut lines = vec![Line { start, used, open }];
        let (mut end, mut line_start, mut state) = (self.text.len(), start, open);
        for (at, c) in self.text[start..].char_indices() {
            used += self.unit.of_char(c);
            if used > self.limit {
                end = start + at;
                break;
            }
            if c == '\n' {
                state = self.rules.advance(state, &self.text[line_start..start + at]);
                line_start = start + at + 1;
                lines.push(Line { start: line_start, used, open: state });
            }
        }
        let own = &self.text[start..end];
        Window {
            cutter: self,
            start,
            end,
            content: start + (own.len() - own.trim_start().len()),
            front,
            lines,
        }
    }
}

impl<'t> Window<'_, 't> {
    /// Where the part ends.
    fn cut(&self) -> usize {
        let whole = self.cutter.text.len();
        if self.end == whole && self.fits(whole) {
            return whole;
        }
        let cut = self.after_line().or_else(|| self.after_word()).unwrap_or_else(|| self.anywhere());
        self.leave_no_blank(cut)
    }

    /// The last good line end, by falling standards.
    fn after_line(&self) -> Option<usize> {
        let size = self.end - self.start;
        let last = |least: usize, good: &dyn Fn(usize) -> bool| {
            (1..self.lines.len())
                .rev()
                .take_while(|at| self.lines[*at].start - self.start >= least)
                .find(|at| good(*at) && self.fits(self.lines[*at].start))
                .map(|at| self.lines[at].start)
                .filter(|cut| *cut > self.content)
        };
        let outside = |at: usize| self.lines[at].open.is_none();
        let blank = |at: usize| self.line(at - 1).trim().is_empty();
        last(size / 2, &|at| outside(at) && blank(at))
            .or_else(|| last(size / 2, &outside))
            .or_else(|| last(size / 4, &|at| !self.splits_off_fence(at)))
            .or_else(|| last(size / 4, &|_| true))
    }

    /// Whether a cut before this line leaves a fence line without its code.
    fn splits_off_fence(&self, at: usize) -> bool {
        let opens = self.lines[at - 1].open.is_none() && self.lines[at].open.is_some();
        let next = self.line(at).trim_end_matches(['\r', '\n']);
        opens || looks_like_fence(next)
    }

    /// Line `at`, as far as it is inside the window.
    fn line(&self, at: usize) -> &'t str {
        let end = self.lines.get(at + 1).map_or(self.end, |next| next.start);
        &self.cutter.text[self.lines[at].start..end]
    }

    /// After the last sentence, or else after the last word.
    fn after_word(&self) -> Option<usize> {
        let good = |at: usize| self.start + at > self.content && self.is_good(self.start + at);
        after_word(&self.cutter.text[self.start..self.end], good).map(|at| self.start + at)
    }

    /// As late as possible, between clusters if there are any.
    fn anywhere(&self) -> usize {
        let latest = self.back_off(self.end);
        if self.fits(latest) {
            return latest;
        }
        // Any closing line takes at most a quarter of the limit, so this far
        // in the part fits whatever is open there.
        let budget = self.cutter.limit - self.cutter.limit / 4;
        let mut used = self.lines[0].used;
        let own = &self.cutter.text[self.start..self.end];
        let safe = own
            .char_indices()
            .find(|(_, c)| {
                used += self.cutter.unit.of_char(*c);
                used > budget
            })
            .map_or(self.end, |(at, _)| self.start + at);
        match self.back_off(safe) {
            cut if self.fits(cut) => cut,
            _ => safe,
        }
    }

    /// The last good place at or before `cut`; `cut` itself if there is none.
    fn back_off(&self, cut: usize) -> usize {
        let whole = if self.is_boundary(cut) { Some(cut) } else { self.previous(cut) };
        let Some(whole) = whole else { return cut };
        let mut candidate = Some(whole);
        for _ in 0..MAX_RETREAT {
            match candidate {
                Some(at) if self.tears_fence(at) => candidate = self.previous(at),
                other => return other.unwrap_or(whole),
            }
        }
        whole
    }

    /// Keeps a cut from leaving nothing but white space behind.
    fn leave_no_blank(&self, cut: usize) -> usize {
        let Cutter { text, content_end, .. } = *self.cutter;
        if cut < content_end || cut == text.len() || content_end <= self.content {
            return cut;
        }
        let own = &text[self.start..content_end];
        let word = own
            .char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace())
            .map(|(at, c)| self.start + at + c.len_utf8());
        [word, self.previous(content_end)]
            .into_iter()
            .flatten()
            .filter(|at| *at > self.content)
            .filter(|at| self.cutter.unit.measure(&text[*at..]) <= self.cutter.limit)
            .find(|at| self.is_good(*at))
            .unwrap_or(cut)
    }

    fn is_good(&self, cut: usize) -> bool {
        self.is_boundary(cut) && !self.tears_fence(cut) && self.fits(cut)
    }

    /// Whether a cut makes, or breaks, what looks like a fence line.
    fn tears_fence(&self, cut: usize) -> bool {
        let text = self.cutter.text;
        let line = &self.lines[self.line_of(cut)];
        if !self.cutter.rules.any() || line.start == cut {
            return false;
        }
        let rest = &text[cut..];
        let inside_run = ['`', '~'].iter().any(|c| rest.starts_with(*c) && text[..cut].ends_with(*c));
        inside_run || looks_like_fence(rest) || looks_like_fence(&text[line.start..cut])
    }

    /// Whether a part that ends at `cut` keeps to the limit.
    fn fits(&self, cut: usize) -> bool {
        let line = &self.lines[self.line_of(cut)];
        let used = line.used + self.cutter.unit.measure(&self.cutter.text[line.start..cut]);
        let newline = usize::from(cut != line.start);
        let closing = self.state_at(cut).map_or(0, |fence| fence.len() + newline);
        cut > self.start && used + closing <= self.cutter.limit
    }

    /// The fence that is open at `cut`.
    fn state_at(&self, cut: usize) -> Option<Fence<'t>> {
        let line = &self.lines[self.line_of(cut)];
        match line.start {
            start if start == cut => line.open,
            start => {
                let begun = &self.cutter.text[start..cut];
                self.cutter.rules.advance(line.open, begun)
            }
        }
    }

    fn line_of(&self, cut: usize) -> usize {
        self.lines.partition_point(|line| line.start <= cut) - 1
    }

    fn part(&self, cut: usize, open: Option<Fence<'t>>) -> Part {
        let own = &self.cutter.text[self.start..cut];
        let mut text = String::with_capacity(self.front.len() + own.len());
        text.push_str(&self.front);
        text.push_str(own);
        if let Some(fence) = open {
            if !own.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&fence.closing());
        }
        Part { added_front: self.front.len(), added_back: text.len() - self.front.len() - own.len(), text }
    }

    // Clusters are looked at from the window's start only: that bounds the
    // look back, which a text of nothing but flags would otherwise make long.

    fn is_boundary(&self, cut: usize) -> bool {
        let (text, mut cursor) = self.cursor(cut);
        cursor.is_boundary(text, 0).unwrap_or(true)
    }

    /// The cluster boundary before `cut`, unless that is the window's start.
    fn previous(&self, cut: usize) -> Option<usize> {
        let (text, mut cursor) = self.cursor(cut);
        let at = cursor.prev_boundary(text, 0).ok().flatten()?;
        (at > 0).then_some(self.start + at)
    }

    fn cursor(&self, cut: usize) -> (&'t str, GraphemeCursor) {
        let text = &self.cutter.text[self.start..];
        (text, GraphemeCursor::new(cut - self.start, text.len(), true))
    }
}

/// After the last sentence of a text, or else after its last word, where a cut is `good`; but
/// not so early that much of the text is left.
pub fn after_word(text: &str, good: impl Fn(usize) -> bool) -> Option<usize> {
    let last = |least: usize, ends: &dyn Fn(char, &str) -> bool| {
        text.char_indices()
            .rev()
            .take_while(|(at, _)| *at >= least)
            .filter(|(at, c)| ends(*c, &text[..*at]))
            .map(|(at, c)| at + c.len_utf8())
            .find(|cut| good(*cut))
    };
    last(text.len() / 2, &|c, before| {
        matches!(c, '。' | '！' | '？') || c.is_whitespace() && before.ends_with(['.', '!', '?', '…'])
    })
    .or_else(|| last(text.len() / 4, &|c, _| c.is_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, limit: usize) -> Vec<String> {
        let parts = split(text, limit, Unit::Chars).unwrap();
        parts.into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn short_texts_stay_whole() {
        assert!(split("", 10, Unit::Chars).unwrap().is_empty());
        assert_eq!(texts("hello", 5), ["hello"]);
        assert!(split("x", 3, Unit::Bytes).is_err());
    }

    #[test]
    fn cuts_prefer_natural_places() {
        assert_eq!(texts("one two.\n\nthree\nfour five", 20), ["one two.\n\n", "three\nfour five"]);
        assert_eq!(texts("one two three\nfour five", 20), ["one two three\n", "four five"]);
        assert_eq!(texts("One two. Three four", 16), ["One two. ", "Three four"]);
        assert_eq!(texts("one two three four", 16), ["one two three ", "four"]);
        assert_eq!(texts("aaaaaaaaaa", 4), ["aaaa", "aaaa", "aa"]);
    }

    #[test]
    fn fences_are_closed_and_opened_again() {
        let code = format!("```rust\n{}```\n", "let x = 1;\n".repeat(6));
        let parts = split(&code, 48, Unit::Chars).unwrap();
        assert!(parts.len() > 1);
        assert!(parts[0].text.ends_with("let x = 1;\n```"));
        assert!(parts[1].text.starts_with("```rust\nlet x"));
        let joined: String = parts.iter().map(Part::content).collect();
        assert_eq!(joined, code);
    }

    #[test]
    fn clusters_stay_whole_unless_one_is_too_long() {
        let flags = "🇩🇪🇫🇷🇮🇹";
        assert_eq!(texts(flags, 3), ["🇩🇪", "🇫🇷", "🇮🇹"]);
        let family = "👩‍👩‍👧‍👦";
        assert_eq!(texts(family, 4).concat(), family);
        assert_eq!(texts("a\r\nb", 2), ["a", "\r\n", "b"]);
    }

    #[test]
    fn no_blank_part_is_left_at_the_end() {
        assert_eq!(texts("0123456789\n", 10), ["012345678", "9\n"]);
        assert_eq!(texts("01234 6789\n\n", 10), ["01234 ", "6789\n\n"]);
    }
}
