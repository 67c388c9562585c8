//! What a credential is good for: asked of Discord, and told with the next step.

use super::Discord;
use super::ingest::wrong_id;
use super::parse::{GatewayBot, User};
use super::rest::Call;
use super::trouble::Trouble;
use crate::health::Checkup;
use serde::Deserialize;

/// Flags of an application: a privileged intent, unlimited and for small bots.
const PRESENCE: u64 = 1 << 12 | 1 << 13;
const MEMBERS: u64 = 1 << 14 | 1 << 15;
const MESSAGE_CONTENT: u64 = 1 << 18 | 1 << 19;

/// What the bot needs in a guild, as Discord's settings call it.
const NEEDED: [(u64, &str); 4] = [
    (1 << 10, "View Channels"),
    (1 << 11, "Send Messages"),
    (1 << 38, "Send Messages in Threads"),
    (1 << 16, "Read Message History"),
];
const ADMINISTRATOR: u64 = 1 << 3;

/// Guilds that are looked at: what one call gives.
const MAX_GUILDS: usize = 200;
/// Identifies below which an operator is warned.
const FEW_IDENTIFIES: u32 = 50;

#[derive(Deserialize)]
struct Application {
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct Membership {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    permissions: Option<String>,
}

impl Discord {
    /// Looks at everything a bot needs. Safe beside a running server: no session is begun.
    pub(super) async fn checkup(&self) -> Checkup {
        let mut checkup = Checkup::default();
        match self.rest.read::<User>(Call::get("users/@me")).await {
            Ok(me) => {
                let name = me.username.as_deref().unwrap_or("?");
                checkup.identity = Some(format!("{name} ({})", me.id));
                if me.id != self.own_id() {
                    checkup.bad(
                        wrong_id(self.own_id(), &me),
                        "write the id the token belongs to as the bot's id",
                    );
                    return checkup;
                }
                checkup.good(format!("the token is that of {name}"));
            }
            Err(Trouble::Unauthorized) => {
                checkup.bad(
                    "Discord does not accept the token",
                    "copy a new one from the developer portal: your application, Bot, Reset Token",
                );
                return checkup;
            }
            Err(trouble) => {
                checkup.bad(trouble.why(), "look whether this machine reaches discord.com, and try again");
                return checkup;
            }
        }
        self.check_intents(&mut checkup).await;
        self.check_guilds(&mut checkup).await;
        self.check_identifies(&mut checkup).await;
        checkup
    }

    async fn check_intents(&self, checkup: &mut Checkup) {
        match self.rest.read::<Application>(Call::get("applications/@me")).await {
            Ok(Application { flags }) => intents(flags, checkup),
            Err(trouble) => {
                checkup.limited(
                    format!("the intents could not be looked at: {}", trouble.why()),
                    "see in the developer portal under Bot that Message Content Intent is on",
                );
            }
        }
    }

    async fn check_guilds(&self, checkup: &mut Checkup) {
        let call = Call::get(format!("users/@me/guilds?limit={MAX_GUILDS}"));
        match self.rest.read::<Vec<Membership>>(call).await {
            Ok(guilds) => memberships(&guilds, self.own_id(), checkup),
            Err(trouble) => {
                checkup.limited(format!("the servers could not be looked at: {}", trouble.why()), "try again")
            }
        }
    }

    async fn check_identifies(&self, checkup: &mut Checkup) {
        match self.rest.read::<GatewayBot>(Call::get("gateway/bot")).await {
            Ok(GatewayBot { shards, session_start_limit: limit, .. }) => {
                let left = format!("{} of {} session starts left today", limit.remaining, limit.total);
                match limit.remaining {
                    0..FEW_IDENTIFIES => checkup.limited(
                        left,
                        "find out what restarts the bot so often; Discord resets the token of one that starts too often",
                    ),
                    _ => checkup.good(format!("{left}, {shards} shard(s)")),
                }
            }
            Err(trouble) => checkup
                .limited(format!("Discord does not tell where to connect: {}", trouble.why()), "try again"),
        }
    }
}

fn intents(flags: u64, checkup: &mut Checkup) {
    match flags & MESSAGE_CONTENT {
        0 => checkup.bad(
            "the bot may not read messages: the Message Content intent is off",
            "enable it in the developer portal: your application, Bot, Privileged Gateway Intents",
        ),
        _ => checkup.good("the bot may read messages (Message Content intent)"),
    }
    let also = [(PRESENCE, "presences"), (MEMBERS, "the lists of members")];
    let also: Vec<&str> = also.iter().filter(|(bits, _)| flags & bits != 0).map(|(_, what)| *what).collect();
    if !also.is_empty() {
        checkup.good(format!("the bot may also see {}, which nobody here needs", also.join(" and ")));
    }
}

fn memberships(guilds: &[Membership], own_id: &str, checkup: &mut Checkup) {
    if guilds.is_empty() {
        let invite = format!(
            "invite it: https://discord.com/oauth2/authorize?client_id={own_id}&scope=bot&permissions={}",
            NEEDED.iter().map(|(bit, _)| bit).sum::<u64>()
        );
        return checkup
            .limited("the bot is in no server; people can only write to it if they share one", invite);
    }
    let more = if guilds.len() == MAX_GUILDS { " or more" } else { "" };
    checkup.good(format!("the bot is in {}{more} server(s)", guilds.len()));
    for guild in guilds {
        let missing = missing(guild);
        if !missing.is_empty() {
            checkup.limited(
                format!("in {} ({}) the bot lacks {}", guild.name, guild.id, missing.join(", ")),
                "give them to the bot's role: Server Settings, Roles",
            );
        }
    }
}

/// What the bot lacks in a guild. Channels may still say otherwise.
fn missing(guild: &Membership) -> Vec<&'static str> {
    let permissions = guild.permissions.as_deref().and_then(|bits| bits.parse::<u64>().ok());
    match permissions {
        Some(held) if held & ADMINISTRATOR == 0 => {
            NEEDED.iter().filter(|(bit, _)| held & bit == 0).map(|(_, name)| *name).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Verdict;

    #[test]
    fn a_bot_without_the_message_content_intent_is_of_no_use() {
        let verdict = |flags| {
            let mut checkup = Checkup::default();
            intents(flags, &mut checkup);
            (checkup.is_usable(), checkup.findings.len())
        };
        assert_eq!(verdict(0), (false, 1));
        assert_eq!(verdict(1 << 18), (true, 1));
        assert_eq!(verdict(1 << 19 | 1 << 15), (true, 2));
    }

    #[test]
    fn what_is_missing_is_named_with_its_guild() {
        let guild = |permissions: u64| Membership {
            id: "900".into(),
            name: "ops".into(),
            permissions: Some(permissions.to_string()),
        };
        let all = NEEDED.iter().map(|(bit, _)| bit).sum::<u64>();
        let mut checkup = Checkup::default();
        memberships(&[guild(all), guild(ADMINISTRATOR), guild(all & !(1 << 38))], "77", &mut checkup);
        assert_eq!(checkup.findings.len(), 2);
        let limited = &checkup.findings[1];
        assert_eq!(limited.verdict, Verdict::Limited);
        assert_eq!(limited.what, "in ops (900) the bot lacks Send Messages in Threads");
        let mut checkup = Checkup::default();
        memberships(&[], "77", &mut checkup);
        assert!(
            checkup.findings[0]
                .next
                .as_ref()
                .unwrap()
                .contains("client_id=77&scope=bot&permissions=274877975552")
        );
    }
}
