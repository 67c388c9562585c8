//! What lies in the data directory: who can get at it, what is left over, and
//! whether the key and the database belong together.

use super::operator::{angelia, done};
use super::world::binary;
use angelia_core::records::rows::NoteRow;
use angelia_core::store::DATABASE_ID;
use angelia_engines::inspect::Inspect;
use angelia_engines::store::sqlite::{DATABASE, DATABASE_FILES};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

struct Home {
    _folder: tempfile::TempDir,
    config: PathBuf,
    data: PathBuf,
}

impl Home {
    /// A data directory with a gateway in it, made by the commands alone.
    fn new() -> Self {
        let home = Self::empty("");
        done(&home.config, &["gateway", "create", "gw"]);
        home
    }

    fn empty(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (config, data) = (folder.path().join("angelia.toml"), folder.path().join("data"));
        fs::write(&config, format!("[server]\ndata_dir = {data:?}\nlisten = \"127.0.0.1:0\"\n{lines}"))
            .unwrap();
        Self { _folder: folder, config, data }
    }

    fn database_is_gone(&self) {
        for name in DATABASE_FILES {
            let _ = fs::remove_file(self.data.join(name));
        }
    }

    fn gateways(&self) -> String {
        done(&self.config, &["gateway", "list"])
    }
}

/// A command that must fail; its exit code and what it said. A server that
/// starts all the same is ended.
pub(crate) fn refused(config: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(binary());
    command.arg("--config").arg(config).args(args).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1_000 {
        if let Some(status) = child.try_wait().unwrap() {
            let error = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
            return (status.code().expect("an exit code"), error);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    panic!("{args:?} was not refused");
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn loose_files_are_refused_with_the_commands_that_mend_them() {
    let home = Home::new();
    for name in ["master.key", "admin-token", DATABASE, "sealed-by"] {
        assert_eq!(mode(&home.data.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&home.data), 0o700);
    set(&home.data, 0o755);
    set(&home.data.join("master.key"), 0o640);
    set(&home.data.join("admin-token"), 0o644);
    for command in [&["serve"][..], &["gateway", "list"]] {
        let (code, error) = refused(&home.config, command);
        assert_eq!(code, 2, "a supervisor must not try again: {error}");
        let commands = error.lines().filter_map(|line| line.trim().strip_prefix("chmod "));
        let commands: Vec<&str> = commands.collect();
        let at = |mode: &str, path: PathBuf| format!("{mode} {}", path.display());
        assert_eq!(
            commands,
            [
                at("700", home.data.clone()),
                at("600", home.data.join("master.key")),
                at("600", home.data.join("admin-token"))
            ],
            "all at once: {error}"
        );
        assert!(error.contains("rotate"), "{error}");
    }
    // A backup needs no key.
    done(&home.config, &["backup", home.config.with_file_name("copy.db").to_str().unwrap()]);
    let (_, error) = refused(&home.config, &["gateway", "list"]);
    for command in error.lines().map(str::trim).filter(|line| line.starts_with("chmod ")) {
        assert!(Command::new("sh").args(["-c", command]).status().unwrap().success());
    }
    assert!(home.gateways().contains("gw"));
}

#[test]
fn of_what_the_configuration_names_only_files_that_anybody_changes_are_refused() {
    let home = Home::empty("[keys]\nmaster = { file = \"KEY\" }\n");
    let key = home.config.with_file_name("key");
    let text = fs::read_to_string(&home.config).unwrap().replace("KEY", key.to_str().unwrap());
    fs::write(&home.config, text).unwrap();
    fs::write(&key, "1".repeat(64)).unwrap();
    set(&key, 0o444);
    done(&home.config, &["gateway", "create", "gw"]);
    set(&key, 0o446);
    let (code, error) = refused(&home.config, &["gateway", "list"]);
    assert!(code == 2 && error.contains(&format!("chmod o-w {}", key.display())), "{code} {error}");
    set(&key, 0o644);
    home.gateways();
}

#[test]
fn a_key_that_has_sealed_data_wants_its_database() {
    let home = Home::new();
    let copy = home.config.with_file_name("copy.db");
    done(&home.config, &["backup", copy.to_str().unwrap()]);
    let told = |what: &str| {
        let (code, error) = refused(&home.config, &["serve"]);
        assert_eq!(code, 4, "{error}");
        for part in [what, "Restore", "master.key.old"] {
            assert!(error.contains(part), "{part} in {error}");
        }
        error
    };
    home.database_is_gone();
    told("is not there");
    assert!(!home.data.join(DATABASE).exists(), "and none was made");
    let (code, _) = refused(&home.config, &["gateway", "create", "other"]);
    assert_eq!(code, 4, "a command makes no new server either");
    fs::write(home.data.join(DATABASE), "").unwrap();
    set(&home.data.join(DATABASE), 0o600);
    told("is empty");

    // Another server's, with the same key: somebody mounted the wrong volume.
    let other = Home::empty("");
    fs::create_dir(&other.data).unwrap();
    set(&other.data, 0o700);
    fs::copy(home.data.join("master.key"), other.data.join("master.key")).unwrap();
    done(&other.config, &["gateway", "create", "theirs"]);
    fs::copy(other.data.join(DATABASE), home.data.join(DATABASE)).unwrap();
    told("is another one");

    fs::copy(&copy, home.data.join(DATABASE)).unwrap();
    assert!(home.gateways().contains("gw"), "a backup of it is restored");
}

#[test]
fn a_restore_on_a_machine_that_has_run_already_works() {
    let (home, fresh) = (Home::new(), Home::empty(""));
    let copy = home.config.with_file_name("copy.db");
    done(&home.config, &["backup", copy.to_str().unwrap()]);
    done(&fresh.config, &["gateway", "create", "soon-gone"]);
    fresh.database_is_gone();
    fs::copy(&copy, fresh.data.join(DATABASE)).unwrap();
    let (_, error) = refused(&fresh.config, &["gateway", "list"]);
    assert!(error.contains("needs master key"), "the key of the backup is missing: {error}");
    fs::copy(home.data.join("master.key"), fresh.data.join("master.key")).unwrap();
    assert!(fresh.gateways().contains("gw"));
    fresh.database_is_gone();
    let (code, _) = refused(&fresh.config, &["serve"]);
    assert_eq!(code, 4, "from now on it is this one that is expected");
}

#[test]
fn a_rotated_key_wants_the_same_database() {
    let home = Home::new();
    done(&home.config, &["key", "rotate"]);
    home.database_is_gone();
    let (code, error) = refused(&home.config, &["serve"]);
    assert!(code == 4 && error.contains("is not there"), "{code} {error}");
    // Begin anew, as it says.
    fs::rename(home.data.join("master.key"), home.data.join("master.key.old")).unwrap();
    done(&home.config, &["gateway", "create", "new"]);
    assert!(!home.gateways().contains("gw"));
}

#[test]
fn a_database_of_an_older_release_gets_its_name_and_a_backup_of_it_too() {
    let home = Home::new();
    // As an older release left it.
    fs::remove_file(home.data.join("sealed-by")).unwrap();
    Inspect::of(&home.data).delete(|note: &NoteRow| note.name == DATABASE_ID);
    let old = home.config.with_file_name("old.db");
    done(&home.config, &["backup", old.to_str().unwrap()]);
    assert!(home.gateways().contains("gw"));
    let mark = fs::read_to_string(home.data.join("sealed-by")).unwrap();
    home.database_is_gone();
    fs::copy(&old, home.data.join(DATABASE)).unwrap();
    assert!(home.gateways().contains("gw"), "a backup from before it had a name");
    assert_eq!(fs::read_to_string(home.data.join("sealed-by")).unwrap(), mark, "it has the same one again");
}

#[test]
fn a_configured_key_without_a_database_is_a_first_start() {
    let home = Home::empty("[keys]\nmaster = { env = \"TEST_MASTER_KEY\" }\n");
    let create = |id: &str| {
        let mut command = Command::new(binary());
        command.arg("--config").arg(&home.config).args(["gateway", "create", id]);
        command.env("TEST_MASTER_KEY", "3".repeat(64)).output().unwrap()
    };
    assert!(create("gw").status.success());
    assert!(!home.data.join("sealed-by").exists(), "the key is not there either");
    home.database_is_gone();
    assert!(create("gw").status.success());
}

#[test]
fn what_a_killed_process_left_is_swept() {
    let home = Home::new();
    let (draft, other) = (home.data.join(".master.key.0a1b2c3d.new"), home.data.join(".other.0a1b2c3d.new"));
    for path in [&draft, &other] {
        fs::write(path, "4".repeat(64)).unwrap();
    }
    home.gateways();
    assert!(!draft.exists() && other.exists(), "only what is ours");
    assert!(angelia(&home.config, &["key", "check"]).status.success());
}
