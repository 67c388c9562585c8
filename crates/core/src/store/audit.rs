//! The audit log as the store sees it.

use super::Later;
use crate::audit::{AuditLine, Deed};

/// Rows come and stay.
pub trait AuditStore: Send + Sync {
    /// Writes down what was not a change of the store: a refusal, a rotation.
    fn audit(&self, deed: Deed) -> Later<'_, ()>;

    /// The newest lines first, of one tenant or of all.
    fn audit_lines(&self, tenant: Option<&str>, limit: usize) -> Later<'_, Vec<AuditLine>>;
}
