//! What gateways are told of SMS.

use super::NAME;
use super::segments::MAX_CHARS;
use angelia_contract::descriptor::Descriptor;

/// The descriptor of a number. Phones show texts as they were typed.
pub fn descriptor() -> Descriptor {
    Descriptor {
        platform: NAME.into(),
        label: "SMS".into(),
        max_message_length: MAX_CHARS as u32,
        markdown_dialect: "plain".into(),
        emoji: "💬".into(),
        platform_hint:
            "Text messages to a phone. They are shown as they were typed: no Markdown. They cost money \
                        by length, so be brief."
                .into(),
        pii_safe: true,
        supported_ops: ["send", "get_chat_info", "react", "prompt", "send_media"].map(String::from).to_vec(),
        ..Descriptor::default()
    }
}
