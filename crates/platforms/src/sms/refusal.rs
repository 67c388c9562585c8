//! What Twilio's refusals mean, in words that name nobody.

/// Longest description kept of a refusal.
const MAX_DESCRIPTION: usize = 200;
/// As many digits in a row are a number that somebody may have.
const PERSONAL: usize = 5;

/// The person wants no messages any more.
pub(super) const STOPPED: i64 = 21610;
/// Twilio cannot reach the address for receipts.
pub(super) const BAD_CALLBACK: i64 = 21609;
/// The credential is not the account's.
pub(super) const AUTHENTICATE: i64 = 20003;

/// A refusal with what can be done about it.
pub(super) fn explained(code: i64, message: &str) -> String {
    let next = match code {
        STOPPED => "the person wrote STOP and gets nothing until they write START",
        21211 | 21614 | 21217 => "this number cannot receive text messages",
        21408 | 21612 => "the account may not send there: see Geo Permissions in Twilio's console",
        21606 | 21659 | 21660 => {
            "the number is not one this account can send from: correct `id` or `account_sid`"
        }
        21608 => "a trial account writes only to numbers that it verified: upgrade it, or verify the number",
        21617 => "the text is too long for one message",
        21611 => "too many messages of this number wait at Twilio; send less",
        20005 | 30002 => "the account is suspended: see Twilio's console",
        30034 | 30032 => {
            "the number is not registered for this use: see Regulatory Compliance in Twilio's console"
        }
        AUTHENTICATE => "the account does not take this credential: see `account_sid` and `auth_token`",
        _ => return format!("Twilio refused (error {code}): {}", impersonal(message)),
    };
    format!("Twilio refused (error {code}): {next}")
}

/// A text without the numbers in it: those of people are nobody's business.
pub(super) fn impersonal(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - at);
        clean.push_str(&rest[..at]);
        clean.push_str(if digits >= PERSONAL { "…" } else { &rest[at..at + digits] });
        rest = &rest[at + digits..];
    }
    clean.push_str(rest);
    clean.chars().take(MAX_DESCRIPTION).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do_and_names_nobody() {
        let told = explained(STOPPED, "Attempt to send to unsubscribed recipient +15550199");
        assert!(told.contains("wrote STOP") && told.contains("21610") && !told.contains("5550199"), "{told}");
        let told = explained(99, "The 'To' number +15550199 is odd (see 4711), +15550100 too");
        assert_eq!(told, "Twilio refused (error 99): The 'To' number +… is odd (see 4711), +… too");
        assert_eq!(impersonal(&"x".repeat(900)).len(), MAX_DESCRIPTION);
    }
}
