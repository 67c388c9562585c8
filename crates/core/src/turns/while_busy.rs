//! What becomes of a line that comes while the agent works (`while_busy`), as an operator wants it.

use crate::words::words;

words! {
    /// How lines wait for an agent that is busy in their conversation.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum WhileBusy {
        /// What suits the gateway.
        #[default]
        Auto = "auto",
        /// They wait for the end of the turn, then go together.
        Collect = "collect",
        /// They wait for the end of the turn, then go one by one.
        Followup = "followup",
        /// They end the turn and go at once.
        Interrupt = "interrupt",
        /// They go in at once, whatever the agent does.
        Pass = "pass",
    }
}
