//! A gateway that somebody starts by pasting lines into a shell.

use std::fs;
use std::path::Path;

use tokio::process::Command;

use super::Version;
use super::setup::surroundings;
use crate::model::MODEL_NAME;
use crate::process::Process;

/// Runs `lines` in bash, as they are, where `hermes` is this version and knows
/// its model and nothing else.
///
/// # Panics
///
/// When the version is not installed, or there is no bash.
pub fn paste(version: Version, home: &Path, model_url: &str, lines: &str) -> Process {
    let command = version.command();
    fs::create_dir_all(home).expect("create the gateway's home");
    let config = format!(
        "model:\n  provider: custom\n  base_url: {model_url}\n  api_key: none\n  default: {MODEL_NAME}\n  \
         context_length: 131072\n"
    );
    fs::write(home.join("config.yaml"), config).expect("write config.yaml");
    let programs = command.parent().expect("a command is in a folder").display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["-c", lines]).current_dir(home).env_clear().envs(surroundings(home)).env("PATH", path);
    Process::spawn(format!("hermes {version}, pasted"), bash, home.join("output.log"))
}
