//! Turns: an agent at work on what it was given, and what becomes of what is said meanwhile.

mod while_busy;

pub use while_busy::WhileBusy;
