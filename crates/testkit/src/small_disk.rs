//! A small disk of its own that a test can fill.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Has mounting fail be a failure: for machines on which everything has to be shown.
const MUST: &str = "ANGELIA_TEST_MUST_MOUNT";

/// A mounted tmpfs; it goes when it is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one of so many megabytes, where everybody may look; `None` where that is not permitted.
    ///
    /// # Panics
    ///
    /// When mounting is not permitted and has to be.
    pub fn mount(megabytes: usize) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("angelia-disk-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("make the mount point");
        let options = format!("size={megabytes}m,mode=755");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path).status();
        if mounted.as_ref().is_ok_and(std::process::ExitStatus::success) {
            return Some(Self { path });
        }
        let _ = fs::remove_dir(&path);
        assert!(std::env::var_os(MUST).is_none(), "mounting is not permitted: {mounted:?}");
        None
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills it until not one byte more fits.
    ///
    /// # Panics
    ///
    /// When nothing can be written at all.
    pub fn fill(&self) {
        let ballast = OpenOptions::new().create(true).append(true).open(self.ballast());
        let mut ballast = ballast.expect("a file to fill it with");
        for size in [64 * 1024, 4 * 1024, 1] {
            while ballast.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Gives the room back.
    pub fn free(&self) {
        let _ = fs::remove_file(self.ballast());
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
        let _ = fs::remove_dir(&self.path);
    }
}
