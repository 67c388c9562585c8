//! What Discord says of guilds, channels and threads, as the directory keeps it.

use super::Discord;
use super::locate::guild_key;
use super::parse::{Channel, Guild, Role, RoleChange, ThreadList, User, read};
use angelia_core::directory::{Chat, ChatKind};
use angelia_core::error::Result;
use angelia_core::store::DirectoryStore;
use serde_json::Value;

/// What an event about guilds and channels comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lesson {
    /// Chats as Discord describes them now.
    pub(super) chats: Vec<Chat>,
    /// Where the bot is not any more.
    pub(super) gone: Option<Gone>,
    /// Whether the guild's roles were not told: those that are known stay.
    pub(super) without_roles: bool,
    /// A role that is, or is not any more, the bot's own in a guild.
    pub(super) role: Option<OwnRole>,
}

/// Something the bot is not in any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// One channel or thread.
    Chat(String),
    /// A guild with all of its channels.
    Guild(String),
}

/// A change of the roles by which a guild calls the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnRole {
    pub(super) guild: String,
    pub(super) role: String,
    pub(super) is_own: bool,
}

/// Reads an event, if it is about guilds and channels; an error is why it cannot be
/// read, without any text of it.
pub(super) fn lesson(event: &str, data: &str, own_id: &str) -> Result<Option<Lesson>, String> {
    let mut lesson = Lesson::default();
    match event {
        "GUILD_CREATE" | "GUILD_UPDATE" => {
            let guild: Guild = read(data)?;
            if guild.unavailable != Some(true) {
                lesson.chats = guild_chats(&guild, own_id);
                lesson.without_roles = guild.roles.is_none();
            }
        }
        "GUILD_DELETE" => {
            let guild: Guild = read(data)?;
            // An outage of Discord's is no farewell.
            lesson.gone = Some(Gone::Guild(guild.id)).filter(|_| guild.unavailable != Some(true));
        }
        "CHANNEL_DELETE" | "THREAD_DELETE" => lesson.gone = Some(Gone::Chat(read::<Channel>(data)?.id)),
        "THREAD_LIST_SYNC" => {
            let list: ThreadList = read(data)?;
            lesson.chats = channels(&list.threads, &list.guild_id, own_id);
        }
        "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" | "GUILD_ROLE_DELETE" => {
            lesson.role = role_change(read(data)?, own_id);
        }
        "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
            lesson.chats.extend(chat(&read(data)?, None, own_id));
        }
        _ => return Ok(None),
    }
    Ok(Some(lesson))
}

fn role_change(change: RoleChange, own_id: &str) -> Option<OwnRole> {
    let is_own = change.role.as_ref().is_some_and(|role| is_own(role, own_id));
    let role = change.role.0.map(|role| role.id).or(change.role_id)?;
    Some(OwnRole { guild: change.guild_id, role, is_own })
}

/// A guild and everything in it that can be read.
fn guild_chats(guild: &Guild, own_id: &str) -> Vec<Chat> {
    let mut chats = vec![guild_chat(guild, own_id)];
    chats.extend(channels(&guild.channels, &guild.id, own_id));
    chats.extend(channels(&guild.threads, &guild.id, own_id));
    chats
}

/// The row of a guild.
pub(super) fn guild_chat(guild: &Guild, own_id: &str) -> Chat {
    let roles = guild.roles.iter().flatten().filter(|role| is_own(role, own_id));
    Chat {
        // With its own id as what it belongs to, so that it goes with its chats.
        scope: Some(guild.id.clone()),
        name: guild.name.0.clone(),
        roles: roles.map(|role| role.id.clone()).collect(),
        ..Chat::new(guild_key(&guild.id), ChatKind::Scope)
    }
}

/// Whether Discord made a role for the bot itself.
fn is_own(role: &Role, own_id: &str) -> bool {
    role.tags.as_ref().is_some_and(|tags| tags.bot_id.as_deref() == Some(own_id))
}

fn channels(values: &[Value], guild: &str, own_id: &str) -> Vec<Chat> {
    let read = values.iter().filter_map(|value| serde_json::from_value::<Channel>(value.clone()).ok());
    read.filter_map(|channel| chat(&channel, Some(guild), own_id)).collect()
}

/// A channel as the directory keeps it; `None` if nobody writes there, or
/// nobody here knows what it is: that is never guessed.
pub(super) fn chat(channel: &Channel, guild: Option<&str>, own_id: &str) -> Option<Chat> {
    let scope = channel.guild_id.clone().or_else(|| guild.map(str::to_owned));
    let person = channel.recipients.iter().find(|person| person.id != own_id);
    let (kind, parent, scope) = match channel.kind {
        // Text, voice, announcements, stages, forums, media: people write there or below.
        0 | 2 | 5 | 13 | 15 | 16 => (ChatKind::Group, None, Some(scope?)),
        // The parent of a channel is its category, which is no chat.
        10..=12 => (ChatKind::Thread, Some(channel.parent_id.clone()?), Some(scope?)),
        1 => (ChatKind::Dm, None, None),
        3 => (ChatKind::Group, None, None),
        _ => return None,
    };
    let is_dm = kind == ChatKind::Dm;
    Some(Chat {
        parent,
        scope,
        name: if is_dm { person.and_then(User::name).map(str::to_owned) } else { channel.name.0.clone() },
        topic: channel.topic.0.clone().filter(|topic| !topic.is_empty()),
        person: person.filter(|_| is_dm).map(|person| person.id.clone()),
        ..Chat::new(channel.id.clone(), kind)
    })
}

impl Discord {
    /// Takes note of what an event teaches; answers the chats that are new, and
    /// have to be committed.
    pub(super) async fn take_note(&self, mut lesson: Lesson) -> Result<Vec<Chat>> {
        if lesson.without_roles
            && let Some(guild) = lesson.chats.iter_mut().find(|chat| chat.kind == ChatKind::Scope)
            && let Some(known) = self.account.directory.find(&guild.chat_id).await?
        {
            guild.roles.clone_from(&known.chat.roles);
        }
        if let Some(change) = &lesson.role {
            lesson.chats.extend(self.with_role(change).await?);
        }
        if let Some(gone) = &lesson.gone {
            self.forget(gone).await?;
        }
        self.account.directory.learn_all(lesson.chats).await
    }

    /// The row of a guild after a change of its roles, if it is known.
    async fn with_role(&self, change: &OwnRole) -> Result<Option<Chat>> {
        let known = self.account.directory.find(&guild_key(&change.guild)).await?;
        let Some(mut guild) = known.map(|known| known.chat.clone()) else { return Ok(None) };
        guild.roles.retain(|role| *role != change.role);
        if change.is_own {
            guild.roles.push(change.role.clone());
        }
        Ok(Some(guild))
    }

    pub(super) async fn forget(&self, gone: &Gone) -> Result<()> {
        match gone {
            Gone::Chat(id) => {
                self.ports.records.forget_chat(&self.account.key, id).await?;
                self.account.directory.forget_chat(id);
            }
            Gone::Guild(id) => {
                self.ports.records.forget_scope(&self.account.key, id).await?;
                self.account.directory.forget(|known| known.chat.scope.as_ref() == Some(id));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lesson_of(event: &str, data: Value) -> Result<Lesson, String> {
        lesson(event, &data.to_string(), "77").map(Option::unwrap)
    }

    fn find<'a>(lesson: &'a Lesson, id: &str) -> Option<&'a Chat> {
        lesson.chats.iter().find(|chat| chat.chat_id == id)
    }

    #[test]
    fn a_guild_teaches_its_channels_threads_and_own_roles() {
        let lesson = lesson_of(
            "GUILD_CREATE",
            json!({
                "id": "900", "name": "ops",
                "roles": [{"id": "900"}, {"id": "501", "tags": {"bot_id": "77"}}, {"id": "502", "tags": {"bot_id": "78"}}],
                "channels": [
                    {"id": "900", "type": 0, "name": "general", "topic": "", "parent_id": "300"},
                    {"id": "300", "type": 4, "name": "Text"},
                    {"id": "112", "type": 99, "name": "new"},
                    {"type": 0}, null,
                ],
                "threads": [{"id": "222", "type": 11, "name": "plan", "parent_id": "900"}, {"id": "223", "type": 11}],
            }),
        )
        .unwrap();
        let guild = find(&lesson, "guild:900").unwrap();
        assert_eq!((guild.kind, guild.name.as_deref()), (ChatKind::Scope, Some("ops")));
        assert_eq!(guild.roles, ["501"]);
        let general = find(&lesson, "900").unwrap();
        assert_eq!(
            (general.kind, general.parent.as_deref()),
            (ChatKind::Group, None),
            "a category is no parent"
        );
        assert_eq!((general.scope.as_deref(), general.topic.as_deref()), (Some("900"), None));
        let thread = find(&lesson, "222").unwrap();
        assert_eq!((thread.kind, thread.parent.as_deref()), (ChatKind::Thread, Some("900")));
        assert_eq!(lesson.chats.len(), 3, "what is not understood is not guessed: {:?}", lesson.chats);
    }

    #[test]
    fn leaving_is_told_from_an_outage() {
        let left = lesson_of("GUILD_DELETE", json!({"id": "900"})).unwrap();
        assert_eq!(left.gone, Some(Gone::Guild("900".into())));
        let outage = json!({"id": "900", "unavailable": true});
        assert_eq!(lesson_of("GUILD_DELETE", outage.clone()).unwrap(), Lesson::default());
        assert_eq!(lesson_of("GUILD_CREATE", outage).unwrap(), Lesson::default());
    }

    #[test]
    fn the_person_of_a_dm_is_not_the_bot() {
        let channel = json!({"id": "555", "type": 1, "recipients": [
            {"id": "77", "username": "angelia"}, {"id": "42", "username": "ann", "global_name": "Ann"},
        ]});
        let channel: Channel = serde_json::from_value(channel).unwrap();
        let dm = chat(&channel, None, "77").unwrap();
        assert_eq!(
            (dm.kind, dm.person.as_deref(), dm.name.as_deref()),
            (ChatKind::Dm, Some("42"), Some("Ann"))
        );
    }

    #[test]
    fn roles_come_and_go() {
        let made = lesson_of(
            "GUILD_ROLE_CREATE",
            json!({"guild_id": "9", "role": {"id": "5", "tags": {"bot_id": "77"}}}),
        );
        let own = OwnRole { guild: "9".into(), role: "5".into(), is_own: true };
        assert_eq!(made.unwrap().role, Some(own));
        let gone = lesson_of("GUILD_ROLE_DELETE", json!({"guild_id": "9", "role_id": "5"}));
        assert!(!gone.unwrap().role.unwrap().is_own);
    }

    #[test]
    fn what_cannot_be_read_says_why_without_its_text() {
        let why = lesson_of("GUILD_CREATE", json!({"name": "secret"})).unwrap_err();
        assert!(!why.contains("secret"), "{why}");
        assert!(lesson_of("CHANNEL_CREATE", json!({"id": "1"})).is_err());
    }
}
