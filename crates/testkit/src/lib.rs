//! What Angelia's tests run against: real gateways, a model, processes.
//!
//! - [`hermes`] starts published hermes-agent gateways in a home of their own;
//! - [`newer_gateway`] stands in for later ones, which are not published as packages;
//! - [`model`] is the OpenAI-compatible model they talk to, and the witness of
//!   which texts reached an agent;
//! - [`connector`] runs an `angelia` binary, [`webchat`] is a person in one of
//!   its rooms;
//! - [`cluster`] is several of them on one PostgreSQL and one Redis, [`proxy`] what may
//!   break between, [`balancer`] what stands in front, [`small_disk`] a disk that can be filled;
//! - [`two_nodes`] makes two nodes of one server, for tests that know of one;
//! - [`portal`] tells whose token somebody holds, as an identity provider would;
//! - [`discord`] is a stand-in for Discord that discord.py accepts;
//! - [`scenarios`] are whole stories told with those five;
//! - [`issuer`] is an identity issuer that others' libraries sign for;
//! - [`telegram`] is a Bot API that real clients accept, and one of those clients;
//! - [`twilio`] is a Twilio that others wrote, and the vendor's own signatures;
//! - [`wecom`] has WeCom's API and posts callbacks that wechatpy encrypted;
//! - [`clock`] sets the clock of a process wrong;
//! - [`canary`] looks for secrets where they do not belong;
//! - [`soak`] keeps a server busy for an hour and looks whether it grows;
//! - [`gauge`] reads what a process holds and takes;
//! - [`process`] is the child-process handling they share.
//!
//! Everything here is test support: it panics with a message that names what
//! was awaited, because a test has nobody to return an error to.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "test support: a failed expectation is a panic, timings go to stderr"
)]

pub mod balancer;
pub mod canary;
pub mod clock;
pub mod cluster;
pub mod connector;
pub mod discord;
pub mod gauge;
pub mod hermes;
pub mod issuer;
pub mod model;
pub mod newer_gateway;
pub mod portal;
pub mod process;
pub mod proxy;
pub mod scenarios;
pub mod small_disk;
pub mod soak;
pub mod socket;
pub mod telegram;
pub mod twilio;
pub mod two_nodes;
pub mod webchat;
pub mod wecom;
