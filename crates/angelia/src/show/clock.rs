//! The clock.

use super::{harmless, moment};
use angelia_connector::admin::types::{AcceptedClock, Clock};

pub(crate) fn clock(answer: &Clock) -> String {
    format!(
        "It is {}.\n{}",
        moment(answer.now),
        leap(answer).unwrap_or_else(|| "The clock is steady.\n".into())
    )
}

pub(crate) fn accepted_clock(answer: &AcceptedClock) -> String {
    let now = moment(answer.clock.now);
    match &answer.accepted {
        Some(leap) => format!(
            "It is {now}. That this is {leap} is taken for right; what is past its time is dropped again.\n"
        ),
        None => format!("It is {now}, as expected: there was nothing to accept.\n"),
    }
}

/// What to say of a leap that nobody has confirmed.
pub(super) fn leap(clock: &Clock) -> Option<String> {
    let leap = clock.leap.as_deref()?;
    Some(format!(
        "THE CLOCK LEAPT: it shows {}, which is {} by what is known. Nothing is dropped for its age meanwhile.\n\
         Set it right; or, if it is right now or the server was off for so long, say: angelia clock accept\n",
        moment(clock.now),
        harmless(leap),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_leap_comes_with_what_to_do() {
        let leapt = json!({ "now": 0, "leap": "7 days ahead" });
        let text = clock(&read(leapt));
        assert!(text.contains("1970-01-01") && text.contains("which is 7 days ahead by"), "{text}");
        assert!(text.contains("angelia clock accept"), "{text}");
        assert!(clock(&read(json!({ "now": 0, "leap": null }))).ends_with("The clock is steady.\n"));
        let accepted = json!({ "now": 0, "leap": null, "accepted": "2 hours behind" });
        assert!(accepted_clock(&read(accepted)).contains("That this is 2 hours behind"));
    }
}
