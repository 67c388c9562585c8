//! Why a gateway that dialled was turned away, and what to do about it. All it hears is 401 or 503: what
//! exactly is wrong is told to the operator, not to whoever knocks.

use super::Problem;
use crate::words::words;

words! {
    /// Why a gateway that dialled was turned away.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TurnedAway {
        /// It sent no token that could be read.
        NoToken = "no_token",
        /// No gateway has that id.
        UnknownGateway = "unknown_gateway",
        /// None of the gateway's secrets signed its token.
        WrongSecret = "wrong_secret",
        /// Its secret signed the token, and the token's time is far from ours.
        WrongClock = "wrong_clock",
        /// It was revoked.
        Revoked = "revoked",
        /// Another process keeps replacing it.
        TwoProcesses = "two_processes",
        /// It, its tenant or all together have too many connections.
        TooManySockets = "too_many_sockets",
        /// So many come at once that some are asked to come back in a moment.
        Herd = "herd",
    }
}

impl TurnedAway {
    /// What it means, and what to do about it.
    pub fn problem(self) -> Problem {
        let (means, cause, next) = match self {
            Self::NoToken => (
                "Something asked for the relay's socket and sent no token of a gateway.",
                "GATEWAY_RELAY_SECRET or GATEWAY_RELAY_ID is not set at the agent, or something else than an agent asks.",
                "give the agent the lines that angelia gateway create printed",
            ),
            Self::UnknownGateway => (
                "A gateway dialled with an id that nobody has here.",
                "A slip in GATEWAY_RELAY_ID, another server's id, or one that was revoked long ago.",
                "compare it with angelia gateway list; angelia gateway create --tenant {tenant} {gateway} makes it",
            ),
            Self::WrongSecret => (
                "The gateway is known, and none of its secrets signed its token.",
                "A slip in GATEWAY_RELAY_SECRET, or the secret was rotated and the old one has ended.",
                "give the agent a new secret: angelia gateway rotate --tenant {tenant} {gateway}",
            ),
            Self::WrongClock => (
                "The secret is right, and the time in the token is more than five minutes past, or more than a day ahead.",
                "The clock of the agent's machine is wrong, or this one's is.",
                "compare date -u on both machines; angelia status says whether this server's clock leapt",
            ),
            Self::Revoked => (
                "The gateway was revoked, and goes on dialling.",
                "Its process still runs with the old secret.",
                "stop the agent; if it is meant to come back, angelia gateway create makes another one",
            ),
            Self::TwoProcesses => (
                "Two processes use one gateway id and keep replacing each other, so both are kept out for a while.",
                "The agent was started twice, or its configuration was copied to another machine.",
                "stop one of them, or give it an id of its own: angelia gateway create --tenant {tenant}",
            ),
            Self::TooManySockets => (
                "There is no connection left for it: its own, its tenant's, or those of the whole server are taken.",
                "Connections that were not closed, or far more agents than one machine serves.",
                "angelia status shows how many sockets there are; angelia limits tells how many there may be",
            ),
            Self::Herd => (
                "So many gateways came at once that some were asked to come back in a few seconds.",
                "The server, a proxy or a network came back, and all agents with it.",
                "",
            ),
        };
        Problem { word: self.as_str(), means, cause, next }
    }
}
