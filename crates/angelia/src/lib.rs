//! The `angelia` command: its configuration and its subcommands.

mod bots;
pub mod cli;
pub mod config;
pub mod contract_cli;
mod demo;

mod elsewhere;
mod file_permissions;
mod files;
mod key_files;
mod limits;
mod listen;
mod log;
mod open;
mod open_files_limit;
mod presence;
mod remote;
mod sealed_mark;
mod serve;
mod show;
mod stop_signals;
mod supervisor;
mod tls;
