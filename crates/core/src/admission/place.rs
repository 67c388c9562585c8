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

    /// Reads a place that somebody means to use from now on: on a platform that
    /// everybody knows, or one of `here`, and written the way that platform
    /// names its chats. What is stored already is read by [`str::parse`],
    /// whatever platforms it was made for.
    pub fn meant(text: &str, here: &[&str]) -> Result<Self, Error> {
        let place: Self = text.parse()?;
        if PLATFORMS.iter().chain(here).any(|known| *known == place.platform) {
            return place.check_shape().map(|()| place);
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

    /// The person whose private chat with the bot it is: `platform:dm:person`. On
    /// Telegram a private chat has the id of its person; all others are negative.
    /// A phone number talks with one person at a time, `sms:number/person`, and so
    /// does an app of WeCom, `wecom:app/person`.
    pub fn private_person(&self) -> Option<&str> {
        let behind = || self.path.split_once('/').map(|(_, person)| person);
        match self.platform.as_str() {
            "telegram" => return Some(self.path()).filter(|path| is_id(path)),
            "sms" => return behind().filter(|person| is_phone(person)),
            "wecom" => {
                return behind().filter(|person| is_member(person));
            }
            _ => {}
        }
        self.path.strip_prefix(PRIVATE).filter(|person| !matches!(*person, "" | EVERYWHERE))
    }

    /// Refuses what can be no chat of its platform: such a route would wait for ever.
    fn check_shape(&self) -> Result<(), Error> {
        let path = self.path.as_str();
        let (good, help) = match self.platform.as_str() {
            "discord" => (is_discord(path), DISCORD_HELP),
            "telegram" => (is_id(path.strip_prefix('-').unwrap_or(path)), TELEGRAM_HELP),
            "sms" => (is_sms(path), SMS_HELP),
            "wecom" => (is_wecom(path), WECOM_HELP),
            _ => return Ok(()),
        };
        if good || path == EVERYWHERE {
            return Ok(());
        }
        Err(Error::invalid(format!("{:?} is not a place; {help}", self.to_string())))
    }
}

/// How Discord's places are written, and where their ids are to be found.
const DISCORD_HELP: &str = "write discord:SERVER, discord:SERVER/CHANNEL, discord:dm:USER or discord:*, \
    with ids, which are digits: turn on Developer Mode in Discord (User Settings, Advanced), then right-click \
    the server, channel or person and choose Copy ID. Threads follow their channel. Or write to the bot there \
    and see: angelia route list --unrouted";

/// The same for Telegram.
const TELEGRAM_HELP: &str = "write telegram:CHAT or telegram:*, with the chat's id: digits for a person's \
    private chat, a minus before them for a group or channel, such as telegram:-1001234567890. To find it, \
    write to the bot there and see: angelia route list --unrouted";

/// The same for SMS.
const SMS_HELP: &str = "write sms:NUMBER for everybody who writes to a number of yours, sms:NUMBER/PERSON for one of \
    them, or sms:*, with the country code and nothing between the digits, such as sms:+15550100/+15550199. To find \
    it, write to the number and see: angelia route list --unrouted";

/// The same for WeCom.
const WECOM_HELP: &str = "write wecom:APP for everybody who writes to an app of yours, wecom:APP/PERSON for one of \
    them, or wecom:*, with the bot's name in the configuration and the person's account (Contacts, the person, \
    Account), in capitals where it has capitals. To find it, write to the app and see: angelia route list --unrouted";

fn is_discord(path: &str) -> bool {
    match (path.strip_prefix(PRIVATE), path.split_once('/')) {
        (Some(person), _) => is_id(person),
        (None, Some((guild, channel))) => is_id(guild) && is_id(channel),
        (None, None) => is_id(path),
    }
}

/// A number of ours, and perhaps who writes to it: a number or a short code.
fn is_sms(path: &str) -> bool {
    let (own, person) = path.split_once('/').map_or((path, None), |(own, person)| (own, Some(person)));
    own.starts_with('+') && is_phone(own) && person.is_none_or(is_phone)
}

/// Whether it is a phone number as the network writes it: digits, and a `+` before
/// a country code.
fn is_phone(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text);
    (3..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name of an app, and perhaps who writes to it.
fn is_wecom(path: &str) -> bool {
    let (app, person) = path.split_once('/').map_or((path, None), |(app, person)| (app, Some(person)));
    !app.is_empty() && !app.contains(':') && person.is_none_or(is_member)
}

/// Whether it can be a member's id at WeCom.
fn is_member(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-@.".contains(&byte);
    text.bytes().all(known) && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// Whether it is a provider's number. Only as providers write it: places are
/// compared letter by letter.
fn is_id(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|id| id > 0 && id.to_string() == text)
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
    fn a_place_is_written_as_its_platform_names_chats() {
        for good in [
            "discord:10",
            "discord:10/20",
            "discord:dm:5",
            "discord:*",
            "telegram:5",
            "telegram:-1001234567890",
            "telegram:*",
            "webchat:dm:ann",
            "sms:+15550100/+1555",
        ] {
            assert_eq!(Place::meant(good, &[]).unwrap().to_string(), good);
        }
        for bad in ["discord:lobby", "discord:10/", "discord:10/20/30", "discord:dm:ann", "discord:-1"] {
            let error = Place::meant(bad, &[]).unwrap_err().to_string();
            assert!(error.contains("discord:SERVER/CHANNEL") && error.contains("Copy ID"), "{error}");
            assert!(bad.parse::<Place>().is_ok(), "what is stored is read");
        }
        for bad in
            ["telegram:@ann", "telegram:dm:5", "telegram:007", "telegram:+5", "telegram:--5", "telegram:0"]
        {
            let error = Place::meant(bad, &["telegram"]).unwrap_err().to_string();
            assert!(error.contains("telegram:CHAT") && error.contains("--unrouted"), "{error}");
        }
        for good in ["sms:+15550100", "sms:+15550100/+15550199", "sms:+15550100/72345", "sms:*"] {
            assert_eq!(Place::meant(good, &[]).unwrap().to_string(), good);
        }
        for bad in [
            "sms:15550100",
            "sms:+1-555",
            "sms:+15550100/",
            "sms:+15550100/ann",
            "sms:main",
            "sms:+1555/+1/+2",
        ] {
            let error = Place::meant(bad, &[]).unwrap_err().to_string();
            assert!(error.contains("sms:NUMBER/PERSON") && error.contains("--unrouted"), "{error}");
        }
        for good in ["wecom:main", "wecom:main/ZhangSan", "wecom:main/li.si@x", "wecom:*"] {
            assert_eq!(Place::meant(good, &[]).unwrap().to_string(), good);
        }
        for bad in [
            "wecom:main/",
            "wecom:/ann",
            "wecom:main/@all",
            "wecom:main/a|b",
            "wecom:main/a/b",
            "wecom:dm:ann",
        ] {
            let error = Place::meant(bad, &[]).unwrap_err().to_string();
            assert!(error.contains("wecom:APP/PERSON") && error.contains("--unrouted"), "{error}");
        }
    }

    #[test]
    fn private_places_name_their_person() {
        let person = |text: &str| text.parse::<Place>().unwrap().private_person().map(str::to_owned);
        assert_eq!(person("webchat:dm:ann").as_deref(), Some("ann"));
        assert_eq!(person("discord:dm:5").as_deref(), Some("5"));
        assert_eq!(person("telegram:5").as_deref(), Some("5"));
        assert_eq!(person("sms:+15550100/+15550199").as_deref(), Some("+15550199"));
        assert_eq!(person("wecom:main/ZhangSan").as_deref(), Some("ZhangSan"));
        for shared in [
            "webchat:lab",
            "webchat:*",
            "discord:1/2",
            "discord:5",
            "discord:dm:*",
            "webchat:dm:",
            "sms:+1555",
            "sms:1555",
            "telegram:*",
            "telegram:-5",
            "telegram:-1001234567890",
            "wecom:main",
            "wecom:*",
        ] {
            assert_eq!(person(shared), None, "{shared}");
        }
    }
}
