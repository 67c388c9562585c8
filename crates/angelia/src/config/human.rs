//! Times and sizes as people write them.

use std::time::Duration;

/// Sizes beyond this do not fit the store's signed numbers.
const LARGEST: u64 = i64::MAX as u64;

/// Units of time, largest first, in milliseconds.
const TIMES: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Units of size, in bytes. Printing uses the one that gives the smallest number.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("B", 1),
];

/// Reads `7d`, `12h`, `1d12h`, `250ms`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut total, mut smallest) = (text.trim(), 0u64, u64::MAX);
    while !rest.is_empty() {
        let (number, unit, after) = number_and_unit(rest)?;
        let (_, millis) = TIMES.into_iter().find(|(name, _)| *name == unit)?;
        // Falling units only: `1h1d` is more likely a mistake than a wish.
        if millis >= smallest {
            return None;
        }
        smallest = millis;
        total = total.checked_add(number.checked_mul(millis)?)?;
        rest = after.trim_start();
    }
    (smallest != u64::MAX).then(|| Duration::from_millis(total))
}

/// Writes what [`parse_duration`] reads.
pub(super) fn format_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, millis) in TIMES {
        if rest >= millis {
            text.push_str(&format!("{}{unit}", rest / millis));
            rest %= millis;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// Reads `64MiB`, `64 MB`, `512KiB`; the case of the letters does not matter.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit, rest) = number_and_unit(text.trim())?;
    let (_, bytes) = SIZES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    rest.is_empty().then_some(())?;
    number.checked_mul(bytes).filter(|total| *total <= LARGEST)
}

/// Writes what [`parse_size`] reads.
pub(super) fn format_size(bytes: u64) -> String {
    SIZES
        .into_iter()
        .filter(|(_, unit)| bytes.is_multiple_of(*unit))
        .map(|(name, unit)| (bytes / unit, name))
        .min_by_key(|(number, name)| (*number, name.len()))
        .map_or_else(|| format!("{bytes}B"), |(number, name)| format!("{number}{name}"))
}

/// Takes a number, the letters after it, and what follows.
fn number_and_unit(text: &str) -> Option<(u64, &str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number = text[..digits].parse().ok()?;
    let text = text[digits..].trim_start();
    let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (unit, rest) = text.split_at(letters);
    Some((number, unit, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_and_write() {
        for (text, millis) in [
            ("7d", 7 * 86_400_000),
            ("12h", 12 * 3_600_000),
            ("1d12h", 36 * 3_600_000),
            ("90s", 90_000),
            ("1m 30s", 90_000),
            ("250ms", 250),
            ("0s", 0),
        ] {
            let read = parse_duration(text).unwrap();
            assert_eq!(read, Duration::from_millis(millis), "{text}");
            assert_eq!(parse_duration(&format_duration(read)), Some(read), "{text}");
        }
        assert_eq!(format_duration(Duration::from_secs(90)), "1m30s");
        for text in ["", "7", "d", "7 days", "-1s", "1.5h", "1h1d", "1h1h", "7dd", "99999999999999999d"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_read_and_write() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("64 MB", 64_000_000),
            ("512kib", 512 << 10),
            ("1GiB", 1 << 30),
            ("7B", 7),
            ("0B", 0),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
            assert_eq!(parse_size(&format_size(bytes)), Some(bytes), "{text}");
        }
        assert_eq!(format_size(64 << 20), "64MiB");
        assert_eq!(format_size(64_000_000), "64MB");
        for text in ["", "64", "MiB", "64M", "1.5GiB", "-1B", "64MiB64MiB", "8388608TiB", "99999999999TiB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
