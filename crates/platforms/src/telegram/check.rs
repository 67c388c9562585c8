//! What a bot's token is good for. Never reads updates: a second reader would
//! cut off the first.

use super::webhook::WebhookInfo;
use super::{Ingest, NAME, Telegram};
use crate::health::Checkup;
use crate::kit::webhook::path;
use crate::kit::{ApiError, ErrorKind};
use angelia_core::error::Result;
use serde::Deserialize;
use serde_json::json;

/// What Telegram says of a bot.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Profile {
    id: i64,
    first_name: String,
    username: Option<String>,
    can_join_groups: Option<bool>,
    can_read_all_group_messages: Option<bool>,
    has_topics_enabled: Option<bool>,
}

impl Telegram {
    /// Asks Telegram what the bot can and cannot do.
    pub(super) async fn look_over(&self) -> Result<Checkup> {
        let mut checkup = Checkup::default();
        let profile = match self.api.call::<Profile>("getMe", &json!({})).await {
            Ok(profile) => profile,
            Err(ApiError { kind: ErrorKind::Setup, .. }) => {
                checkup.bad("Telegram does not know this token", unknown_next(self.config.api_url.is_some()));
                return Ok(checkup);
            }
            Err(failure) => return Err(failure.into()),
        };
        profile_findings(&mut checkup, &profile, &self.config.id);
        match self.api.call::<WebhookInfo>("getWebhookInfo", &json!({})).await {
            Ok(info) => {
                webhook_findings(&mut checkup, &info, self.config.ingest, &path(NAME, &self.config.name))
            }
            Err(failure) => {
                checkup.limited(format!("its webhook is not known: {failure}"), "check again later")
            }
        }
        Ok(checkup)
    }
}

fn profile_findings(checkup: &mut Checkup, profile: &Profile, configured: &str) {
    let username = profile.username.as_deref().unwrap_or_default();
    checkup.identity = Some(format!("@{username} ({}, {})", profile.first_name, profile.id));
    if profile.id.to_string() == configured {
        checkup.good("the token is good");
    } else {
        checkup.bad(
            format!("the token belongs to bot {}, the configuration says {configured}", profile.id),
            "correct the id, which is what stands before the colon of the token, or the token",
        );
    }
    match profile.can_read_all_group_messages {
        Some(true) => checkup.good("it sees every message of its groups"),
        _ => checkup.limited(
            "privacy mode is on: in groups it sees commands, mentions and replies to it, and nothing else",
            "that is enough unless an agent shall hear everything; then @BotFather, /setprivacy, Disable, \
             and remove the bot from each group and add it again",
        ),
    }
    match profile.can_join_groups {
        Some(false) => checkup.limited(
            "it cannot be added to groups",
            "for private chats that is fine; otherwise @BotFather, /setjoingroups, Enable",
        ),
        _ => checkup.good("it can be added to groups"),
    }
    if profile.has_topics_enabled == Some(true) {
        checkup.good("its private chats have topics; each is a conversation of its own");
    }
}

/// What to do about a token that is not known.
fn unknown_next(elsewhere: bool) -> &'static str {
    if elsewhere {
        "see that api_url is a Bot API server's; if it is, ask @BotFather for the token (/mybots, the bot, \
             API Token) and put it into the configuration"
    } else {
        "ask @BotFather for it (/mybots, the bot, API Token) and put it into the configuration"
    }
}

fn webhook_findings(checkup: &mut Checkup, info: &WebhookInfo, ingest: Ingest, path: &str) {
    match (ingest, info.url.is_empty()) {
        (Ingest::Poll, true) => checkup.good("no webhook is set, it can be polled"),
        (Ingest::Poll, false) => checkup.limited(
            format!("a webhook is set ({}), and the configuration says to poll", info.url),
            "the server takes the webhook away when it starts; if another program needs it, use another bot",
        ),
        (Ingest::Webhook, true) => {
            checkup.limited("no webhook is set yet", "start the server, which sets it");
        }
        // The host is the operator's to know; what follows it is ours.
        (Ingest::Webhook, false) if !info.url.ends_with(path) => checkup.limited(
            format!("updates are posted to {}, which is not this bot's address: that ends with {path}", info.url),
            "start the server, which sets it; if another program sets it again, use another bot for one of the two",
        ),
        (Ingest::Webhook, false) => checkup.good(format!("updates are posted to {}", info.url)),
    }
    if info.pending_update_count > 0 {
        checkup.good(format!("{} updates wait at Telegram", info.pending_update_count));
    }
    if let Some(why) = info.last_error_message.as_deref().filter(|_| ingest == Ingest::Webhook) {
        checkup.limited(
            format!("the last post that failed: {why}"),
            "look whether server.public_url is reachable from outside, and its certificate good",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Verdict;

    #[test]
    fn findings_say_what_to_do_next() {
        let mut checkup = Checkup::default();
        let profile = Profile {
            id: 77,
            username: Some("angelia_bot".into()),
            can_join_groups: Some(false),
            ..Profile::default()
        };
        profile_findings(&mut checkup, &profile, "78");
        webhook_findings(
            &mut checkup,
            &WebhookInfo { url: "https://x".into(), ..WebhookInfo::default() },
            Ingest::Poll,
            "/webhooks/telegram/main",
        );
        let verdicts: Vec<Verdict> = checkup.findings.iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [Verdict::Bad, Verdict::Limited, Verdict::Limited, Verdict::Limited]);
        assert!(checkup.findings.iter().all(|finding| finding.next.is_some()));
        assert!(!checkup.is_usable());
    }

    #[test]
    fn a_bot_as_it_should_be() {
        let mut checkup = Checkup::default();
        let profile = Profile {
            id: 77,
            can_join_groups: Some(true),
            can_read_all_group_messages: Some(true),
            has_topics_enabled: Some(true),
            ..Profile::default()
        };
        profile_findings(&mut checkup, &profile, "77");
        webhook_findings(&mut checkup, &WebhookInfo::default(), Ingest::Poll, "/webhooks/telegram/main");
        assert!(checkup.findings.iter().all(|finding| finding.verdict == Verdict::Good), "{checkup:?}");
    }

    #[test]
    fn a_webhook_is_this_bots_or_it_is_told() {
        for (url, verdict) in [
            ("https://bots.example.com/webhooks/telegram/main", Verdict::Good),
            ("https://bots.example.com/webhooks/telegram/other", Verdict::Limited),
            ("https://else.example.com/hook", Verdict::Limited),
            ("", Verdict::Limited),
        ] {
            let mut checkup = Checkup::default();
            let info = WebhookInfo { url: url.into(), ..WebhookInfo::default() };
            webhook_findings(&mut checkup, &info, Ingest::Webhook, "/webhooks/telegram/main");
            assert_eq!(checkup.findings[0].verdict, verdict, "{url}");
        }
    }

    #[test]
    fn an_address_of_the_operators_own_is_doubted_first() {
        assert!(unknown_next(true).starts_with("see that api_url"));
        assert!(!unknown_next(false).contains("api_url"));
    }
}
