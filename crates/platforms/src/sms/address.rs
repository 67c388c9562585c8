//! Numbers, and the places that cover the people who have them.

use super::{NAME, Sms};
use crate::kit::places_of;
use angelia_core::egress::{Bot, Rate, Target, Whereabouts};
use std::time::Duration;

/// Longest number of the telephone network, with its country code.
const MAX_DIGITS: usize = 15;
/// Shortest number: short codes have three digits and more.
const MIN_DIGITS: usize = 3;
/// Longest sender of any sort; names have eleven characters at most.
const MAX_SENDER: usize = 32;

/// What an ordinary number sends is one segment a second. Twilio would queue
/// more than that for hours, and then nobody here decides any more whose
/// message goes first. What is counted here are messages, and a long one has several
/// segments: with many long texts some wait at Twilio all the same.
pub(super) const NUMBER: Rate = Rate { calls: 1, per: Duration::from_secs(1), burst: 5 };
/// The same for one person, with the parts of a longer text at once.
pub(super) const PERSON: Rate = Rate { calls: 1, per: Duration::from_secs(1), burst: 3 };

/// Whether a text is a whole number: `+`, country code, digits.
pub(super) fn is_number(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| !digits.starts_with('0') && is_digits(digits))
}

/// Whether something can be written to: a whole number, or a short code.
pub(super) fn is_reachable(text: &str) -> bool {
    is_number(text) || is_digits(text)
}

/// Whether a text names a sender. Companies may send under a name, which
/// nobody can answer.
pub(super) fn is_sender(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    is_reachable(text) || (1..=MAX_SENDER).contains(&text.len()) && text.bytes().all(known)
}

fn is_digits(text: &str) -> bool {
    (MIN_DIGITS..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Bot for Sms {
    fn platform(&self) -> &str {
        NAME
    }

    fn id(&self) -> &str {
        &self.config.id
    }

    /// Only who wrote before is somewhere: everybody else could be written to by
    /// whoever has a route for the number.
    fn places(&self, target: &Target) -> Whereabouts {
        if target.thread_id.is_some() || !is_reachable(&target.chat_id) {
            return Whereabouts::Nowhere;
        }
        match self.account.directory.at_hand(&target.chat_id) {
            Some(_) => Whereabouts::Places(places_of(&self.config.id, &target.chat_id)),
            None => Whereabouts::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_one_way() {
        for number in ["+15550100", "+4915112345678", "+123"] {
            assert!(is_number(number) && is_reachable(number), "{number}");
        }
        assert!(is_reachable("72345") && !is_number("72345"), "a short code");
        for other in
            ["", "+", "+0155", "+1 555", "+1555x", "15550100/2", "+1555010012345678", "whatsapp:+1555", "12"]
        {
            assert!(!is_reachable(other), "{other:?}");
        }
        assert!(is_sender("AMAZON") && is_sender("72345") && is_sender("+15550100"));
        for other in ["", "two words", "a/b", "whatsapp:+1555", "é"] {
            assert!(!is_sender(other), "{other:?}");
        }
    }
}
