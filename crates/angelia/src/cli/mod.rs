//! The command line.

mod backup;
mod bot;
mod bot_commands;
mod client;
mod cluster;
mod gateway;
mod inbox;
mod key;
mod manual;
mod messages;
mod migrate;
mod problems;
mod request;
mod route;
mod tenant;
mod watch;
mod webchat;

use crate::config::{self, Config, LogFormat, StoreUrl};
use crate::contract_cli::{self, ContractCommand};
use crate::elsewhere::Elsewhere;
use crate::remote::Remote;
use crate::tls::Certificate;
use crate::{demo, limits, serve, show};
use angelia_core::clock::wall;
use angelia_core::error::{Error, Result};
use angelia_engines::store::postgres::{self, DatabaseUrl};
use bot::BotCommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use client::{ClientCommand, EnrollToken};
use cluster::ClusterCommand;
use gateway::GatewayCommand;
use inbox::InboxCommand;
use key::{AdminTokenCommand, AuditCommand, ClockCommand, KeyCommand};
use migrate::Migrate;
use route::RouteCommand;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenant::TenantCommand;
use webchat::WebchatCommand;

/// Connects people on chat platforms to AI agents that dial in.
///
/// Try it without any account:  angelia demo
#[derive(Debug, Parser)]
#[command(name = "angelia", version, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 server unreachable.")]
pub struct Cli {
    /// The configuration file; without it angelia.toml here, or the defaults.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Answers in JSON, for scripts.
    #[arg(long, global = true)]
    json: bool,
    /// Asks the server whose admin API is there, such as http://127.0.0.1:8788, instead of the
    /// one of the data directory; any node of a cluster answers. The token comes from
    /// --token-file, or from the environment variable ANGELIA_ADMIN_TOKEN.
    #[arg(long, global = true, value_name = "URL", help_heading = "Another server")]
    server: Option<String>,
    /// The file with the admin token: a copy of admin-token in a data directory.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Another server")]
    token_file: Option<PathBuf>,
    /// How lines of the log look: text, for people, or json, one object a line. Instead of log.format.
    #[arg(long, global = true, value_name = "text|json", value_parser = log_format())]
    log_format: Option<LogFormat>,
    /// Goes without TLS: with --server to another machine, with serve beyond this one.
    #[arg(long, global = true, help_heading = "Another server")]
    insecure: bool,
    #[command(subcommand)]
    command: Command,
}

/// How lines of the log look, as an option.
fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new(LogFormat::ALL.map(LogFormat::as_str))
        .map(|word| LogFormat::ALL.into_iter().find(|format| format.as_str() == word).unwrap_or_default())
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a server with rooms and two agents, to try things out; leaves no trace.
    ///
    /// Prints a link for the browser. Takes the next port if one is taken.
    #[command(after_help = "Examples:\n  angelia demo\n  angelia demo --keep my-demo")]
    Demo {
        /// Keeps the data, in this directory, instead of throwing it away; the next
        /// run there has the same link and rooms.
        #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "angelia-demo")]
        keep: Option<PathBuf>,
    },
    /// Runs the server until it is told to stop.
    ///
    /// Listens beyond this machine only with TLS, behind a proxy, or with --insecure.
    #[command(after_help = "Example:\n  angelia serve --config /etc/angelia.toml")]
    Serve,
    /// Looks at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Customers: whose agents and places these are.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// OAuth clients with which agents prove whose they are.
    #[command(subcommand)]
    Client(ClientCommand),
    /// Makes a token with which one agent enrolls itself, once.
    ///
    /// Prints the line to run where the agent is.
    EnrollToken(EnrollToken),
    /// Which place belongs to which tenant, and who may speak there.
    #[command(subcommand)]
    Route(RouteCommand),
    /// Identities on chat platforms: how they are, and what they can do.
    ///
    /// A bot is made at its provider and configured in angelia.toml, with one
    /// [[bots]] block each. Which agent answers where is then said by routes.
    #[command(subcommand)]
    Bot(BotCommand),
    /// Agents that may dial in.
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// What waits for agents.
    #[command(subcommand)]
    Inbox(InboxCommand),
    /// The built-in web chat.
    #[command(subcommand)]
    Webchat(WebchatCommand),
    /// Shows how the server is doing.
    #[command(after_help = "Examples:\n  angelia status\n  angelia status --watch")]
    Status {
        /// Looks again every two seconds until Ctrl-C, restarts of the server included.
        #[arg(long)]
        watch: bool,
    },
    /// Several nodes on one store.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Lists the last messages, and how far each got; never what they say.
    #[command(after_help = "Examples:\n  angelia messages\n  angelia messages webchat:lab\n  \
        angelia messages --state dropped --since 1h\n  angelia messages --gateway gw-office --follow")]
    Messages(messages::Wanted),
    /// Tells which way a message took, and when; if it reached nobody, why, and what mends it.
    #[command(after_help = "Examples:\n  angelia explain --last\n  angelia explain --last webchat:lab\n  \
        angelia explain wp7c08…\n  angelia explain b123\n  angelia explain -1002003004005/17")]
    Explain {
        /// The message's id, CHAT/MESSAGE where ids are a chat's own as on Telegram,
        /// or an inbox entry such as b123; with --last a chat or place.
        #[arg(allow_hyphen_values = true, required_unless_present = "last")]
        message: Option<String>,
        /// The last message that came, of the chat if one is named.
        #[arg(long)]
        last: bool,
    },
    /// Who changed what.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// The master key, under which secrets rest.
    #[command(subcommand)]
    Key(KeyCommand),
    /// The clock, by which things grow old.
    #[command(subcommand)]
    Clock(ClockCommand),
    /// The token the admin API asks for.
    #[command(subcommand)]
    AdminToken(AdminTokenCommand),
    /// Copies the database into one file, beside a running server or without one.
    ///
    /// The copy holds everything but the master key: keep that apart. To restore,
    /// stop the server, remove angelia.db, angelia.db-wal and angelia.db-shm from
    /// the data directory, put FILE there as angelia.db and the master key beside
    /// it, and start.
    #[command(after_help = "Example:\n  angelia backup /var/backups/angelia-2026-11-15.db")]
    Backup {
        /// The file to make; it must not exist.
        file: PathBuf,
        /// Copies the files that people and agents sent as well, into FILE.media: as they rest, sealed.
        /// Without it only the database is copied, and whoever asks for a file after a restore hears
        /// that it is gone.
        #[arg(long)]
        with_media: bool,
    },
    /// Writes the database anew, without what is free in it; the server must not run.
    ///
    /// Only needed once, for a large database of a release that could not shrink:
    /// since then it gives space back by itself. Needs as much free space as is in use.
    #[command(after_help = "Example:\n  angelia compact")]
    Compact,
    /// Moves everything from the SQLite file to an empty PostgreSQL database; the server must not run.
    ///
    /// Make the database first, owned by a user of its own:
    ///
    ///   createuser angelia
    ///   createdb --owner=angelia --encoding=UTF8 --template=template0 angelia
    ///
    /// All of it is moved or nothing: it is one transaction, so it can be interrupted
    /// and begun again. Rows are counted on both sides, and numbers go on where they
    /// were. Afterwards angelia.db is called angelia.db.migrated, so that no server
    /// goes on with it by mistake; nothing in it is changed. The master key stays in
    /// the data directory, which the server still needs.
    ///
    /// A password does not belong on a command line, where others see it: put
    /// password = { env = "NAME" } or { file = "PATH" } under [store] in angelia.toml.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  angelia migrate --from sqlite --to postgres://angelia@db.example.org/angelia\n  \
            angelia migrate      # to what store.url says"
    )]
    Migrate(Migrate),
    /// Lists the bounds that others can run into, with their reasons, and what happens beyond them.
    ///
    /// Those that depend on your machine are set in angelia.toml, under [limits].
    #[command(after_help = "Examples:\n  angelia limits\n  angelia limits --json")]
    Limits {
        /// As the table in the documents.
        #[arg(long)]
        markdown: bool,
    },
    /// What can go wrong, each with its usual cause and the command that mends it.
    ///
    /// Messages that reached nobody and gateways that were turned away have a reason, which explain,
    /// status and the log name by a word.
    #[command(after_help = "Examples:\n  angelia problems\n  angelia problems wrong_secret")]
    Problems {
        /// The word for it; without it all are listed.
        word: Option<String>,
        /// As the page in the documents.
        #[arg(long)]
        markdown: bool,
    },
    /// The rules of the relay contract, for scripts and other languages.
    #[command(subcommand)]
    Contract(ContractCommand),
    /// Prints a script that lets a shell complete commands and options.
    #[command(after_help = "Examples:\n  \
        angelia completions bash > /usr/share/bash-completion/completions/angelia\n  \
        angelia completions zsh > /usr/local/share/zsh/site-functions/_angelia\n  \
        angelia completions fish > ~/.config/fish/completions/angelia.fish")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Prints the manual page, or writes all of them into a directory.
    #[command(after_help = "Examples:\n  angelia man > angelia.1\n  angelia man /usr/local/share/man/man1")]
    Man {
        /// Where the pages go, one for each command; made if it is missing.
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Says whether the configuration is good, and everything that is wrong with it.
    #[command(after_help = "Example:\n  angelia config check")]
    Check,
    /// Prints the configuration in force; secrets appear as references.
    #[command(after_help = "Example:\n  angelia config print --default > angelia.toml")]
    Print {
        /// Prints the commented default file instead.
        #[arg(long)]
        default: bool,
    },
}

/// Runs a command; what it cannot do is said on standard error and in the exit code.
pub fn run(cli: Cli) -> ExitCode {
    angelia_connector::ssrf_guard::install_tls_provider();
    let json = cli.json;
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = if json {
                json!({ "error": error.to_string() }).to_string()
            } else {
                format!("angelia: {error}")
            };
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::from(error.kind().exit_code())
        }
    }
}

fn dispatch(cli: Cli) -> Result<()> {
    if let Command::Contract(command) = &cli.command {
        let now = || wall().seconds();
        return contract_cli::run(command, now, std::io::stdin().lock(), std::io::stdout().lock())
            .map_err(Error::defect);
    }
    if let Command::Config(ConfigCommand::Print { default: true }) = &cli.command {
        return show::text(&config::default_file());
    }
    match &cli.command {
        Command::Completions { shell } => return manual::completions(*shell),
        Command::Man { folder } => return manual::man(folder.as_deref()),
        Command::Limits { .. } if cli.json => return show::text(&format!("{}\n", limits::value())),
        Command::Limits { markdown: true } => return show::text(&limits::markdown()),
        Command::Limits { .. } => return show::text(&limits::text()),
        Command::Problems { word, markdown } => return problems::show(word.as_deref(), *markdown, cli.json),
        _ => {}
    }
    if let Command::Config(ConfigCommand::Check) = &cli.command {
        return check_config(cli.config.as_deref());
    }
    let named = |url: &String| {
        let env = |name: &str| std::env::var(name).ok();
        Elsewhere::new(url, cli.token_file.as_deref(), cli.insecure, env)
    };
    if let Some(elsewhere) = cli.server.as_ref().map(named).transpose()? {
        return ask_elsewhere(elsewhere, cli.command, cli.json);
    }
    if cli.token_file.is_some() {
        return Err(Error::invalid("--token-file goes with --server URL"));
    }
    let mut config = Config::load(cli.config.as_deref(), config::environment())
        .map_err(|faults| Error::invalid(faults.to_string()))?;
    config.log.format = cli.log_format.unwrap_or(config.log.format);
    match cli.command {
        Command::Contract(_)
        | Command::Completions { .. }
        | Command::Limits { .. }
        | Command::Problems { .. }
        | Command::Man { .. }
        | Command::Config(ConfigCommand::Check) => Ok(()),
        Command::Config(ConfigCommand::Print { .. }) => show::text(&config.print()),
        Command::Serve => runtime()?.block_on(serve::serve(config, cli.insecure)),
        Command::Demo { keep } => runtime()?.block_on(demo::demo(config, keep, cli.json)),
        Command::Backup { file, with_media } => backup::backup(&config, &file, with_media, cli.json),
        Command::Migrate(wanted) => runtime()?.block_on(migrate::migrate(&config, &wanted, cli.json)),
        Command::Compact => runtime()?.block_on(backup::compact(&config, cli.json)),
        Command::Bot(BotCommand::List) => {
            runtime()?.block_on(bot::list(&config, Remote::running(&config)?, cli.json))
        }
        Command::Bot(BotCommand::Commands { command }) => {
            runtime()?.block_on(bot_commands::commands(&config, command, cli.json))
        }
        Command::Bot(BotCommand::Check { name }) => {
            runtime()?.block_on(bot::check(&config, name.as_deref(), cli.json))
        }
        Command::Status { watch: true } => {
            runtime()?.block_on(watch::watch(|| watch::running(&config), cli.json))
        }
        Command::Messages(wanted) if wanted.follow => {
            runtime()?.block_on(messages::follow(|| watch::running(&config), wanted, cli.json))
        }
        other => runtime()?.block_on(request::ask(config, other, cli.json)),
    }
}

/// Asks a server that was named; nothing of this machine is looked at.
fn ask_elsewhere(server: Elsewhere, command: Command, as_json: bool) -> Result<()> {
    let remote = || Remote::elsewhere(&server);
    match command {
        Command::Demo { .. }
        | Command::Serve
        | Command::Config(_)
        | Command::Bot(BotCommand::Check { .. } | BotCommand::Commands { .. })
        | Command::Backup { .. }
        | Command::Migrate(_)
        | Command::Compact
        | Command::Contract(_)
        | Command::Completions { .. }
        | Command::Limits { .. }
        | Command::Problems { .. }
        | Command::Man { .. } => Err(Error::invalid(
            "this command asks no server: run it without --server, where the server or its configuration is",
        )),
        Command::Bot(BotCommand::List) => {
            runtime()?.block_on(bot::list(&Config::default(), Some(remote()?), as_json))
        }
        Command::Status { watch: true } => runtime()?.block_on(watch::watch(remote, as_json)),
        Command::Messages(wanted) if wanted.follow => {
            runtime()?.block_on(messages::follow(remote, wanted, as_json))
        }
        other => runtime()?.block_on(request::ask_of(&remote()?, None, other, as_json)),
    }
}

fn check_config(path: Option<&Path>) -> Result<()> {
    let config = Config::check(path, config::environment());
    let config = config.map_err(|faults| Error::invalid(faults.to_string()))?;
    config.server.tls.as_ref().map(Certificate::load).transpose()?;
    if let StoreUrl::Postgres(url) = &config.store.url {
        postgres::Options::new(DatabaseUrl::clone(url)).check()?;
    }
    show::text("the configuration is good\n")
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Runtime::new().map_err(|e| Error::internal(format!("cannot start: {e}")).caused_by(e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    /// Every verb but those of the contract, which are for programs.
    fn verbs(command: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
        let inner =
            command.get_subcommands().filter(|inner| !["help", "contract"].contains(&inner.get_name()));
        let verbs: Vec<_> =
            inner.flat_map(|inner| verbs(inner, &format!("{path} {}", inner.get_name()))).collect();
        if verbs.is_empty() { vec![(path.to_owned(), command.clone())] } else { verbs }
    }

    #[test]
    fn every_command_teaches_by_an_example_that_parses() {
        for (path, command) in verbs(&Cli::command(), "angelia") {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> =
                help.lines().filter_map(|line| line.split_once("angelia ")).map(|it| it.1).collect();
            assert!(!examples.is_empty(), "{path} has no example");
            for example in examples {
                let words = example.split("   ").next().unwrap_or_default();
                let words = words.split('>').next().unwrap_or_default().trim();
                let words = words.split(' ').map(|word| if word == "''" { "" } else { word });
                let parsed = Cli::try_parse_from(std::iter::once("angelia").chain(words));
                assert!(parsed.is_ok(), "{path}: {example}: {}", parsed.unwrap_err());
                let own = path.strip_prefix("angelia ").unwrap_or_default();
                assert!(example.starts_with(own), "{path} is taught by {example}");
            }
        }
    }

    #[test]
    fn globals_may_stand_anywhere() {
        let cli = Cli::try_parse_from(["angelia", "gateway", "create", "--json", "gw", "--config", "x.toml"])
            .unwrap();
        assert!(cli.json && cli.config.is_some());
    }
}
