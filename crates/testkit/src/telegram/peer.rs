//! Python processes that are told what to do over HTTP.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::process::{Process, file_length, read_from};

/// How long Python may take to start on a busy machine: aiogram alone is seconds.
const START: Duration = Duration::from_secs(90);

/// The answer to an instruction, which has to succeed.
pub(crate) async fn checked(what: &str, ask: &Value, answer: reqwest::Response) -> Value {
    let status = answer.status();
    let body = answer.text().await.unwrap();
    assert!(status.is_success(), "{what} {ask}: {status} {body}");
    serde_json::from_str(&body).unwrap()
}

/// Starts a Python peer and reads the line in which it says that it is ready.
pub(crate) async fn peer(
    name: &str,
    script: &[&str],
    arguments: &[OsString],
    folder: &Path,
) -> (Process, Value) {
    fs::create_dir_all(folder).expect("create the peer's folder");
    let mut command = Command::new(python());
    // No caches beside the sources.
    command.arg("-B").args(script).args(arguments);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("python"));
    let log = folder.join(format!("{name}.log"));
    // A peer that was started again appends to its log.
    let begin = file_length(&log);
    let ready = || read_from(&log, begin).lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut process = Process::spawn(name, command, &log);
    process.wait_until("its ready line", START, || ready().is_some()).await;
    (process, ready().unwrap())
}

/// The Python that has aiogram.
fn python() -> PathBuf {
    let folder = std::env::var_os("ANGELIA_TEST_ENV")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-env"), PathBuf::from);
    let python = folder.join("oracles/bin/python");
    assert!(python.is_file(), "{} is missing: run ./test, which installs it", python.display());
    python
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("not a number: {value}"))
}

pub(crate) fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        other => panic!("not a list: {other}"),
    }
}
