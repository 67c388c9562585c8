//! The command line.

mod ask;
mod words;

use crate::config::{self, Config};
use crate::contract_cli::{self, ContractCommand};
use crate::{demo, serve, show};
use angelia_core::clock;
use angelia_core::error::{Error, Result};
use clap::{Parser, Subcommand};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use words::{ConfigCommand, GatewayCommand, InboxCommand, RouteCommand, TenantCommand, WebchatCommand};

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
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a server with an agent that echoes, to try things out; leaves no trace.
    Demo {
        /// Keeps the data, in this directory, instead of throwing it away.
        #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "angelia-demo")]
        keep: Option<PathBuf>,
    },
    /// Runs the server until it is told to stop.
    Serve {
        /// Listens beyond this machine without TLS.
        #[arg(long)]
        insecure: bool,
    },
    /// Looks at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Customers: whose agents and places these are.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Which place belongs to which tenant, and who may speak there.
    #[command(subcommand)]
    Route(RouteCommand),
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
    Status,
    /// Tells which way a message took, and when.
    Explain {
        /// The message's id, or an inbox entry such as b123.
        message: String,
    },
    /// The rules of the relay contract, for scripts and other languages.
    #[command(subcommand)]
    Contract(ContractCommand),
}

/// Runs a command; what it cannot do is said on standard error and in the exit code.
pub fn run(cli: Cli) -> ExitCode {
    angelia_connector::edge::install_tls_provider();
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
        let now = || clock::wall().seconds();
        return contract_cli::run(command, now, std::io::stdin().lock(), std::io::stdout().lock())
            .map_err(|e| Error::internal(e.to_string()));
    }
    if let Command::Config(ConfigCommand::Print { default: true }) = &cli.command {
        return show::text(config::DEFAULT_FILE);
    }
    let config = Config::load(cli.config.as_deref(), config::environment())
        .map_err(|faults| Error::invalid(faults.to_string()))?;
    match cli.command {
        Command::Contract(_) => Ok(()),
        Command::Config(ConfigCommand::Print { .. }) => show::text(&config.print()),
        Command::Config(ConfigCommand::Check) => {
            config.check_exposure(false).map_err(|faults| Error::invalid(faults.to_string()))?;
            show::text("the configuration is good\n")
        }
        Command::Serve { insecure } => runtime()?.block_on(serve::serve(config, insecure)),
        Command::Demo { keep } => runtime()?.block_on(demo::demo(config, keep)),
        other => runtime()?.block_on(ask::ask(config, other, cli.json)),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Runtime::new().map_err(|e| Error::internal(format!("cannot start: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn globals_may_stand_anywhere() {
        let cli = Cli::try_parse_from(["angelia", "gateway", "create", "--json", "gw", "--config", "x.toml"])
            .unwrap();
        assert!(cli.json && cli.config.is_some());
    }
}
