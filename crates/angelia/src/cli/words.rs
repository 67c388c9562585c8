//! The words of the command line: nouns, then verbs.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Says whether the configuration is good, and everything that is wrong with it.
    Check,
    /// Prints the configuration in force; secrets appear as references.
    Print {
        /// Prints the commented default file instead.
        #[arg(long)]
        default: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum TenantCommand {
    /// Makes a tenant.
    Create {
        /// Its name.
        name: String,
    },
    /// Lists the tenants.
    List,
}

#[derive(Debug, Subcommand)]
pub(super) enum RouteCommand {
    /// Gives a place to a tenant, or to one of its gateways.
    #[command(after_help = "Example:\n  angelia route add --tenant acme --allow any webchat:lab")]
    Add {
        /// The place: platform:path, for example webchat:lab or webchat:*.
        place: String,
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
    },
    /// Lists the routes.
    List,
    /// Takes a place away again.
    Remove {
        /// The place.
        place: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum GatewayCommand {
    /// Makes an id and a secret for an agent, and prints the lines it needs.
    #[command(after_help = "Example:\n  angelia gateway create --tenant acme gw-office")]
    Create {
        /// The gateway id; made up if not given.
        id: Option<String>,
        /// Whose agent it is.
        #[arg(long, default_value = "default")]
        tenant: String,
        /// Where to poke it when it sleeps and something waits.
        #[arg(long, value_name = "URL")]
        wake_url: Option<String>,
    },
    /// Lists the gateways.
    List,
    /// Shows one gateway.
    Show(Named),
    /// Changes what a gateway cannot tell us itself.
    Set {
        #[command(flatten)]
        gateway: Named,
        /// Where to poke it when it sleeps and something waits; an empty one takes it away.
        #[arg(long, value_name = "URL")]
        wake_url: String,
    },
    /// Makes this gateway the one that receives what no route assigns to another.
    Default(Named),
    /// Makes a new secret; the old one stays good for 24 hours.
    Rotate(Named),
    /// Shuts a gateway out for good: it is told so, and does not come back by itself.
    Revoke(Named),
}

/// One gateway.
#[derive(Args, Debug)]
pub(super) struct Named {
    /// Its id.
    pub(super) id: String,
    /// Its tenant, where ids collide.
    #[arg(long)]
    pub(super) tenant: Option<String>,
}

#[derive(Args, Debug, Default)]
pub(super) struct Which {
    /// Only the inbox of this gateway.
    #[arg(long, value_name = "ID")]
    pub(super) gateway: Option<String>,
    /// The gateway's tenant, where ids collide.
    #[arg(long)]
    pub(super) tenant: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum InboxCommand {
    /// Lists what waits: a line per gateway, or dead letters.
    List {
        #[command(flatten)]
        which: Which,
        /// Lists dead letters: entries on which three connections ended.
        #[arg(long)]
        dead: bool,
    },
    /// Shows the entries of one gateway's inbox, or one entry; never their text.
    Show {
        /// The entry, such as b123.
        entry: Option<String>,
        #[command(flatten)]
        which: Which,
        /// Shows dead letters.
        #[arg(long)]
        dead: bool,
    },
    /// Puts dead letters back in line.
    Redrive {
        /// One entry; without it all dead letters.
        entry: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Throws dead letters away for good.
    Purge {
        /// One entry, dead or waiting; without it all dead letters.
        entry: Option<String>,
        #[command(flatten)]
        which: Which,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum WebchatCommand {
    /// Makes a personal key for somebody to write in a room.
    Invite {
        /// The room.
        #[arg(long)]
        room: String,
        /// The person's name in it.
        #[arg(long)]
        user: String,
        /// The gateway that answers in this room, if not the default one.
        #[arg(long, value_name = "ID")]
        gateway: Option<String>,
        /// The tenant the room belongs to.
        #[arg(long)]
        tenant: Option<String>,
    },
}
