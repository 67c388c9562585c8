//! What Discord says of itself to operators: ids, places, the block of a bot.

use super::address::snowflake;
use super::{Config, Discord, NAME};
use crate::Platform;
use crate::commands::{FROM_GATEWAYS_KEY, OWN_KEY, configured, from_gateways};
use crate::manifest::{Manifest, Setup};
use crate::settings::values::{base_url, one_of};
use crate::settings::{BadValue, Block, Bot, Fetch, Given, Key, Value};
use angelia_core::admission::{Grammar, direct};
use angelia_core::error::Result;
use angelia_core::inbox::Rendering;
use angelia_core::ports::Ports;
use std::sync::Arc;

/// See [`Manifest`].
pub const MANIFEST: Manifest = Manifest {
    places: Grammar {
        platform: NAME,
        is_path,
        private_person: direct,
        help: "write discord:SERVER, discord:SERVER/CHANNEL, discord:dm:USER or discord:*, with ids, which are \
            digits: turn on Developer Mode in Discord (User Settings, Advanced), then right-click the server, \
            channel or person and choose Copy ID. Threads follow their channel. Or write to the bot there and see: \
            angelia route list --unrouted",
        example: "discord:4711/4712",
    },
    setup: Setup::Bots(&BLOCK),
};

static BLOCK: Block = Block {
    platform: NAME,
    title: "Discord",
    is_id,
    id_form: "the application id, digits only",
    id_hint: "for Discord the application id, ",
    keys: &[
        Key::secret("token").required("the provider lets nobody in without one"),
        Key::text("gateway_url", |given| base_url(given, "wss", "ws")).unset("Discord's own address is used"),
        Key::text("public_key", public_key).unset("interactions come over the bot's own connection"),
        Key::text("interactions", interactions).default(|| Value::Text(RENDERINGS[0].0.to_owned())),
        OWN_KEY,
        FROM_GATEWAYS_KEY,
    ],
    check: |_| Ok(()),
    unreachable: |bot, url| {
        let message = format!(
            "is set for {}, but Discord cannot post to {url}, or leave the key out: interactions then come over the \
             bot's own connection",
            bot.name()
        );
        bot.has("public_key").then_some(("public_key", message))
    },
    has_commands: true,
    make,
    sample: include_str!("block.toml"),
};

fn is_id(text: &str) -> bool {
    snowflake(text).is_some()
}

/// `SERVER`, `SERVER/CHANNEL` or `dm:USER`.
fn is_path(path: &str) -> bool {
    match (direct(path), path.split_once('/')) {
        (Some(person), _) => is_id(person),
        (None, Some((guild, channel))) => is_id(guild) && is_id(channel),
        (None, None) => is_id(path),
    }
}

/// How interactions go to gateways, in a word; the first is the usual.
const RENDERINGS: [(&str, Rendering); 3] =
    [("auto", Rendering::Auto), ("passthrough", Rendering::Passthrough), ("event", Rendering::Event)];

fn interactions(given: &Given<'_>) -> Result<String, BadValue> {
    one_of(given, &RENDERINGS, |(word, _)| word).map(|(word, _)| word.to_owned())
}

/// A public key: 64 hexadecimal digits.
fn public_key(given: &Given<'_>) -> Result<String, BadValue> {
    let text = given.text()?.trim();
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_owned());
    }
    Err(given
        .bad("must be the application's public key, 64 hexadecimal digits, as the developer portal shows it"))
}

fn make(bot: &Bot, fetch: Fetch<'_>, ports: Ports) -> Result<Arc<dyn Platform>> {
    let rendering = RENDERINGS.into_iter().find(|(word, _)| Some(*word) == bot.text("interactions"));
    let config = Config {
        id: bot.id.clone(),
        name: bot.name().to_owned(),
        token: fetch("token")?,
        api_url: bot.api_url.clone(),
        gateway_url: bot.text("gateway_url").map(str::to_owned),
        public_key: bot.text("public_key").map(str::to_owned),
        interactions: rendering.map(|(_, rendering)| rendering).unwrap_or_default(),
        commands: configured(bot),
        gateway_commands: from_gateways(bot),
    };
    Ok(Discord::new(config, ports)?)
}
