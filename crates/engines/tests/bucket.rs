//! Blobs in a bucket: the tests of every engine of blobs, and what is a bucket's alone, against a
//! server that checks every signature and that nobody here wrote.

#![allow(clippy::unwrap_used, reason = "tests: a failed expectation is a panic")]

#[path = "ports/blobs.rs"]
mod blobs;
#[path = "bucket/stage.rs"]
mod stage;
#[path = "bucket/stories.rs"]
mod stories;
