//! Sealing secrets for the store, by envelope: each value is encrypted with a
//! data key of its own, and that key is wrapped with the master key. Both are
//! XChaCha20-Poly1305.
//!
//! A sealed value names the master key that wrapped it and is bound to the row it
//! belongs to, so a value moved to another row, kind or tenant does not open. A
//! change of the master key wraps the data keys anew, row by row, while both
//! master keys are at hand (docs/decisions/0031).

mod envelope;
mod keys;
mod master_key;
mod stored;

pub use envelope::{HEAD_BYTES, Head, Unreadable, key_id};
pub use keys::{Keys, Sealed, may_retire};
pub use master_key::{KEY_BYTES, KeyId, MasterKey};
pub use stored::{KeyChange, Resealed, Retired, SealStore, SealedValue};

use crate::directory::BotKey;
use crate::inbox::InstanceId;

/// The note that is sealed only so that a wrong key is recognised at start. It names
/// the key that everything in the store can be opened with.
pub const KEY_CHECK: &str = "key_check";
/// The note that holds the key of the built-in token endpoint.
pub const OAUTH_KEY: &str = "oauth_key";
/// The note with what proves to nodes of a cluster that one of them speaks.
pub const BUS_KEY: &str = "bus_key";
/// The note with what the admin API asks for, where several nodes answer it.
pub const ADMIN_TOKEN: &str = "admin_token";
/// The note that holds the master key before the current one, sealed with the current
/// one, for as long as something in the store may need it.
pub const FORMER_KEY: &str = "former_key";

/// What a link to a file is bound to: it is no row, and stands for itself.
pub const FILE_LINK: &str = "file link";

/// What a gateway's secret is bound to.
pub fn gateway_secret(tenant: &str, gateway_id: &str) -> String {
    format!("gateway-secret/{tenant}/{gateway_id}")
}

/// What a tenant's delivery key is bound to.
pub fn delivery_key(tenant: &str) -> String {
    format!("delivery-key/{tenant}")
}

/// What a bot's unreadable updates are bound to.
pub fn quarantine(platform: &str, bot: &str) -> String {
    format!("quarantine/{platform}/{bot}")
}

/// What the key of a file's bytes is bound to.
pub fn blob_key(tenant: &str, blob: &str) -> String {
    format!("blob-key/{tenant}/{blob}")
}

/// What a capability is bound to: who may use it, as which bot, and for which
/// chat, person and interaction.
pub fn capability(tenant: &str, instance: InstanceId, bot: &BotKey, whom: [&str; 3]) -> String {
    let [chat, user, interaction] = whom;
    let BotKey { platform, bot } = bot;
    format!("capability/{tenant}/{}/{platform}/{bot}/{chat}/{user}/{interaction}", instance.0)
}
