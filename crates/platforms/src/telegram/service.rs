//! Messages that nobody said: what happened in a chat, told by Telegram.

use super::parse::Message;

/// What such a message carries instead of words. Telegram adds to these from
/// time to time; what is new is taken for something said, so that nobody who
/// wrote is met with silence.
const HAPPENED: [&str; 52] = [
    "boost_added",
    "channel_chat_created",
    "chat_background_set",
    "chat_owner_changed",
    "chat_owner_left",
    "chat_shared",
    "checklist_tasks_added",
    "checklist_tasks_done",
    "connected_website",
    "delete_chat_photo",
    "direct_message_price_changed",
    "forum_topic_closed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "gift",
    "gift_upgrade_sent",
    "giveaway_completed",
    "giveaway_created",
    "group_chat_created",
    "left_chat_member",
    "left_chat_participant",
    "message_auto_delete_timer_changed",
    "migrate_from_chat_id",
    "migrate_to_chat_id",
    "new_chat_member",
    "new_chat_members",
    "new_chat_participant",
    "new_chat_photo",
    "new_chat_title",
    "paid_message_price_changed",
    "passport_data",
    "pinned_message",
    "proximity_alert_triggered",
    "refunded_payment",
    "successful_payment",
    "suggested_post_approval_failed",
    "suggested_post_approved",
    "suggested_post_declined",
    "suggested_post_paid",
    "suggested_post_refunded",
    "supergroup_chat_created",
    "unique_gift",
    "users_shared",
    "video_chat_ended",
    "video_chat_participants_invited",
    "video_chat_scheduled",
    "video_chat_started",
    "web_app_data",
    "write_access_allowed",
];

/// Whether a message tells what happened.
pub(super) fn is_service(message: &Message) -> bool {
    // These are read for what they say, so they are not among the rest.
    message.forum_topic_created.is_some()
        || message.forum_topic_edited.is_some()
        || message.migrate_to_chat_id.is_some()
        || message.migrate_from_chat_id.is_some()
        || HAPPENED.iter().any(|name| message.rest.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_happened_is_told_from_what_was_said() {
        let is_service = |extra: Value| {
            let mut message = json!({"message_id": 5, "date": 1, "chat": {"id": 1, "type": "private"}});
            message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            super::is_service(&serde_json::from_value(message).unwrap())
        };
        for happened in HAPPENED {
            let value = match happened {
                "migrate_from_chat_id" | "migrate_to_chat_id" => json!(-5),
                _ => json!({}),
            };
            assert!(is_service(json!({ happened: value })), "{happened}");
        }
        for said in ["story", "game", "invoice", "paid_media", "checklist", "giveaway", "of_tomorrow"] {
            assert!(!is_service(json!({ said: {} })), "{said}");
        }
        assert!(!is_service(json!({})));
    }
}
