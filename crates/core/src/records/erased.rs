//! What is deleted lives on in a database's log for a while. Whether that is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what a change replaced is gone from the disk too, or goes later. Told before
/// the change is answered.
#[derive(Clone, Debug, Default)]
pub struct Erased(Arc<AtomicBool>);

impl Erased {
    /// Says so.
    pub fn tell(&self, erased: bool) {
        self.0.store(erased, Ordering::Release);
    }

    /// What was said.
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
