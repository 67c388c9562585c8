//! Dates as Twilio writes and takes them; all of them are UTC.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: i64 = 86_400;

/// Reads a date such as `Sun, 15 Nov 2026 18:55:09 +0000`, in seconds since 1970.
pub(super) fn read(text: &str) -> Option<i64> {
    let (_weekday, rest) = text.split_once(", ")?;
    let mut words = rest.split_ascii_whitespace();
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as i64 + 1;
    let year: i64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let utc = matches!(words.next()?, "+0000" | "GMT" | "UTC");
    let sane = (1..=31).contains(&day) && (1970..10_000).contains(&year);
    let sane = sane && (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    (utc && sane).then(|| days(year, month, day) * DAY + hour * 3600 + minute * 60 + second)
}

/// Writes a date such as `2026-11-15T18:55:09Z`.
pub(super) fn write(seconds: i64) -> String {
    let (days, clock) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days since 1970. Years begin in March here, so that the leap day is the last
/// of its year, and 400 of them are always 146,097 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The other way round.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
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

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in 0..146_097 {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }
}
