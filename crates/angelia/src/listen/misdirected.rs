//! Requests that ask for another host than this one.

use angelia_core::clock;
use angelia_core::limit::LogThrottle;
use angelia_core::visible::visible_up_to;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;

/// More of a name helps nobody.
const SHOWN: usize = 100;

/// What becomes of them: an answer, a count, and a line in the log now and then. Behind
/// a proxy every request may be one, and whoever set it up looks there.
pub(crate) struct Misdirected {
    /// What is answered.
    answer: &'static str,
    /// What the operator can do about it.
    mend: &'static str,
    count: Box<dyn Fn() + Send + Sync>,
    warning: Mutex<LogThrottle>,
}

impl Misdirected {
    pub(crate) fn new(
        answer: &'static str,
        mend: &'static str,
        count: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self { answer, mend, count: Box::new(count), warning: Mutex::default() }
    }

    /// Answers one that asked for `host`.
    pub(super) fn refuse(&self, host: Option<&[u8]>) -> Response {
        (self.count)();
        let mut warning = self.warning.lock();
        if let Some(times) = warning.note(clock::mono()) {
            let host = visible_up_to(&String::from_utf8_lossy(host.unwrap_or_default()), SHOWN);
            tracing::warn!(host, times, "requests for another host name get 421; {}", self.mend);
        }
        drop(warning);
        (StatusCode::MISDIRECTED_REQUEST, self.answer).into_response()
    }
}
