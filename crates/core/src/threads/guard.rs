//! Under which condition a thread is renamed.

use super::clean;
use angelia_contract::action::Action;

/// What is said where a rename names something else than a thread.
pub const NOT_A_THREAD: &str = "only threads are renamed, and this is none that the bot knows";

const NAMED_BY_OTHERS: &str = "its name is not the one that the connector gave any more: it stays";
const NOT_CREATED: &str = "the connector did not open this thread, or not lately: its name stays";
const ANOTHER_NAME: &str = "it has another name by now: that stays";

/// A condition of a rename.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// None.
    Free,
    /// Only while this is its name.
    Named(String),
    /// Only while its name is the one that the connector gave.
    Created,
}

impl Guard {
    /// What a rename asks for. Where it names both conditions, the stricter one counts.
    pub fn of(action: &Action) -> Self {
        let Action::ThreadRename { only_if_current_name, only_if_connector_created, .. } = action else {
            return Self::Free;
        };
        match (only_if_connector_created, only_if_current_name) {
            (Some(true), _) => Self::Created,
            (_, Some(name)) => Self::Named(name.clone()),
            _ => Self::Free,
        }
    }

    /// Whether it lets a thread be renamed that is called `now`, and that the connector gave the
    /// name `given`; why not.
    pub fn admits(&self, now: Option<&str>, given: Option<&str>) -> Result<(), &'static str> {
        match self {
            Self::Free => Ok(()),
            Self::Named(name) => is_same(now, name).then_some(()).ok_or(ANOTHER_NAME),
            Self::Created => {
                let given = given.ok_or(NOT_CREATED)?;
                is_same(now, given).then_some(()).ok_or(NAMED_BY_OTHERS)
            }
        }
    }
}

/// Whether a thread has a name. Providers trim what they are given.
fn is_same(now: Option<&str>, name: &str) -> bool {
    now.is_some_and(|now| now == name || clean(now).is_some_and(|now| clean(name) == Some(now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn guard(condition: Value) -> Guard {
        let mut action =
            json!({ "op": "thread_rename", "chat_id": "1", "message_id": "2", "thread_name": "x" });
        action.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
        Guard::of(&Action::from_value(action))
    }

    #[test]
    fn a_rename_says_under_which_condition() {
        assert_eq!(guard(json!({})), Guard::Free);
        assert_eq!(guard(json!({ "only_if_connector_created": false })), Guard::Free);
        assert_eq!(guard(json!({ "only_if_current_name": "a" })), Guard::Named("a".into()));
        assert_eq!(
            guard(json!({ "only_if_current_name": "a", "only_if_connector_created": true })),
            Guard::Created
        );
    }

    #[test]
    fn what_people_call_a_thread_stays() {
        let named = Guard::Named("a  b".into());
        assert!(named.admits(Some("a b"), None).is_ok(), "as the provider trims it");
        assert_eq!(named.admits(Some("c"), None), Err(ANOTHER_NAME));
        assert_eq!(named.admits(None, None), Err(ANOTHER_NAME), "nobody knows its name");
        assert!(Guard::Created.admits(Some("a"), Some("a")).is_ok());
        assert_eq!(Guard::Created.admits(Some("b"), Some("a")), Err(NAMED_BY_OTHERS));
        assert_eq!(Guard::Created.admits(Some("a"), None), Err(NOT_CREATED));
        assert!(Guard::Free.admits(None, None).is_ok());
    }
}
