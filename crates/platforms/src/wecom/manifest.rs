//! What WeCom says of itself to operators: ids, places, the block of a bot.

use super::address::is_user;
use super::{Config, NAME, Wecom};
use crate::Platform;
use crate::manifest::{Manifest, Setup};
use crate::settings::{Block, Bot, Fetch, Key};
use angelia_core::admission::Grammar;
use angelia_core::error::Result;
use angelia_core::ports::Ports;
use std::sync::Arc;

/// Longest id of a company; WeCom's have 18 characters, and those it gives to
/// service providers some more.
const MAX_CORP_ID: usize = 64;

/// See [`Manifest`].
pub const MANIFEST: Manifest = Manifest {
    places: Grammar {
        platform: NAME,
        is_path,
        // An app talks with one person at a time.
        private_person: |path| path.split_once('/').map(|(_, person)| person).filter(|it| is_user(it)),
        help: "write wecom:APP for everybody who writes to an app of yours, wecom:APP/PERSON for one of them, or \
            wecom:*, with the bot's name in the configuration and the person's account (Contacts, the person, \
            Account), in capitals where it has capitals. To find it, write to the app and see: angelia route list \
            --unrouted",
        example: "wecom:main",
    },
    setup: Setup::Bots(&BLOCK),
};

static BLOCK: Block = Block {
    platform: NAME,
    title: "WeCom",
    is_id: |id| id.split_once('/').is_some_and(|(corp, app)| is_company(corp) && app_number(app).is_some()),
    id_form: "the company's id and the app's number, such as \"ww0123456789abcdef/1000002\"",
    id_hint: "for WeCom \"COMPANY/APP\"",
    keys: &[
        Key::secret("secret").required("WeCom gives access tokens for it"),
        Key::secret("callback_token").required("it signs WeCom's callbacks"),
        Key::secret("encoding_aes_key")
            .required("it encrypts WeCom's callbacks")
            .blank("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    ],
    check: |_| Ok(()),
    unreachable: |_, url| Some(("platform", format!("is \"wecom\", but WeCom cannot post to {url}"))),
    has_commands: false,
    make,
    sample: include_str!("block.toml"),
};

/// The name of an app, and perhaps who writes to it.
fn is_path(path: &str) -> bool {
    let (app, person) = path.split_once('/').map_or((path, None), |(app, person)| (app, Some(person)));
    !app.is_empty() && !app.contains(':') && person.is_none_or(is_user)
}

/// Whether it can be the id of a company.
pub(super) fn is_company(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=MAX_CORP_ID).contains(&text.len()) && text.bytes().all(known)
}

/// The number of an app, as WeCom writes it.
pub(super) fn app_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|app: &u64| *app > 0 && app.to_string() == text)
}

fn make(bot: &Bot, fetch: Fetch<'_>, ports: Ports) -> Result<Arc<dyn Platform>> {
    let (corp_id, agent_id) = bot.id.split_once('/').unwrap_or((&bot.id, ""));
    let config = Config {
        corp_id: corp_id.to_owned(),
        agent_id: agent_id.to_owned(),
        name: bot.name().to_owned(),
        secret: fetch("secret")?,
        callback_token: fetch("callback_token")?,
        encoding_aes_key: fetch("encoding_aes_key")?,
        api_url: bot.api_url.clone(),
    };
    Ok(Wecom::new(config, ports)?)
}
