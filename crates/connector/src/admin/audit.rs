//! Reading the audit log.

use super::Admin;
use angelia_core::audit::AuditLine;
use angelia_core::error::Result;
use angelia_core::store::AuditStore;
use std::sync::Arc;

asked! {
    /// Which lines of the audit log.
    pub struct AuditWanted {
        /// Only what concerns this tenant.
        pub tenant: Option<String>,
        /// How many.
        pub limit: Option<usize>,
    }
}

answered! {
    /// Who changed what.
    pub struct Audit {
        /// Newest first.
        pub audit: Vec<AuditLine>,
    }
}

/// Lines in one answer, unless said otherwise and at the most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

pub(super) async fn list(admin: Arc<Admin>, wanted: AuditWanted) -> Result<Audit> {
    let limit = wanted.limit.unwrap_or(PAGE).min(MAX_PAGE);
    Ok(Audit { audit: admin.ports.records.audit_lines(wanted.tenant.as_deref(), limit).await? })
}
