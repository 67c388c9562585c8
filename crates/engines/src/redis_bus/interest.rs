//! What this node follows, and what of it the server knows.
//!
//! Whoever follows says so and goes on; one task takes the differences to the server, many
//! at a time. Ten thousand gateways that come back at once are a few commands.

use angelia_core::ports::Topic;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use tokio::sync::Notify;

/// Topics in one round trip to the server.
const BATCH: usize = 1_000;

/// What is followed.
#[derive(Default)]
pub(super) struct Interest {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    followed: HashMap<Topic, Followed>,
    /// What the server was told to bring.
    subscribed: HashSet<Topic>,
    /// Where the two may differ.
    changed: HashSet<Topic>,
}

#[derive(Default)]
struct Followed {
    /// How often.
    times: usize,
    /// Whether something of it was not sent to others, because it is followed here.
    kept: bool,
}

/// What the server has to be told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) subscribe: Vec<Topic>,
    pub(super) unsubscribe: Vec<Topic>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.subscribe.len() + self.unsubscribe.len()
    }
}

impl Interest {
    pub(super) fn follow(&self, topic: Topic) {
        let mut state = self.state.lock();
        let followed = state.followed.entry(topic.clone()).or_default();
        followed.times += 1;
        if followed.times == 1 {
            state.changed.insert(topic);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Takes a follow back; `true` if others may have missed something of the topic, because it
    /// was followed here until now.
    pub(super) fn unfollow(&self, topic: &Topic) -> bool {
        let mut state = self.state.lock();
        let Some(followed) = state.followed.get_mut(topic) else { return false };
        followed.times -= 1;
        if followed.times > 0 {
            return false;
        }
        let kept = followed.kept;
        state.followed.remove(topic);
        state.changed.insert(topic.clone());
        drop(state);
        self.changed.notify_one();
        kept
    }

    /// Whether a topic is followed here, so that a hint of it is kept from the others.
    pub(super) fn keep(&self, topic: &Topic) -> bool {
        let mut state = self.state.lock();
        let followed = state.followed.get_mut(topic);
        followed.is_some_and(|followed| {
            followed.kept = true;
            true
        })
    }

    /// The server knows nothing: everything that is followed is told anew. Answers how much it is.
    pub(super) fn start_over(&self) -> usize {
        let mut state = self.state.lock();
        let State { followed, subscribed, changed } = &mut *state;
        subscribed.clear();
        changed.clear();
        changed.extend(followed.keys().cloned().chain([Topic::Control]));
        changed.len()
    }

    /// What the server has to be told now; it counts as told.
    pub(super) fn take(&self) -> Changes {
        let mut state = self.state.lock();
        let State { followed, subscribed, changed } = &mut *state;
        let some: Vec<Topic> = changed.iter().take(BATCH).cloned().collect();
        let mut changes = Changes::default();
        for topic in some {
            changed.remove(&topic);
            let wanted = topic == Topic::Control || followed.contains_key(&topic);
            if wanted && subscribed.insert(topic.clone()) {
                changes.subscribe.push(topic);
            } else if !wanted && subscribed.remove(&topic) {
                changes.unsubscribe.push(topic);
            }
        }
        changes
    }

    /// Resolves when there may be something to tell.
    pub(super) async fn changed(&self) {
        if self.state.lock().changed.is_empty() {
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::inbox::InstanceId;

    fn topic(id: i64) -> Topic {
        Topic::Instance(InstanceId(id))
    }

    #[test]
    fn a_topic_is_followed_until_it_is_unfollowed_as_often() {
        let interest = Interest::default();
        interest.follow(topic(1));
        interest.follow(topic(1));
        assert_eq!(interest.take().subscribe, [topic(1)]);
        interest.unfollow(&topic(1));
        assert!(interest.take().is_empty(), "it is followed still");
        interest.unfollow(&topic(1));
        assert_eq!(interest.take().unsubscribe, [topic(1)]);
        assert!(!interest.unfollow(&topic(1)), "nobody follows it");
        assert!(interest.take().is_empty());
    }

    #[test]
    fn who_comes_and_goes_between_two_commands_is_no_command() {
        let interest = Interest::default();
        for id in 0..5_000 {
            interest.follow(topic(id));
            interest.unfollow(&topic(id));
        }
        for _ in 0..5 {
            assert!(interest.take().is_empty());
        }
    }

    #[test]
    fn a_storm_is_a_few_commands_and_a_new_server_is_told_everything() {
        let interest = Interest::default();
        (0..10_000).for_each(|id| interest.follow(topic(id)));
        let commands = std::iter::from_fn(|| Some(interest.take()).filter(|some| !some.is_empty()));
        assert_eq!(commands.map(|some| some.subscribe.len()).collect::<Vec<_>>(), [BATCH; 10]);
        assert_eq!(interest.start_over(), 10_001, "and what nodes say to each other");
        let again = std::iter::from_fn(|| Some(interest.take()).filter(|some| !some.is_empty()));
        assert_eq!(again.map(|some| some.subscribe.len()).sum::<usize>(), 10_001);
    }

    #[test]
    fn who_kept_hints_of_a_topic_says_so_when_it_leaves() {
        let interest = Interest::default();
        assert!(!interest.keep(&topic(1)));
        interest.follow(topic(1));
        assert!(interest.keep(&topic(1)));
        assert!(interest.unfollow(&topic(1)));
        interest.follow(topic(1));
        assert!(!interest.unfollow(&topic(1)), "nothing was kept since");
    }
}
