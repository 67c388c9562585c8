//! How many files the process may have open.

/// Raises the limit as far as it can be raised, and says what it is now.
#[cfg(unix)]
pub(crate) fn raise() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it may not be raised, the one there is counts.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Elsewhere sockets are not bounded by such a limit.
#[cfg(not(unix))]
pub(crate) fn raise() -> u64 {
    u64::MAX
}
