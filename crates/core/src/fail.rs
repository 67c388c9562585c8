//! Named points between receive and acknowledge at which a test ends the process.
//!
//! Only built with the feature `fail-points`; otherwise [`point`] is nothing.
//! `ANGELIA_FAIL=name@N` aborts the process when `name` is passed the N-th time.
//! `ANGELIA_SLOW=MS` makes every commit take that much longer, and
//! `ANGELIA_HOLD=FILE` holds commits back for as long as that file exists.

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

/// Where a test may have commits wait.
#[cfg(not(feature = "fail-points"))]
#[inline(always)]
pub fn commit() {}

/// Where a test may have commits wait.
#[cfg(feature = "fail-points")]
pub fn commit() {
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::time::Duration;

    static CHOSEN: OnceLock<(Option<Duration>, Option<PathBuf>)> = OnceLock::new();

    let (slow, hold) = CHOSEN.get_or_init(|| {
        let slow = std::env::var("ANGELIA_SLOW").ok().and_then(|ms| ms.parse().ok());
        (slow.map(Duration::from_millis), std::env::var_os("ANGELIA_HOLD").map(PathBuf::from))
    });
    if let Some(slow) = slow {
        std::thread::sleep(*slow);
    }
    while hold.as_ref().is_some_and(|file| file.exists()) {
        std::thread::sleep(Duration::from_millis(10));
    }
}
