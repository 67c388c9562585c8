//! Where a target is: one member of the company, by the id WeCom gives them.

use super::Wecom;
use angelia_core::egress::{Target, Whereabouts};
use hashlink::LruCache;
use parking_lot::Mutex;

/// Longest id of a member.
const MAX_USER: usize = 64;
/// People remembered for not having written; whoever is forgotten is asked for anew.
const STRANGERS: usize = 10_000;

/// Whether this can be a member's id. It must not be anything else: to WeCom
/// `|` separates several people, and `@all` is everybody.
pub(super) fn is_user(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-@.".contains(&byte));
    letters && text.len() <= MAX_USER && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// The member a target is. There are no threads, so whoever names one means
/// something that is not here.
pub(super) fn user_of(target: &Target) -> Option<&str> {
    let in_chat = target.thread_id.as_ref().is_none_or(|thread| *thread == target.chat_id);
    Some(target.chat_id.as_str()).filter(|user| in_chat && is_user(user))
}

/// The places that cover a member, most specific first.
pub(super) fn places(name: &str, user: &str) -> [String; 3] {
    [format!("{name}/{user}"), name.to_owned(), "*".to_owned()]
}

/// People who are not in the directory: they have not written to the app, and
/// nobody can be asked for them.
pub(super) struct Strangers(Mutex<LruCache<String, ()>>);

impl Default for Strangers {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(STRANGERS)))
    }
}

impl Strangers {
    fn knows(&self, user: &str) -> bool {
        self.0.lock().contains_key(user)
    }

    fn add(&self, user: &str) {
        self.0.lock().insert(user.to_owned(), ());
    }

    /// Somebody has written.
    pub(super) fn remove(&self, user: &str) {
        self.0.lock().remove(user);
    }
}

impl Wecom {
    /// What covers a target: nothing, unless that person has written to the app.
    pub(super) fn whereabouts(&self, target: &Target) -> Whereabouts {
        let Some(user) = user_of(target) else { return Whereabouts::Nowhere };
        if self.directory.at_hand(user).is_some() {
            Whereabouts::Places(places(&self.config.name, user).into())
        } else if self.strangers.knows(user) {
            Whereabouts::Nowhere
        } else {
            Whereabouts::Unknown
        }
    }

    /// Asks the store for a person.
    pub(super) async fn remember(&self, target: &Target) -> angelia_core::error::Result<()> {
        let Some(user) = user_of(target) else { return Ok(()) };
        if self.directory.find(user).await?.is_none() {
            self.strangers.add(user);
            // Somebody who wrote while the store was asked is none.
            if self.directory.at_hand(user).is_some() {
                self.strangers.remove(user);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_one_member() {
        let with = |chat: &str, thread: Option<&str>| {
            let target = Target { chat_id: chat.into(), thread_id: thread.map(str::to_owned) };
            user_of(&target).map(str::to_owned)
        };
        for user in ["zhangsan", "a", "ZhangSan_1", "li.si@example.com", "7-7", &"x".repeat(64)] {
            assert_eq!(with(user, None).as_deref(), Some(user));
            assert_eq!(with(user, Some(user)).as_deref(), Some(user));
        }
        for wrong in ["", "@all", "a|b", "a b", "张三", "_a", ".a", "-1", "a/b", "a\n", &"x".repeat(65)] {
            assert_eq!(with(wrong, None), None, "{wrong:?}");
        }
        assert_eq!(with("zhangsan", Some("7")), None);
    }

    #[test]
    fn strangers_are_bounded() {
        let strangers = Strangers::default();
        for number in 0..2 * STRANGERS {
            strangers.add(&number.to_string());
        }
        assert!(strangers.0.lock().len() <= STRANGERS && strangers.knows(&(2 * STRANGERS - 1).to_string()));
    }
}
