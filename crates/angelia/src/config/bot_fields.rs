//! The keys of `[[bots]]`: how each is read, and how it is shown.

use super::bots::{Bot, BotPlatform, Ingest, check_last, one_of, rendering_word};
use super::commands::{command_line, commands};
use super::keys::{Shown, bare, quoted};
use super::lists::{Field, List};
use super::values::{base_url, bot_id, hex_key, slug, text_within, word};
use super::{Config, SecretRef};
use angelia_core::inbox::Rendering;

/// Longest greeting, in characters: an answer to `/start` is a few sentences.
const MAX_GREETING: usize = 1000;

const FOR_DISCORD: &str = "it is for Discord";
const FOR_TELEGRAM: &str = "it is for Telegram";
const FOR_SMS: &str = "it is for SMS";
const FOR_WECOM: &str = "it is for WeCom";

/// A key that says where a secret is kept.
macro_rules! secret {
    ($name:ident, $unset:expr) => {
        Field {
            name: stringify!($name),
            required: None,
            read: |config, given| given.secret().map(|it| bot(config).$name = Some(it)),
            show: |config, index| kept(&config.bots[index].$name, $unset),
        }
    };
}

/// The list of bots.
pub(super) const BOTS: List = List {
    section: "",
    name: "bots",
    fields: &[
        Field {
            name: "platform",
            required: Some("say where the bot is, \"discord\", \"telegram\", \"sms\" or \"wecom\""),
            read: |config, given| {
                one_of(given, &BotPlatform::ALL, BotPlatform::as_str).map(|it| bot(config).platform = it)
            },
            show: |config, index| quoted(config.bots[index].platform.as_str()),
        },
        Field {
            name: "id",
            required: Some("events and routes name a bot by its id, which the provider shows"),
            read: |config, given| bot_id(given).map(|it| bot(config).id = it),
            show: |config, index| quoted(&config.bots[index].id),
        },
        secret!(token, "it is for Discord and Telegram"),
        Field {
            name: "name",
            required: None,
            read: |config, given| slug(given).map(|it| bot(config).name = Some(it)),
            show: |config, index| quoted(config.bots[index].name()),
        },
        Field {
            name: "api_url",
            required: None,
            read: |config, given| base_url(given, "https", "http").map(|it| bot(config).api_url = Some(it)),
            show: |config, index| text(&config.bots[index].api_url, "the provider's own address is used"),
        },
        Field {
            name: "gateway_url",
            required: None,
            read: |config, given| base_url(given, "wss", "ws").map(|it| bot(config).gateway_url = Some(it)),
            show: |config, index| match &config.bots[index] {
                Bot { gateway_url, platform: BotPlatform::Discord, .. } => {
                    text(gateway_url, "Discord's own address is used")
                }
                _ => Shown::Unset(FOR_DISCORD),
            },
        },
        Field {
            name: "public_key",
            required: None,
            read: |config, given| hex_key(given).map(|it| bot(config).public_key = Some(it)),
            show: |config, index| match &config.bots[index] {
                Bot { public_key, platform: BotPlatform::Discord, .. } => {
                    text(public_key, "interactions come over the bot's own connection")
                }
                _ => Shown::Unset(FOR_DISCORD),
            },
        },
        Field {
            name: "interactions",
            required: None,
            read: |config, given| {
                let all = [Rendering::Auto, Rendering::Passthrough, Rendering::Event];
                one_of(given, &all, rendering_word).map(|it| bot(config).interactions = Some(it))
            },
            show: |config, index| match &config.bots[index] {
                it @ Bot { platform: BotPlatform::Discord, .. } => quoted(rendering_word(it.interactions())),
                _ => Shown::Unset(FOR_DISCORD),
            },
        },
        Field {
            name: "commands",
            required: None,
            read: |config, given| commands(given).map(|it| bot(config).commands = Some(it)),
            show: |config, index| match &config.bots[index] {
                it @ Bot { platform: BotPlatform::Discord, .. } => {
                    let lines = it.commands().iter().map(|it| command_line(it).into()).collect();
                    bare(toml::Value::Array(lines))
                }
                _ => Shown::Unset(FOR_DISCORD),
            },
        },
        Field {
            name: "ingest",
            required: None,
            read: |config, given| {
                one_of(given, &Ingest::ALL, Ingest::as_str).map(|it| bot(config).ingest = Some(it))
            },
            show: |config, index| match &config.bots[index] {
                it @ Bot { platform: BotPlatform::Telegram, .. } => quoted(it.ingest().as_str()),
                _ => Shown::Unset(FOR_TELEGRAM),
            },
        },
        Field {
            name: "greeting",
            required: None,
            read: |config, given| text_within(given, MAX_GREETING).map(|it| bot(config).greeting = Some(it)),
            show: |config, index| match &config.bots[index] {
                Bot { greeting, platform: BotPlatform::Telegram, .. } => {
                    text(greeting, "/start is answered with a default text")
                }
                _ => Shown::Unset(FOR_TELEGRAM),
            },
        },
        Field {
            name: "account_sid",
            required: None,
            read: |config, given| word(given, "AC…").map(|it| bot(config).account_sid = Some(it)),
            show: |config, index| text(&config.bots[index].account_sid, FOR_SMS),
        },
        secret!(auth_token, FOR_SMS),
        Field {
            name: "signing_key",
            required: None,
            read: |config, given| word(given, "the key's id").map(|it| bot(config).signing_key = Some(it)),
            show: |config, index| match &config.bots[index] {
                Bot { signing_key, platform: BotPlatform::Sms, .. } => {
                    text(signing_key, "the auth token signs webhooks")
                }
                _ => Shown::Unset(FOR_SMS),
            },
        },
        secret!(signing_secret, FOR_SMS),
        secret!(secret, FOR_WECOM),
        secret!(callback_token, FOR_WECOM),
        secret!(encoding_aes_key, FOR_WECOM),
    ],
    begin: |config| config.bots.push(Bot::default()),
    check: |config| check_last(&config.bots),
    count: |config| config.bots.len(),
};

/// The bot in the making; there is one while its fields are read.
fn bot(config: &mut Config) -> &mut Bot {
    if config.bots.is_empty() {
        config.bots.push(Bot::default());
    }
    let last = config.bots.len() - 1;
    &mut config.bots[last]
}

fn text(value: &Option<String>, unset: &'static str) -> Shown {
    value.as_ref().map_or(Shown::Unset(unset), quoted)
}

fn kept(value: &Option<SecretRef>, unset: &'static str) -> Shown {
    value.as_ref().map_or(Shown::Unset(unset), bare)
}
