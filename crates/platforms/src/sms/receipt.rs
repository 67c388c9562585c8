//! What Twilio says became of a message that was sent.

use super::Sms;
use super::parse::Status;
use angelia_core::error::Result;
use angelia_core::ports::Ports;
use angelia_core::store::{DirectoryStore, JournalStore};
use std::sync::Arc;
use std::time::Duration;

/// Receipts that wait for their message to be written down: Twilio may be faster
/// than our commit.
pub(super) const EARLY: usize = 256;
/// How often a receipt is compared anew because another came in between, on whichever node: each
/// that does is further, and there are not more.
const COMPARED: usize = 8;
/// What the further messages of long texts are kept under, each with the first of its text: an
/// action has the id of that, and receipts come for each. Ids are Twilio's own, and no chat is called so.
const FURTHER: &str = "further parts";
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
        let words = status.words();
        if self.note_for(ports, &status.sid, &words).await? {
            return Ok(true);
        }
        let first = ports.records.pieces(&self.account.key, FURTHER, &status.sid).await?;
        let Some(first) = first.first() else { return Ok(false) };
        // That a further part arrives does not say that the first one did.
        Ok(!FAILED.contains(&status.word.as_str()) || self.note_for(ports, first, &words).await?)
    }

    /// The same of the message that an action sent.
    async fn note_for(&self, ports: &Ports, sid: &str, words: &str) -> Result<bool> {
        for _ in 0..COMPARED {
            let known = ports.records.explain_action(sid).await?;
            let Some(action) = known.first() else { return Ok(false) };
            let before = action.receipt.as_deref();
            if before.is_some_and(|before| rank(before) >= rank(words))
                || ports.ledger.note_receipt(&self.account.key, sid, before, words).await?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps which text a further message belongs to, for its receipts.
    pub(super) async fn keep_part(&self, further: &str, first: &str) {
        let kept = [first.to_owned()];
        if !self.account.keep_pieces(&*self.ports.records, FURTHER, further, &kept).await {
            self.account.health.count("receipts_lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_does_not_go_back() {
        let order = ["novel", "accepted", "queued", "sending", "sent", "delivered", "read", "failed"];
        assert!(order.windows(2).all(|pair| rank(pair[0]) < rank(pair[1])));
        let failed = Status { sid: "SM1".into(), word: "undelivered".into(), error: Some("30003".into()) };
        assert_eq!(failed.words(), "undelivered (error 30003)");
        assert_eq!(rank(&failed.words()), rank("failed"));
    }
}
