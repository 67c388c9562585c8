//! Code fences, by the rules of CommonMark.

use crate::length::Unit;

/// A code block that is open at some place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence<'t> {
    marker: char,
    len: usize,
    info: &'t str,
}

/// Which runs of fence characters count as fences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FenceRules {
    /// Longest run that opens a block; below three there are no fences.
    max_len: usize,
}

/// Deepest indent of a fence; beyond, it is indented code.
const MAX_INDENT: usize = 3;
/// Shortest run that opens a block.
const MIN_LEN: usize = 3;
/// Longest run that opens a block, however high the limit of a part is.
///
/// Nobody writes longer ones; without a bound, a run of thousands would make
/// each cut search thousands of places for one that leaves room to close it.
const MAX_LEN: usize = 64;

/// The fence characters a line starts with: which, how many, what follows.
fn run(line: &str) -> Option<(char, usize, &str)> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > MAX_INDENT {
        return None;
    }
    let marker = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let after = text.trim_start_matches(marker);
    let len = text.len() - after.len();
    (len >= MIN_LEN).then_some((marker, len, after))
}

/// Whether a line, or the rest of one, could be taken for a fence.
///
/// Looks at a handful of bytes only, so that it may be asked at every word.
pub(crate) fn looks_like_fence(line: &str) -> bool {
    let bytes = line.as_bytes();
    let head = &bytes[..bytes.len().min(MAX_INDENT + MIN_LEN)];
    let indent = head.iter().take(MAX_INDENT).take_while(|b| **b == b' ').count();
    let head = &head[indent..];
    head.starts_with(b"```") || head.starts_with(b"~~~")
}

impl FenceRules {
    /// Rules by which nothing is a fence.
    pub(crate) fn none() -> Self {
        Self { max_len: 0 }
    }

    /// Rules for parts of `limit` units: reopening a block and closing it may
    /// take half of them, that is twice a run and its newline.
    pub(crate) fn for_limit(limit: usize, min_limit: usize) -> Self {
        let max_len = match limit {
            limit if limit < min_limit => 0,
            limit => (limit / 4 - 1).min(MAX_LEN),
        };
        Self { max_len }
    }

    /// Whether there are fences at all.
    pub(crate) fn any(self) -> bool {
        self.max_len >= MIN_LEN
    }

    /// The state after a line, given the state before it.
    pub(crate) fn advance<'t>(self, open: Option<Fence<'t>>, line: &'t str) -> Option<Fence<'t>> {
        let Some((marker, len, after)) = run(line) else {
            return open;
        };
        let info = after.trim_matches([' ', '\t', '\r']);
        match open {
            Some(fence) if fence.marker == marker && len >= fence.len && info.is_empty() => None,
            Some(fence) => Some(fence),
            None if len > self.max_len || (marker == '`' && info.contains('`')) => None,
            None => Some(Fence { marker, len, info }),
        }
    }
}

impl Fence<'_> {
    /// The line that opens the block again, newline included.
    ///
    /// The info string is dropped when it would take so much of the limit
    /// that little is left for the code, or would be taken for the fence.
    pub(crate) fn opening(&self, limit: usize, unit: Unit) -> String {
        let mut line = self.closing();
        // Without the space that set it off, it would make the run longer.
        let joins = self.info.starts_with(self.marker);
        if !joins && unit.measure(self.info) + 2 * (self.len + 1) <= limit / 2 {
            line.push_str(self.info);
        }
        line.push('\n');
        line
    }

    /// The line that closes the block.
    pub(crate) fn closing(&self) -> String {
        std::iter::repeat_n(self.marker, self.len).collect()
    }

    /// Length of the closing line, the same in every unit.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(lines: &[&'static str]) -> Vec<bool> {
        let rules = FenceRules { max_len: 10 };
        let mut open = None;
        lines
            .iter()
            .map(|line| {
                open = rules.advance(open, line);
                open.is_some()
            })
            .collect()
    }

    #[test]
    fn fences_open_and_close() {
        assert_eq!(states(&["```rust", "x", "```"]), [true, true, false]);
        assert_eq!(states(&["````", "```", "`````  "]), [true, true, false]);
        assert_eq!(states(&["~~~ a`b", "```", "~~~"]), [true, true, false]);
        assert_eq!(states(&["```", "``` x", "   ```"]), [true, true, false]);
        assert_eq!(states(&["``` a`b", "    ```", "``"]), [false, false, false]);
        assert_eq!(states(&["```````````", "```\r"]), [false, true]);
    }

    #[test]
    fn long_info_is_dropped() {
        let fence = FenceRules { max_len: 5 }.advance(None, "```averylonglanguagename").unwrap();
        assert_eq!(fence.opening(40, Unit::Chars), "```\n");
        assert_eq!(fence.opening(400, Unit::Chars), "```averylonglanguagename\n");
    }
}
