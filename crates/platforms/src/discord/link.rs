//! A `/link` somebody typed: who they are in their guild, what they are told, and
//! how often.

use super::api::Call;
use super::api_error::ApiError;
use super::chats::Spot;
use super::parse::{Guild, Id, Member, Message};
use super::take::Reader;
use super::{NAME, address};
use crate::admission::Linking;
use angelia_core::clock::{self, Mono};
use angelia_core::directory::ChatKind;
use angelia_core::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use angelia_core::own_words::OwnWords;
use angelia_core::secret::Secret;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The permissions that make somebody an administrator here.
const ADMINISTRATOR: u64 = 1 << 3;
const MANAGE_GUILD: u64 = 1 << 5;

const COMMAND: &str = "/link";

/// How long it may take to find out who somebody is. The shard is not read meanwhile.
const ASKED_WITHIN: Duration = Duration::from_secs(5);

impl Reader {
    /// Uses up a code and tells the person how it went. Anybody can type this:
    /// beyond a few in a while nothing is tried, and nothing said.
    pub(super) async fn link(&self, message: &Message, spot: &Spot, code: &str) {
        let chat = &spot.chat.chat;
        let place = address::link_place(chat).and_then(|path| format!("{NAME}:{path}").parse().ok());
        let Some(place) = place else { return };
        let author = &message.author.id;
        if !self.discord.pace.may_answer(&chat.chat_id, author, clock::mono()) {
            self.discord.account.health.count("links_unanswered");
            return;
        }
        let (guild, language) = (chat.scope.as_deref(), chat.language.unwrap_or_default());
        let unknown = || OwnWords::AdministratorUnknown.text(language).to_owned();
        let went_wrong = || OwnWords::WentWrong.text(language).to_owned();
        // Without a code nothing is linked: everybody may be told how it is done.
        let administrator = code.is_empty()
            || match timeout(ASKED_WITHIN, self.is_administrator(message, guild)).await {
                Ok(Ok(administrator)) => administrator,
                Ok(Err(_)) | Err(_) => return self.answer(message, unknown()),
            };
        let typed = Linking {
            platform: NAME,
            bot: Some(self.discord.own_id().to_owned()),
            place,
            author: author.0.clone(),
            private: chat.kind == ChatKind::Dm,
            administrator,
            code: Secret::new(code),
            language,
        };
        let admission = self.ingress.admission.clone();
        // A task of its own: a code is used up and told about, or neither.
        let linked = tokio::spawn(async move { admission.link(typed).await }).await;
        let answer = match linked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::error!(bot = self.discord.own_id(), %error, "a code could not be tried");
                went_wrong()
            }
            Err(_) => went_wrong(),
        };
        self.answer(message, answer);
    }

    /// Answers somebody beside everything else: a shard does not wait for calls
    /// that anybody can cause.
    fn answer(&self, message: &Message, answer: String) {
        let Some(room) = self.discord.pace.room() else { return };
        let (discord, chat, asked) =
            (self.discord.clone(), message.channel_id.0.clone(), message.id.0.clone());
        tokio::spawn(async move {
            if let Err(failure) = discord.say(&chat, &answer, Some(&asked)).await {
                let (bot, why) = (discord.own_id(), failure.why());
                tracing::warn!(bot, chat, why, "the answer to a /link could not be told");
            }
            drop(room);
        });
    }

    /// Whether somebody administers the guild they write in. Whoever cannot be shown to be
    /// an administrator is none.
    async fn is_administrator(&self, message: &Message, guild: Option<&str>) -> Result<bool, ApiError> {
        let Some(guild_id) = guild else { return Ok(false) };
        let author = &message.author.id;
        let Some(guild) = self.ask::<Guild>(format!("guilds/{guild_id}")).await? else { return Ok(false) };
        if guild.owner_id.as_ref() == Some(author) {
            return Ok(true);
        }
        let member = match &*message.member {
            Some(member) => Some(member.clone()),
            // What is read back from a channel comes without it.
            None if address::snowflake(author).is_some() => {
                self.ask(format!("guilds/{guild_id}/members/{}", author.0)).await?
            }
            None => None,
        };
        Ok(member.is_some_and(|member: Member| administers(&guild, &member.roles)))
    }

    /// What Discord says; `None` if it will not say, or nothing that can be read.
    async fn ask<T: DeserializeOwned>(&self, path: String) -> Result<Option<T>, ApiError> {
        match self.discord.api.read(Call::get(path)).await {
            Err(ApiError::Refused { .. } | ApiError::Unreadable) => Ok(None),
            told => told.map(Some),
        }
    }
}

/// Whether something that is to be kept may hold a code: those are kept nowhere.
pub(super) fn may_hold_code(raw: &str) -> bool {
    let raw = raw.to_ascii_lowercase();
    let follows = |at: usize| raw[at..].chars().next();
    let mut commands = raw.match_indices(COMMAND).map(|(at, _)| follows(at + COMMAND.len()));
    // Line breaks are written with a backslash in JSON.
    commands.any(|next| next.is_some_and(|next| next.is_whitespace() || matches!(next, '\\' | '@')))
}

/// Whether one of the roles, or the one that everybody has, administers the guild.
fn administers(guild: &Guild, roles: &[Id]) -> bool {
    let held = guild.roles.iter().flatten().filter(|role| role.id == guild.id || roles.contains(&role.id));
    let bits = |permissions: &str| permissions.parse::<u64>().ok();
    let permissions = held.filter_map(|role| role.permissions.as_deref().and_then(bits));
    permissions.fold(0, |all, one| all | one) & (ADMINISTRATOR | MANAGE_GUILD) != 0
}

/// Answers in one chat within [`WINDOW`]: a few attempts at typing a code.
/// Anybody can ask for one, and each is a call of the bot's.
const MAX_IN_CHAT: usize = 6;
/// Answers to one person: less than a chat's, so that nobody uses up the others' share.
const MAX_TO_PERSON: usize = 2;
const WINDOW: Duration = Duration::from_secs(60);
/// Chats and people remembered, each. With more in a minute nobody is answered.
const MAX_REMEMBERED: usize = 4_096;
/// Answers on their way at once.
const MAX_ANSWERS: usize = 8;

/// Who was answered when.
#[derive(Debug)]
pub(super) struct Pace {
    chats: Mutex<SlidingWindowOf<String>>,
    people: Mutex<SlidingWindowOf<String>>,
    answers: Arc<Semaphore>,
}

impl Default for Pace {
    fn default() -> Self {
        let each = |most| {
            let of_one = SlidingWindow::new(most, WINDOW);
            Mutex::new(SlidingWindowOf::new(MAX_REMEMBERED, WhenCrowded::TurnAway, of_one))
        };
        let (chats, people) = (each(MAX_IN_CHAT), each(MAX_TO_PERSON));
        Self { chats, people, answers: Arc::new(Semaphore::new(MAX_ANSWERS)) }
    }
}

impl Pace {
    /// Whether somebody may be answered in a chat; if so, it counts.
    pub(super) fn may_answer(&self, chat: &str, person: &str, now: Mono) -> bool {
        let (mut chats, mut people) = (self.chats.lock(), self.people.lock());
        let room = chats.check(chat, now).and_then(|()| people.take(person, now));
        room.and_then(|()| chats.take(chat, now)).is_ok()
    }

    /// Room for one more answer on its way, if there is any.
    pub(super) fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.answers.clone().try_acquire_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_may_hold_a_code_is_known() {
        for yes in [r#"{"content": "/link c0de"}"#, "<@7> /LINK@bot c0de", r"/link\nc0de", "\"\\/link c0de"] {
            assert!(may_hold_code(yes), "{yes}");
        }
        for no in ["https://x/link/a", "https://x/links b", r#"{"content": "/link"}"#, "link c0de"] {
            assert!(!may_hold_code(no), "{no}");
        }
    }

    #[test]
    fn administrators_have_a_role_that_says_so() {
        let guild = |everyone: u64| -> Guild {
            serde_json::from_value(json!({"id": "900", "owner_id": "1", "roles": [
                {"id": "900", "permissions": everyone.to_string()},
                {"id": "5", "permissions": "8"}, {"id": "6", "permissions": "32"},
                {"id": "7", "permissions": "2048"}, {"id": "8", "permissions": null},
            ]}))
            .unwrap()
        };
        let may = |everyone: u64, roles: &[&str]| {
            let roles: Vec<Id> = roles.iter().map(|role| Id(role.to_string())).collect();
            administers(&guild(everyone), &roles)
        };
        assert!(may(0, &["5"]) && may(0, &["7", "6"]) && may(32, &[]));
        assert!(!may(2048, &[]) && !may(0, &["7", "8", "999"]));
    }

    #[test]
    fn a_chat_and_a_person_are_answered_now_and_then() {
        let (pace, start) = (Pace::default(), Mono::default());
        let may = |chat: &str, person: &str, second: u64| {
            pace.may_answer(chat, person, start + Duration::from_secs(second))
        };
        assert!(may("1", "ann", 0) && may("1", "ann", 0));
        assert!(!may("1", "ann", 0) && !may("2", "ann", 59), "two to a person, wherever");
        assert!(may("1", "bob", 1) && may("1", "bob", 1), "others have their own share");
        assert!(may("1", "cat", 2) && may("1", "cat", 2));
        assert!(!may("1", "dan", 59), "six in a chat");
        assert!(may("1", "dan", 60) && may("1", "ann", 60));
        assert!(!may("1", "eve", 60) && may("2", "eve", 60));
    }

    #[test]
    fn memory_is_bounded_and_room_too() {
        let pace = Pace::default();
        let answered = (0..2 * MAX_REMEMBERED)
            .filter(|n| pace.may_answer(&format!("c{n}"), &format!("p{n}"), Mono::default()));
        assert_eq!(answered.count(), MAX_REMEMBERED);
        let held: Vec<_> = std::iter::from_fn(|| pace.room()).collect();
        assert_eq!(held.len(), MAX_ANSWERS);
    }
}
