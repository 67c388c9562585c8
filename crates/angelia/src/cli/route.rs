//! `angelia route`: which place belongs to whom.

use super::gateway::while_busy;
use super::request::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::{AddRoute, MakeCode, Nothing, RemoveRoute};
use angelia_core::admission::{Approve, Context, Threads};
use angelia_core::error::Result;
use angelia_core::turns::WhileBusy;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

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
        /// What becomes of messages while the agent is busy; without it, what its gateway says.
        #[arg(long, value_name = "MODE", value_parser = while_busy())]
        while_busy: Option<WhileBusy>,
        /// Who gives the agent leave, where it asks with buttons: turn, the person in whose turn it
        /// asks; any, everybody who may speak there.
        #[arg(long, value_name = "turn|any", value_parser = approve())]
        approve: Option<Approve>,
        /// What the agent gets to know of what was not said to it, with the next thing that is: so
        /// many lines of those who may speak there; any, those of everybody there; off, none, and
        /// nothing of what a reply refers to. 20 if not said.
        #[arg(long, value_name = "N|off|any[,N]")]
        context: Option<Context>,
        /// Whether each conversation in a shared place gets a thread of its own: auto, where the bot
        /// may open one (a thread on Discord, a topic on Telegram); off, which is what holds otherwise.
        #[arg(long, value_name = "auto|off", value_parser = threads())]
        threads: Option<Threads>,
        /// Takes the place of the route that is there, without a moment in which there is none.
        #[arg(long)]
        replace: bool,
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
    /// Who was named; nothing if nobody was.
    fn allow(&self) -> Option<Vec<String>> {
        Some(self.allow.clone()).filter(|people| !people.is_empty())
    }
}

/// Who may approve, as an option.
fn approve() -> impl TypedValueParser<Value = Approve> {
    PossibleValuesParser::new(["turn", "any"])
        .map(|word| if word == "any" { Approve::Any } else { Approve::Turn })
}

/// Whether conversations get threads, as an option.
fn threads() -> impl TypedValueParser<Value = Threads> {
    PossibleValuesParser::new(["auto", "off"])
        .map(|word| if word == "auto" { Threads::Auto } else { Threads::Off })
}

pub(super) async fn ask(remote: &Remote, command: RouteCommand) -> Result<Answer> {
    match command {
        RouteCommand::Add { place, terms, bot, while_busy, approve, context, threads, replace } => {
            let allow = terms.allow();
            let Terms { tenant, gateway, free, .. } = terms;
            let route = AddRoute {
                place,
                tenant,
                bot,
                gateway,
                allow,
                free,
                while_busy,
                approve,
                context,
                threads,
                replace,
            };
            Answer::of(remote, api::ADD_ROUTE.ask(&route), show::added_route).await
        }
        RouteCommand::List { unrouted: false } => {
            Answer::of(remote, api::ROUTES.ask(&Nothing {}), show::routes).await
        }
        RouteCommand::List { unrouted: true } => {
            Answer::of(remote, api::UNROUTED.ask(&Nothing {}), show::unrouted).await
        }
        RouteCommand::Code(terms) => {
            let allow = terms.allow();
            let Terms { tenant, gateway, free, .. } = terms;
            let code = MakeCode { tenant, gateway, allow, free };
            Answer::of(remote, api::MAKE_CODE.ask(&code), show::route_code).await
        }
        RouteCommand::Remove { place, bot } => {
            let route = RemoveRoute { place, bot };
            Answer::of(remote, api::REMOVE_ROUTE.ask(&route), show::removed_route).await
        }
    }
}
