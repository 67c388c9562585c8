//! `[[bots]]`: the identities on chat platforms that the server holds, and
//! `[notices]`: what people are told by the server itself.

use super::fault::Problem;
use super::keys::{Shown, bare, quoted};
use super::lists::{Field, List};
use super::raw::Given;
use super::values::{base_url, is_this_machine, slug, text_within, user_id};
use super::{Config, SecretRef, Server};
use angelia_connector::Away;
use std::time::Duration;

/// Longest greeting, in characters: an answer to `/start` is a few sentences.
const MAX_GREETING: usize = 1000;
/// Longest notice, in characters: people get it in the middle of a conversation.
const MAX_NOTICE: usize = 500;

/// A platform that bots can be configured for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BotPlatform {
    /// Discord.
    #[default]
    Discord,
    /// Telegram.
    Telegram,
}

impl BotPlatform {
    const ALL: [Self; 2] = [Self::Discord, Self::Telegram];

    /// The word in the configuration, in places and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discord => "discord",
            Self::Telegram => "telegram",
        }
    }
}

/// How Telegram's updates come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ingest {
    /// The server asks for them.
    #[default]
    Poll,
    /// Telegram posts them to the server.
    Webhook,
}

impl Ingest {
    const ALL: [Self; 2] = [Self::Poll, Self::Webhook];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Webhook => "webhook",
        }
    }
}

/// One bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bot {
    /// Where it is.
    pub platform: BotPlatform,
    /// Its user id there.
    pub id: String,
    /// Where its token is kept.
    pub token: SecretRef,
    /// What the operator calls it, if that was given; see [`Bot::name`].
    pub name: Option<String>,
    /// Another address than the provider's: scheme, host and port.
    pub api_url: Option<String>,
    /// Another address than Discord's for the gateway.
    pub gateway_url: Option<String>,
    /// How Telegram's updates come, if that was given; see [`Bot::ingest`].
    pub ingest: Option<Ingest>,
    /// What Telegram's `/start` is answered with, if not the default.
    pub greeting: Option<String>,
}

impl Default for Bot {
    fn default() -> Self {
        let (platform, id, name, api_url, gateway_url, ingest, greeting) = Default::default();
        // Never seen: a bot without a token is a fault.
        let token = SecretRef::Env(String::new());
        Self { platform, id, token, name, api_url, gateway_url, ingest, greeting }
    }
}

impl Bot {
    /// What the operator calls it: the platform's name unless another was given.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.platform.as_str())
    }

    /// How its updates come.
    pub fn ingest(&self) -> Ingest {
        self.ingest.unwrap_or_default()
    }

    /// Keys that were given and mean nothing on its platform, with the one they are for.
    fn foreign_key(&self) -> Option<(&'static str, BotPlatform)> {
        let keys = [
            ("gateway_url", BotPlatform::Discord, self.gateway_url.is_some()),
            ("ingest", BotPlatform::Telegram, self.ingest.is_some()),
            ("greeting", BotPlatform::Telegram, self.greeting.is_some()),
        ];
        let mut foreign = keys.into_iter().filter(|(_, owner, given)| *given && *owner != self.platform);
        foreign.next().map(|(key, owner, _)| (key, owner))
    }
}

/// What people are told by the server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notices {
    /// Who is told that their agent is away.
    pub away: Away,
    /// How long a message waits before that.
    pub away_after: Duration,
    /// What they are told.
    pub away_text: String,
    /// What a place is told where the bot answers nobody; empty: nothing.
    pub hint: String,
}

impl Default for Notices {
    fn default() -> Self {
        let angelia_connector::Notices { away, away_after, away_text, hint } = Default::default();
        Self { away, away_after, away_text, hint: hint.unwrap_or_default() }
    }
}

/// The word for who is told of an absence.
pub(super) fn away_word(away: Away) -> &'static str {
    match away {
        Away::Dms => "dm",
        Away::All => "all",
        Away::Never => "never",
    }
}

/// The list of bots.
pub(super) const BOTS: List = List {
    section: "",
    name: "bots",
    fields: &[
        Field {
            name: "platform",
            required: Some("say where the bot is, \"discord\" or \"telegram\""),
            read: |config, given| {
                one_of(given, &BotPlatform::ALL, BotPlatform::as_str).map(|it| bot(config).platform = it)
            },
            show: |config, index| quoted(config.bots[index].platform.as_str()),
        },
        Field {
            name: "id",
            required: Some("events and routes name a bot by its user id, which the provider shows"),
            read: |config, given| user_id(given).map(|it| bot(config).id = it),
            show: |config, index| quoted(&config.bots[index].id),
        },
        Field {
            name: "token",
            required: Some(
                "the provider lets nobody in without one; write { env = \"NAME\" } or { file = \"PATH\" }",
            ),
            read: |config, given| given.secret().map(|it| bot(config).token = it),
            show: |config, index| bare(&config.bots[index].token),
        },
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
            show: |config, index| {
                let unset = Shown::Unset("the provider's own address is used");
                config.bots[index].api_url.as_ref().map_or(unset, quoted)
            },
        },
        Field {
            name: "gateway_url",
            required: None,
            read: |config, given| base_url(given, "wss", "ws").map(|it| bot(config).gateway_url = Some(it)),
            show: |config, index| match &config.bots[index] {
                Bot { gateway_url: Some(url), .. } => quoted(url),
                Bot { platform: BotPlatform::Discord, .. } => Shown::Unset("Discord's own address is used"),
                _ => Shown::Unset("it is for Discord"),
            },
        },
        Field {
            name: "ingest",
            required: None,
            read: |config, given| {
                one_of(given, &Ingest::ALL, Ingest::as_str).map(|it| bot(config).ingest = Some(it))
            },
            show: |config, index| match &config.bots[index] {
                Bot { platform: BotPlatform::Discord, .. } => Shown::Unset("it is for Telegram"),
                bot => quoted(bot.ingest().as_str()),
            },
        },
        Field {
            name: "greeting",
            required: None,
            read: |config, given| text_within(given, MAX_GREETING).map(|it| bot(config).greeting = Some(it)),
            show: |config, index| match &config.bots[index] {
                Bot { greeting: Some(text), .. } => quoted(text),
                Bot { platform: BotPlatform::Discord, .. } => Shown::Unset("it is for Telegram"),
                _ => Shown::Unset("/start is answered with a default text"),
            },
        },
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

/// Looks at the last bot as a whole, beside those before it.
fn check_last(bots: &[Bot]) -> Result<(), Problem> {
    let Some((last, before)) = bots.split_last() else { return Ok(()) };
    let bad = |key: &str, message: String| Err(Problem::BadValue { key: format!("bots.{key}"), message });
    let platform = last.platform.as_str();
    if let Some((key, owner)) = last.foreign_key() {
        return bad(
            key,
            format!("is for {} bots; leave it out of this one, which is on {platform}", owner.as_str()),
        );
    }
    let mut others = before.iter().filter(|other| other.platform == last.platform);
    if others.clone().any(|other| other.id == last.id) {
        return bad("id", format!("names the {platform} bot {} a second time; a bot has one entry", last.id));
    }
    if others.any(|other| other.name() == last.name()) {
        let message = format!(
            "is {:?} for two {platform} bots, and webhooks and commands tell bots apart by it; \
             write another one here, such as name = \"second\"",
            last.name()
        );
        return bad("name", message);
    }
    Ok(())
}

/// Telegram has to reach what it is told to post to. Looked at last: the
/// address may come from the environment.
pub(super) fn check_webhooks(bots: &[Bot], server: &Server) -> Result<(), Problem> {
    let url = server.public_url(server.listen);
    let parsed = url::Url::parse(&url).ok();
    let local = parsed.as_ref().is_some_and(is_this_machine);
    let reachable = !local && parsed.is_some_and(|url| url.scheme() == "https");
    // A Bot API server of one's own may be on this machine as well.
    let unreached = bots
        .iter()
        .find(|bot| bot.ingest() == Ingest::Webhook && !reachable && !(local && bot.api_url.is_some()));
    let Some(bot) = unreached else { return Ok(()) };
    let message = format!(
        "is \"webhook\" for {}, but Telegram cannot post to {url}: set server.public_url to the https:// \
         address it reaches this server at, or use ingest = \"poll\", which needs none",
        bot.name()
    );
    Err(Problem::BadValue { key: "bots.ingest".into(), message })
}

/// Who is told of an absence.
pub(super) fn away(given: &Given<'_>) -> Result<Away, Problem> {
    one_of(given, &[Away::Dms, Away::All, Away::Never], away_word)
}

/// What they are told.
pub(super) fn away_text(given: &Given<'_>) -> Result<String, Problem> {
    text_within(given, MAX_NOTICE)
}

/// A hint, or none.
pub(super) fn hint(given: &Given<'_>) -> Result<String, Problem> {
    match given.text()?.trim() {
        "" => Ok(String::new()),
        _ => text_within(given, MAX_NOTICE),
    }
}

/// One of a few words.
fn one_of<T: Copy>(given: &Given<'_>, all: &[T], word: impl Fn(T) -> &'static str) -> Result<T, Problem> {
    let text = given.text()?;
    all.iter().copied().find(|it| word(*it) == text).ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|it| format!("{:?}", word(*it))).collect();
        given.bad(format!("can be {}, not {text:?}", words.join(" or ")))
    })
}
