//! When a test may run, and how it speaks.

use parking_lot::RwLock;
use std::future::Future;
use std::io::Write;
use std::time::Duration;

/// Tests that measure hold it alone; tests that load the machine share it.
static MACHINE: RwLock<()> = RwLock::new(());

/// Runs a test that keeps the processors busy, beside others of its kind.
pub(crate) fn busy<T>(test: impl Future<Output = T>) -> T {
    let _shared = MACHINE.read();
    calm(test)
}

/// Runs a test that measures: nothing that loads the machine runs meanwhile.
pub(crate) fn alone<T>(test: impl Future<Output = T>) -> T {
    let _alone = MACHINE.write();
    calm(test)
}

/// Runs a test that mostly waits.
pub(crate) fn calm<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("start a runtime").block_on(test)
}

/// Prints a figure, also when the test passes.
pub(crate) fn report(test: &str, text: &str) {
    let _ = writeln!(std::io::stderr(), "[{test}] {text}");
}

/// The value below which `share` of the samples lie; sorts them.
pub(crate) fn quantile(samples: &mut [Duration], share: f64) -> Duration {
    assert!(!samples.is_empty(), "nothing was measured");
    samples.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let index = ((samples.len() - 1) as f64 * share).round() as usize;
    samples[index]
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// How long others' things took: beside somebody who writes to a sink, and beside
/// the same bytes written to the server.
#[derive(Default)]
pub(crate) struct Others {
    pub(crate) beside_sink: Vec<Duration>,
    pub(crate) beside_flood: Vec<Duration>,
}

impl Others {
    /// What was measured, in words.
    pub(crate) fn told(&mut self) -> String {
        let mut at = |share| {
            let (a, b) = (quantile(&mut self.beside_sink, share), quantile(&mut self.beside_flood, share));
            format!("{:.1} to {:.1} ms", milliseconds(a), milliseconds(b))
        };
        format!("median {}, p99 {}", at(0.5), at(0.99))
    }

    /// Whether they hardly felt it: the median within three times, and the slowest
    /// of a hundred within five times or 50 ms.
    pub(crate) fn verdict(&mut self) -> Result<(), String> {
        let (a, b) = (quantile(&mut self.beside_sink, 0.5), quantile(&mut self.beside_flood, 0.5));
        if b > a * 3 {
            return Err(format!("the median went from {a:?} to {b:?}"));
        }
        let (a, b) = (quantile(&mut self.beside_sink, 0.99), quantile(&mut self.beside_flood, 0.99));
        if b > (a * 5).max(a + Duration::from_millis(50)) {
            return Err(format!("the p99 went from {a:?} to {b:?}"));
        }
        Ok(())
    }
}
