//! What is sealed, as far as a change of the master key looks at it: the sealed bytes,
//! and what they are bound to. Who keeps the rest of a row is not told of such a change:
//! the secret stays the same.

use crate::inbox::InstanceId;
use crate::records::table::record;

record! {
    /// A tenant's delivery key.
    pub struct SealedTenantRow in "tenants", key 1, walks [[] along "tenant"],
    sealed "delivery_key", long true {
        /// The tenant.
        tenant: String,
        /// Sealed; made when its first gateway asks for it.
        delivery_key: Option<Vec<u8>>,
    }
}

record! {
    /// A gateway's secret.
    pub struct SealedSecretRow in "gateway_secrets", key 1, walks [[] along "id"],
    sealed "sealed", long true {
        /// Its number; grows.
        id: i64,
        /// The secret.
        sealed: Vec<u8>,
    } foreign {
        /// The tenant of its gateway.
        tenant: String,
        /// Its gateway.
        gateway_id: String,
    }
}

record! {
    /// What a provider sent that could not be read.
    pub struct SealedUpdateRow in "quarantine", key 1, walks [[] along "id"],
    sealed "sealed", long true {
        /// Its number; grows.
        id: i64,
        /// What was sent.
        sealed: Vec<u8>,
    } foreign {
        /// The platform.
        platform: String,
        /// The bot it was sent to.
        bot: String,
    }
}

record! {
    /// A credential in the vault.
    pub struct SealedCapabilityRow in "capabilities", key 1, walks [[] along "id"],
    sealed "sealed", long true {
        /// Its number; grows.
        id: i64,
        /// The credential.
        sealed: Vec<u8>,
    } foreign {
        /// The tenant whose gateway may use it.
        tenant: String,
        /// The instance that may use it.
        instance: InstanceId,
        /// The platform of the bot it acts as.
        platform: String,
        /// That bot.
        bot: String,
        /// The chat it answers in.
        chat_id: String,
        /// The person who waits.
        user_id: String,
        /// What it answers.
        interaction_id: String,
    }
}

record! {
    /// The key of a file's bytes.
    pub struct SealedBlobRow in "blobs", key 1, walks [[] along "blob"],
    sealed "sealed", long true {
        /// The blob.
        blob: String,
        /// Its key.
        sealed: Vec<u8>,
    } foreign {
        /// Whose it is.
        tenant: String,
    }
}
