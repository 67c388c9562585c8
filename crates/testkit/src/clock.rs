//! A process's clock, as wrong as a test wants it.
//!
//! libfaketime is loaded into the process and reads the offset from a file, so
//! that a clock can also jump while the process runs. Only what the clock on
//! the wall shows is wrong: timers follow the monotonic clock, which stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::process::output;
use crate::socket::now;

/// The file in the process's folder that says how wrong its clock is.
const FILE: &str = "clock";

/// How long the offset may be taken from memory, in seconds; a look at the file
/// at every reading of the clock would slow Python down.
const CACHED: &str = "1";

/// Where distributions put the library, for programs with threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Sets the clock of the process in `home`: so many seconds from the real time.
///
/// # Panics
///
/// When the file cannot be written.
pub fn set(home: &Path, seconds: i64) {
    let (file, new) = (home.join(FILE), home.join("clock.new"));
    // Renamed, so that a running process never reads half an offset.
    fs::write(&new, format!("{seconds:+}\n")).expect("write the clock's offset");
    fs::rename(&new, &file).expect("replace the clock's offset");
}

/// What puts a process under the clock of `home`.
///
/// # Panics
///
/// When libfaketime is not installed.
pub fn environment(home: &Path) -> [(&'static str, String); 5] {
    [
        ("LD_PRELOAD", library().display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", home.join(FILE).display().to_string()),
        ("FAKETIME_CACHE_DURATION", CACHED.to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        // The ages of files stay true, or Python would compile the package anew
        // and leave that for every other gateway to do again.
        ("NO_FAKE_STAT", "1".to_owned()),
    ]
}

/// How many seconds a process under the clock of `home` is off, as it sees it.
///
/// # Panics
///
/// When `date` does not tell.
pub async fn offset(home: &Path) -> i64 {
    let mut date = Command::new("date");
    date.arg("+%s").envs(environment(home));
    let shown = output("date", date, Duration::from_secs(10)).await.stdout;
    let shown: i64 = String::from_utf8_lossy(&shown).trim().parse().expect("seconds from date");
    shown - i64::try_from(now()).expect("seconds since 1970")
}

fn library() -> PathBuf {
    let arch = std::env::consts::ARCH;
    let folders = [format!("/usr/lib/{arch}-linux-gnu"), "/usr/lib".into(), "/usr/lib64".into()];
    let found = folders.iter().map(|folder| Path::new(folder).join(LIBRARY)).find(|path| path.is_file());
    found.expect("libfaketime is not installed: run ./test, which installs it")
}
