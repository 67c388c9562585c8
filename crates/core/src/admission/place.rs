//! Where people write: `platform:path`, where `*` is the whole platform. What a path may
//! be is each platform's own matter ([`Grammar`], docs/decisions/0039).

use super::Allow;
use crate::did_you_mean::alike;
use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// Longest text of a place; ids of all platforms are far shorter.
const MAX_PLACE: usize = 256;

/// What the path of a private chat begins with, unless its platform says otherwise.
const PRIVATE: &str = "dm:";
/// The path that means a whole platform.
const EVERYWHERE: &str = "*";

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
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.platform, self.path)
    }
}

impl FromStr for Place {
    type Err = Error;

    /// Reads what is stored already, whatever platforms it was made for. What somebody
    /// wrote is read by [`Places`].
    fn from_str(text: &str) -> Result<Self, Error> {
        split(text).ok_or_else(|| Error::invalid(format!("{text:?} is not a place")))
    }
}

fn split(text: &str) -> Option<Place> {
    let (platform, path) = text.split_once(':')?;
    let platform_ok = !platform.is_empty() && platform.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let path_ok = !path.is_empty() && !path.chars().any(|c| c.is_whitespace() || c.is_control());
    let good = platform_ok && path_ok && text.len() <= MAX_PLACE;
    good.then(|| Place { platform: platform.into(), path: path.into() })
}

/// How one platform writes its places.
#[derive(Clone, Copy, Debug)]
pub struct Grammar {
    /// The platform, as its places begin.
    pub platform: &'static str,
    /// Whether a path can be a chat there, or several; `*` always can.
    pub is_path: fn(&str) -> bool,
    /// The person whose private chat with the bot a path is.
    pub private_person: fn(&str) -> Option<&str>,
    /// How its places are written, and where their ids are to be found.
    pub help: &'static str,
    /// A place, for examples.
    pub example: &'static str,
}

/// The person of `dm:PERSON`, as most platforms write private chats.
pub fn direct(path: &str) -> Option<&str> {
    path.strip_prefix(PRIVATE).filter(|person| !matches!(*person, "" | EVERYWHERE))
}

/// How places are written on all platforms; the first one is there for examples.
#[derive(Clone, Copy, Debug)]
pub struct Places(pub &'static [Grammar]);

impl Places {
    /// Reads a place that somebody wrote, on whatever platform.
    pub fn read(&self, text: &str) -> Result<Place, Error> {
        split(text).ok_or_else(|| {
            let example =
                self.0.first().map(|it| format!(", for example {} or {}:*", it.example, it.platform));
            let example = example.unwrap_or_default();
            Error::invalid(format!("{text:?} is not a place; write platform:path{example}"))
        })
    }

    /// Reads a place that somebody means to use from now on: on a platform that
    /// everybody knows, or one of `here`, and written the way that platform
    /// names its chats.
    pub fn meant(&self, text: &str, here: &[&str]) -> Result<Place, Error> {
        let place = self.read(text)?;
        if let Some(grammar) = self.of(&place) {
            return check_shape(grammar, &place).map(|()| place);
        }
        if here.contains(&place.platform()) {
            return Ok(place);
        }
        let known: Vec<&str> = self.0.iter().map(|grammar| grammar.platform).collect();
        let (platform, all) = (&place.platform, known.join(", "));
        // A slip is near the word that was meant. Another platform's name is near none.
        let meant = alike(platform, known.into_iter().map(str::to_owned));
        Err(Error::invalid(match meant {
            Some(meant) => {
                format!(
                    "{platform:?} is not a platform; did you mean {meant}:{}? There are {all}",
                    place.path
                )
            }
            None => format!("{platform:?} is a platform that this server does not have; there are {all}"),
        }))
    }

    /// The person whose private chat with the bot it is.
    pub fn private_person<'a>(&self, place: &'a Place) -> Option<&'a str> {
        let person = self.of(place).map_or(direct as fn(&str) -> Option<&str>, |it| it.private_person);
        person(&place.path)
    }

    /// Who may speak where nobody was named: the person of a private chat.
    /// Anywhere else that is a choice somebody has to make.
    pub fn default_allow(&self, place: &Place) -> Option<Allow> {
        self.private_person(place).map(|person| Allow::People(vec![person.to_owned()]))
    }

    fn of(&self, place: &Place) -> Option<&'static Grammar> {
        self.0.iter().find(|grammar| grammar.platform == place.platform)
    }
}

/// Refuses what can be no chat of its platform: such a route would wait for ever.
fn check_shape(grammar: &Grammar, place: &Place) -> Result<(), Error> {
    if place.path == EVERYWHERE || (grammar.is_path)(&place.path) {
        return Ok(());
    }
    Err(Error::invalid(format!("{:?} is not a place; {}", place.to_string(), grammar.help)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pigeons carry numbers, and are private below 10; whatever is in a bottle is one.
    const PLACES: Places = Places(&[
        Grammar {
            platform: "pigeon",
            is_path: |path| path.parse::<u32>().is_ok(),
            private_person: |path| Some(path).filter(|path| path.len() == 1),
            help: "write pigeon:NUMBER",
            example: "pigeon:7",
        },
        Grammar {
            platform: "bottle",
            is_path: |_| true,
            private_person: direct,
            help: "",
            example: "bottle:x",
        },
    ]);

    fn refused(text: &str) -> String {
        PLACES.meant(text, &["smoke"]).unwrap_err().to_string()
    }

    #[test]
    fn places_are_written_as_they_are_read() {
        for good in ["bottle:lobby", "bottle:*", "pigeon:1/2", "pigeon:dm:5", "smoke:+15550100"] {
            assert_eq!(good.parse::<Place>().unwrap().to_string(), good);
            assert_eq!(PLACES.read(good).unwrap().to_string(), good);
        }
        for bad in ["", "bottle", "bottle:", ":x", "Bottle:x", "bottle:a b", "bottle:\n"] {
            assert!(bad.parse::<Place>().is_err(), "{bad:?}");
            let told = PLACES.read(bad).unwrap_err().to_string();
            assert!(told.ends_with("write platform:path, for example pigeon:7 or pigeon:*"), "{told}");
        }
    }

    #[test]
    fn a_platform_that_nobody_has_is_a_slip() {
        assert_eq!(
            refused("pidgeon:7"),
            "\"pidgeon\" is not a platform; did you mean pigeon:7? There are pigeon, bottle"
        );
        assert_eq!(
            refused("telegraph:7"),
            "\"telegraph\" is a platform that this server does not have; there are pigeon, bottle"
        );
        assert!(PLACES.meant("smoke:x", &["smoke"]).is_ok(), "served here, whatever it writes");
        assert!("telegraph:x".parse::<Place>().is_ok(), "what is stored may be of another time");
    }

    #[test]
    fn a_path_is_its_platforms_matter() {
        for good in ["pigeon:12", "pigeon:*", "bottle:anything"] {
            assert!(PLACES.meant(good, &[]).is_ok(), "{good}");
        }
        assert_eq!(refused("pigeon:home"), "\"pigeon:home\" is not a place; write pigeon:NUMBER");
    }

    #[test]
    fn a_private_chat_has_its_person() {
        let person = |text: &str| PLACES.private_person(&text.parse().unwrap()).map(str::to_owned);
        for (place, expected) in [
            ("pigeon:7", Some("7")),
            ("pigeon:12", None),
            ("bottle:dm:ann", Some("ann")),
            ("bottle:dm:*", None),
            ("bottle:dm:", None),
            ("bottle:lab", None),
            ("smoke:dm:ann", Some("ann")),
        ] {
            assert_eq!(person(place).as_deref(), expected, "{place}");
        }
        let default = |text: &str| PLACES.default_allow(&text.parse().unwrap());
        assert_eq!(default("pigeon:7"), Some(Allow::People(vec!["7".into()])));
        assert_eq!(default("pigeon:12"), None);
    }
}
