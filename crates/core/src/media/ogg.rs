//! How long a recording in Ogg is: its last page says how many samples came before.

use std::time::Duration;

/// What every page begins with.
const PAGE: &[u8] = b"OggS";
/// Samples of Opus in a second, whatever it was made from.
const OPUS_RATE: u64 = 48_000;
/// Longer ones are no recordings, or are made up.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The length of a recording, by the end of its file; `None` if that does not tell. A page has 64 KiB
/// at the most.
pub fn opus_duration(end: &[u8]) -> Option<Duration> {
    let at = memchr::memmem::rfind(end, PAGE)?;
    let granule: [u8; 8] = end.get(at + 6..at + 14)?.try_into().ok()?;
    let millis = u64::from_le_bytes(granule).checked_mul(1_000)? / OPUS_RATE;
    Some(Duration::from_millis(millis)).filter(|length| !length.is_zero() && *length <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(granule: u64) -> Vec<u8> {
        [b"OggS\0\x04".as_slice(), &granule.to_le_bytes(), b"more of the page"].concat()
    }

    #[test]
    fn the_last_page_counts() {
        let file = [page(48_000), page(120_000)].concat();
        assert_eq!(opus_duration(&file), Some(Duration::from_millis(2_500)));
        assert_eq!(opus_duration(&file[30..]), Some(Duration::from_millis(2_500)));
    }

    #[test]
    fn what_tells_nothing_is_not_believed() {
        for odd in [b"".as_slice(), b"OggS", b"OggS\0\x04\0\0", b"ID3", &page(0), &page(u64::MAX)] {
            assert_eq!(opus_duration(odd), None, "{odd:?}");
        }
    }
}
