//! `react`: the bot's own reaction on a message, put there or taken away.

use super::api::{Call, Method};
use super::api_error::{ApiError, code};
use super::{Discord, address};
use angelia_contract::action::ActionResult;
use angelia_core::error::{Error, Result};

/// Longest emoji that is shown: a family of four with their skin has 41 bytes, and a server's
/// own emoji a name of 32 letters beside its id.
const MAX_EMOJI: usize = 64;

impl Discord {
    /// Puts a reaction on a message, or takes it away.
    pub(super) async fn mark(&self, call: Call) -> Result<ActionResult> {
        match self.api.call(call).await {
            Ok(_) => Ok(ActionResult::ok()),
            // Nothing is missing where there is nothing to mark: an interaction is no message.
            Err(failure) if failure.is(code::UNKNOWN_MESSAGE) => Ok(ActionResult::ok()),
            Err(failure @ (ApiError::Refused { .. } | ApiError::Withdrawn)) => {
                Ok(ActionResult::failed(failure.why()))
            }
            Err(failure) => Err(Error::unavailable(failure.why())),
        }
    }
}

/// The call that marks a message of a channel; `None` if it cannot be made of these.
pub(super) fn call(channel: &str, message_id: &str, emoji: &str, remove: bool) -> Option<Call> {
    address::snowflake(message_id)?;
    let emoji = segment(emoji)?;
    let method = if remove { Method::Delete } else { Method::Put };
    Some(Call::new(method, format!("channels/{channel}/messages/{message_id}/reactions/{emoji}/@me")))
}

/// An emoji as a part of a path; `None` for what is none. Every byte is escaped. Dots could lead
/// elsewhere in spite of that, so something has to be there that no path is made of: a character
/// beyond ASCII, or the colon between the name and the id of a server's own emoji.
fn segment(emoji: &str) -> Option<String> {
    let is_emoji = emoji.len() <= MAX_EMOJI && emoji.bytes().any(|byte| byte == b':' || !byte.is_ascii());
    is_emoji.then(|| emoji.bytes().map(|byte| format!("%{byte:02X}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emoji_is_one_part_of_a_path_whatever_it_is() {
        assert_eq!(segment("👀").as_deref(), Some("%F0%9F%91%80"));
        assert_eq!(segment("✅").as_deref(), Some("%E2%9C%85"));
        assert_eq!(segment("a:5").as_deref(), Some("%61%3A%35"));
        assert_eq!(segment("../../✅").as_deref(), Some("%2E%2E%2F%2E%2E%2F%E2%9C%85"));
        for none in ["", ".", "..", "eyes", "%2e%2e", "?x=1", &"✅".repeat(22)] {
            assert_eq!(segment(none), None, "{none}");
        }
    }

    #[test]
    fn only_messages_are_marked() {
        assert!(call("1", "175928847299117063", "✅", false).is_some());
        for none in ["", "@original", "5/../6", "b17"] {
            assert!(call("1", none, "✅", false).is_none(), "{none}");
        }
    }
}
