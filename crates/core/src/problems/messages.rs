//! Why a message reached nobody, and what to do about it.

use super::Problem;
use crate::admission::DropReason;

impl DropReason {
    /// What it means, and what to do about it.
    pub fn problem(self) -> Problem {
        let (means, cause, next) = match self {
            Self::NoRoute => (
                "Somebody wrote where no route leads, so no agent was given it.",
                "The place is new, or belongs to nobody yet.",
                "give it to a tenant: angelia route add --tenant {tenant} --allow any {place} (or --allow {author} \
                 for that person alone); angelia route list --unrouted shows all such places",
            ),
            Self::AuthorNotAllowed => (
                "The place has a route, and the route does not let this person speak to the agent.",
                "They are not among those that --allow names.",
                "let them in: angelia route list shows who may speak there; make the route again, with their id \
                 among those: angelia route add --replace --tenant {tenant} --allow {author},… {place}",
            ),
            Self::NoInstance => (
                "The place has a route, and there is no gateway left behind it.",
                "The gateway that answered there was revoked, and its tenant has no other one to take over.",
                "give the tenant a gateway: angelia gateway create --tenant {tenant}, or name one of its own: \
                 angelia gateway default GATEWAY",
            ),
            Self::BotNotAllowed => (
                "Another bot wrote it, and the agent does not listen to bots.",
                "Two bots that answer each other never stop, so bots are not heard.",
                "where it is meant to hear them, its gateway says so with allowOtherBots in its policy",
            ),
            Self::NotAddressed => (
                "It was said among people, and not to the bot.",
                "In a group the bot is mentioned, replied to, or given a command.",
                "to have every message there delivered, make the route with --free: angelia route add --replace \
                 --tenant {tenant} --free --allow any {place}",
            ),
            Self::Consumed => (
                "It was for the server itself, which has answered it.",
                "Somebody typed /link and a code, or another command of the server's own.",
                "",
            ),
            Self::Keyword => (
                "It was for the telephone network: STOP, START or HELP.",
                "The network acts on these words by itself, and an agent must not answer them.",
                "",
            ),
            Self::InboxFull => (
                "More waits for the agent than is kept, so it was refused, and whoever sent it was told.",
                "The agent has been away for long, or is slower than people write.",
                "see what waits and why: angelia inbox list; angelia gateway list shows who is away",
            ),
        };
        Problem { word: self.as_str(), means, cause, next }
    }
}
