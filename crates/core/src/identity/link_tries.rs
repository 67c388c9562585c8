//! What a person did with link codes lately, counted for all nodes by the store's clock: how often
//! one was wrong, and which was good the last time.

use crate::admission::Place;
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::error::{Error, Kind, Result};
use crate::records::View;
use crate::records::rows::{LinkTriesRow, Times};
use crate::secret::fingerprint;
use crate::store::Fingerprint;
use std::time::Duration;

/// Codes a person may get wrong within [`WRONG_IN`]: enough for typing errors, nothing for guessing.
pub const WRONG: usize = 10;
/// The time in which [`WRONG`] counts.
pub const WRONG_IN: Duration = Duration::from_secs(600);
/// How long it is kept of somebody: for as long as a provider brings a message again that nobody
/// acknowledged.
pub const LINK_TRIES_FOR: Duration = Duration::from_secs(24 * 3600);

/// What is kept of somebody.
pub(super) fn of(view: &mut View<'_>, who: &Actor) -> Result<LinkTriesRow> {
    let who = who.as_str().to_owned();
    let nothing = LinkTriesRow { who: who.clone(), wrong: Times::default(), used: None, at: view.now() };
    Ok(view.get::<LinkTriesRow>((&who,))?.unwrap_or(nothing))
}

/// What recognises a code that was used at a place.
pub(super) fn used_at(code: &Fingerprint, place: &Place, bot: Option<&str>) -> String {
    let code: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
    let used = fingerprint(&format!("{code} {place} {}", bot.unwrap_or_default()));
    used.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl LinkTriesRow {
    /// Refuses whoever was wrong too often.
    pub(super) fn check(&self, now: UnixMillis) -> Result<()> {
        if self.wrong.lately(now).len() < WRONG {
            return Ok(());
        }
        Err(Error::new(Kind::TooMany, "too many codes were wrong; try again in ten minutes"))
    }

    /// One more was wrong.
    pub(super) fn with_wrong(mut self, now: UnixMillis) -> Self {
        self.wrong = self.wrong.lately(now);
        self.wrong.0.push(now);
        Self { at: now, ..self }
    }

    /// One was good.
    pub(super) fn with_used(self, used: String, now: UnixMillis) -> Self {
        Self { used: Some(used), at: now, ..self }
    }
}

impl Times {
    /// Those of the last ten minutes. One that is to come was written before the clock was set.
    fn lately(&self, now: UnixMillis) -> Self {
        let lately = |at: &&UnixMillis| at.after(WRONG_IN) > now && **at <= now.after(WRONG_IN);
        Self(self.0.iter().filter(lately).copied().collect())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody() -> LinkTriesRow {
        LinkTriesRow { who: "ann".into(), wrong: Times::default(), used: None, at: UnixMillis(0) }
    }

    #[test]
    fn ten_wrong_codes_in_ten_minutes_and_no_more() {
        let (mut tries, begun) = (nobody(), UnixMillis(1_000_000));
        for second in 0..WRONG as u64 {
            let now = begun.after(Duration::from_secs(second));
            tries.check(now).unwrap();
            tries = tries.with_wrong(now);
        }
        let last = begun.after(Duration::from_millis(599_999));
        assert_eq!(tries.check(last).unwrap_err().kind(), Kind::TooMany);
        let later = begun.after(WRONG_IN);
        assert!(tries.check(later).is_ok(), "the first is ten minutes ago");
        tries = tries.with_wrong(later);
        assert!(tries.check(later).is_err());
        assert_eq!(tries.wrong.len(), WRONG, "what is over is forgotten");
        let set_back = begun.before(Duration::from_secs(24 * 3600));
        assert!(tries.check(set_back).is_ok(), "a clock that was a day ahead bars nobody for a day");
    }

    #[test]
    fn a_code_is_recognised_at_its_place_alone() {
        let (lab, den): (Place, Place) = ("webchat:lab".parse().unwrap(), "webchat:den".parse().unwrap());
        let made = [
            used_at(&[1; 32], &lab, None),
            used_at(&[2; 32], &lab, None),
            used_at(&[1; 32], &den, None),
            used_at(&[1; 32], &lab, Some("b")),
        ];
        assert_eq!(made.iter().collect::<std::collections::HashSet<_>>().len(), made.len());
        assert_eq!(made[0], used_at(&[1; 32], &lab, None));
    }
}
