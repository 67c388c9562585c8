//! `draft`: a text that grows before the person's eyes. Telegram shows one in private chats, for half
//! a minute or until the message comes.

use super::Telegram;
use super::api;
use super::locate::Spot;
use super::render::{self, Part};
use crate::kit::{ApiError, ErrorKind};
use angelia_contract::action::ActionResult;
use angelia_core::egress::Target;
use angelia_core::error::Result;
use serde_json::{Value, json};

/// Where a draft is shown; `None` where Telegram has none.
pub(super) fn place(target: &Target) -> Option<Spot> {
    // Telegram gives people the positive ids.
    Spot::of(target).filter(|spot| spot.chat() > 0)
}

/// The number of a draft, as Telegram takes it: no zero, and no more than four bytes.
fn number(draft_id: i64) -> i64 {
    draft_id.rem_euclid(i64::from(i32::MAX)) + 1
}

impl Telegram {
    /// Shows a text that is not complete. What does not fit one message comes with the message.
    pub(super) async fn show_draft(&self, spot: Spot, draft_id: i64, text: &str) -> Result<ActionResult> {
        let part = render::render(text).into_iter().next();
        let shown = self.show_draft_once(&spot, draft_id, part.as_ref(), false).await;
        let shown = match shown {
            Err(error) if api::words(&error).is_some_and(api::is_about_text) => {
                self.show_draft_once(&spot, draft_id, part.as_ref(), true).await
            }
            shown => shown,
        };
        match shown {
            Ok(_) | Err(ApiError { kind: ErrorKind::Unknown, .. }) => Ok(ActionResult::ok()),
            // The message itself must not meet a longer pause: there are no drafts here for a while.
            Err(ApiError { kind: ErrorKind::Limited { .. }, .. }) => {
                Ok(ActionResult::failed("Telegram wants a pause"))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn show_draft_once(
        &self,
        spot: &Spot,
        draft_id: i64,
        part: Option<&Part>,
        plain: bool,
    ) -> Result<Value, ApiError> {
        let text = part.map(|part| if plain { &part.source } else { &part.text });
        let mut asked = json!({ "chat_id": spot.chat(), "draft_id": number(draft_id), "text": text });
        if let Some(part) = part.filter(|part| !plain && !part.entities.is_empty()) {
            asked["entities"] = json!(part.entities);
        }
        self.api.call("sendMessageDraft", &spot.in_topic(asked)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_chats_have_drafts_and_no_number_is_zero() {
        assert!(place(&Target::chat("42")).is_some());
        for none in ["-100200", "0", "x"] {
            assert!(place(&Target::chat(none)).is_none(), "{none}");
        }
        for given in [0, 1, -1, i64::MAX, i64::MIN, i64::from(i32::MAX)] {
            assert!((1..=i64::from(i32::MAX)).contains(&number(given)), "{given}");
        }
        assert_ne!(number(1), number(2));
    }
}
