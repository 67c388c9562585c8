//! Limits that can be listed: each is a constant beside what it bounds, with
//! its reason, and a row of the table that operators read.

use std::fmt;
use std::time::Duration;

/// One limit, as operators are told of it.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// What it bounds.
    pub of: &'static str,
    /// How much.
    pub amount: Amount,
    /// Why so much, and what happens beyond it.
    pub why: &'static str,
}

/// Limits of one file, and what they are about.
pub type Group = (&'static str, &'static [Limit]);

/// How much a limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Of anything that is counted.
    Count(u64),
    /// Of memory, disk or a message.
    Bytes(u64),
    /// Of time.
    Time(Duration),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{}", grouped(*count)),
            Self::Bytes(bytes) => match bytes {
                0 => write!(f, "0 B"),
                _ if bytes % (1 << 30) == 0 => write!(f, "{} GiB", bytes >> 30),
                _ if bytes % (1 << 20) == 0 => write!(f, "{} MiB", bytes >> 20),
                _ if bytes % (1 << 10) == 0 => write!(f, "{} KiB", grouped(bytes >> 10)),
                _ => write!(f, "{} B", grouped(*bytes)),
            },
            Self::Time(span) => match span.as_millis() {
                ms if ms % 86_400_000 == 0 => write!(f, "{} d", ms / 86_400_000),
                ms if ms % 3_600_000 == 0 => write!(f, "{} h", ms / 3_600_000),
                ms if ms % 60_000 == 0 => write!(f, "{} min", ms / 60_000),
                ms if ms % 1_000 == 0 => write!(f, "{} s", ms / 1_000),
                ms => write!(f, "{ms} ms"),
            },
        }
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Declares limits as constants, and lists them in `LIMITS`.
///
/// The documentation of each is its reason. One use per module:
///
/// ```
/// angelia_contract::limits! {
///     /// Nobody needs more apples at once.
///     pub const MAX_APPLES: usize = 12, count "apples in a basket";
///     /// Longer ones do not fit a shelf.
///     const MAX_LABEL: usize = 64 * 1024, bytes "of a label";
/// }
/// assert_eq!(MAX_APPLES, 12);
/// assert_eq!(LIMITS[1].amount.to_string(), "64 KiB");
/// # let _ = MAX_LABEL;
/// ```
#[macro_export]
macro_rules! limits {
    ($( $(#[doc = $why:literal])+ $vis:vis const $name:ident: $kind:ty = $value:expr, $unit:ident $of:literal; )+) => {
        $( $(#[doc = $why])+ $vis const $name: $kind = $value; )+
        /// The limits of this file, as operators are told of them.
        pub const LIMITS: &[$crate::limit::Limit] = &[
            $( $crate::limit::Limit {
                of: $of,
                amount: $crate::limits!(@amount $unit $name),
                why: concat!($($why),+),
            } ),+
        ];
    };
    (@amount count $name:ident) => { $crate::limit::Amount::Count($name as u64) };
    (@amount bytes $name:ident) => { $crate::limit::Amount::Bytes($name as u64) };
    (@amount time $name:ident) => { $crate::limit::Amount::Time($name) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_in_the_largest_unit_that_is_exact() {
        let shown = |amount: Amount| amount.to_string();
        assert_eq!(shown(Amount::Count(50_000)), "50,000");
        assert_eq!(shown(Amount::Count(999)), "999");
        assert_eq!(shown(Amount::Bytes(2 << 20)), "2 MiB");
        assert_eq!(shown(Amount::Bytes(1_100 << 10)), "1,100 KiB");
        assert_eq!(shown(Amount::Bytes(900_000)), "900,000 B");
        assert_eq!(shown(Amount::Time(Duration::from_secs(90))), "90 s");
        assert_eq!(shown(Amount::Time(Duration::from_secs(7 * 86_400))), "7 d");
        assert_eq!(shown(Amount::Time(Duration::from_millis(250))), "250 ms");
    }
}
