//! What gateways are told of the web chat.

use super::NAME;
use angelia_contract::descriptor::Descriptor;
use angelia_contract::length::LenUnit;

/// Longest line: comfortable to read, small enough for one event.
pub(super) const MAX_LINE_CHARS: u32 = 8_000;

/// What agents can do there.
const OPS: [&str; 11] = [
    "send",
    "send_media",
    "edit",
    "typing",
    "get_chat_info",
    "react",
    "prompt",
    "delete",
    "draft",
    "thread_create",
    "thread_rename",
];

/// The web chat's descriptor.
pub fn descriptor() -> Descriptor {
    Descriptor {
        platform: NAME.into(),
        label: "Web chat".into(),
        max_message_length: MAX_LINE_CHARS,
        supports_edit: true,
        supports_context: true,
        supports_draft_streaming: true,
        supports_threads: true,
        markdown_dialect: "markdown".into(),
        len_unit: LenUnit::Chars,
        emoji: "💬".into(),
        platform_hint: "A chat room on a web page. Markdown is shown.".into(),
        supported_ops: OPS.map(String::from).to_vec(),
        ..Descriptor::default()
    }
}
