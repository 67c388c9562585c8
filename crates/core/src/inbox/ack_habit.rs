//! What is known of a gateway's habit of acknowledging.

use crate::words::words;

words! {
    /// Whether the gateway at the other end acknowledges `inbound` frames.
    ///
    /// Published gateways before 0.18 never do; waiting for them would stall the
    /// inbox for ever, and not waiting for the others would lose messages.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum AckHabit {
        /// Nothing was ever pushed to it long enough to tell.
        #[default]
        Unknown = "unknown",
        /// At least one acknowledgement was seen.
        Acknowledges = "acknowledges",
        /// It had its time for a first acknowledgement and gave none.
        Silent = "silent",
    }
}
