//! What the account service said of a bearer, for a short while.

use angelia_core::clock::Mono;
use angelia_core::identity::Proof;
use angelia_core::secret::fingerprint;
use hashlink::LruCache;
use std::time::Duration;

/// How long an answer counts: a bearer that was withdrawn is good for so much
/// longer, and one that is repeated is asked about once.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Answers kept at a time; the oldest goes.
const MOST: usize = 1_024;

/// Answers by the bearer's fingerprint: the bearers themselves are not kept.
pub(super) struct Answers(LruCache<[u8; 32], (Mono, Option<Proof>)>);

impl Default for Answers {
    fn default() -> Self {
        Self(LruCache::new(MOST))
    }
}

impl Answers {
    /// What was said of this bearer lately: who holds it, or that it is not good.
    pub(super) fn get(&self, bearer: &str, now: Mono) -> Option<Option<Proof>> {
        let (at, proof) = self.0.peek(&fingerprint(bearer))?;
        (now.since(*at) < GOOD_FOR).then(|| proof.clone())
    }

    /// Keeps what was said just now.
    pub(super) fn put(&mut self, bearer: &str, proof: Option<Proof>, now: Mono) {
        let bearer = fingerprint(bearer);
        if self.0.len() >= MOST && !self.0.contains_key(&bearer) {
            self.0.retain(|_, (at, _)| now.since(*at) < GOOD_FOR);
        }
        self.0.insert(bearer, (now, proof));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::identity::Subject;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn an_answer_counts_for_a_minute() {
        let proof = Proof { issuer: "i".into(), claim: "o".into(), subject: Subject::new("i", "ann") };
        let mut answers = Answers::default();
        answers.put("good", Some(proof.clone()), at(0));
        answers.put("bad", None, at(10));
        assert_eq!(answers.get("good", at(59)), Some(Some(proof)));
        assert_eq!(answers.get("bad", at(59)), Some(None));
        assert_eq!((answers.get("good", at(60)), answers.get("other", at(0))), (None, None));
    }

    #[test]
    fn memory_has_an_end() {
        let mut answers = Answers::default();
        for n in 0..=MOST as u64 {
            answers.put(&n.to_string(), None, at(n / 1_000));
        }
        assert_eq!(answers.0.len(), MOST);
        assert_eq!(answers.get(&MOST.to_string(), at(1)), Some(None), "the newest stays");
        answers.put("late", None, at(1_000));
        assert_eq!(answers.0.len(), 1, "what is past its time goes first");
    }
}
