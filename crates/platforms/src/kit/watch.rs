//! Looking from time to time whether all is well.

use crate::ingress::{Halted, Stop};
use angelia_core::limit::Backoff;
use std::time::Duration;

/// How often somebody looks.
pub(crate) struct Watch<'a> {
    stop: &'a Stop,
    every: Duration,
    backoff: Backoff,
}

impl<'a> Watch<'a> {
    /// Looks every so often while all is well, and sooner while it is not: after `first`,
    /// then ever longer up to `longest`.
    pub(crate) fn new(stop: &'a Stop, every: Duration, first: Duration, longest: Duration) -> Self {
        Self { stop, every, backoff: Backoff::new(first, longest) }
    }

    /// Waits for the next look after one that found all `well` or not.
    pub(crate) async fn next(&mut self, well: bool) -> Result<(), Halted> {
        if well {
            self.backoff.reset();
        }
        let pause = if well { self.every } else { self.backoff.pause() };
        self.stop.pause(pause).await
    }
}
