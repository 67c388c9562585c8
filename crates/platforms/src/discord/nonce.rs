//! Keys by which Discord knows a message it was given before.

use super::{Discord, address};
use angelia_core::error::Result;
use angelia_core::secret::random_hex;
use angelia_core::store::ActionId;

/// Where the store keeps what its nonces begin with, beside the positions of streams.
const NONCE: &str = "nonce";

impl Discord {
    /// What nonces begin with: the same for all of a store's life, another for
    /// every store. One that was made anew counts its actions from the start
    /// while Discord still remembers what the old one said.
    pub(super) async fn nonce_prefix(&self) -> Result<&str> {
        self.nonce.get(&*self.ports.records, &self.key, NONCE, random_hex::<4>).await
    }
}

/// The key of an action's message, 25 characters at most: the store's prefix, the action.
pub(super) fn nonce(prefix: &str, id: ActionId) -> String {
    format!("{prefix}{:x}", id.0 & 0xff_ffff_ffff)
}

/// The key of a further piece, whichever action posts it: the message that the
/// text begins with, the part, and how often one was there and went. No action's
/// key begins with this letter.
pub(super) fn piece_nonce(first: &str, part: usize, gone: u32) -> String {
    format!("p{:x}.{:x}.{:x}", address::snowflake(first).unwrap_or_default(), part & 0xfff, gone & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_short_and_one_of_its_own() {
        let longest =
            [nonce("12345678", ActionId(i64::MAX)), piece_nonce(&u64::MAX.to_string(), 0xfff, 0xff)];
        assert!(longest.iter().all(|nonce| nonce.len() <= 25), "{longest:?}");
        let made = [
            nonce("ab", ActionId(1)),
            nonce("ab", ActionId(0x11)),
            nonce("ac", ActionId(1)),
            piece_nonce("17", 1, 0),
            piece_nonce("17", 1, 1),
            piece_nonce("17", 0x11, 0),
            piece_nonce("18", 1, 0),
        ];
        assert_eq!(made.iter().collect::<std::collections::HashSet<_>>().len(), made.len());
    }
}
