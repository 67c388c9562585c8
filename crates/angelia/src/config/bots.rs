//! `[[bots]]`: the identities on chat platforms that the server holds. What a bot is
//! configured with beyond what all have is said by its platform, in its [`Block`].

use super::lists::{Field, List, OwnField};
use super::values::slug;
use super::{Config, Server};
use angelia_platforms::blocks;
use angelia_platforms::settings::values::{base_url, is_this_machine, one_of};
use angelia_platforms::settings::{BadValue, Block, Bot, Given, Key, Shown};

const A_SECRET: &str = "write { env = \"NAME\" } or { file = \"PATH\" }";

/// The list of bots.
pub(super) const BOTS: List = List {
    section: "",
    name: "bots",
    fields,
    begin: |config| config.bots.extend(blocks().next().map(Bot::new)),
    check: |config| check_last(&config.bots),
    count: |config| config.bots.len(),
};

const PLATFORM: OwnField = OwnField {
    name: "platform",
    required: Some(|| format!("say where the bot is, {}", any_platform())),
    read: |config, given| platform(given).map(|it| with(config, |bot| bot.block = it)),
    show: |config, index| Shown::quoted(config.bots[index].platform()),
};

const ID: OwnField = OwnField {
    name: "id",
    required: Some(|| "events and routes name a bot by its id, which the provider shows".into()),
    read: |config, given| bot_id(given).map(|it| with(config, |bot| bot.id = it)),
    show: |config, index| Shown::quoted(&config.bots[index].id),
};

const NAME: OwnField = OwnField {
    name: "name",
    required: None,
    read: |config, given| slug(given).map(|it| with(config, |bot| bot.name = Some(it))),
    show: |config, index| Shown::quoted(config.bots[index].name()),
};

const API_URL: OwnField = OwnField {
    name: "api_url",
    required: None,
    read: |config, given| {
        base_url(given, "https", "http").map(|it| with(config, |bot| bot.api_url = Some(it)))
    },
    show: |config, index| {
        let given = config.bots[index].api_url.as_ref().map(Shown::quoted);
        given.unwrap_or_else(|| Shown::unset("the provider's own address is used"))
    },
};

/// What every bot has, with the keys that several platforms have after the id, and those
/// of one at the end.
fn fields() -> Vec<Field> {
    let (shared, single): (Vec<_>, Vec<_>) = keys().into_iter().partition(|key| owners(key).count() > 1);
    let own = |fields: [&'static OwnField; 2]| fields.into_iter().map(Field::Own);
    let of_platforms = |keys: Vec<&'static Key>| keys.into_iter().map(Field::OfPlatform);
    own([&PLATFORM, &ID])
        .chain(of_platforms(shared))
        .chain(own([&NAME, &API_URL]))
        .chain(of_platforms(single))
        .collect()
}

/// The keys of all platforms; one that several have is there once.
fn keys() -> Vec<&'static Key> {
    let mut keys: Vec<&'static Key> = Vec::new();
    for key in blocks().flat_map(|block| block.keys) {
        if !keys.iter().any(|known| known.name == key.name) {
            keys.push(key);
        }
    }
    keys
}

/// The platforms that have a key.
fn owners(key: &Key) -> impl Iterator<Item = &'static Block> {
    let name = key.name;
    blocks().filter(move |block| block.key(name).is_some())
}

/// Reads the value of a platform's key into the bot in the making, whichever platform it is on:
/// whether that has the key is looked at when all is read.
pub(super) fn read(key: &Key, config: &mut Config, given: &Given<'_>) -> Result<(), BadValue> {
    key.read(given).map(|value| with(config, |bot| bot.set(key, value)))
}

/// The value of a platform's key, or whose it is.
pub(super) fn show(key: &Key, bot: &Bot) -> Shown {
    bot.block.key(key.name).map_or_else(
        || {
            let titles: Vec<&str> = owners(key).map(|block| block.title).collect();
            Shown::unset(format!("it is for {}", titles.join(" and ")))
        },
        |own| own.show(bot),
    )
}

fn with(config: &mut Config, change: impl FnOnce(&mut Bot)) {
    if let Some(bot) = config.bots.last_mut() {
        change(bot);
    }
}

fn platform(given: &Given<'_>) -> Result<&'static Block, BadValue> {
    let all: Vec<&'static Block> = blocks().collect();
    one_of(given, &all, |block| block.platform)
}

/// Every word for a platform: "a", "b" or "c".
fn any_platform() -> String {
    let words: Vec<String> = blocks().map(|block| format!("{:?}", block.platform)).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// A bot's id in the form of any platform; which one is looked at when that is known.
fn bot_id(given: &Given<'_>) -> Result<String, BadValue> {
    let text = given.text()?;
    if blocks().any(|block| (block.is_id)(text)) {
        return Ok(text.to_owned());
    }
    // Not repeated: the token stands beside it at the provider and is easily taken for it.
    let hints: String = blocks().map(|block| block.id_hint).collect();
    Err(given.bad(format!("must be the bot's id: {hints}")))
}

/// Looks at the last bot as a whole, beside those before it.
fn check_last(bots: &[Bot]) -> Result<(), BadValue> {
    let Some((last, before)) = bots.split_last() else { return Ok(()) };
    check_keys(last)?;
    let platform = last.platform();
    if !last.id.is_empty() && !(last.block.is_id)(&last.id) {
        return Err(bad("id", format!("is not one of a bot on {platform}: write {}", last.block.id_form)));
    }
    (last.block.check)(last).map_err(|(key, message)| bad(key, message))?;
    let mut others = before.iter().filter(|other| other.block == last.block);
    if others.clone().any(|other| other.id == last.id) {
        let message = format!("names the {platform} bot {} a second time; a bot has one entry", last.id);
        return Err(bad("id", message));
    }
    if others.any(|other| other.name() == last.name()) {
        let message = format!(
            "is {:?} for two {platform} bots, and webhooks and commands tell bots apart by it; \
             write another one here, such as name = \"second\"",
            last.name()
        );
        return Err(bad("name", message));
    }
    Ok(())
}

/// A bot has no key of another platform, and those that its own must have.
fn check_keys(bot: &Bot) -> Result<(), BadValue> {
    let platform = bot.platform();
    for key in keys() {
        match (bot.block.key(key.name), bot.has(key.name)) {
            (None, true) => {
                let owners: Vec<&str> = owners(key).map(|block| block.platform).collect();
                let owners = owners.join(" and ");
                let message =
                    format!("is for {owners} bots; leave it out of this one, which is on {platform}");
                return Err(bad(key.name, message));
            }
            (Some(Key { required: Some(why), .. }), false) => {
                let how = if key.is_secret() { format!("; {A_SECRET}") } else { String::new() };
                return Err(bad(key.name, format!("is missing for a bot on {platform}: {why}{how}")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Providers have to reach what they are told to post to. Looked at last: the
/// address may come from the environment.
pub(super) fn check_webhooks(bots: &[Bot], server: &Server) -> Result<(), BadValue> {
    let url = server.public_url(server.listen);
    let parsed = url::Url::parse(&url).ok();
    let local = parsed.as_ref().is_some_and(is_this_machine);
    let reachable = !local && parsed.is_some_and(|url| url.scheme() == "https");
    let there = format!("{url}: set server.public_url to the https:// address it reaches this server at");
    // A provider's stand-in of one's own may be on this machine as well.
    let reaches = |bot: &Bot| reachable || (local && bot.api_url.is_some());
    let mut unreached = bots.iter().filter(|bot| !reaches(bot));
    match unreached.find_map(|bot| (bot.block.unreachable)(bot, &there)) {
        Some((key, message)) => Err(bad(key, message)),
        None => Ok(()),
    }
}

fn bad(key: &str, message: String) -> BadValue {
    BadValue { key: format!("bots.{key}"), message }
}
