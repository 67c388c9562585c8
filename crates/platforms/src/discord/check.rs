//! What a credential is good for: asked of Discord, and told with the next step.

use super::api::Call;
use super::api_error::ApiError;
use super::ingest::wrong_id;
use super::parse::{GatewayBot, User};
use super::{Discord, NAME};
use crate::health::Checkup;
use crate::kit::webhook::path;
use angelia_core::commands::{Command, Shown};
use serde::Deserialize;
use std::fmt::Display;

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
/// What it can do without, and shows marks with.
const ADD_REACTIONS: u64 = 1 << 6;
const ADMINISTRATOR: u64 = 1 << 3;

/// Guilds that are looked at: what one call gives.
const MAX_GUILDS: usize = 200;
/// Identifies below which an operator is warned.
const FEW_IDENTIFIES: u32 = 50;

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
    pub(super) async fn checkup(&self, public_url: &str) -> Checkup {
        let mut checkup = Checkup::default();
        match self.api.read::<User>(Call::get("users/@me")).await {
            Ok(me) => {
                let name = me.username.as_deref().unwrap_or("?");
                checkup.identity = Some(format!("{name} ({})", me.id.0));
                if me.id.0 != self.own_id() {
                    checkup.bad(
                        wrong_id(self.own_id(), &me),
                        "write the id the token belongs to as the bot's id",
                    );
                    return checkup;
                }
                checkup.good(format!("the token is that of {name}"));
            }
            Err(ApiError::Unauthorized) => {
                checkup.bad(
                    "Discord does not accept the token",
                    "copy a new one from the developer portal: your application, Bot, Reset Token",
                );
                return checkup;
            }
            Err(failure) => {
                checkup.bad(failure.why(), "look whether this machine reaches discord.com, and try again");
                return checkup;
            }
        }
        self.check_application(public_url, &mut checkup).await;
        self.check_guilds(&mut checkup).await;
        self.check_identifies(&mut checkup).await;
        checkup
    }

    async fn check_application(&self, public_url: &str, checkup: &mut Checkup) {
        match self.application().await {
            Ok(application) => {
                intents(application.flags, checkup);
                let set = application.interactions_endpoint_url.as_deref().filter(|url| !url.is_empty());
                // Without a key none are taken over HTTP.
                let path = self.public_key.as_ref().map(|_| path(NAME, &self.config.name));
                endpoint(set, path.as_deref(), public_url, checkup);
            }
            Err(failure) => {
                checkup.limited(
                    format!("the application could not be looked at: {}", failure.why()),
                    "see in the developer portal under Bot that Message Content Intent is on",
                );
            }
        }
        match self.registered_commands().await {
            Ok(shown) => commands(&typed(shown), &self.config.commands, &self.config.name, checkup),
            Err(error) => not_looked_at("commands", error, checkup),
        }
    }

    async fn check_guilds(&self, checkup: &mut Checkup) {
        let call = Call::get(format!("users/@me/guilds?limit={MAX_GUILDS}"));
        match self.api.read::<Vec<Membership>>(call).await {
            Ok(guilds) => memberships(&guilds, self.own_id(), checkup),
            Err(failure) => not_looked_at("servers", failure.why(), checkup),
        }
    }

    async fn check_identifies(&self, checkup: &mut Checkup) {
        match self.api.read::<GatewayBot>(Call::get("gateway/bot")).await {
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
            Err(failure) => checkup
                .limited(format!("Discord does not tell where to connect: {}", failure.why()), "try again"),
        }
    }
}

fn not_looked_at(what: &str, why: impl Display, checkup: &mut Checkup) {
    checkup.limited(format!("the {what} could not be looked at: {why}"), "try again");
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

/// Whether interactions come to where they are taken: `set` is where Discord posts
/// them, `path` where they are taken over HTTP.
fn endpoint(set: Option<&str>, path: Option<&str>, public_url: &str, checkup: &mut Checkup) {
    let own = |path: &str| format!("{}{path}", public_url.trim_end_matches('/'));
    match (set, path) {
        (None, None) => checkup.good("interactions come over the gateway"),
        (None, Some(path)) => checkup.limited(
            "`public_key` is set, and Discord still sends interactions over the gateway",
            format!(
                "that works too; to have them posted, enter {} in the developer portal under General Information \
                 as Interactions Endpoint URL while the server runs",
                own(path)
            ),
        ),
        (Some(set), None) => checkup.bad(
            format!("Discord posts interactions to {set}, and no `public_key` is configured to take them"),
            "set `public_key` (developer portal, General Information), or clear the Interactions Endpoint URL there",
        ),
        (Some(set), Some(path)) if set == own(path) => {
            checkup.good(format!("Discord posts interactions to {set}"));
        }
        (Some(set), Some(path)) => checkup.bad(
            format!("Discord posts interactions to {set}, and they are taken at {}", own(path)),
            "correct the Interactions Endpoint URL in the developer portal, or `server.public_url` here",
        ),
    }
}

/// Those that people type.
fn typed(shown: Vec<Shown>) -> Vec<Command> {
    shown.into_iter().filter_map(|it| it.command).collect()
}

/// Whether Discord shows the commands that are configured.
fn commands(shown: &[Command], wanted: &[Command], name: &str, checkup: &mut Checkup) {
    let missing = wanted.iter().filter(|wanted| shown.iter().all(|shown| shown.name != wanted.name));
    let missing: Vec<&str> = missing.map(|command| command.name.as_str()).collect();
    let next = format!("run: angelia bot commands push {name}");
    match (shown.len(), missing.is_empty()) {
        (0, false) => checkup.limited("no slash commands are registered", next),
        (_, false) => checkup.limited(format!("Discord does not show /{}", missing.join(", /")), next),
        (0, true) => checkup.good("there are no slash commands, and none are configured"),
        (count, true) => checkup.good(format!("{count} slash command(s) are registered")),
    }
}

fn memberships(guilds: &[Membership], own_id: &str, checkup: &mut Checkup) {
    if guilds.is_empty() {
        let invite = format!(
            "invite it: https://discord.com/oauth2/authorize?client_id={own_id}&scope=bot&permissions={}",
            NEEDED.iter().map(|(bit, _)| bit).sum::<u64>() | ADD_REACTIONS
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
    fn interactions_have_to_come_where_they_are_taken() {
        let verdict = |set: Option<&str>, key: bool, public_url: &str| {
            let mut checkup = Checkup::default();
            endpoint(set, key.then_some("/webhooks/discord/main"), public_url, &mut checkup);
            checkup.findings.remove(0).verdict
        };
        let here = Some("https://a.example/webhooks/discord/main");
        let a = "https://a.example";
        assert_eq!(verdict(None, false, a), Verdict::Good);
        assert_eq!(verdict(None, true, a), Verdict::Limited);
        assert_eq!(verdict(here, false, a), Verdict::Bad);
        assert_eq!(verdict(here, true, "https://a.example/"), Verdict::Good);
        assert_eq!(verdict(here, true, "https://b.example"), Verdict::Bad);
        assert_eq!(verdict(Some("https://a.example/webhooks/discord/other"), true, a), Verdict::Bad);
    }

    #[test]
    fn missing_commands_are_named() {
        let found = |shown: &[&str], wanted: &[&str]| {
            let mut checkup = Checkup::default();
            let named = |names: &[&str]| -> Vec<Command> {
                let one = |name: &&str| Command { name: name.to_string(), ..Command::default() };
                names.iter().map(one).collect()
            };
            commands(&named(shown), &named(wanted), "main", &mut checkup);
            checkup.findings.remove(0)
        };
        assert_eq!(found(&["ask", "x"], &["ask"]).verdict, Verdict::Good);
        assert_eq!(found(&[], &[]).verdict, Verdict::Good);
        assert_eq!(found(&[], &["ask"]).verdict, Verdict::Limited);
        let some = found(&["ask"], &["ask", "new", "stop"]);
        assert_eq!(some.what, "Discord does not show /new, /stop");
        assert!(some.next.unwrap().ends_with("commands push main"));
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
                .contains("client_id=77&scope=bot&permissions=274877975616")
        );
    }
}
