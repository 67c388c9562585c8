//! Where a target is: one member of the company, by the id WeCom gives them.

use super::{NAME, Wecom};
use crate::kit::places_of;
use angelia_core::egress::{Bot, Target, Whereabouts};

/// Longest id of a member.
const MAX_USER: usize = 64;

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

impl Bot for Wecom {
    fn platform(&self) -> &str {
        NAME
    }

    fn id(&self) -> &str {
        &self.account.key.bot
    }

    /// Nothing covers a target, unless that person has written to the app. Nobody
    /// else can be asked for.
    fn places(&self, target: &Target) -> Whereabouts {
        let Some(user) = user_of(target) else { return Whereabouts::Nowhere };
        if self.account.directory.at_hand(user).is_some() {
            Whereabouts::Places(places_of(&self.config.name, user))
        } else if self.account.directory.is_absent(user) {
            Whereabouts::Nowhere
        } else {
            Whereabouts::Unknown
        }
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
}
