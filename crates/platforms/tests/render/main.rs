//! Telegram's rendering, tested from outside: a table of cases, an
//! independent reader of Markdown, laws that hold for any input, and cuts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod cuts;
mod judge;
mod laws;
mod oracle;
mod soup;
mod table;
