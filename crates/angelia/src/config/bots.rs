//! `[[bots]]`: the identities on chat platforms that the server holds, and
//! `[notices]`: what people are told by the server itself.

use super::fault::Problem;
use super::raw::Given;
use super::values::{is_this_machine, text_within};
use super::{SecretRef, Server};
use angelia_connector::Away;
use angelia_core::inbox::Rendering;
use angelia_platforms::discord::{self, Command};
use std::time::Duration;

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
    /// SMS through Twilio.
    Sms,
    /// WeCom.
    Wecom,
}

impl BotPlatform {
    pub(super) const ALL: [Self; 4] = [Self::Discord, Self::Telegram, Self::Sms, Self::Wecom];

    /// The word in the configuration, in places and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discord => "discord",
            Self::Telegram => "telegram",
            Self::Sms => "sms",
            Self::Wecom => "wecom",
        }
    }

    /// What to write as the id of a bot there.
    fn id_form(self) -> &'static str {
        match self {
            Self::Discord => "the application id, digits only",
            Self::Telegram => "what stands before the colon of the token, digits only",
            Self::Sms => "the phone number with its country code, such as \"+15550100\"",
            Self::Wecom => "the company's id and the app's number, such as \"ww0123456789abcdef/1000002\"",
        }
    }

    /// Whether a bot there can have this id.
    pub(super) fn takes_id(self, id: &str) -> bool {
        let is_number = |text: &str| text.parse::<u64>().is_ok_and(|it| it > 0 && it.to_string() == text);
        match self {
            Self::Discord | Self::Telegram => is_number(id),
            Self::Sms => {
                id.strip_prefix('+').is_some_and(|rest| (5..=15).contains(&rest.len()) && is_number(rest))
            }
            Self::Wecom => id.split_once('/').is_some_and(|(corp, agent)| {
                (1..=64).contains(&corp.len())
                    && corp.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
                    && is_number(agent)
            }),
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
    pub(super) const ALL: [Self; 2] = [Self::Poll, Self::Webhook];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Webhook => "webhook",
        }
    }
}

/// The word for how interactions go to gateways.
pub(super) fn rendering_word(rendering: Rendering) -> &'static str {
    match rendering {
        Rendering::Auto => "auto",
        Rendering::Passthrough => "passthrough",
        Rendering::Event => "event",
    }
}

/// One bot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bot {
    /// Where it is.
    pub platform: BotPlatform,
    /// Its id there.
    pub id: String,
    /// What the operator calls it, if that was given; see [`Bot::name`].
    pub name: Option<String>,
    /// Another address than the provider's: scheme, host and port.
    pub api_url: Option<String>,
    /// Where the token of a Discord or Telegram bot is kept.
    pub token: Option<SecretRef>,
    /// Another address than Discord's for the gateway.
    pub gateway_url: Option<String>,
    /// The key Discord signs interactions with.
    pub public_key: Option<String>,
    /// How Discord's interactions go to gateways, if that was given; see [`Bot::interactions`].
    pub interactions: Option<Rendering>,
    /// Discord's slash commands, if they were given; see [`Bot::commands`].
    pub commands: Option<Vec<Command>>,
    /// How Telegram's updates come, if that was given; see [`Bot::ingest`].
    pub ingest: Option<Ingest>,
    /// What Telegram's `/start` is answered with, if not the default.
    pub greeting: Option<String>,
    /// Twilio's account.
    pub account_sid: Option<String>,
    /// Where the auth token of that account is kept.
    pub auth_token: Option<SecretRef>,
    /// The id of the key that signs Twilio's webhooks instead of the auth token.
    pub signing_key: Option<String>,
    /// Where that key is kept.
    pub signing_secret: Option<SecretRef>,
    /// Where the secret of a WeCom app is kept.
    pub secret: Option<SecretRef>,
    /// Where the token of its callbacks is kept.
    pub callback_token: Option<SecretRef>,
    /// Where the key of its callbacks is kept.
    pub encoding_aes_key: Option<SecretRef>,
}

/// A key of one platform's, or a few's.
struct Owned {
    key: &'static str,
    owners: &'static [BotPlatform],
    given: fn(&Bot) -> bool,
    /// Why those have to have it.
    required: Option<&'static str>,
}

const A_SECRET: &str = "write { env = \"NAME\" } or { file = \"PATH\" }";

/// Every key that is not for all platforms.
const OWNED: [Owned; 14] = {
    use BotPlatform::{Discord, Sms, Telegram, Wecom};
    const fn owned(
        key: &'static str,
        owners: &'static [BotPlatform],
        given: fn(&Bot) -> bool,
        required: Option<&'static str>,
    ) -> Owned {
        Owned { key, owners, given, required }
    }
    [
        owned(
            "token",
            &[Discord, Telegram],
            |bot| bot.token.is_some(),
            Some("the provider lets nobody in without one"),
        ),
        owned("gateway_url", &[Discord], |bot| bot.gateway_url.is_some(), None),
        owned("public_key", &[Discord], |bot| bot.public_key.is_some(), None),
        owned("interactions", &[Discord], |bot| bot.interactions.is_some(), None),
        owned("commands", &[Discord], |bot| bot.commands.is_some(), None),
        owned("ingest", &[Telegram], |bot| bot.ingest.is_some(), None),
        owned("greeting", &[Telegram], |bot| bot.greeting.is_some(), None),
        owned(
            "account_sid",
            &[Sms],
            |bot| bot.account_sid.is_some(),
            Some("Twilio asks for it with every message; it begins with AC"),
        ),
        owned(
            "auth_token",
            &[Sms],
            |bot| bot.auth_token.is_some(),
            Some("it opens Twilio's API and signs its webhooks"),
        ),
        owned("signing_key", &[Sms], |bot| bot.signing_key.is_some(), None),
        owned("signing_secret", &[Sms], |bot| bot.signing_secret.is_some(), None),
        owned("secret", &[Wecom], |bot| bot.secret.is_some(), Some("WeCom gives access tokens for it")),
        owned(
            "callback_token",
            &[Wecom],
            |bot| bot.callback_token.is_some(),
            Some("it signs WeCom's callbacks"),
        ),
        owned(
            "encoding_aes_key",
            &[Wecom],
            |bot| bot.encoding_aes_key.is_some(),
            Some("it encrypts WeCom's callbacks"),
        ),
    ]
};

impl Bot {
    /// What the operator calls it: the platform's name unless another was given.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.platform.as_str())
    }

    /// How its updates come.
    pub fn ingest(&self) -> Ingest {
        self.ingest.unwrap_or_default()
    }

    /// How its interactions go to gateways.
    pub fn interactions(&self) -> Rendering {
        self.interactions.unwrap_or_default()
    }

    /// Its slash commands.
    pub fn commands(&self) -> Vec<Command> {
        self.commands.clone().unwrap_or_else(discord::default_commands)
    }

    /// Where all its secrets are kept.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        let Self { token, auth_token, signing_secret, secret, callback_token, encoding_aes_key, .. } = self;
        [token, auth_token, signing_secret, secret, callback_token, encoding_aes_key].into_iter().flatten()
    }

    /// Whether its provider posts to this server.
    fn is_posted_to(&self) -> bool {
        match self.platform {
            BotPlatform::Discord => self.public_key.is_some(),
            BotPlatform::Telegram => self.ingest() == Ingest::Webhook,
            BotPlatform::Sms | BotPlatform::Wecom => true,
        }
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
    /// What somebody is told whose command or press nobody has answered.
    pub unanswered_text: String,
    /// What a chat is told of which messages were dropped because too much waited.
    pub lost_text: String,
    /// What a place is told where the bot answers nobody; empty: nothing.
    pub hint: String,
}

impl Default for Notices {
    fn default() -> Self {
        let angelia_connector::Notices { away, away_after, away_text, unanswered_text, lost_text, hint } =
            Default::default();
        Self { away, away_after, away_text, unanswered_text, lost_text, hint: hint.unwrap_or_default() }
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

/// Looks at the last bot as a whole, beside those before it.
pub(super) fn check_last(bots: &[Bot]) -> Result<(), Problem> {
    let Some((last, before)) = bots.split_last() else { return Ok(()) };
    let bad = |key: &str, message: String| Err(Problem::BadValue { key: format!("bots.{key}"), message });
    let platform = last.platform.as_str();
    for Owned { key, owners, given, required } in &OWNED {
        match (owners.contains(&last.platform), given(last), required) {
            (false, true, _) => {
                let owners: Vec<&str> = owners.iter().map(|owner| owner.as_str()).collect();
                let owners = owners.join(" and ");
                return bad(
                    key,
                    format!("is for {owners} bots; leave it out of this one, which is on {platform}"),
                );
            }
            (true, false, Some(why)) => {
                let how = if *key == "account_sid" { "" } else { A_SECRET };
                let message = format!("is missing for a bot on {platform}: {why}; {how}");
                return bad(key, message.trim_end_matches("; ").to_owned());
            }
            _ => {}
        }
    }
    if !last.id.is_empty() && !last.platform.takes_id(&last.id) {
        return bad("id", format!("is not one of a bot on {platform}: write {}", last.platform.id_form()));
    }
    if last.signing_key.is_some() != last.signing_secret.is_some() {
        return bad("signing_key", "and signing_secret go together: write both, or neither".into());
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

/// Providers have to reach what they are told to post to. Looked at last: the
/// address may come from the environment.
pub(super) fn check_webhooks(bots: &[Bot], server: &Server) -> Result<(), Problem> {
    let url = server.public_url(server.listen);
    let parsed = url::Url::parse(&url).ok();
    let local = parsed.as_ref().is_some_and(is_this_machine);
    let reachable = !local && parsed.is_some_and(|url| url.scheme() == "https");
    // A provider's stand-in of one's own may be on this machine as well.
    let unreached =
        bots.iter().find(|bot| bot.is_posted_to() && !reachable && !(local && bot.api_url.is_some()));
    let Some(bot) = unreached else { return Ok(()) };
    let address = "set server.public_url to the https:// address it reaches this server at";
    let (key, message) = match bot.platform {
        BotPlatform::Telegram => (
            "ingest",
            format!(
                "is \"webhook\" for {}, but Telegram cannot post to {url}: {address}, or use ingest = \"poll\", \
                 which needs none",
                bot.name()
            ),
        ),
        BotPlatform::Discord => (
            "public_key",
            format!(
                "is set for {}, but Discord cannot post to {url}: {address}, or leave the key out: interactions \
                 then come over the bot's own connection",
                bot.name()
            ),
        ),
        BotPlatform::Sms => ("platform", format!("is \"sms\", but Twilio cannot post to {url}: {address}")),
        BotPlatform::Wecom => {
            ("platform", format!("is \"wecom\", but WeCom cannot post to {url}: {address}"))
        }
    };
    Err(Problem::BadValue { key: format!("bots.{key}"), message })
}

/// Who is told of an absence.
pub(super) fn away(given: &Given<'_>) -> Result<Away, Problem> {
    one_of(given, &[Away::Dms, Away::All, Away::Never], away_word)
}

/// What somebody is told.
pub(super) fn notice_text(given: &Given<'_>) -> Result<String, Problem> {
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
pub(super) fn one_of<T: Copy>(
    given: &Given<'_>,
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<T, Problem> {
    let text = given.text()?;
    all.iter().copied().find(|it| word(*it) == text).ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|it| format!("{:?}", word(*it))).collect();
        given.bad(format!("can be {}, not {text:?}", words.join(" or ")))
    })
}
