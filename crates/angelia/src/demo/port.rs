//! A free TCP port for the demo to listen on.

use angelia_core::error::{Error, Result};
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Ports tried, the configured one first: several demos may run beside each other.
const PORTS: u16 = 20;

/// The port of last time, if it is one this search can find; else the first at
/// or after the wanted one that nobody uses. The port in `not_ours` is passed over
/// unless it is the wanted one: a server may want to start beside the demo.
pub(super) async fn next_free(wanted: SocketAddr, last: Option<u16>, not_ours: u16) -> Result<TcpListener> {
    let may_take = |port: &u16| *port == wanted.port() || *port != not_ours;
    let ports = (0..PORTS).filter_map(|offset| wanted.port().checked_add(offset));
    let mut ports: Vec<u16> = ports.filter(may_take).collect();
    if wanted.port() == 0 {
        ports = vec![0];
    }
    let last = last.filter(|last| may_take(last) && (wanted.port() == 0 || ports.contains(last)));
    for port in last.into_iter().chain(ports) {
        let address = SocketAddr::new(wanted.ip(), port);
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            Err(e) => return Err(Error::unavailable(format!("cannot listen on {address}: {e}")).caused_by(e)),
        }
    }
    Err(Error::unavailable(format!(
        "none of the {PORTS} ports from {wanted} on is free; name another one with \
         ANGELIA_SERVER__LISTEN=127.0.0.1:PORT"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[tokio::test]
    async fn a_taken_port_is_passed_over_and_the_last_one_preferred() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let first = next_free(any, None, 0).await.unwrap().local_addr().unwrap();
        let taken = TcpListener::bind(first).await.unwrap();
        let next = next_free(first, None, 0).await.unwrap();
        let next_port = next.local_addr().unwrap().port();
        assert!(next_port > first.port());
        drop(next);
        drop(taken);
        let again = next_free(first, Some(next_port), 0).await.unwrap();
        assert_eq!(again.local_addr().unwrap().port(), next_port);
        // One that somebody asks for counts more than one from another time.
        let elsewhere = first.port().wrapping_add(PORTS + 1);
        assert_eq!(next_free(first, Some(elsewhere), 0).await.unwrap().local_addr().unwrap(), first);
    }

    #[tokio::test]
    async fn the_port_of_a_server_in_earnest_is_left_to_it() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let wanted = taken.local_addr().unwrap();
        let admin = wanted.port() + 1;
        for last in [None, Some(admin)] {
            let got = next_free(wanted, last, admin).await.unwrap().local_addr().unwrap();
            assert!(got.port() > admin, "{got} is not beyond {admin}");
        }
        drop(taken);
        let meant = next_free(wanted, None, wanted.port()).await.unwrap().local_addr().unwrap();
        assert_eq!(meant, wanted, "who asks for it gets it");
    }
}
