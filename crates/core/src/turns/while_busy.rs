//! `while_busy`: what becomes of a message while the agent is at work on an earlier one.
//! A route says it, else the gateway, else nobody; the words are those of other servers' queue modes.

use crate::did_you_mean::closest;
use crate::error::{Error, Result};
use crate::words::words;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::str::FromStr;

words! {
    /// What becomes of a message for an agent that is busy with its conversation.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "&'static str")]
    pub enum WhileBusy {
        /// What suits the gateway, by what is known of it.
        #[default]
        Auto = "auto",
        /// It waits for the end of the turn; then all that wait go together, as one message.
        Collect = "collect",
        /// It waits for the end of the turn; then those that wait go one by one, a turn for each.
        Followup = "followup",
        /// It ends the turn and goes at once.
        Interrupt = "interrupt",
        /// It goes in at once, whatever the agent does.
        Pass = "pass",
    }
}

impl FromStr for WhileBusy {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        Self::parse(word).ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str);
            let meant = closest(word, words).unwrap_or_default();
            let all = words.join(", ");
            Error::invalid(format!("{word:?} is no while_busy; did you mean {meant:?}? There are {all}"))
        })
    }
}

impl TryFrom<String> for WhileBusy {
    type Error = Error;

    fn try_from(word: String) -> Result<Self> {
        word.parse()
    }
}

impl From<WhileBusy> for &'static str {
    fn from(mode: WhileBusy) -> Self {
        mode.as_str()
    }
}

impl JsonSchema for WhileBusy {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WhileBusy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::as_str) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mode_is_read_by_its_word_and_a_slip_is_told_what_was_meant() {
        for mode in WhileBusy::ALL {
            assert_eq!(mode.as_str().parse::<WhileBusy>().unwrap(), mode);
            assert_eq!(serde_json::from_value::<WhileBusy>(json!(mode)).unwrap(), mode);
        }
        let slip = "colect".parse::<WhileBusy>().unwrap_err().to_string();
        assert!(slip.contains("did you mean \"collect\"? There are auto, collect, followup"), "{slip}");
        let slip = serde_json::from_value::<WhileBusy>(json!("Interrupt")).unwrap_err().to_string();
        assert!(slip.contains("did you mean \"interrupt\""), "{slip}");
    }

    #[test]
    fn where_nothing_is_said_it_is_what_suits_the_gateway() {
        assert_eq!(WhileBusy::default(), WhileBusy::Auto);
    }
}
