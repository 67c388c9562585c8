//! Close codes of the relay socket, and the reasons sent with them.
//!
//! Gateways treat [`UNAUTHORIZED`] after a first good handshake as final, so
//! it must never be used for anything that a later dial could cure.

/// The conversation is over and nobody is at fault.
pub const NORMAL: u16 = 1000;
/// The connector restarts or moves; gateways dial again.
pub const GOING_AWAY: u16 = 1001;
/// A message was larger than the receiver takes.
pub const TOO_BIG: u16 = 1009;
/// The connector failed; gateways dial again.
pub const INTERNAL: u16 = 1011;
/// The credentials are not, or no longer, good.
pub const UNAUTHORIZED: u16 = 4401;

/// Reason with [`UNAUTHORIZED`] for an unknown, wrong or revoked credential.
pub const REASON_UNAUTHORIZED: &str = "unauthorized";
/// Reason with [`UNAUTHORIZED`] for a token that was good once: newer gateways
/// dial again with a fresh one instead of giving up.
pub const REASON_EXPIRED: &str = "expired";
/// Reason with [`GOING_AWAY`] when the connector shuts down.
pub const REASON_RESTART: &str = "restarting";
/// Reason with [`NORMAL`] when a newer socket of the same gateway took over.
pub const REASON_REPLACED: &str = "replaced by a newer connection";
/// Reason with [`TOO_BIG`].
pub const REASON_TOO_BIG: &str = "message too big";
/// Reason with [`INTERNAL`].
pub const REASON_INTERNAL: &str = "internal error";
