//! Several nodes in one process, over engines in memory: a seeded scheduler loses,
//! doubles and reorders hints, fails commits or loses their answers, kills nodes
//! and lets them stand still, sets clocks, and makes gateways and providers stall.
//!
//! What is driven are core's own machines: [`inbound`] what people write,
//! [`outbound`] what agents send, [`turns`] what waits while they work, [`duties`] what only one node
//! does at a time. A seed that fails fails again.

mod dice;
pub mod duties;
pub mod inbound;
pub mod outbound;
mod trace;
pub mod turns;
