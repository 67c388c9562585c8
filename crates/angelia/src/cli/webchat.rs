//! `angelia webchat`: people in the built-in web chat.

use super::answer::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_core::error::Result;
use clap::Subcommand;
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub(super) enum WebchatCommand {
    /// Makes a personal key for somebody to write to an agent.
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
}

pub(super) async fn ask(remote: &Remote, command: WebchatCommand) -> Result<Answer> {
    let WebchatCommand::Invite { room, user, gateway, tenant } = command;
    let mut body = json!({ "user": user });
    for (name, value) in [("room", room), ("gateway", gateway), ("tenant", tenant)] {
        if let Some(value) = value {
            body[name] = Value::from(value);
        }
    }
    Ok(Answer::new(remote.post("/admin/webchat/invites", &body).await?, show::invitation))
}
