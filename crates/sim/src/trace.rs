//! What happened, for whoever has to understand a seed that failed.

use std::fmt::Display;

/// The story of a run, if anybody wants it: told only then, because most runs go well.
#[derive(Default)]
pub(crate) struct Trace(Option<Vec<String>>);

impl Trace {
    /// One that is written down, if `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        Self(wanted.then(Vec::new))
    }

    /// Something happened.
    pub(crate) fn tell<T: Display>(&mut self, line: impl FnOnce() -> T) {
        if let Some(lines) = &mut self.0 {
            lines.push(line().to_string());
        }
    }

    /// The story so far.
    pub(crate) fn take(&mut self) -> Vec<String> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
