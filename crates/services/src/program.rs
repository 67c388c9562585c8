//! Finds the distribution's programs and runs them; what else they need to be called with.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian keeps PostgreSQL's own programs, in a folder for each version.
const POSTGRESQL: &str = "/usr/lib/postgresql";

/// Where servers are that may be outside the `PATH` of somebody who is not root.
const SERVERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Where a program is; PostgreSQL's newest ones come before what merely wraps them.
pub(crate) fn find(name: &str) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = postgresql_folders().into_iter().chain(std::env::split_paths(&path));
    let mut programs = folders.chain(SERVERS.map(PathBuf::from)).map(|folder| folder.join(name));
    programs.find(|program| program.is_file()).ok_or_else(|| {
        let hint = format!("{name} is not installed: run scripts/install-services");
        io::Error::new(io::ErrorKind::NotFound, hint)
    })
}

fn postgresql_folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(POSTGRESQL).into_iter().flatten().flatten();
    let mut versions: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.into_iter().map(|version| Path::new(POSTGRESQL).join(version.to_string()).join("bin")).collect()
}

/// Runs a program to its end and answers what it wrote, without the last line's end.
pub(crate) fn output(command: &mut Command) -> io::Result<String> {
    forget_settings(command);
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    Err(io::Error::other(format!("{program} ({}): {}", output.status, complaint.trim_end())))
}

/// Takes away what would send a client, or a server, elsewhere: `PGHOST` and the like.
pub(crate) fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") || name == "REDISCLI_AUTH" {
            command.env_remove(name);
        }
    }
}

/// The numbers of a system user and of its group.
pub(crate) fn account(name: &str) -> io::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    let numbers = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then_some(())?;
        Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    let none =
        || format!("it does not run as root, and there is no user {name}: run scripts/install-services");
    numbers.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, none()))
}

/// The shell's word for these arguments.
pub(crate) fn shell_words<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> String {
    let quoted = |word: S| format!("'{}'", word.as_ref().replace('\'', r"'\''"));
    arguments.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A number nobody foresees; good enough for names and ports.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A part of a name that no other process makes up.
pub(crate) fn unique() -> String {
    format!("{}_{:016x}", std::process::id(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let words = ["", "a b", "it's", "$HOME `x` \\"];
        let script = format!("printf '[%s]' {}", shell_words(words));
        let printed = output(Command::new("sh").args(["-c", &script])).unwrap();
        assert_eq!(printed, "[][a b][it's][$HOME `x` \\]");
    }

    #[test]
    fn what_fails_is_named() {
        let error =
            output(Command::new("/bin/sh").args(["-c", "echo no such thing >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "sh (exit status: 3): no such thing");
        let error = find("no-such-program").unwrap_err();
        assert!(error.to_string().contains("scripts/install-services"), "{error}");
    }

    #[test]
    fn accounts_are_read() {
        assert_eq!(account("root").unwrap(), (0, 0));
        assert!(account("roo").is_err());
    }
}
