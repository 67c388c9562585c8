//! From bots in the configuration to bots that can be spoken through.

use crate::config::{Bot, BotPlatform, Config, Ingest};
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use angelia_core::store::Store;
use angelia_platforms::{Platform, discord, telegram};
use std::sync::Arc;

/// Every configured bot, ready to listen.
pub(crate) fn platforms(config: &Config, store: &Arc<dyn Store>) -> Result<Vec<Arc<dyn Platform>>> {
    config.bots.iter().map(|bot| platform(bot, store)).collect()
}

/// The same for a command that only has to know what there is. They say nothing
/// to anybody, so that a command needs no token; one that cannot be made is the
/// server's trouble, not that of every command.
pub(crate) fn mute(config: &Config, store: &Arc<dyn Store>) -> Result<Vec<Arc<dyn Platform>>> {
    let made = config.bots.iter().map(|bot| make(bot, Secret::new(format!("{}:none", bot.id)), store));
    Ok(made.filter_map(Result::ok).collect())
}

/// One bot with its token.
pub(crate) fn platform(bot: &Bot, store: &Arc<dyn Store>) -> Result<Arc<dyn Platform>> {
    make(bot, token(bot)?, store)
}

fn make(bot: &Bot, token: Secret, store: &Arc<dyn Store>) -> Result<Arc<dyn Platform>> {
    match bot.platform {
        BotPlatform::Discord => discord(bot, token, store.clone()),
        BotPlatform::Telegram => telegram(bot, token, store.clone()),
    }
}

fn discord(bot: &Bot, token: Secret, store: Arc<dyn Store>) -> Result<Arc<dyn Platform>> {
    let config = discord::Config {
        id: bot.id.clone(),
        name: bot.name().to_owned(),
        token,
        api_url: bot.api_url.clone(),
        gateway_url: bot.gateway_url.clone(),
    };
    Ok(discord::Discord::new(config, store)?)
}

fn telegram(bot: &Bot, token: Secret, store: Arc<dyn Store>) -> Result<Arc<dyn Platform>> {
    let config = telegram::Config {
        id: bot.id.clone(),
        name: bot.name().to_owned(),
        token,
        api_url: bot.api_url.clone(),
        ingest: match bot.ingest() {
            Ingest::Poll => telegram::Ingest::Poll,
            Ingest::Webhook => telegram::Ingest::Webhook,
        },
        greeting: bot.greeting.clone(),
    };
    Ok(telegram::Telegram::new(config, store)?)
}

/// Fetches a bot's token, and sees that it is that bot's.
fn token(bot: &Bot) -> Result<Secret> {
    let (platform, name) = (bot.platform.as_str(), bot.name());
    let token = bot.token.resolve().map_err(|error| {
        Error::invalid(format!("the token of the {platform} bot {name} cannot be fetched: {error}"))
    })?;
    // What stands before the colon is no secret: it is the id of the bot it is for.
    if bot.platform == BotPlatform::Telegram
        && token.expose().split_once(':').is_none_or(|(id, _)| id != bot.id)
    {
        return Err(Error::invalid(format!(
            "the token of the {platform} bot {name} is not one of bot {}: a token begins with its bot's id and \
             a colon; copy it again from @BotFather, or correct `id`",
            bot.id
        )));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SecretRef;

    fn bot(platform: BotPlatform, token: SecretRef) -> Bot {
        Bot { platform, id: "765".into(), token, name: Some("main".into()), ..Bot::default() }
    }

    #[test]
    fn a_token_that_is_not_there_names_the_bot_and_where_it_should_be() {
        let told = token(&bot(BotPlatform::Discord, SecretRef::Env("ANGELIA_TEST_NO_SUCH_TOKEN".into())));
        let told = told.unwrap_err().to_string();
        assert!(told.contains("discord bot main") && told.contains("ANGELIA_TEST_NO_SUCH_TOKEN"), "{told}");
    }

    #[test]
    fn a_telegram_token_is_its_own_bots() {
        let folder = tempfile::tempdir().unwrap();
        let with = |platform: BotPlatform, text: &str| {
            let file = folder.path().join("token");
            std::fs::write(&file, text).unwrap();
            token(&bot(platform, SecretRef::File(file)))
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
