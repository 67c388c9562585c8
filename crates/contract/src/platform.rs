//! Platform names, as gateways understand them.

use crate::source::RELAY;

/// Names a gateway knows: its own enumeration, then bundled plugins.
const KNOWN: &[&str] = &[
    "telegram",
    "discord",
    "whatsapp",
    "whatsapp_cloud",
    "slack",
    "signal",
    "mattermost",
    "matrix",
    "homeassistant",
    "email",
    "sms",
    "dingtalk",
    "api_server",
    "webhook",
    "msgraph_webhook",
    "feishu",
    "wecom",
    "wecom_callback",
    "weixin",
    "bluebubbles",
    "qqbot",
    "yuanbao",
    "relay",
    "local",
    "irc",
    "line",
    "google_chat",
    "raft",
    "teams",
    "simplex",
    "ntfy",
    "photon",
];

/// The name a gateway files a platform under: lower case, or `relay`.
pub fn canonical(name: &str) -> &'static str {
    let name = name.trim();
    KNOWN.iter().find(|known| known.eq_ignore_ascii_case(name)).copied().unwrap_or(RELAY)
}

/// A WhatsApp id without plus sign, device suffix and server.
///
/// Gateways additionally fold aliases from files of their own, which nobody
/// else can see.
pub fn bare_whatsapp(id: &str) -> &str {
    let id = id.trim();
    let id = id.strip_prefix('+').unwrap_or(id);
    id.split([':', '@']).next().unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded() {
        assert_eq!(canonical("Discord"), "discord");
        assert_eq!(canonical("webchat"), "relay");
        assert_eq!(canonical(""), "relay");
    }

    #[test]
    fn whatsapp_ids_are_stripped() {
        for id in ["+4912", "4912@s.whatsapp.net", "4912:3@s.whatsapp.net", " 4912@lid"] {
            assert_eq!(bare_whatsapp(id), "4912");
        }
    }
}
