//! What Telegram says of itself to operators: ids, places, the block of a bot.

use super::locate::number;
use super::{Config, Ingest, NAME, Telegram};
use crate::Platform;
use crate::commands::{FROM_GATEWAYS_KEY, OWN_KEY, configured, from_gateways};
use crate::manifest::{Manifest, Setup};
use crate::settings::values::{one_of, text_within};
use crate::settings::{Block, Bot, Fetch, Key, Value};
use angelia_core::admission::Grammar;
use angelia_core::error::Result;
use angelia_core::ports::Ports;
use std::sync::Arc;

/// Longest greeting, in characters: an answer to `/start` is a few sentences.
const MAX_GREETING: usize = 1000;

/// The words for [`Ingest`] in the configuration.
const POLL: &str = "poll";
const WEBHOOK: &str = "webhook";

/// See [`Manifest`].
pub const MANIFEST: Manifest = Manifest {
    places: Grammar {
        platform: NAME,
        is_path: |path| is_person(path.strip_prefix('-').unwrap_or(path)),
        // A private chat has the id of its person; all others are negative.
        private_person: |path| Some(path).filter(|path| is_person(path)),
        help: "write telegram:CHAT or telegram:*, with the chat's id: digits for a person's private chat, a minus \
            before them for a group or channel, such as telegram:-1001234567890. To find it, write to the bot there \
            and see: angelia route list --unrouted",
        example: "telegram:81",
    },
    setup: Setup::Bots(&BLOCK),
};

static BLOCK: Block = Block {
    platform: NAME,
    title: "Telegram",
    is_id: is_person,
    id_form: "what stands before the colon of the token, digits only",
    id_hint: "for Telegram what stands before the colon of the token, digits only; ",
    keys: &[
        Key::secret("token").required("the provider lets nobody in without one"),
        Key::text("ingest", |given| one_of(given, &[POLL, WEBHOOK], |it| it).map(str::to_owned))
            .default(|| Value::Text(POLL.to_owned())),
        Key::text("greeting", |given| text_within(given, MAX_GREETING))
            .unset("/start is answered with a default text"),
        OWN_KEY,
        FROM_GATEWAYS_KEY,
    ],
    check: |_| Ok(()),
    unreachable: |bot, url| {
        let message = format!(
            "is \"webhook\" for {}, but Telegram cannot post to {url}, or use ingest = \"poll\", which needs none",
            bot.name()
        );
        (ingest(bot) == Ingest::Webhook).then_some(("ingest", message))
    },
    has_commands: true,
    make,
    sample: include_str!("block.toml"),
};

/// Whether it is the id of a person or a bot.
pub(super) fn is_person(text: &str) -> bool {
    number(text).is_some_and(|id| id > 0)
}

fn ingest(bot: &Bot) -> Ingest {
    if bot.text("ingest") == Some(WEBHOOK) { Ingest::Webhook } else { Ingest::Poll }
}

fn make(bot: &Bot, fetch: Fetch<'_>, ports: Ports) -> Result<Arc<dyn Platform>> {
    let config = Config {
        id: bot.id.clone(),
        name: bot.name().to_owned(),
        token: fetch("token")?,
        api_url: bot.api_url.clone(),
        ingest: ingest(bot),
        greeting: bot.text("greeting").map(str::to_owned),
        commands: configured(bot),
        gateway_commands: from_gateways(bot),
    };
    Ok(Telegram::new(config, ports)?)
}
