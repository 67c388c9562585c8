//! Dates as Twilio writes and takes them; all of them are UTC.

use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};

/// Reads a date such as `Sun, 15 Nov 2026 18:55:09 +0000`, in seconds since 1970.
pub(super) fn read(text: &str) -> Option<i64> {
    let date = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    date.offset().is_utc().then(|| date.unix_timestamp())
}

/// Writes a date such as `2026-11-15T18:55:09Z`.
pub(super) fn write(seconds: i64) -> String {
    let date = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    date.format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written() {
        for (text, seconds, written) in [
            ("Thu, 01 Jan 1970 00:00:00 +0000", 0, "1970-01-01T00:00:00Z"),
            ("Thu, 24 Aug 2023 05:01:45 +0000", 1_692_853_305, "2023-08-24T05:01:45Z"),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199, "2024-02-29T23:59:59Z"),
            ("Sun, 15 Nov 2026 18:55:09 +0000", 1_794_768_909, "2026-11-15T18:55:09Z"),
        ] {
            assert_eq!(read(text), Some(seconds), "{text}");
            assert_eq!(write(seconds), written);
        }
        for odd in [
            "",
            "yesterday",
            "Thu, 24 Aug 2023",
            "Thu, 24 Aug 2023 05:01:45 +0200",
            "Thu, 99 Aug 2023 05:01:45 +0000",
        ] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
