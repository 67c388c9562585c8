//! The audit log as the store sees it.

use super::BoxFuture;
use crate::audit::{AuditEntry, AuditLine};
use crate::error::Result;
use crate::records::{Change, Records, change, look};

/// Rows come and stay.
pub trait AuditStore: Records {
    /// Writes down what was not a change of the store: a refusal, a rotation.
    fn audit(&self, entry: AuditEntry) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("write the audit log"), move |view| {
            view.audit(&entry);
            Ok(())
        })
    }

    /// The newest lines first, of one tenant or of all.
    fn audit_lines(&self, tenant: Option<&str>, limit: usize) -> BoxFuture<'_, Result<Vec<AuditLine>>> {
        let tenant = tenant.map(str::to_owned);
        look(self, "read the audit log", move |view| match &tenant {
            Some(tenant) => view.newest(&["tenant"], (tenant,), limit),
            None => view.newest(&[], (), limit),
        })
    }
}

impl<R: Records + ?Sized> AuditStore for R {}
