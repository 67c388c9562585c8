//! From bots in the configuration to bots that can be spoken through.

use crate::config::{Bot, BotPlatform, Config, Ingest, SecretRef};
use angelia_core::error::{Error, Result};
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use angelia_platforms::{Platform, discord, sms, telegram, wecom};
use std::sync::Arc;

/// Every configured bot, ready to listen.
pub(crate) fn platforms(config: &Config, ports: &Ports) -> Result<Vec<Arc<dyn Platform>>> {
    config.bots.iter().map(|bot| platform(bot, ports)).collect()
}

/// The same for a command that only has to know what there is. They say nothing
/// to anybody, so that a command needs no secret; one that cannot be made is the
/// server's trouble, not that of every command.
pub(crate) fn mute(config: &Config, ports: &Ports) -> Result<Vec<Arc<dyn Platform>>> {
    let made = config.bots.iter().map(|bot| make(bot, &|key, _| Ok(blank(bot, key)), ports));
    Ok(made.filter_map(Result::ok).collect())
}

/// Something of a secret's form that opens nothing.
fn blank(bot: &Bot, key: &str) -> Secret {
    match key {
        "encoding_aes_key" => Secret::new("A".repeat(43)),
        _ => Secret::new(format!("{}:none", bot.id)),
    }
}

/// One bot with its secrets.
pub(crate) fn platform(bot: &Bot, ports: &Ports) -> Result<Arc<dyn Platform>> {
    make(bot, &|key, place| secret(bot, key, place), ports)
}

/// How a secret is got: its key in the configuration, and where that says it is.
type Fetch<'a> = &'a dyn Fn(&str, Option<&SecretRef>) -> Result<Secret>;

fn make(bot: &Bot, fetch: Fetch<'_>, ports: &Ports) -> Result<Arc<dyn Platform>> {
    let ports = ports.clone();
    match bot.platform {
        BotPlatform::Discord => discord(bot, fetch, ports),
        BotPlatform::Telegram => telegram(bot, fetch, ports),
        BotPlatform::Sms => sms(bot, fetch, ports),
        BotPlatform::Wecom => wecom(bot, fetch, ports),
    }
}

fn discord(bot: &Bot, fetch: Fetch<'_>, ports: Ports) -> Result<Arc<dyn Platform>> {
    let config = discord::Config {
        id: bot.id.clone(),
        name: bot.name().to_owned(),
        token: fetch("token", bot.token.as_ref())?,
        api_url: bot.api_url.clone(),
        gateway_url: bot.gateway_url.clone(),
        public_key: bot.public_key.clone(),
        interactions: bot.interactions(),
        commands: bot.commands(),
    };
    Ok(discord::Discord::new(config, ports)?)
}

fn telegram(bot: &Bot, fetch: Fetch<'_>, ports: Ports) -> Result<Arc<dyn Platform>> {
    let config = telegram::Config {
        id: bot.id.clone(),
        name: bot.name().to_owned(),
        token: fetch("token", bot.token.as_ref())?,
        api_url: bot.api_url.clone(),
        ingest: match bot.ingest() {
            Ingest::Poll => telegram::Ingest::Poll,
            Ingest::Webhook => telegram::Ingest::Webhook,
        },
        greeting: bot.greeting.clone(),
    };
    Ok(telegram::Telegram::new(config, ports)?)
}

fn sms(bot: &Bot, fetch: Fetch<'_>, ports: Ports) -> Result<Arc<dyn Platform>> {
    let signing_key = match &bot.signing_key {
        Some(id) => Some((id.clone(), fetch("signing_secret", bot.signing_secret.as_ref())?)),
        None => None,
    };
    let config = sms::Config {
        id: bot.id.clone(),
        name: bot.name().to_owned(),
        account_sid: bot.account_sid.clone().unwrap_or_default(),
        auth_token: fetch("auth_token", bot.auth_token.as_ref())?,
        signing_key,
        api_url: bot.api_url.clone(),
    };
    Ok(sms::Sms::new(config, ports)?)
}

fn wecom(bot: &Bot, fetch: Fetch<'_>, ports: Ports) -> Result<Arc<dyn Platform>> {
    let (corp_id, agent_id) = bot.id.split_once('/').unwrap_or((&bot.id, ""));
    let config = wecom::Config {
        corp_id: corp_id.to_owned(),
        agent_id: agent_id.to_owned(),
        name: bot.name().to_owned(),
        secret: fetch("secret", bot.secret.as_ref())?,
        callback_token: fetch("callback_token", bot.callback_token.as_ref())?,
        encoding_aes_key: fetch("encoding_aes_key", bot.encoding_aes_key.as_ref())?,
        api_url: bot.api_url.clone(),
    };
    Ok(wecom::Wecom::new(config, ports)?)
}

/// Fetches a bot's secret, and sees that a Telegram token is that bot's.
fn secret(bot: &Bot, key: &str, place: Option<&SecretRef>) -> Result<Secret> {
    let (platform, name) = (bot.platform.as_str(), bot.name());
    let place = place.ok_or_else(|| {
        Error::invalid(format!("the {platform} bot {name} has no {key}: write it into its [[bots]] block"))
    })?;
    let secret = place.resolve().map_err(|error| {
        Error::invalid(format!("the {key} of the {platform} bot {name} cannot be fetched: {error}"))
            .caused_by(error)
    })?;
    // What stands before the colon is no secret: it is the id of the bot it is for.
    if bot.platform == BotPlatform::Telegram
        && secret.expose().split_once(':').is_none_or(|(id, _)| id != bot.id)
    {
        return Err(Error::invalid(format!(
            "the token of the {platform} bot {name} is not one of bot {}: a token begins with its bot's id and \
             a colon; copy it again from @BotFather, or correct `id`",
            bot.id
        )));
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bot(platform: BotPlatform) -> Bot {
        Bot { platform, id: "765".into(), name: Some("main".into()), ..Bot::default() }
    }

    #[test]
    fn a_secret_that_is_not_there_names_the_bot_and_where_it_should_be() {
        let place = SecretRef::Env("ANGELIA_TEST_NO_SUCH_TOKEN".into());
        let told = secret(&bot(BotPlatform::Discord), "token", Some(&place)).unwrap_err().to_string();
        assert!(told.contains("token of the discord bot main"), "{told}");
        assert!(told.contains("ANGELIA_TEST_NO_SUCH_TOKEN"), "{told}");
    }

    #[test]
    fn a_telegram_token_is_its_own_bots() {
        let folder = tempfile::tempdir().unwrap();
        let with = |platform: BotPlatform, text: &str| {
            let file = folder.path().join("token");
            std::fs::write(&file, text).unwrap();
            secret(&bot(platform), "token", Some(&SecretRef::File(file)))
        };
        assert!(with(BotPlatform::Telegram, "765:hunter2\n").unwrap().matches("765:hunter2"));
        for wrong in ["766:hunter2", "hunter2", "7650:hunter2", ":hunter2"] {
            let told = with(BotPlatform::Telegram, wrong).unwrap_err().to_string();
            assert!(told.contains("telegram bot main is not one of bot 765"), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
        assert!(with(BotPlatform::Discord, "anything").is_ok());
    }
}
