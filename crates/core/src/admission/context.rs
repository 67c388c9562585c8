//! `context` (docs/decisions/0051): what an agent in company gets to know of what was not said to it. A route says
//! how many lines and whose; nothing but the route as it stands decides what is shown.

use super::{Known, Observed, Route, Routes, receiver};
use crate::error::{Error, Result};
use crate::inbox::InstanceId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Lines that are shown where a route does not say how many.
pub const USUAL_LINES: u8 = 20;
/// The most a route may say: more is not what was said just before.
pub const MOST_LINES: u8 = 100;

/// Whose lines an agent gets to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Nobody's, and nothing of theirs that a reply refers to.
    Nobodys,
    /// Those of people who may speak there.
    Speakers,
    /// Those of everybody who writes there.
    Everybodys,
}

/// What a route says of it, in a word: `off`, a number of lines, `any`, or `any,50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Word", into = "String")]
pub struct Context {
    /// Whose lines.
    pub whose: Whose,
    /// How many at most; with none, replies are still shown with what they refer to.
    pub lines: u8,
}

/// The word as it is written: people write a number as one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Number(u64),
    Text(String),
}

impl Default for Context {
    fn default() -> Self {
        Self { whose: Whose::Speakers, lines: USUAL_LINES }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.whose, self.lines) {
            (Whose::Nobodys, _) => f.write_str("off"),
            (Whose::Everybodys, USUAL_LINES) => f.write_str("any"),
            (Whose::Everybodys, lines) => write!(f, "any,{lines}"),
            (Whose::Speakers, lines) => write!(f, "{lines}"),
        }
    }
}

impl FromStr for Context {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "{word:?} says nothing about context; write off, a number of lines up to {MOST_LINES}, any, \
                 or any,50"
            ))
        };
        let lines = |number: &str| {
            let lines = number.trim().parse().ok().filter(|lines| *lines <= MOST_LINES);
            lines.ok_or_else(wrong)
        };
        let (whose, lines) = match (word.trim(), word.trim().split_once(',')) {
            ("off", _) => (Whose::Nobodys, 0),
            ("any", _) => (Whose::Everybodys, USUAL_LINES),
            (_, Some(("any", number))) => (Whose::Everybodys, lines(number)?),
            (number, _) => (Whose::Speakers, lines(number)?),
        };
        Ok(Self { whose, lines })
    }
}

impl TryFrom<Word> for Context {
    type Error = Error;

    fn try_from(word: Word) -> Result<Self> {
        match word {
            Word::Number(lines) => lines.to_string().parse(),
            Word::Text(word) => word.parse(),
        }
    }
}

impl From<Context> for String {
    fn from(context: Context) -> Self {
        context.to_string()
    }
}

impl JsonSchema for Context {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Context".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(off|any|any,[0-9]{1,3}|[0-9]{1,3})$" })
    }
}

/// Who listens in a place, and to whom: the route there as it stands.
#[derive(Clone, Copy, Debug)]
pub struct Audience<'a> {
    route: &'a Route,
    /// The instance that gets what is said to it there.
    pub instance: InstanceId,
    allows_bots: bool,
}

impl<'a> Audience<'a> {
    /// Whoever listens where something was observed, if anybody does.
    pub fn of(routes: &'a Routes, known: &impl Known, observed: Observed<'_>) -> Option<Self> {
        let route = routes.resolve(observed.platform, observed.bot, observed.places)?;
        let instance = receiver(route, known, observed)?;
        let allows_bots = known.policy(instance, observed.platform).allow_other_bots;
        Some(Self { route, instance, allows_bots })
    }

    /// Whose place it is.
    pub fn tenant(&self) -> &'a str {
        &self.route.tenant
    }

    /// How many lines the agent gets to know.
    pub fn lines(&self) -> usize {
        usize::from(self.route.options.context.lines)
    }

    /// Whether the agent gets to know what this author says to others there.
    pub fn may_know(&self, author: &str, is_bot: bool) -> bool {
        let may_speak = match self.route.options.context.whose {
            Whose::Nobodys => false,
            Whose::Speakers => self.route.allow.admits(author),
            Whose::Everybodys => true,
        };
        may_speak && (self.allows_bots || !is_bot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::RouteOptions;
    use serde_json::json;

    #[test]
    fn a_word_says_how_many_and_whose() {
        let context = |whose, lines| Context { whose, lines };
        for (word, expected) in [
            ("off", context(Whose::Nobodys, 0)),
            ("20", Context::default()),
            ("0", context(Whose::Speakers, 0)),
            ("100", context(Whose::Speakers, 100)),
            ("any", context(Whose::Everybodys, 20)),
            ("any,50", context(Whose::Everybodys, 50)),
        ] {
            let read: Context = word.parse().unwrap();
            assert_eq!((read, read.to_string().as_str()), (expected, word));
        }
        for word in ["", "101", "-1", "on", "any,", "any,101", "off,5", "5,any", "any,5,5"] {
            assert!(word.parse::<Context>().is_err(), "{word:?}");
        }
    }

    #[test]
    fn a_route_keeps_its_word_and_passes_over_what_it_does_not_know() {
        let read = |value| serde_json::from_value::<RouteOptions>(value).unwrap().context;
        assert_eq!(read(json!({})), Context::default());
        assert_eq!(read(json!({"context": "any,7"})), "any,7".parse().unwrap());
        assert_eq!(read(json!({"context": 7})), "7".parse().unwrap());
        assert_eq!(read(json!({"context": "of tomorrow"})), Context::default());
        let off = RouteOptions { context: "off".parse().unwrap(), ..RouteOptions::default() };
        assert_eq!(serde_json::to_value(off).unwrap(), json!({"context": "off"}));
        assert_eq!(serde_json::to_value(RouteOptions::default()).unwrap(), json!({}));
    }
}
