//! Questions with buttons, as they are kept.

use crate::clock::UnixMillis;
use crate::inbox::InstanceId;
use crate::prompts::{Choices, PromptKind};
use crate::records::rows::Names;
use crate::records::table::{field, record};

// What a later release may ask is answered by the fewest.
field!(PromptKind as String, |kind| kind.as_str().to_owned(), |word| Some(
    PromptKind::parse(&word).unwrap_or(PromptKind::Approval)
));

field!(Choices as String, |choices| serde_json::json!(choices.0).to_string(), |text| {
    serde_json::from_str(&text).ok().map(Choices)
});

record! {
    /// A question that was shown, or is about to be.
    pub struct PromptRow in "prompts", key 1, finds [["instance"], ["platform", "bot", "chat_id"]],
        walks [["instance"] along "action"]
    {
        /// The action that asked it.
        action: i64,
        /// Whose it is.
        tenant: String,
        /// Who waits for the answer.
        instance: InstanceId,
        /// The platform of the bot that showed it.
        platform: String,
        /// The bot.
        bot: String,
        /// The chat that was written to.
        chat_id: String,
        /// What its gateway calls it.
        prompt_id: String,
        /// What is asked.
        kind: PromptKind,
        /// The buttons, as a JSON array.
        choices: Choices,
        /// Whose turn it was asked in, as a JSON array.
        asked_of: Names,
        /// When it was asked.
        asked_at: UnixMillis,
        /// Until when it can be answered.
        expires_at: UnixMillis,
        /// What was chosen; `None` if nothing was yet.
        chosen: Option<String>,
        /// By whom.
        chosen_by: Option<String>,
        /// And when.
        chosen_at: Option<UnixMillis>,
    }
}
