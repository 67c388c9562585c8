//! From bots in the configuration to bots that can be spoken through.

use crate::config::{Bot, Config};
use angelia_core::error::{Error, Result};
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use angelia_platforms::Platform;
use std::sync::Arc;

/// Every configured bot, ready to listen.
pub(crate) fn platforms(config: &Config, ports: &Ports) -> Result<Vec<Arc<dyn Platform>>> {
    config.bots.iter().map(|bot| platform(bot, ports)).collect()
}

/// The same for a command that only has to know what there is. They say nothing
/// to anybody, so that a command needs no secret; one that cannot be made is the
/// server's trouble, not that of every command.
pub(crate) fn mute(config: &Config, ports: &Ports) -> Result<Vec<Arc<dyn Platform>>> {
    let made = config.bots.iter().map(|bot| (bot.block.make)(bot, &|key| blank(bot, key), ports.clone()));
    Ok(made.filter_map(Result::ok).collect())
}

/// Something of a secret's form that opens nothing.
fn blank(bot: &Bot, key: &str) -> Result<Secret> {
    bot.block.key(key).map(|key| key.blank_for(bot)).ok_or_else(|| has_no(bot, key))
}

/// One bot with its secrets.
pub(crate) fn platform(bot: &Bot, ports: &Ports) -> Result<Arc<dyn Platform>> {
    (bot.block.make)(bot, &|key| secret(bot, key), ports.clone())
}

/// Fetches a bot's secret.
fn secret(bot: &Bot, key: &str) -> Result<Secret> {
    let place = bot.secret(key).ok_or_else(|| has_no(bot, key))?;
    place.resolve().map_err(|error| {
        let (platform, name) = (bot.platform(), bot.name());
        Error::invalid(format!("the {key} of the {platform} bot {name} cannot be fetched: {error}"))
            .caused_by(error)
    })
}

fn has_no(bot: &Bot, key: &str) -> Error {
    let (platform, name) = (bot.platform(), bot.name());
    Error::invalid(format!("the {platform} bot {name} has no {key}: write it into its [[bots]] block"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_platforms::blocks;
    use angelia_platforms::settings::{SecretRef, Value};

    #[test]
    fn a_secret_that_is_not_there_names_the_bot_and_where_it_should_be() {
        let block = blocks().next().unwrap();
        let mut bot = Bot::new(block);
        bot.name = Some("main".into());
        let told = |bot: &Bot| secret(bot, "token").unwrap_err().to_string();
        assert!(told(&bot).contains(&format!("{} bot main has no token", block.platform)), "{}", told(&bot));
        let place = SecretRef::Env("ANGELIA_TEST_NO_SUCH_TOKEN".into());
        bot.set(block.key("token").unwrap(), Value::Secret(place));
        let told = told(&bot);
        assert!(told.contains(&format!("token of the {} bot main", block.platform)), "{told}");
        assert!(told.contains("ANGELIA_TEST_NO_SUCH_TOKEN"), "{told}");
    }
}
