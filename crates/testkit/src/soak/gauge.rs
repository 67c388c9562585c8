//! What a process holds, as the system tells it.

use std::fs;
use std::path::{Path, PathBuf};

/// Ticks of a second in `/proc/PID/stat`; the same on every Linux this runs on.
const TICKS: f64 = 100.0;

/// Reads one process and its data directory.
#[derive(Debug)]
pub(super) struct Gauge {
    process: PathBuf,
    data: PathBuf,
}

/// One look.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Resident memory in KiB, and how much of it is the process's own: heap and stacks.
    pub(super) rss: u64,
    pub(super) anonymous: u64,
    pub(super) threads: u64,
    pub(super) descriptors: u64,
    /// Sizes on the disk in KiB.
    pub(super) database: u64,
    pub(super) log: u64,
    /// Seconds of processor time since the start.
    pub(super) cpu: f64,
}

impl Gauge {
    pub(super) fn new(process: i32, data: &Path) -> Self {
        Self { process: PathBuf::from(format!("/proc/{process}")), data: data.to_owned() }
    }

    /// Looks once.
    ///
    /// # Panics
    ///
    /// When the process has ended.
    pub(super) fn look(&self) -> Sample {
        let status = self.read("status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
        };
        let size =
            |name: &str| fs::metadata(self.data.join(name)).map_or(0, |file| file.len().div_ceil(1_024));
        Sample {
            rss: field("VmRSS"),
            anonymous: field("RssAnon"),
            threads: field("Threads"),
            descriptors: fs::read_dir(self.process.join("fd")).map_or(0, |files| files.count() as u64),
            database: size("angelia.db"),
            log: size("angelia.db-wal"),
            cpu: self.cpu(),
        }
    }

    /// User and system time: the 14th and 15th field, counted behind the name in brackets.
    fn cpu(&self) -> f64 {
        let stat = self.read("stat");
        let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks = behind_name.split_whitespace().skip(11).take(2).filter_map(|it| it.parse::<f64>().ok());
        ticks.sum::<f64>() / TICKS
    }

    fn read(&self, name: &str) -> String {
        let path = self.process.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("the server is gone: {path:?}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_read() {
        let own = i32::try_from(std::process::id()).unwrap();
        let sample = Gauge::new(own, Path::new("/nowhere")).look();
        assert!(sample.rss > sample.anonymous && sample.anonymous > 100, "{sample:?}");
        assert!(sample.threads >= 1 && sample.descriptors >= 3, "{sample:?}");
        assert_eq!(sample.database, 0);
    }
}
