//! What gateways are told of WeCom.

use super::NAME;
use angelia_contract::descriptor::Descriptor;

/// Bytes of text that WeCom takes in one message; it cuts off the rest without
/// a word. Longer texts are cut here.
pub(super) const MAX_BYTES: usize = 2048;

/// WeCom's descriptor. Descriptors count characters and WeCom bytes, so the
/// number is what fits at best.
pub fn descriptor() -> Descriptor {
    Descriptor {
        platform: NAME.into(),
        label: "WeCom".into(),
        max_message_length: MAX_BYTES as u32,
        markdown_dialect: "plain".into(),
        emoji: "💼".into(),
        platform_hint:
            "A private WeCom chat with a member of a company. Text is shown as it is, without Markdown; \
                        files can be neither sent nor fetched."
                .into(),
        supported_ops: ["send", "get_chat_info", "react", "prompt", "send_media"].map(String::from).to_vec(),
        ..Descriptor::default()
    }
}
