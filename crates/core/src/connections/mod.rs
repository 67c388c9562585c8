//! Who may hold a connection: by address, by how many there is room for, and by
//! what the connection does with its place.

mod address;
mod lasting;
mod pace;
mod pipelining;
mod share;
mod standing;
mod takeovers;

pub use address::{Addresses, known, neighbourhood};
pub use lasting::{Lasting, NoPlace, RelayPlaces};
pub use pace::time_for;
pub use pipelining::{is_crowd, rest_after};
pub use share::{Shares, share};
pub use standing::{Doing, Standing, is_given_up, least_deserving};
pub use takeovers::Takeovers;

use std::time::Duration;

angelia_contract::limits! {
    /// More gateways than one machine serves. There are fewer where fewer files may
    /// be open: so many, less the reserve. When all are taken, a new connection gets
    /// the place of the one that deserves it least, never that of a relay socket or
    /// of a stream that makes progress.
    pub const MAX_CONNECTIONS: usize = 50_000, count "connections at the same time";
    /// For the database, bots' connections to their platforms, the admin API and
    /// wakes. Half of all descriptors, where there are fewer than twice as many.
    pub const RESERVE: usize = 256, count "file descriptors that are not for connections";
    /// Each holds a connection for as long as somebody looks at a room. Three sixteenths of
    /// all connections, where that is less. Further ones get 503 and are told when to come back.
    pub const MAX_STREAMS: usize = 2_000, count "event streams of the web chat at the same time";
    /// Half of those: they leave the rest to whoever was invited.
    pub const MAX_STREAMS_OF_VISITORS: usize = MAX_STREAMS / 2, count "of those, event streams of visitors";
    /// Eleven sixteenths of all connections, so that with every stream an eighth is left for
    /// whoever asks for something short. Further ones get 503 and are told when to come back.
    pub const MAX_RELAY: usize = MAX_CONNECTIONS / 16 * 11, count "relay sockets at the same time";
    /// Nine sixteenths of all connections: other tenants find a place. Further ones get 503 and are
    /// told when to come back.
    pub const MAX_RELAY_OF_TENANT: usize = MAX_CONNECTIONS / 16 * 9, count "relay sockets of one tenant";
    /// Commands and dashboards, out of the reserve, so that the admin API answers
    /// whatever happens at the public address.
    pub const MAX_ADMIN_CONNECTIONS: usize = 64, count "connections to the admin API";
    /// Whole offices and fleets sit behind one address, and one machine alone must
    /// not take every place; `limits.connections_per_address` changes it. Beyond it
    /// the connection of that address which deserves its place least is closed, or
    /// the new one. It does not count behind a proxy, nor on this machine.
    pub const MAX_PER_ADDRESS: usize = 256, count "connections from one address (IPv6: from one /64)";
    /// Who does not get through a TLS handshake by then speaks something else, or
    /// nothing; the connection is closed.
    pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10), time "for a TLS handshake";
    /// The connection is closed if its next request's head is not complete by then,
    /// a quiet one too.
    pub const HEAD_WITHIN: Duration = Duration::from_secs(10), time "for the head of a request";
    /// An upgrade carries one token and a few headers. Larger ones get 431.
    pub const MAX_HEAD: usize = 16 * 1024, bytes "of the head of a request";
    /// Streams only have to begin by then. What takes longer gets 503.
    pub const ANSWER_WITHIN: Duration = Duration::from_secs(30), time "to receive and answer a request";
    /// Files over a slow line. Whoever sends nothing of one for half a minute is given up before.
    pub const UPLOAD_WITHIN: Duration = Duration::from_secs(600), time "to receive a file";
    /// Of a file that comes or goes, once its first minute is over: as much as the worst of lines carry.
    /// Whoever is slower has the turn of somebody else; the connection is closed.
    pub const SLOWEST: u64 = 32 * 1024, bytes "a second of a file that comes or goes";
    /// For whoever is on the way through a tunnel.
    pub const SLOW_START: Duration = Duration::from_secs(60), time "in which a file may come or go as slowly as it likes";
    /// A peer that takes nothing of an answer for so long does not read; the
    /// connection is closed.
    pub const WRITE_PATIENCE: Duration = Duration::from_secs(20), time "without progress of an answer, or of an event stream";
    /// Gateways may read nothing for 40 s while they work; sockets that say nothing
    /// at all are closed after 90 s by the relay itself.
    pub const RELAY_WRITE_PATIENCE: Duration = Duration::from_secs(120), time "without progress of what is written to a relay socket";
    /// Requests that were sent before the answer to the one before wait for each
    /// other, whichever connection they are on: a thousand who send ahead take one
    /// turn at a time from those who wait for their answers, and a fifth of the time.
    pub const SENT_AHEAD: usize = 1, count "requests at the same time that were sent ahead of an answer";
    /// A request sent ahead that has to wait for something else lets the next one go
    /// after so long; at once, if few others wait.
    pub const SENT_AHEAD_TURN: Duration = Duration::from_millis(50), time "that one request sent ahead keeps the others waiting";
}
