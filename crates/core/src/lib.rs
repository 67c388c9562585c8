//! The decisions of the connector, without any I/O.
//!
//! Everything here is a function of (state, input, now). Sockets, disks and
//! providers live in the crates around this one; the ports they implement are
//! declared in [`ports`] and [`store`].
//!
//! | Question | Module |
//! |---|---|
//! | Whose message is it, and may its author speak? | [`admission`] |
//! | What does an agent in company get to know of what others said? | [`context`] |
//! | What is buffered, pushed, acknowledged, pushed again, given up? | [`inbox`] |
//! | Does an agent work on something, and what waits for its end? | [`turns`] |
//! | Was an action sent, and is it tried again? | [`egress`] |
//! | Who is known: tenants, gateways, routes, tokens; may this one dial? | [`identity`] |
//! | Which commands do people see, and what becomes of one? | [`commands`] |
//! | What answers an interaction, and until when? | [`vault`] |
//! | Which messages open threads, and who renames them? | [`threads`] |
//! | What is kept of chats? | [`directory`] |
//! | How are files kept, named and shown, and for whom? | [`media`] |
//! | What are people told, and in which language? | [`notices`], [`own_words`] |
//! | How often may something happen? | [`limit`], [`limit_per_address`] |
//! | What may others make the server hold? | [`memory`], [`connections`], [`space`] |
//! | Which nodes are there, and which of them does what? | [`cluster`], [`lease`] |
//! | Does what a node says count, or was it said before? | [`once`] |
//! | What does a database have to do? | [`ports`], [`records`] |
//! | How do secrets rest? | [`seal`] |

pub mod admission;
pub mod allowed_hosts;
pub mod audit;
pub mod clock;
pub mod cluster;
pub mod commands;
pub mod connections;
pub mod context;
pub mod did_you_mean;
pub mod directory;
pub mod egress;
pub mod error;
pub mod fail;
pub mod identity;
pub mod inbox;
mod journal;
pub mod lease;
pub mod limit;
pub mod limit_per_address;
pub mod media;
pub mod memory;
pub mod notices;
pub mod once;
pub mod own_words;
pub mod ports;
pub mod problems;
pub mod prompts;
pub mod quarantine;
pub mod records;
pub mod rooms;
pub mod seal;
pub mod secret;
pub mod space;
pub mod store;
pub mod threads;
pub mod turns;
pub mod vault;
pub mod visible;
mod words;

pub use error::{Error, Kind};

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[angelia_contract::limit::Group] = &[
    ("Memory", memory::LIMITS),
    ("Memory", context::LIMITS),
    ("Files", media::LIMITS),
    ("Connections", connections::LIMITS),
    ("Gateways and who signs in", identity::new_gateway_limits::LIMITS),
    ("Gateways and who signs in", identity::sign_in::LIMITS),
    ("Gateways and who signs in", limit_per_address::LIMITS),
    ("Relay sockets", inbox::BACKLOG_LIMITS),
    ("Relay sockets", turns::LIMITS),
    ("What agents send", egress::delivery::LIMITS),
    ("What agents send", prompts::LIMITS),
    ("Gateways and who signs in", commands::LIMITS),
    ("What agents send", threads::LIMITS),
    ("Disk", space::LIMITS),
    ("Disk", inbox::LIMITS),
    ("Time and the audit log", clock::LIMITS),
    ("Time and the audit log", audit::LIMITS),
    ("Web chat", rooms::LIMITS),
    ("Web chat", rooms::SIZE_LIMITS),
    ("Web chat", rooms::MARK_LIMITS),
    ("Web chat", rooms::THREAD_LIMITS),
];
