//! What a process holds, as the system tells it.

use angelia_engines::store::sqlite::DATABASE_FILES;
use std::fs;
use std::path::{Path, PathBuf};

/// Ticks of a second in `/proc/PID/stat`; the same on every Linux this runs on.
const TICKS: f64 = 100.0;

/// Reads one process and its data directory.
#[derive(Debug)]
pub struct Gauge {
    process: PathBuf,
    data: PathBuf,
}

/// One look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Resident memory in KiB.
    pub rss: u64,
    /// How much of it is the process's own: heap and stacks.
    pub anonymous: u64,
    /// The most that was ever resident.
    pub peak: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Size of the database on the disk in KiB.
    pub database: u64,
    /// Size of its log in KiB.
    pub log: u64,
    /// Seconds of processor time since the start.
    pub cpu: f64,
}

impl Gauge {
    /// Of this process, whose data lie there.
    pub fn new(process: i32, data: &Path) -> Self {
        Self { process: PathBuf::from(format!("/proc/{process}")), data: data.to_owned() }
    }

    /// Looks once.
    ///
    /// # Panics
    ///
    /// When the process has ended.
    pub fn look(&self) -> Sample {
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
            peak: field("VmHWM"),
            threads: field("Threads"),
            descriptors: fs::read_dir(self.process.join("fd")).map_or(0, |files| files.count() as u64),
            database: size(DATABASE_FILES[0]),
            log: size(DATABASE_FILES[1]),
            cpu: self.cpu(),
        }
    }

    /// Seconds of processor time since the start: the 14th and 15th field, user and system,
    /// counted behind the name in brackets. What threads took that have ended is in it.
    ///
    /// # Panics
    ///
    /// When the process has ended.
    pub fn cpu(&self) -> f64 {
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
        assert!(sample.peak >= sample.rss, "{sample:?}");
        assert!(sample.threads >= 1 && sample.descriptors >= 3, "{sample:?}");
        assert_eq!(sample.database, 0);
    }
}
