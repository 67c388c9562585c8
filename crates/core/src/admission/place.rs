//! Where people write: `platform:path`, where `*` is the whole platform.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// Longest text of a place; ids of all platforms are far shorter.
const MAX_PLACE: usize = 256;

/// Platforms that a place can be on, as an operator may name them.
const PLATFORMS: [&str; 5] = ["webchat", "discord", "telegram", "sms", "wecom"];

/// What the path of a private chat begins with.
const PRIVATE: &str = "dm:";

/// A place that a route can name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    platform: String,
    path: String,
}

impl Place {
    /// The platform it is on.
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// The part after the platform.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads a place that somebody means to use from now on: on a platform that
    /// everybody knows, or one of `here`. What is stored already is read by
    /// [`str::parse`], whatever platforms it was made for.
    pub fn meant(text: &str, here: &[&str]) -> Result<Self, Error> {
        let place: Self = text.parse()?;
        if PLATFORMS.iter().chain(here).any(|known| *known == place.platform) {
            return Ok(place);
        }
        let closest = PLATFORMS.iter().min_by_key(|known| distance(place.platform(), known));
        let platform = closest.copied().unwrap_or_default();
        Err(Error::invalid(format!(
            "{:?} is not a platform; did you mean {platform}:{}? There are {}",
            place.platform,
            place.path,
            PLATFORMS.join(", ")
        )))
    }

    /// The person whose private chat with the bot it is: `platform:dm:person`.
    pub fn private_person(&self) -> Option<&str> {
        self.path.strip_prefix(PRIVATE).filter(|person| !matches!(*person, "" | "*"))
    }
}

/// How many letters have to be changed, added or taken to make one word of another.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.platform, self.path)
    }
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::invalid(format!(
                "{text:?} is not a place; write platform:path, for example webchat:lobby or webchat:*"
            ))
        };
        let (platform, path) = text.split_once(':').ok_or_else(wrong)?;
        let platform_ok =
            !platform.is_empty() && platform.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let path_ok = !path.is_empty() && !path.chars().any(|c| c.is_whitespace() || c.is_control());
        if !platform_ok || !path_ok || text.len() > MAX_PLACE {
            return Err(wrong());
        }
        Ok(Self { platform: platform.into(), path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_written() {
        for good in ["webchat:lobby", "webchat:*", "discord:1/2", "discord:dm:5", "sms:+15550100"] {
            assert_eq!(good.parse::<Place>().unwrap().to_string(), good);
        }
        for bad in ["", "webchat", "webchat:", ":x", "Web:x", "webchat:a b", "webchat:\n"] {
            assert!(bad.parse::<Place>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_platform_nobody_has_comes_with_the_one_that_is_meant() {
        for (text, meant) in
            [("webchta:x", "webchat:x"), ("telegramm:5", "telegram:5"), ("dicord:1/2", "discord:1/2")]
        {
            let error = Place::meant(text, &["fake"]).unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean {meant}?")), "{error}");
            assert!(text.parse::<Place>().is_ok(), "what is stored is read");
        }
        for good in ["webchat:*", "discord:1/2", "telegram:5", "sms:+15550100", "wecom:main"] {
            assert_eq!(Place::meant(good, &[]).unwrap().to_string(), good);
        }
        assert!(Place::meant("fake:x", &["fake"]).is_ok());
        assert_eq!([distance("sms", "smms"), distance("", "abc"), distance("kitten", "sitting")], [1, 3, 3]);
    }

    #[test]
    fn private_places_name_their_person() {
        let person = |text: &str| text.parse::<Place>().unwrap().private_person().map(str::to_owned);
        assert_eq!(person("webchat:dm:ann").as_deref(), Some("ann"));
        assert_eq!(person("discord:dm:5").as_deref(), Some("5"));
        for shared in ["webchat:lab", "webchat:*", "discord:1/2", "discord:dm:*", "webchat:dm:", "sms:+1555"]
        {
            assert_eq!(person(shared), None, "{shared}");
        }
    }
}
