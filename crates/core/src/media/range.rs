//! Which part of a file a request asks for: the `Range` header of RFC 9110, of one range.

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// All of it: no range, or none that is understood here.
    Whole,
    /// The bytes from `first` to `last`, both of them included.
    Part {
        /// The first byte.
        first: u64,
        /// The last byte, which the file has.
        last: u64,
    },
    /// Bytes that the file does not have.
    Unsatisfiable,
}

/// What a `Range` header asks of a file of that size. Several ranges, other units and what is
/// malformed are as if they had not been said, which the RFC leaves to a server.
pub fn asked(header: Option<&str>, size: u64) -> Asked {
    header.and_then(|header| one_range(header, size)).unwrap_or(Asked::Whole)
}

/// The value of `Content-Range` for the bytes from `first` to `last`.
pub fn content_range(first: u64, last: u64, size: u64) -> String {
    format!("bytes {first}-{last}/{size}")
}

/// `None` for a header that is to be ignored.
fn one_range(header: &str, size: u64) -> Option<Asked> {
    let (unit, range) = header.trim_matches(is_blank).split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim_matches(is_blank).split_once('-')?;
    if first.is_empty() {
        return Some(the_last(position(last)?, size));
    }
    let first = position(first)?;
    let last = if last.is_empty() { u64::MAX } else { position(last)? };
    if last < first {
        return None;
    }
    if first >= size {
        return Some(Asked::Unsatisfiable);
    }
    Some(Asked::Part { first, last: last.min(size - 1) })
}

/// The last so many bytes. All of an empty file is no part that could be named.
fn the_last(count: u64, size: u64) -> Asked {
    if count == 0 {
        return Asked::Unsatisfiable;
    }
    if size == 0 {
        return Asked::Whole;
    }
    Asked::Part { first: size.saturating_sub(count), last: size - 1 }
}

/// A number of digits only. One that is too large to count is behind the end of every file.
fn position(digits: &str) -> Option<u64> {
    let only_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    only_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(first: u64, last: u64) -> Asked {
        Asked::Part { first, last }
    }

    #[test]
    fn one_range_is_understood() {
        for (header, expected) in [
            ("bytes=0-99", part(0, 99)),
            ("bytes=0-0", part(0, 0)),
            ("bytes=100-", part(100, 999)),
            ("bytes=-50", part(950, 999)),
            ("bytes=999-999", part(999, 999)),
            ("bytes=900-1000", part(900, 999)),
            ("bytes=900-99999999999999999999999", part(900, 999)),
            ("bytes=-1000", part(0, 999)),
            ("bytes=-5000", part(0, 999)),
            ("bytes=-99999999999999999999999", part(0, 999)),
            ("Bytes=007-9", part(7, 9)),
            (" bytes= 0-9\t", part(0, 9)),
        ] {
            assert_eq!(asked(Some(header), 1_000), expected, "{header}");
        }
    }

    #[test]
    fn what_is_behind_the_end_cannot_be_given() {
        for header in
            ["bytes=1000-", "bytes=1000-2000", "bytes=99999999999999999999999-", "bytes=-0", "bytes=-00"]
        {
            assert_eq!(asked(Some(header), 1_000), Asked::Unsatisfiable, "{header}");
        }
    }

    #[test]
    fn the_rest_is_as_if_it_had_not_been_said() {
        assert_eq!(asked(None, 1_000), Asked::Whole);
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5",
            "bytes=9-5",
            "bytes=a-b",
            "bytes=+1-5",
            "bytes=1-+5",
            "bytes=--5",
            "bytes=-5-",
            "bytes=1-5-9",
            "bytes=0-1,5-9",
            "bytes=0-1,",
            "bytes=0 - 1",
            "bytes =0-1",
            "items=0-1",
            "lines=0-",
            "bytes:0-1",
            "bytes=0x1-5",
            "bytes=١-٢",
        ] {
            assert_eq!(asked(Some(header), 1_000), Asked::Whole, "{header}");
        }
    }

    #[test]
    fn an_empty_file_has_no_parts() {
        assert_eq!(asked(None, 0), Asked::Whole);
        assert_eq!(asked(Some("bytes=0-"), 0), Asked::Unsatisfiable);
        assert_eq!(asked(Some("bytes=0-0"), 0), Asked::Unsatisfiable);
        assert_eq!(asked(Some("bytes=-0"), 0), Asked::Unsatisfiable);
        assert_eq!(asked(Some("bytes=-50"), 0), Asked::Whole);
    }

    #[test]
    fn a_part_says_where_it_lies() {
        assert_eq!(content_range(0, 99, 1_000), "bytes 0-99/1000");
        assert_eq!(content_range(999, 999, 1_000), "bytes 999-999/1000");
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_file(header in "bytes=[0-9]{0,21}-[0-9]{0,21}", size in prop_oneof![0..50u64, any::<u64>()]) {
            if let Asked::Part { first, last } = asked(Some(&header), size) {
                prop_assert!(first <= last && last < size);
            }
        }

        #[test]
        fn no_header_is_too_much(header in "\\PC*", size: u64) {
            let _ = asked(Some(&header), size);
            let _ = asked(Some(&format!("bytes={header}")), size);
        }
    }
}
