//! Answers, as a person reads them.

mod bot;
mod bot_commands;
mod clock;
mod cluster;
mod explain;
mod gateway;
mod inbox;
mod key;
mod migrate;
mod place;
mod tenant;

pub(crate) use bot::*;
pub(crate) use bot_commands::*;
pub(crate) use clock::*;
pub(crate) use cluster::*;
pub(crate) use explain::*;
pub(crate) use gateway::*;
pub(crate) use inbox::*;
pub(crate) use key::*;
pub(crate) use migrate::*;
pub(crate) use place::*;
pub(crate) use tenant::*;

use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::visible::visible;
use std::fmt::Write as _;
use std::io::Write as _;

/// Writes to standard output; a reader who has seen enough is no error.
pub(crate) fn text(text: &str) -> Result<()> {
    heard(text).map(drop)
}

/// The same; tells whether somebody still reads.
pub(crate) fn heard(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::defect(error)),
    }
}

/// Others chose much of what is shown: what could steer a terminal, or hides, is written out.
fn harmless(text: &str) -> String {
    visible(text).into_owned()
}

/// The same of what may not be there.
fn perhaps(text: &Option<String>) -> String {
    harmless(text.as_deref().unwrap_or_default())
}

/// The same of several, one below the other.
fn harmless_lines(lines: &[String]) -> String {
    lines.iter().map(|line| harmless(line)).collect::<Vec<_>>().join("\n")
}

/// `1 route`, `2 routes`.
fn plural(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    }
}

fn state(connected: bool, idle: bool) -> String {
    match (connected, idle) {
        (true, _) => "connected".into(),
        (false, true) => "idle".into(),
        (false, false) => "away".into(),
    }
}

/// A stored time as UTC, to the millisecond; nothing if there is none.
pub(crate) fn moment(at: impl Into<Option<UnixMillis>>) -> String {
    let Some(UnixMillis(ms)) = at.into() else { return String::new() };
    let (days, ms_of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (s, ms) = (ms_of_day / 1000, ms_of_day % 1000);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{ms:03}Z", s / 3600, s / 60 % 60, s % 60)
}

/// Days since 1970 as a date, by the well-known era arithmetic.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for row in &all {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| format!("{cell:<width$}", width = width(column)))
            .collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    /// An answer as it comes from a server.
    pub(super) fn read<A: DeserializeOwned>(answer: Value) -> A {
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn moments_are_utc() {
        assert_eq!(moment(UnixMillis(0)), "1970-01-01 00:00:00.000Z");
        assert_eq!(moment(UnixMillis(1_794_736_799_123)), "2026-11-15 09:59:59.123Z");
        assert_eq!(moment(UnixMillis(951_782_400_000)), "2000-02-29 00:00:00.000Z");
    }
}
