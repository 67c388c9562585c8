//! `angelia webchat`: people in the built-in web chat.

use super::request::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::{Invite, OfRoom, RevokePerson};
use angelia_core::error::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum WebchatCommand {
    /// Makes a personal link for somebody to chat with an agent.
    ///
    /// The link signs in whoever opens it, on each of their devices, until it is
    /// revoked. Send it to that person only.
    ///
    /// With --room in a room that others may be in too; without it in a private
    /// chat with the agent.
    ///
    /// With --gateway or --tenant it also makes a route for the room, if it has none:
    /// everybody who is invited there may speak to the agent (--allow any), and the
    /// agent gets all they write (--free). The route of a private chat is for its
    /// person. To let in fewer, make the route with route add, and invite without
    /// --gateway and --tenant.
    #[command(after_help = "Examples:\n  angelia webchat invite --room kitchen --user ann\n  \
        angelia webchat invite --user ann --gateway gw-office")]
    Invite {
        /// The room; without it a private chat.
        #[arg(long)]
        room: Option<String>,
        /// The person's name in it.
        #[arg(long)]
        user: String,
        /// The gateway that answers there, if not the default one.
        #[arg(long, value_name = "ID")]
        gateway: Option<String>,
        /// The tenant the room belongs to.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Shows who may come into which room.
    #[command(after_help = "Examples:\n  angelia webchat list\n  angelia webchat list --room kitchen")]
    List {
        /// This room only.
        #[arg(long)]
        room: Option<String>,
    },
    /// Makes all links of a person for a room void, at once.
    ///
    /// What they wrote stays. Without --room it is their private chat.
    #[command(after_help = "Examples:\n  angelia webchat revoke --room kitchen --user ann\n  \
        angelia webchat revoke --user ann")]
    Revoke {
        /// The room; without it their private chat.
        #[arg(long)]
        room: Option<String>,
        /// The person's name in it.
        #[arg(long)]
        user: String,
    },
}

pub(super) async fn ask(remote: &Remote, command: WebchatCommand) -> Result<Answer> {
    match command {
        WebchatCommand::Invite { room, user, gateway, tenant } => {
            let invite = Invite { user, room, gateway, tenant };
            Answer::of(remote, api::INVITE.ask(&invite), show::invitation).await
        }
        WebchatCommand::List { room } => {
            Answer::of(remote, api::PEOPLE.ask(&OfRoom { room }), show::people).await
        }
        WebchatCommand::Revoke { room, user } => {
            let person = RevokePerson { user, room };
            Answer::of(remote, api::REVOKE_PERSON.ask(&person), show::revoked_person).await
        }
    }
}
