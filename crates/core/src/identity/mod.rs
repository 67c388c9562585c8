//! Who is known here: tenants, gateways and what they may, routes, tokens and codes. The
//! rules, each over a view of the records.
//!
//! | Question | File |
//! |---|---|
//! | Which gateway is dialling, and whether it may? | `upgrade.rs` |
//! | What becomes of an enrolment, a self-provisioning? | `enroll.rs`, `enroll_tokens.rs`, `new_gateway_limits.rs` |
//! | Who is a tenant's gateway, its instance, its default? | `gateways.rs`, `instances.rs` |
//! | Whose place is it? | `routes.rs`, `codes.rs`, `link_tries.rs` |
//! | Who proves a tenant? | `clients.rs`, `sign_in.rs`, `subject.rs` |
//! | What changed, for whoever follows? | `feed.rs` |

pub mod clients;
pub mod codes;
pub mod declared;
mod enroll;
pub mod enroll_tokens;
pub mod feed;
pub mod gateways;
pub mod instances;
pub mod link_tries;
pub mod new_gateway_limits;
pub mod routes;
pub mod sign_in;
mod subject;
pub mod tenants;
mod upgrade;

pub use enroll::{MAX_ENROLL_TOKEN, Provision, SAME_SECRET_FOR, judge_instance, judge_provision};
pub use subject::{Proof, Subject};
pub use upgrade::{GatewayRecord, GatewaySecret, Unproven, UpgradeVerdict, judge_upgrade};

/// Longest id of a tenant, gateway, instance, room or person.
pub const MAX_NAME: usize = 128;

/// How long a secret stays good after a newer one was made.
pub const ROTATION_WINDOW: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// How long a revoked gateway is remembered, so that a late dial is told.
pub const TOMBSTONE_FOR: std::time::Duration = std::time::Duration::from_secs(90 * 24 * 3600);

/// Checks a name a person gives to a tenant, gateway, room or user.
///
/// Gateway ids travel in tokens and environment lines, rooms and tenants in
/// URLs and places: one narrow alphabet keeps all of them unambiguous.
pub fn check_name(what: &str, name: &str) -> crate::error::Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | ':');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(good) {
        return Err(crate::Error::invalid(format!(
            "{name:?} cannot be a {what}: use 1 to {MAX_NAME} letters, digits, '-', '_', '.', '@' or ':'"
        )));
    }
    Ok(())
}
