//! A server under a service manager, or as the first process of a container.
#![cfg(target_os = "linux")]

use super::world::binary;
use angelia_engines::store::sqlite::DataLock;
use angelia_testkit::process::Process;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

const SOON: Duration = Duration::from_secs(30);

/// `angelia serve` on any ports, with its data in `folder`.
fn serve(folder: &Path, variables: &[(&str, &str)]) -> Process {
    let config = folder.join("angelia.toml");
    let data = folder.join("data");
    let address = "127.0.0.1:0";
    let text = format!("[server]\nlisten = {address:?}\nadmin_listen = {address:?}\ndata_dir = {data:?}\n");
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(binary());
    command.arg("--config").arg(config).arg("serve").envs(variables.iter().copied());
    Process::spawn("angelia", command, folder.join("angelia.log"))
}

fn next(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 512];
    let length = socket.recv(&mut buffer).expect("a message to the manager in time");
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[tokio::test]
async fn the_manager_is_told_when_it_serves_and_when_it_stops() {
    angelia_connector::ssrf_guard::install_tls_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let mut process = serve(folder.path(), &[("NOTIFY_SOCKET", &path.display().to_string())]);
    let ready = next(&socket);
    let address = ready.strip_prefix("READY=1\nSTATUS=Serving on ").expect("readiness first");
    let answer = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = answer.get(format!("http://{address}/readyz")).send().await.unwrap();
    assert_eq!(answer.status(), 200, "who is told that it serves finds it serving");
    let (status, _) = process.terminate(SOON).await;
    assert!(next(&socket).starts_with("STOPPING=1\n"));
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_signal_during_the_start_ends_it_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    // While somebody else has the directory, the start waits.
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let lock = DataLock::try_take(&data).unwrap().expect("nobody else has it");
    let mut process = serve(folder.path(), &[]);
    let proc = format!("/proc/{}/status", process.id());
    process.wait_until("a handler for SIGTERM", SOON, || handles_sigterm(&proc)).await;
    let (status, _) = process.terminate(SOON).await;
    assert!(status.success(), "{status}: as the first process of a container it would not have ended");
    drop(lock);
}

#[tokio::test]
async fn a_machine_that_trusts_nobody_is_told_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere").display().to_string();
    let mut process = serve(folder.path(), &[("SSL_CERT_FILE", &nowhere), ("SSL_CERT_DIR", &nowhere)]);
    let status = process.wait(SOON).await.expect("it ends by itself");
    assert_eq!(status.code(), Some(1));
    assert!(process.log_text().contains("install ca-certificates"), "{}", process.log_text());
}

/// Whether the mask of caught signals has SIGTERM, the fifteenth.
fn handles_sigterm(proc: &str) -> bool {
    let status = std::fs::read_to_string(proc).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & (1 << 14) != 0)
}
