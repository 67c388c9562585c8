//! What Twilio says became of a message that was sent.

use super::Sms;
use super::parse::Status;
use angelia_core::error::Result;
use angelia_core::ports::Ports;
use angelia_core::store::JournalStore;
use std::sync::Arc;
use std::time::Duration;

/// Receipts that wait for their message to be written down: Twilio may be faster
/// than our commit. Those of further parts that another process sent wait in vain.
pub(super) const EARLY: usize = 256;
/// Further parts remembered, and up to as many older ones, some 100 bytes each: those of a day.
/// A receipt of an older one is lost.
pub(super) const PARTS: usize = 5_000;
/// When such a receipt is tried again.
const AGAIN: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(20)];

/// Words for a message that did not arrive.
const FAILED: [&str; 4] = ["undelivered", "failed", "canceled", "partially_delivered"];

/// How far a message is by such a word. Receipts come in any order, and one
/// never goes back. What is not known here comes before everything.
fn rank(receipt: &str) -> u8 {
    match receipt.split(' ').next().unwrap_or_default() {
        "accepted" | "scheduled" => 1,
        "queued" => 2,
        "sending" => 3,
        "sent" => 4,
        "delivered" => 5,
        "read" => 6,
        // Of a text in several parts the worst counts.
        word if FAILED.contains(&word) => 7,
        _ => 0,
    }
}

impl Status {
    /// The words that are kept, such as `undelivered (error 30003)`.
    fn words(&self) -> String {
        match &self.error {
            Some(code) if code != "0" => format!("{} (error {code})", self.word),
            _ => self.word.clone(),
        }
    }
}

impl Sms {
    /// Keeps a receipt; one that is earlier than its message waits a while.
    pub(super) async fn receipt(self: &Arc<Self>, ports: Ports, status: Status) -> Result<()> {
        if self.note(&ports, &status).await? {
            return Ok(());
        }
        let Ok(place) = self.early.clone().try_acquire_owned() else {
            self.account.health.count("receipts_lost");
            return Ok(());
        };
        let bot = self.clone();
        tokio::spawn(async move {
            let _place = place;
            for pause in AGAIN {
                tokio::time::sleep(pause).await;
                if matches!(bot.note(&ports, &status).await, Ok(true)) {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Notes a receipt if it is news; `false` if the message is not known.
    async fn note(&self, ports: &Ports, status: &Status) -> Result<bool> {
        // One after the other: what is compared must not change meanwhile.
        let _noting = self.noting.lock().await;
        let first = self.parts.lock().get(&status.sid);
        if first.is_some() && !FAILED.contains(&status.word.as_str()) {
            // That a further part arrives does not say that the first one did.
            return Ok(true);
        }
        let sid = first.as_deref().unwrap_or(&status.sid);
        let known = ports.records.explain_action(sid).await?;
        let Some(action) = known.first() else { return Ok(false) };
        let words = status.words();
        if action.receipt.as_deref().is_none_or(|before| rank(before) < rank(&words)) {
            ports.ledger.note_receipt(&self.account.key, sid, &words).await?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::Recent;

    #[test]
    fn parts_know_their_beginning_as_long_as_there_is_room() {
        let mut parts = Recent::new(PARTS);
        (0..=2 * PARTS).for_each(|n| parts.put(format!("SM{n}"), "SM".to_owned()));
        assert_eq!((parts.get("SM0"), parts.get("SM5000").as_deref()), (None, Some("SM")));
    }

    #[test]
    fn a_message_does_not_go_back() {
        let order = ["novel", "accepted", "queued", "sending", "sent", "delivered", "read", "failed"];
        assert!(order.windows(2).all(|pair| rank(pair[0]) < rank(pair[1])));
        let failed = Status { sid: "SM1".into(), word: "undelivered".into(), error: Some("30003".into()) };
        assert_eq!(failed.words(), "undelivered (error 30003)");
        assert_eq!(rank(&failed.words()), rank("failed"));
    }
}
