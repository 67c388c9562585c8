//! What the machine can do at this hour, so that figures of different days can be read.

use rustix::time::{ClockId, clock_gettime};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How long the disk is tried.
const DISK: Duration = Duration::from_millis(500);
/// What is appended before each sync: a page, as the database's log does.
const PAGE: [u8; 4096] = [0x61; 4096];
/// How many messages go over the loopback, and how long they are: about as long as a frame.
const MESSAGES: u32 = 20_000;
const MESSAGE: [u8; 700] = [0x61; 700];

/// What a machine can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchor {
    /// How often in a second 4 KiB are appended to a file and are on the disk.
    pub syncs: f64,
    /// Processor time to write 700 bytes to a socket and to read them at its other end, in
    /// microseconds: what no relay can be cheaper than.
    pub message: f64,
}

/// Tries the disk below `folder`, and the loopback.
///
/// # Errors
///
/// When the folder cannot be written to, or there is no loopback.
pub fn measure(folder: &Path) -> io::Result<Anchor> {
    Ok(Anchor { syncs: syncs(folder)?, message: message()? })
}

fn syncs(folder: &Path) -> io::Result<f64> {
    let path = folder.join("anchor");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let (begun, mut count) = (Instant::now(), 0_u32);
    while begun.elapsed() < DISK {
        file.write_all(&PAGE)?;
        file.sync_data()?;
        count += 1;
    }
    let took = begun.elapsed();
    std::fs::remove_file(path)?;
    Ok(f64::from(count) / took.as_secs_f64())
}

fn message() -> io::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut writer = TcpStream::connect(listener.local_addr()?)?;
    let (mut reader, _) = listener.accept()?;
    writer.set_nodelay(true)?;
    let mut buffer = MESSAGE;
    let begun = own_time();
    for _ in 0..MESSAGES {
        writer.write_all(&MESSAGE)?;
        reader.read_exact(&mut buffer)?;
    }
    Ok((own_time() - begun) / f64::from(MESSAGES) * 1e6)
}

/// Seconds of processor time of this thread.
fn own_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "some minutes")]
    let (seconds, nanoseconds) = (time.tv_sec as f64, time.tv_nsec as f64);
    seconds + nanoseconds / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_can_do_something() {
        let folder = tempfile::tempdir().unwrap();
        let anchor = measure(folder.path()).unwrap();
        assert!(anchor.syncs > 1.0 && anchor.message > 0.1, "{anchor:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it clears up");
    }
}
