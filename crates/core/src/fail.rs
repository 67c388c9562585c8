//! Named points between receive and acknowledge at which a test ends the process.
//!
//! Only built with the feature `fail-points`; otherwise [`point`] is nothing.
//! `ANGELIA_FAIL=name@N` aborts the process when `name` is passed the N-th time.
//! `ANGELIA_SLOW=MS` makes every commit take that much longer, and
//! `ANGELIA_HOLD=FILE` holds commits back for as long as that file exists, and writes
//! into it when one waits; `ANGELIA_REFUSE=FILE` makes them fail for as long.

/// A point a test may choose to die at.
#[cfg(not(feature = "fail-points"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// A point a test may choose to die at.
#[cfg(feature = "fail-points")]
pub fn point(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static CHOSEN: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    let chosen = CHOSEN.get_or_init(|| {
        let text = std::env::var("ANGELIA_FAIL").ok()?;
        let (name, nth) = text.split_once('@')?;
        Some((name.to_owned(), nth.parse().ok()?))
    });
    if let Some((wanted, nth)) = chosen
        && wanted == name
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *nth
    {
        std::process::abort();
    }
}

/// Where a test may have commits wait, or fail: whether this one may be made.
#[cfg(not(feature = "fail-points"))]
#[inline(always)]
pub fn commit() -> bool {
    true
}

/// Where a test may have commits wait, or fail: whether this one may be made.
#[cfg(feature = "fail-points")]
pub fn commit() -> bool {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::time::Duration;

    static SLOW: OnceLock<Option<Duration>> = OnceLock::new();
    static HOLD: OnceLock<Option<PathBuf>> = OnceLock::new();
    static REFUSE: OnceLock<Option<PathBuf>> = OnceLock::new();

    let file = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let slow = SLOW.get_or_init(|| {
        let slow = std::env::var("ANGELIA_SLOW").ok().and_then(|ms| ms.parse().ok());
        slow.map(Duration::from_millis)
    });
    let hold = HOLD.get_or_init(|| file("ANGELIA_HOLD"));
    let refuse = REFUSE.get_or_init(|| file("ANGELIA_REFUSE"));
    if let Some(slow) = slow {
        std::thread::sleep(*slow);
    }
    if let Some(file) = hold {
        let _ = OpenOptions::new().write(true).open(file).and_then(|mut file| file.write_all(b"held"));
        while file.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    !refuse.as_ref().is_some_and(|file| file.exists())
}
