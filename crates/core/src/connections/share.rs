//! How file descriptors are shared out.

use super::{MAX_ADMIN_CONNECTIONS, MAX_CONNECTIONS, RESERVE};

/// Who gets how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Connections to the public listener.
    pub connections: usize,
    /// Connections to the admin listener, out of the reserve.
    pub admin: usize,
    /// What is kept for everything else.
    pub reserve: usize,
}

/// Shares out as many descriptors as the process may have.
pub fn share(descriptors: u64) -> Shares {
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    let reserve = RESERVE.min(descriptors / 2);
    Shares {
        connections: (descriptors - reserve).clamp(1, MAX_CONNECTIONS),
        admin: MAX_ADMIN_CONNECTIONS.min(reserve / 4).max(1),
        reserve,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_never_take_the_reserve() {
        assert_eq!(share(1_024), Shares { connections: 768, admin: 64, reserve: 256 });
        assert_eq!(share(u64::MAX), Shares { connections: 50_000, admin: 64, reserve: 256 });
        assert_eq!(share(100), Shares { connections: 50, admin: 12, reserve: 50 });
        for descriptors in 2..5_000_u64 {
            let Shares { connections, admin, reserve } = share(descriptors);
            assert!(connections as u64 + reserve as u64 <= descriptors, "{descriptors}");
            assert!(connections >= 1 && admin >= 1 && admin <= reserve, "{descriptors}");
        }
        assert_eq!(share(0).connections, 1);
    }
}
