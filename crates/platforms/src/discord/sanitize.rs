//! An interaction as gateways get it: everything an agent may need, nothing that
//! acts as the bot.
//!
//! What Discord says of an interaction is let through by name, so that a
//! credential it adds one day stays here. What the person said (`data`) is let
//! through as it is: its keys are Discord's as well, but there are too many to
//! name. In there, and wherever else something is taken whole, keys that name
//! credentials go, and so do texts that hold this interaction's own credential.

use super::NAME;
use super::interaction::Interaction;
use crate::kit::webhook::path;
use angelia_core::inbox::Request;
use serde_json::Value;

/// What is let through of an interaction and of the objects in it, by where they are.
const KEPT: [(&str, &str); 8] = [
    (
        "",
        "app_permissions application_id authorizing_integration_owners channel_id context data entitlements \
         guild_id guild_locale id locale type version",
    ),
    ("/channel", "guild_id id name nsfw parent_id permissions topic type"),
    ("/guild", "features id locale name"),
    ("/member", "joined_at nick permissions roles"),
    ("/member/user", USER),
    ("/message", "attachments channel_id components content edited_timestamp embeds flags id timestamp type"),
    ("/message/author", USER),
    ("/user", USER),
];
const USER: &str = "avatar bot discriminator global_name id public_flags system username";

/// What a key holds whose name has one of these in it is nobody's but the bot's.
const CREDENTIALS: [&str; 3] = ["token", "secret", "webhook_url"];

/// The request that an interaction came as to the bot called `name`, without
/// anything that acts as the bot.
pub(super) fn request(body: &Value, interaction: &Interaction, name: &str) -> Request {
    let own = Own {
        token: interaction.token.expose(),
        // Where messages of the bot's are posted without its token.
        webhook: format!("webhooks/{}/", interaction.application_id.0),
    };
    Request {
        method: "POST".into(),
        path: path(NAME, name),
        headers: vec![("content-type".into(), "application/json".into())],
        body: sanitized(body, "", &own).unwrap_or_default().to_string(),
    }
}

/// What no text may hold.
struct Own<'a> {
    token: &'a str,
    webhook: String,
}

/// Of the object at `path` what is let through; `None` if that is nothing.
fn sanitized(object: &Value, path: &str, own: &Own<'_>) -> Option<Value> {
    let (_, names) = KEPT.iter().find(|(kept, _)| *kept == path)?;
    let fields = object.as_object()?.iter().filter_map(|(key, value)| {
        let kept = if names.split(' ').any(|name| name == key) {
            whole(value, own)
        } else {
            sanitized(value, &format!("{path}/{key}"), own)?
        };
        Some((key.clone(), kept))
    });
    Some(Value::Object(fields.collect()))
}

/// Something that is taken whole, but for credentials.
fn whole(value: &Value, own: &Own<'_>) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !is_credential(key) && !own.is_in(key));
            Value::Object(kept.map(|(key, value)| (key.clone(), whole(value, own))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| whole(item, own)).collect()),
        Value::String(text) if own.is_in(text) => Value::Null,
        other => other.clone(),
    }
}

fn is_credential(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    CREDENTIALS.iter().any(|name| key.contains(name))
}

impl Own<'_> {
    fn is_in(&self, text: &str) -> bool {
        text.contains(self.token) || text.contains(&self.webhook)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TOKEN: &str = "aW50ZXJhY3Rpb246OTAw";

    /// A body with everything Discord sends, and what one day it might.
    fn body() -> Value {
        json!({
            "id": "900", "type": 3, "application_id": "77", "token": TOKEN, "version": 1,
            "channel_id": "222", "guild_id": "900900", "locale": "de", "guild_locale": "en-US", "context": 0,
            "app_permissions": "8", "authorizing_integration_owners": {"0": "900900"}, "entitlements": [],
            "attachment_size_limit": 1, "continuation_token": "new", "callback": {"url": "https://x/y"},
            "guild": {"id": "900900", "locale": "en-US", "features": ["A"], "invite_token": "new"},
            "channel": {
                "id": "222", "type": 11, "parent_id": "111", "name": "plan", "guild_id": "900900", "topic": "t",
                "permissions": "8", "nsfw": false, "last_message_id": "5", "webhook": {"token": "new"},
            },
            "member": {
                "nick": "Annie", "roles": ["1"], "permissions": "8", "joined_at": "2020", "session": "new",
                "user": {"id": "42", "username": "ann", "global_name": "Ann", "bot": false, "email": "a@b.c"},
            },
            "user": {"id": "42", "username": "ann", "token": "new"},
            "data": {
                "id": "5", "name": "model", "type": 1, "custom_id": "hp1:a:b", "component_type": 2,
                "values": ["token", format!("mine is {TOKEN}")],
                "options": [{"name": "token", "type": 3, "value": "my token"}, {"name": "n", "value": 0.25}],
                "components": [{"custom_id": "token", "value": "x"}],
                "resolved": {
                    "users": {"43": {"id": "43", "username": "bob"}},
                    "messages": {"7": {"content": "hi", "interaction_metadata": {"Token": "new", "id": "1"}}},
                    "attachments": {"9": {"id": "9", "url": "https://cdn.discordapp.com/x?ex=1&is=2&hm=3"}},
                },
            },
            "message": {
                "id": "31", "content": "pick one", "type": 0, "webhook_id": "77", "nonce": "n",
                "author": {"id": "77", "username": "angelia", "bot": true, "verified_token": "new"},
                "components": [{"type": 1, "components": [
                    {"type": 2, "custom_id": "hp1:a:b", "label": "Once"},
                    {"type": 2, "url": format!("https://discord.com/api/webhooks/77/{TOKEN}/messages/@original")},
                ]}],
                "interaction": {"id": "1", "token": "new"}, "interaction_metadata": {"token": "new"},
            },
        })
    }

    fn sanitized() -> (Value, Request) {
        let body = body();
        let interaction = Interaction::read(&body).ok().unwrap();
        let request = request(&body, &interaction, "main");
        (serde_json::from_str(&request.body).unwrap(), request)
    }

    #[test]
    fn what_gateways_need_stays() {
        let (kept, request) = sanitized();
        let body = body();
        for path in [
            "/id",
            "/type",
            "/application_id",
            "/channel_id",
            "/guild_id",
            "/locale",
            "/guild_locale",
            "/context",
            "/app_permissions",
            "/authorizing_integration_owners",
            "/channel/id",
            "/channel/type",
            "/channel/parent_id",
            "/channel/name",
            "/guild/id",
            "/member/nick",
            "/member/roles",
            "/member/permissions",
            "/member/user/id",
            "/member/user/username",
            "/member/user/global_name",
            "/user/id",
            "/data/id",
            "/data/name",
            "/data/type",
            "/data/options",
            "/data/custom_id",
            "/data/component_type",
            "/data/values/0",
            "/data/components",
            "/data/resolved/users",
            "/data/resolved/attachments",
            "/data/resolved/messages/7/content",
            "/data/resolved/messages/7/interaction_metadata/id",
            "/message/id",
            "/message/content",
            "/message/author/id",
            "/message/components/0/components/0",
        ] {
            assert!(body.pointer(path).is_some(), "{path}");
            assert_eq!(kept.pointer(path), body.pointer(path), "{path}");
        }
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/webhooks/discord/main"));
        assert_eq!(request.headers, [("content-type".to_owned(), "application/json".to_owned())]);
    }

    #[test]
    fn what_acts_as_the_bot_or_is_not_known_goes() {
        let (kept, request) = sanitized();
        let body = body();
        for path in [
            "/token",
            "/continuation_token",
            "/callback",
            "/attachment_size_limit",
            "/guild/invite_token",
            "/channel/webhook",
            "/channel/last_message_id",
            "/member/session",
            "/member/user/email",
            "/user/token",
            "/data/resolved/messages/7/interaction_metadata/Token",
            "/message/webhook_id",
            "/message/nonce",
            "/message/author/verified_token",
            "/message/interaction",
            "/message/interaction_metadata",
        ] {
            assert!(body.pointer(path).is_some(), "{path}");
            assert_eq!(kept.pointer(path), None, "{path}");
        }
        for path in ["/data/values/1", "/message/components/0/components/1/url"] {
            assert!(body.pointer(path).is_some(), "{path}");
            assert_eq!(kept.pointer(path), Some(&Value::Null), "{path}");
        }
        assert!(!request.body.contains(TOKEN) && !request.body.contains("webhooks/77"), "{}", request.body);
        assert!(!request.body.contains("\"new\""), "{}", request.body);
    }
}
