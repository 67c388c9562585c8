//! A secret that a command prints: no shell, a bounded time and a bounded output.

use angelia_core::clock;
use angelia_core::secret::Secret;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long it may take. A start waits for it, and whoever started the server for the start.
const IN_TIME: Duration = Duration::from_secs(20);
/// The longest output that is read: many times what a key takes.
const MAX_OUTPUT: u64 = 16 * 1024;
/// How much of what it says on standard error is repeated.
const MAX_TOLD: usize = 300;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Runs a command and takes what it prints on standard output. Why it could not, in words that
/// continue "the command … ".
pub(super) fn run(command: &[String]) -> Result<Secret, String> {
    within(command, IN_TIME)
}

fn within(command: &[String], time: Duration) -> Result<Secret, String> {
    let (program, arguments) = command.split_first().ok_or("is empty")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot be run: {e}; is it installed, and on the PATH of the server?"))?;
    let (printed, told) = (reading(child.stdout.take()), reading(child.stderr.take()));
    let Some(status) = ended(&mut child, time).map_err(|e| format!("cannot be waited for: {e}"))? else {
        return Err(format!(
            "did not end within {} s; try it by hand as the user of the server",
            time.as_secs()
        ));
    };
    if !status.success() {
        let told = told.recv_timeout(LOOK_EVERY * 10).ok().flatten().unwrap_or_default();
        let told = String::from_utf8_lossy(&told[..told.len().min(MAX_TOLD)]).trim().to_owned();
        let told = if told.is_empty() { String::new() } else { format!(": {told}") };
        return Err(format!("failed with {status}{told}; try it by hand as the user of the server"));
    }
    // Something it left behind may hold the output open; what it printed is there by then.
    let printed = printed.recv_timeout(time).ok().flatten();
    let text = printed.and_then(|printed| String::from_utf8(printed).ok()).map(Secret::new);
    let long = || format!("printed no text, or more than {} KiB", MAX_OUTPUT / 1024);
    text.filter(|text| text.expose().len() as u64 <= MAX_OUTPUT).ok_or_else(long)
}

/// Reads to the end, apart: whoever fills a pipe that nobody reads waits for ever.
fn reading(from: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Option<Vec<u8>>> {
    let (done, read) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let whole = from.map(|from| from.take(MAX_OUTPUT + 1).read_to_end(&mut bytes));
        let _ = done.send(whole.is_some_and(|read| read.is_ok()).then_some(bytes));
    });
    read
}

/// Waits until a process ends; `None` if it had to be ended.
fn ended(child: &mut Child, time: Duration) -> io::Result<Option<std::process::ExitStatus>> {
    let began = clock::mono();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if clock::mono().since(began) >= time {
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn what_it_prints_is_the_secret() {
        assert_eq!(run(&sh("echo chatter >&2; echo hunter2")).unwrap().expose(), "hunter2\n");
    }

    #[test]
    fn no_shell_reads_it() {
        let words = ["echo", "$HOME;", "ls"].map(str::to_owned);
        assert_eq!(run(&words).unwrap().expose(), "$HOME; ls\n");
    }

    #[test]
    fn whatever_goes_wrong_is_said() {
        let failed = run(&sh("echo no such secret >&2; exit 3")).unwrap_err();
        assert!(failed.contains("no such secret") && failed.contains('3'), "{failed}");
        assert!(run(&["/nonexistent/vault".to_owned()]).unwrap_err().contains("cannot be run"));
        assert!(run(&[]).unwrap_err().contains("empty"));
        assert!(run(&sh("head -c 100000 /dev/zero | tr '\\0' x")).is_err(), "too much");
        let late = within(&sh("sleep 60"), Duration::from_millis(50)).unwrap_err();
        assert!(late.contains("did not end"), "{late}");
    }
}
