//! What SMS says of itself to operators: numbers, places, the block of a bot.

use super::address::{is_number, is_reachable};
use super::{Config, NAME, Sms};
use crate::Platform;
use crate::manifest::{Manifest, Setup};
use crate::settings::values::word;
use crate::settings::{Block, Bot, Fetch, Key};
use angelia_core::admission::Grammar;
use angelia_core::error::Result;
use angelia_core::ports::Ports;
use std::sync::Arc;

/// See [`Manifest`].
pub const MANIFEST: Manifest = Manifest {
    places: Grammar {
        platform: NAME,
        is_path,
        // A number talks with one person at a time.
        private_person: |path| path.split_once('/').map(|(_, person)| person).filter(|it| is_reachable(it)),
        help: "write sms:NUMBER for everybody who writes to a number of yours, sms:NUMBER/PERSON for one of them, or \
            sms:*, with the country code and nothing between the digits, such as sms:+15550100/+15550199. To find it, \
            write to the number and see: angelia route list --unrouted",
        example: "sms:+15550100",
    },
    setup: Setup::Bots(&BLOCK),
};

const FOR_SMS: &str = "it is for SMS";

static BLOCK: Block = Block {
    platform: NAME,
    title: "SMS",
    is_id: is_number,
    id_form: "the phone number with its country code, such as \"+15550100\"",
    id_hint: "for SMS the number, such as \"+15550100\"; ",
    keys: &[
        Key::text("account_sid", |given| word(given, "AC…"))
            .required("Twilio asks for it with every message; it begins with AC"),
        Key::secret("auth_token").required("it opens Twilio's API and signs its webhooks"),
        Key::text("signing_key", |given| word(given, "the key's id")).unset("the auth token signs webhooks"),
        Key::secret("signing_secret").unset(FOR_SMS),
    ],
    check: |bot| {
        if bot.has("signing_key") == bot.has("signing_secret") {
            return Ok(());
        }
        Err(("signing_key", "and signing_secret go together: write both, or neither".into()))
    },
    unreachable: |_, url| Some(("platform", format!("is \"sms\", but Twilio cannot post to {url}"))),
    has_commands: false,
    make,
    sample: include_str!("block.toml"),
};

/// A number of ours, and perhaps who writes to it: a number or a short code.
fn is_path(path: &str) -> bool {
    match path.split_once('/') {
        Some((own, person)) => is_number(own) && is_reachable(person),
        None => is_number(path),
    }
}

fn make(bot: &Bot, fetch: Fetch<'_>, ports: Ports) -> Result<Arc<dyn Platform>> {
    let signing_key = match bot.text("signing_key") {
        Some(id) => Some((id.to_owned(), fetch("signing_secret")?)),
        None => None,
    };
    let config = Config {
        id: bot.id.clone(),
        name: bot.name().to_owned(),
        account_sid: bot.text("account_sid").unwrap_or_default().to_owned(),
        auth_token: fetch("auth_token")?,
        signing_key,
        api_url: bot.api_url.clone(),
    };
    Ok(Sms::new(config, ports)?)
}
