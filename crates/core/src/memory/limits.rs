//! How much memory may be held for whom.

angelia_contract::limits! {
    /// What gateways make the server hold: unfinished lines, actions that wait, entries on their way. Beyond it they are refused, whoever they are. Set by `limits.memory`.
    pub const MEMORY: usize = 128 * 1024 * 1024, bytes "memory for all gateways together, with the reserve";
    /// Only operators may use it, so that a server whose memory is taken can still be told whom to revoke.
    pub const RESERVE: usize = 16 * 1024 * 1024, bytes "memory kept for operators";
    /// A third of all: one tenant never takes the server from the others. Its frames and actions are refused beyond it. Set by `limits.tenant_memory`.
    pub const TENANT_MEMORY: usize = 40 * 1024 * 1024, bytes "memory for one tenant";
    /// An agent's answers while a platform stands still.
    pub const INSTANCE_MEMORY: usize = 24 * 1024 * 1024, bytes "memory for one instance";
    /// The largest line, grown by doubling, and what is on its way to the gateway.
    pub const SOCKET_MEMORY: usize = 8 * 1024 * 1024, bytes "memory for one socket";
    /// Far above what an agent writes, edits of a growing text included. Whoever sends faster is read more slowly, after a burst of two seconds.
    pub const INSTANCE_RATE: usize = 2 * 1024 * 1024, bytes "a second from the sockets of one instance";
    /// The same for all agents of a tenant: reading costs time that others want too.
    pub const TENANT_RATE: usize = 16 * 1024 * 1024, bytes "a second from all sockets of one tenant";
}

/// The bounds of [`Memory`](super::Memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Of everybody together.
    pub all: usize,
    /// What only operators may use of that.
    pub reserve: usize,
    /// Of one tenant.
    pub tenant: usize,
    /// Of one instance.
    pub instance: usize,
    /// Of one socket.
    pub socket: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            all: MEMORY,
            reserve: RESERVE,
            tenant: TENANT_MEMORY,
            instance: INSTANCE_MEMORY,
            socket: SOCKET_MEMORY,
        }
    }
}
