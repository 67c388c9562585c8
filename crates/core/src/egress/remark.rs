//! What a chat hears of a message of which nobody knows whether it arrived: never nothing, and
//! never the message itself a second time without a mark (docs/decisions/0041).

use crate::words::words;

words! {
    /// What is said in the chat then.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Remark {
        /// That something may be missing.
        #[default]
        Tell = "tell",
        /// The message once more, with a mark.
        Repeat = "repeat",
    }
}

/// How the ledger names what a gateway wants said.
pub const SEND: &str = "send";
/// How the ledger names a file that a gateway wants shown.
pub(super) const SEND_MEDIA: &str = "send_media";
/// How the ledger names what was asked for as a `follow_up`; its body is a `send`.
pub const FOLLOW_UP: &str = "follow_up";
/// How the ledger names a remark; its body is a `send`.
pub const REMARK: &str = "remark";

/// What is said of an action of the ledger in doubt, where an operator `wants` this; `None` if
/// nothing is.
///
/// Whoever reads a chat misses a message, not a change of one, and remarks on remarks would never
/// end. What the connector says itself is worth no second word either. A `follow_up` is for whoever
/// asked: it does not become a message of the chat.
pub fn remark_on(op: &str, of_gateway: bool, wants: Remark) -> Option<Remark> {
    match op {
        _ if !of_gateway => None,
        SEND => Some(wants),
        // A file is not shown once more: whoever misses it asks for it.
        FOLLOW_UP | SEND_MEDIA => Some(Remark::Tell),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_gateway_says_is_worth_a_remark() {
        for wants in Remark::ALL {
            assert_eq!(remark_on(SEND, true, wants), Some(wants));
            assert_eq!(remark_on(FOLLOW_UP, true, wants), Some(Remark::Tell), "nobody else is to read it");
            assert_eq!(remark_on(SEND_MEDIA, true, wants), Some(Remark::Tell));
            for op in ["edit", "typing", REMARK] {
                assert_eq!(remark_on(op, true, wants), None, "{op}");
            }
            for op in [SEND, SEND_MEDIA, FOLLOW_UP, REMARK] {
                assert_eq!(remark_on(op, false, wants), None, "{op}");
            }
        }
    }
}
