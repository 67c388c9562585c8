//! What whoever has something for an inbox is told when it is not taken.

use super::WhenFull;
use crate::error::{Error, Kind, Result};
use std::time::Duration;

/// When whoever was refused may try again: an agent that is there reads some by then.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Something new for an inbox, and what room there is for it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// What is to become of it if there is none.
    pub when_full: WhenFull,
    /// Whether the inbox has room.
    pub admits: bool,
    /// Whether the tenant's share of the disk has room, as it is.
    pub fits: bool,
}

impl Arrival {
    /// Whether it is taken without a further look: there is room, or room is made for it.
    pub fn is_taken(&self) -> bool {
        self.when_full == WhenFull::MakeRoom || (self.admits && self.fits)
    }
}

/// Whether something that may be refused is taken, by whether the inbox has room, and the
/// tenant's share of the disk, once what can be forgotten is forgotten.
pub fn judge(admits: bool, fits: bool) -> Result<()> {
    match (admits, fits) {
        (true, true) => Ok(()),
        (false, _) => Err(Error::unavailable(
            "more waits for the agent than is kept for it: nothing was written, try again when it has read some",
        )
        .retry_in(TRY_AGAIN)),
        // It says nothing of whose the agent is.
        (true, false) => Err(Error::unavailable(
            "whoever runs this agent has used up their share of the server's disk: nothing was written, try again \
             when the agent has read some, or tell them",
        )
        .retry_in(TRY_AGAIN)),
    }
}

/// What a tenant is told whose share of the disk has no room for what its agents send.
pub fn tenant_full(tenant: &str, most: u64) -> Error {
    Error::new(
        Kind::TooMany,
        format!(
            "too much is kept of tenant {tenant:?}: its share of the disk, {most} bytes, is used up. \
             Nothing was written. Let its agents fetch what waits, or raise limits.tenant_disk"
        ),
    )
}

/// What whoever was admitted to an instance is told that nobody serves any more.
pub fn instance_gone() -> Error {
    Error::not_found("the instance this was for is gone: nothing was written")
}

/// What whoever wants to drain an instance is told if there is none.
pub fn no_instance() -> Error {
    Error::not_found("the instance is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_refused_is_taken_where_there_is_room() {
        let taken = |when_full, admits, fits| Arrival { when_full, admits, fits }.is_taken();
        assert!(taken(WhenFull::MakeRoom, false, false) && taken(WhenFull::Refuse, true, true));
        assert!(!taken(WhenFull::Refuse, true, false) && !taken(WhenFull::Refuse, false, true));
        assert!(judge(true, true).is_ok());
        let told = |admits, fits| judge(admits, fits).unwrap_err().to_string();
        assert!(told(false, false).starts_with("more waits for the agent"), "its own reason comes first");
        assert!(told(true, false).contains("share of the server's disk"));
    }
}
