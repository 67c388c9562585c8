//! Telling the service manager how far we are.
//!
//! systemd (and whoever speaks its protocol) names a socket in `NOTIFY_SOCKET`
//! and takes one datagram per message there. With `Type=notify` a unit counts
//! as started once `READY=1` came, so that what depends on it finds a server
//! that listens. Without the variable nobody asked, and nothing is said.

use std::time::Duration;

/// Says that the server listens, and where.
pub(crate) fn ready(listen: &dyn std::fmt::Display) {
    tell(&format!("READY=1\nSTATUS=Serving on {listen}"));
}

/// What a stop takes beyond the time that agents get: sockets say goodbye, calls end.
const GOODBYE: Duration = Duration::from_secs(15);

/// How long a stop takes at the most. A node among others sends its gateways on in turn, for half
/// the time that each of them gets.
pub(crate) fn stop_takes(drain: Duration, among_others: bool) -> Duration {
    GOODBYE + drain + if among_others { drain / 2 } else { Duration::ZERO }
}

/// Says that the server is on its way down, and how long that may take.
pub(crate) fn stopping(drain: Duration, among_others: bool) {
    let within = stop_takes(drain, among_others).as_micros();
    tell(&format!(
        "STOPPING=1\nEXTEND_TIMEOUT_USEC={within}\n\
         STATUS=Closing sockets as agents finish, so that gateways dial again"
    ));
}

#[cfg(not(target_os = "linux"))]
fn tell(_message: &str) {}

/// A manager that cannot be told stops us after its own patience, so a failure
/// is worth a line in the log and no more.
#[cfg(target_os = "linux")]
fn tell(message: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return };
    if let Err(error) = linux::send(&socket, message) {
        tracing::warn!(%error, "the service manager cannot be told; see NOTIFY_SOCKET");
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::io;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    /// Sends one datagram to a path, or to `@name`: a name without a file.
    pub(super) fn send(socket: &OsStr, message: &str) -> io::Result<()> {
        let address = match socket.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(socket)?,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a path nor an @name")),
        };
        UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address).map(drop)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn next(socket: &UnixDatagram) -> String {
            let mut buffer = [0; 256];
            let length = socket.recv(&mut buffer).unwrap();
            String::from_utf8_lossy(&buffer[..length]).into_owned()
        }

        #[test]
        fn a_datagram_reaches_a_path_and_a_name() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("notify");
            let socket = UnixDatagram::bind(&path).unwrap();
            send(path.as_os_str(), "READY=1").unwrap();
            assert_eq!(next(&socket), "READY=1");

            let name = format!("angelia-notify-{}", std::process::id());
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            let socket = UnixDatagram::bind_addr(&address).unwrap();
            send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
            assert_eq!(next(&socket), "STOPPING=1");
        }

        #[test]
        fn nobody_there_is_an_error_and_not_a_wait() {
            assert!(send(OsStr::new("/nonexistent/notify"), "READY=1").is_err());
            assert!(send(OsStr::new("notify"), "READY=1").is_err());
        }
    }
}
