//! `angelia route`: which place belongs to whom.

use super::answer::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_core::error::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub(super) enum RouteCommand {
    /// Gives a place to a tenant, or to one of its gateways.
    ///
    /// Who may speak there commands the agent. In a private chat that is the
    /// person themselves; anywhere else --allow has to say it.
    ///
    /// Places are written with the provider's ids:
    ///   discord:SERVER           a server, with all its channels and threads
    ///   discord:SERVER/CHANNEL   one channel of it, with its threads
    ///   discord:dm:USER          somebody's direct messages with the bot
    ///   telegram:CHAT            a chat: digits for a person, -digits for a group or channel
    ///   webchat:ROOM             a room of the web chat
    ///   PLATFORM:*               everywhere else on a platform
    /// The closest one counts. To find an id, write to the bot there and see
    /// angelia route list --unrouted; Discord also has Copy ID in its menus,
    /// once Developer Mode is on.
    #[command(verbatim_doc_comment)]
    #[command(after_help = "Examples:\n  angelia route add --tenant acme --allow any webchat:lab\n  \
        angelia route add --tenant acme --gateway gw-office --allow 81,82 discord:4711/4712\n  \
        angelia route add --tenant acme telegram:81\n  \
        angelia route add --tenant acme --allow any --free telegram:-1001234567890")]
    Add {
        /// The place: platform:path, for example discord:4711/4712 or webchat:*.
        place: String,
        #[command(flatten)]
        terms: Terms,
        /// Only messages to this bot; without it those to any.
        #[arg(long, value_name = "ID")]
        bot: Option<String>,
    },
    /// Lists the routes.
    #[command(after_help = "Examples:\n  angelia route list\n  angelia route list --unrouted")]
    List {
        /// Lists places where somebody wrote and that belong to nobody.
        #[arg(long)]
        unrouted: bool,
    },
    /// Makes a code that gives away the place where it is typed, once.
    ///
    /// For places whose id nobody knows by heart: tell the code to somebody who
    /// is there. Without --allow only whoever types it may speak there.
    #[command(after_help = "Example:\n  angelia route code --tenant acme")]
    Code(Terms),
    /// Takes a place away again.
    #[command(after_help = "Example:\n  angelia route remove webchat:lab")]
    Remove {
        /// The place.
        place: String,
        /// The route of this bot, where it has one of its own.
        #[arg(long, value_name = "ID")]
        bot: Option<String>,
    },
}

/// Whose place it becomes, and who may speak there.
#[derive(Args, Debug)]
pub(super) struct Terms {
    /// Whose place it is.
    #[arg(long)]
    tenant: String,
    /// The gateway that answers there, if not the tenant's default.
    #[arg(long, value_name = "ID")]
    gateway: Option<String>,
    /// Who may speak there: user ids, or the word any.
    #[arg(long, value_name = "any|ID,…", value_delimiter = ',')]
    allow: Vec<String>,
    /// Delivers messages that do not address the bot too.
    #[arg(long)]
    free: bool,
}

impl Terms {
    fn body(self) -> Value {
        let mut body = json!({ "tenant": self.tenant, "free": self.free });
        if let Some(gateway) = self.gateway {
            body["gateway"] = gateway.into();
        }
        if !self.allow.is_empty() {
            body["allow"] = self.allow.into();
        }
        body
    }
}

pub(super) async fn ask(remote: &Remote, command: RouteCommand) -> Result<Answer> {
    let named = |mut body: Value, place: String, bot: Option<String>| {
        body["place"] = place.into();
        if let Some(bot) = bot {
            body["bot"] = bot.into();
        }
        body
    };
    Ok(match command {
        RouteCommand::Add { place, terms, bot } => {
            let body = named(terms.body(), place, bot);
            Answer::new(remote.post("/admin/routes", &body).await?, show::added_route)
        }
        RouteCommand::List { unrouted: false } => {
            Answer::new(remote.get("/admin/routes").await?, show::routes)
        }
        RouteCommand::List { unrouted: true } => {
            Answer::new(remote.get("/admin/routes/unrouted").await?, show::unrouted)
        }
        RouteCommand::Code(terms) => {
            Answer::new(remote.post("/admin/routes/codes", &terms.body()).await?, show::route_code)
        }
        RouteCommand::Remove { place, bot } => {
            let body = named(json!({}), place, bot);
            Answer::new(remote.post("/admin/routes/remove", &body).await?, show::removed_route)
        }
    })
}
