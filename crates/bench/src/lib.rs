//! What one message costs the server, measured from outside.
//!
//! The real binary runs in a folder of its own, made ready over its own admin API. A thousand
//! gateways hold their sockets open, each with a web-chat room. Two things are measured, each
//! once as fast as it goes with so many at a time, and once at a fixed rate:
//!
//! - *durable delivery*: from the POST of a person until their agent's gateway has the message,
//!   which it then acknowledges;
//! - *the round trip*: from the `send` of a gateway until its `outbound_result`.
//!
//! On a machine with other things to do, rates and times wander by half; the processor time of
//! the server for one operation hardly does, if it is taken of two builds in turn. So that is the
//! figure to judge by, and [`report`] says of every difference whether it is within the spread.
//!
//! Like the test kit it panics when the server does not start or refuses to be set up.

pub mod anchor;
pub mod hop;
pub mod report;
pub mod run;
pub mod stage;
pub mod summary;

mod gateway;
mod load;
mod poster;
mod receipts;
mod telegram;
