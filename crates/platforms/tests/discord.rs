//! Discord against a stand-in that real clients accept, over a real store.

#![allow(clippy::unwrap_used, reason = "tests: a failed expectation is a panic")]

#[path = "discord/answers.rs"]
mod answers;
#[path = "discord/edge.rs"]
mod edge;
#[path = "discord/files.rs"]
mod files;
#[path = "discord/interactions.rs"]
mod interactions;
#[path = "discord/lifeline.rs"]
mod lifeline;
#[path = "discord/linking.rs"]
mod linking;
#[path = "discord/outage.rs"]
mod outage;
#[path = "discord/receive.rs"]
mod receive;
#[path = "discord/send.rs"]
mod send;
#[path = "discord/spoken.rs"]
mod spoken;
#[path = "discord/spread.rs"]
mod spread;
#[path = "discord/world.rs"]
mod world;
