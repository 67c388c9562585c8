//! What gateways are told of Telegram.

use super::NAME;
use super::render::MAX_UNITS;
use angelia_contract::descriptor::Descriptor;
use angelia_contract::length::LenUnit;

/// Telegram's descriptor. The dialect is the one gateways know for it; what
/// they write is read as Markdown and sent as entities.
pub fn descriptor() -> Descriptor {
    Descriptor {
        platform: NAME.into(),
        label: "Telegram".into(),
        // Longer texts are cut here.
        max_message_length: MAX_UNITS as u32,
        supports_edit: true,
        // In private chats; elsewhere a draft is refused, and its gateway edits.
        supports_draft_streaming: true,
        supports_context: true,
        supports_threads: true,
        markdown_dialect: "markdown_v2".into(),
        len_unit: LenUnit::Utf16,
        emoji: "✈️".into(),
        platform_hint: "A Telegram chat. Markdown is shown; files are sent and received.".into(),
        pii_safe: true,
        supported_ops: [
            "send",
            "edit",
            "typing",
            "get_chat_info",
            "react",
            "prompt",
            "delete",
            "thread_create",
            "thread_rename",
            "draft",
            "send_media",
        ]
        .map(String::from)
        .to_vec(),
        ..Descriptor::default()
    }
}
