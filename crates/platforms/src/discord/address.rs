//! Whether a message is meant for the bot, what of it the agent gets, and which
//! places cover a chat.

use super::parse::Message;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::{Chat, ChatKind};

/// Reads an id as Discord writes it. Anything else, also another spelling of
/// the same number, is no id: two texts must never mean one place.
pub(super) fn snowflake(text: &str) -> Option<u64> {
    let id: u64 = text.parse().ok()?;
    (id != 0 && id.to_string() == text).then_some(id)
}

/// The moment Discord counts its ids from, in Unix milliseconds, and where the
/// count begins in an id.
const EPOCH: i64 = 1_420_070_400_000;
const TIME_FROM_BIT: u32 = 22;

/// When something with this id was made, by Discord's clock.
pub(super) fn made_at(id: u64) -> UnixMillis {
    UnixMillis(i64::try_from(id >> TIME_FROM_BIT).unwrap_or(i64::MAX).saturating_add(EPOCH))
}

/// What is smaller than every id made from then on.
pub(super) fn id_before(at: UnixMillis) -> u64 {
    let millis = u64::try_from(at.0.saturating_sub(EPOCH)).unwrap_or_default();
    (millis.min(u64::MAX >> TIME_FROM_BIT) << TIME_FROM_BIT).saturating_sub(1)
}

/// The shard that hears of a guild.
pub(super) fn shard_of(guild: Option<&str>, count: u32) -> u32 {
    // What belongs to no guild is heard by the first.
    let guild = guild.and_then(snowflake).unwrap_or_default();
    u32::try_from((guild >> 22) % u64::from(count.max(1))).unwrap_or_default()
}

/// The places that cover a chat, most specific first; `None` if what is known
/// of it does not tell.
pub(super) fn places(chat: &Chat) -> Option<Vec<String>> {
    let own = &chat.chat_id;
    let mut places = match (chat.kind, &chat.scope, &chat.parent, &chat.person) {
        (ChatKind::Dm, _, _, Some(person)) => vec![format!("dm:{person}")],
        (ChatKind::Thread, Some(guild), Some(parent), _) => {
            vec![format!("{guild}/{own}"), format!("{guild}/{parent}"), guild.clone()]
        }
        (ChatKind::Group | ChatKind::Forum, Some(guild), ..) => vec![format!("{guild}/{own}"), guild.clone()],
        (ChatKind::Group, None, ..) => Vec::new(),
        _ => return None,
    };
    places.push("*".to_owned());
    Some(places)
}

/// The place a `/link` typed in a chat is about: a thread follows its channel.
pub(super) fn link_place(chat: &Chat) -> Option<String> {
    match (&chat.kind, &chat.scope, &chat.parent) {
        (ChatKind::Thread, Some(guild), Some(parent)) => Some(format!("{guild}/{parent}")),
        _ => places(chat)?.into_iter().next().filter(|place| place != "*"),
    }
}

/// Whether a message addresses the bot: by its name, by its own role, or by
/// answering it.
pub(super) fn addresses(message: &Message, own_id: &str, own_roles: &[String]) -> bool {
    let named = message.mentions.iter().any(|user| user.id.0 == own_id);
    let by_role = message.mention_roles.iter().any(|role| own_roles.contains(&role.0));
    let answered = message.referenced_message.as_ref().and_then(|answered| answered.author.as_ref());
    named || by_role || answered.is_some_and(|author| author.id.0 == own_id)
}

/// What the agent gets of a text: without the mentions of the bot it begins
/// with, so that `@bot /new` is a command. Nothing is left of mentions alone.
pub(super) fn said<'a>(text: &'a str, own_id: &str, own_roles: &[String]) -> &'a str {
    let start = text.trim_start();
    let mut rest = start;
    while let Some(after) = strip_mention(rest, own_id, own_roles) {
        let after = after.trim_start();
        rest = after.strip_prefix([',', ':']).unwrap_or(after).trim_start();
    }
    if rest.len() == start.len() { text } else { rest }
}

fn strip_mention<'a>(text: &'a str, own_id: &str, own_roles: &[String]) -> Option<&'a str> {
    let (mention, rest) = text.strip_prefix("<@")?.split_once('>')?;
    let is_own = match mention.strip_prefix('&') {
        Some(role) => own_roles.iter().any(|own| own == role),
        None => mention.strip_prefix('!').unwrap_or(mention) == own_id,
    };
    is_own.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_has_one_spelling() {
        assert_eq!(snowflake("1234567890"), Some(1_234_567_890));
        for no in ["", "0", "01", "+1", "-1", " 1", "1 ", "1a", "١", "99999999999999999999"] {
            assert_eq!(snowflake(no), None, "{no:?}");
        }
    }

    #[test]
    fn ids_tell_when_they_were_made() {
        // The example of Discord's own documentation.
        let (id, at) = (175_928_847_299_117_063, UnixMillis(1_462_015_105_796));
        assert_eq!(made_at(id), at);
        assert!(id_before(at) < id && made_at(id_before(at)) < at);
        assert_eq!(id_before(UnixMillis(0)), 0);
        assert!(made_at(u64::MAX) > at && id_before(UnixMillis(i64::MAX)) > id);
    }

    #[test]
    fn guilds_are_spread_over_shards_and_dms_are_on_the_first() {
        assert_eq!(shard_of(None, 4), 0);
        assert_eq!(shard_of(Some("41771983423143937"), 4), ((41_771_983_423_143_937u64 >> 22) % 4) as u32);
        assert_eq!(shard_of(Some("4194304"), 4), 1);
    }

    #[test]
    fn a_thread_follows_its_parent_and_a_dm_its_person() {
        let chat = |kind, parent: Option<&str>, scope: Option<&str>, person: Option<&str>| Chat {
            parent: parent.map(str::to_owned),
            scope: scope.map(str::to_owned),
            person: person.map(str::to_owned),
            ..Chat::new("5", kind)
        };
        let thread = chat(ChatKind::Thread, Some("4"), Some("9"), None);
        assert_eq!(places(&thread).unwrap(), ["9/5", "9/4", "9", "*"]);
        assert_eq!(link_place(&thread).unwrap(), "9/4");
        let forum = chat(ChatKind::Forum, None, Some("9"), None);
        assert_eq!(places(&forum), places(&chat(ChatKind::Group, None, Some("9"), None)));
        let channel = chat(ChatKind::Group, None, Some("9"), None);
        assert_eq!(places(&channel).unwrap(), ["9/5", "9", "*"]);
        assert_eq!(link_place(&channel).unwrap(), "9/5");
        let dm = chat(ChatKind::Dm, None, None, Some("42"));
        assert_eq!(places(&dm).unwrap(), ["dm:42", "*"]);
        assert_eq!(link_place(&dm).unwrap(), "dm:42");
        assert_eq!(link_place(&chat(ChatKind::Group, None, None, None)), None);
        for unknown in [
            chat(ChatKind::Dm, None, None, None),
            chat(ChatKind::Thread, None, Some("9"), None),
            chat(ChatKind::Thread, Some("4"), None, None),
            chat(ChatKind::Scope, None, None, None),
        ] {
            assert_eq!(places(&unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn the_bot_is_addressed_by_name_by_role_or_by_an_answer() {
        let said = |extra: serde_json::Value| {
            let mut value = json!({"id": "1", "channel_id": "2", "author": {"id": "3"}});
            value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let message: Message = serde_json::from_value(value).unwrap();
            addresses(&message, "77", &["500".to_owned()])
        };
        assert!(said(json!({"mentions": [{"id": "8"}, {"id": "77"}]})));
        assert!(said(json!({"mention_roles": ["500"]})));
        assert!(said(json!({"referenced_message": {"id": "9", "author": {"id": "77"}}})));
        for no in [
            json!({}),
            json!({"mentions": [{"id": "8"}], "mention_roles": ["501"]}),
            json!({"referenced_message": {"id": "77", "author": {"id": "8"}}}),
            json!({"mention_everyone": true, "content": "@everyone"}),
            json!({"content": "/new"}),
        ] {
            assert!(!said(no.clone()), "{no}");
        }
    }

    #[test]
    fn leading_mentions_of_the_bot_are_not_part_of_what_was_said() {
        let roles = ["500".to_owned()];
        for (text, expected) in [
            ("<@77> /new", "/new"),
            ("<@!77> /new", "/new"),
            ("<@&500>: what now?", "what now?"),
            ("  <@77> <@&500>, hi\nthere ", "hi\nthere "),
            ("<@77>/new", "/new"),
            ("<@77>", ""),
            ("<@77> ,", ""),
            ("<@78> /new", "<@78> /new"),
            ("<@&501> hi", "<@&501> hi"),
            ("<@77", "<@77"),
            ("hi <@77> /new", "hi <@77> /new"),
            (" as it was ", " as it was "),
        ] {
            assert_eq!(said(text, "77", &roles), expected, "{text:?}");
        }
    }
}
