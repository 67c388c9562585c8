//! What must hold when things die, stall, fill up or lie.
//!
//! Every test runs the real binary as a process of its own and judges from
//! the outside: from what senders were told and from what a gateway process
//! wrote down (`log-agent`), never from the server's own books.
//!
//! Random choices come from a seed that is printed; `CHAOS_SEED=<number>`
//! plays the same choices again. Figures go to standard error even when the
//! test passes.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests: a failed expectation is a panic")]

// Named to run first: it mostly waits, and the others run beside it.
#[path = "chaos/frozen_gateway.rs"]
mod a_frozen_gateway;
#[path = "chaos/agent.rs"]
mod agent;
#[path = "chaos/crowd.rs"]
mod crowd;
#[path = "chaos/crowded_out.rs"]
mod crowded_out;
#[path = "chaos/dice.rs"]
mod dice;
#[allow(dead_code, reason = "most of it is for the tests of platforms")]
#[path = "platforms/discord_stage.rs"]
mod discord_stage;
#[path = "chaos/file_load.rs"]
mod file_load;
#[path = "chaos/full_disk.rs"]
mod full_disk;
#[path = "chaos/full_disk_operator.rs"]
mod full_disk_operator;
#[path = "chaos/hostile_bombs.rs"]
mod hostile_bombs;
#[path = "chaos/hostile_frames.rs"]
mod hostile_frames;
#[path = "chaos/hostile_guests.rs"]
mod hostile_guests;
#[path = "chaos/hostile_http.rs"]
mod hostile_http;
#[path = "chaos/idle_memory.rs"]
mod idle_memory;
#[path = "chaos/interactions_crowd.rs"]
mod interactions_crowd;
#[allow(dead_code, reason = "most of it is for the tests of platforms")]
#[path = "platforms/interactions_stage.rs"]
mod interactions_stage;
#[path = "chaos/interrupts.rs"]
mod interrupts;
#[path = "chaos/judge.rs"]
mod judge;
#[path = "chaos/killed_connector.rs"]
mod killed_connector;
#[path = "chaos/killed_gateway.rs"]
mod killed_gateway;
#[path = "chaos/mixed_load.rs"]
mod mixed_load;
#[path = "chaos/named_points.rs"]
mod named_points;
#[path = "chaos/peer.rs"]
mod peer;
#[path = "chaos/raw_http.rs"]
mod raw_http;
#[path = "chaos/rogue_gateway.rs"]
mod rogue_gateway;
#[path = "chaos/rogue_lanes.rs"]
mod rogue_lanes;
#[path = "chaos/room.rs"]
mod room;
#[path = "chaos/server.rs"]
mod server;
#[path = "chaos/stage.rs"]
mod stage;
#[path = "chaos/stuck_reader.rs"]
mod stuck_reader;
#[path = "chaos/uploads.rs"]
mod uploads;
