//! Where a request comes from.

use angelia_core::limit_per_address::Address;
use axum::extract::ConnectInfo;
use axum::http::Extensions;
use std::net::SocketAddr;

/// The address of a request's peer, where the listener knows it to be the caller's own.
pub(super) fn peer(of_request: &Extensions) -> Address {
    Address::of(of_request.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_known_where_the_listener_says_so() {
        let mut of_request = Extensions::new();
        assert_eq!(peer(&of_request), Address::Unknown);
        of_request.insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 80))));
        assert_eq!(peer(&of_request), Address::of(Some([192, 0, 2, 7].into())));
    }
}
