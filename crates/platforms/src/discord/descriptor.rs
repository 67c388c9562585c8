//! What gateways are told of Discord.

use super::NAME;
use angelia_contract::descriptor::Descriptor;
use angelia_contract::length::LenUnit;

/// Longest message of a bot, in code points.
pub(super) const MAX_MESSAGE_CHARS: u32 = 2_000;

/// Discord's descriptor.
pub fn descriptor() -> Descriptor {
    Descriptor {
        platform: NAME.into(),
        label: "Discord".into(),
        max_message_length: MAX_MESSAGE_CHARS,
        supports_edit: true,
        supports_context: true,
        supports_threads: true,
        markdown_dialect: "discord".into(),
        len_unit: LenUnit::Chars,
        emoji: "🎮".into(),
        platform_hint: "A Discord server or direct message. Discord's own Markdown is shown; tables are not."
            .into(),
        supported_ops: [
            "send",
            "edit",
            "typing",
            "follow_up",
            "get_chat_info",
            "react",
            "prompt",
            "delete",
            "thread_create",
            "thread_rename",
            "send_media",
        ]
        .map(String::from)
        .to_vec(),
        ..Descriptor::default()
    }
}
