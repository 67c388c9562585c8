//! The vault, as it is kept.

use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::inbox::InstanceId;
use crate::records::table::{field, record};
use crate::vault::{Capability, CapabilityId, Deferral, Stage};

field!(CapabilityId as i64, |id| id.0, |id| Some(CapabilityId(id)));
field!(Stage as String, |stage| stage.as_str().to_owned(), |word| Some(Stage::stored(&word)));
field!(Deferral as String, |deferral| deferral.as_str().to_owned(), |word| Some(Deferral::stored(&word)));

record! {
    /// A capability. Actions claim and release it where they are accepted and finished.
    pub struct CapabilityRow in "capabilities", key 1, finds [["instance"]],
    walks [["stage"] along "expires_at"] {
        /// Its number; later ones are higher.
        id: CapabilityId,
        /// What it is.
        kind: String,
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
        /// What that person sees meanwhile.
        deferral: Deferral,
        /// How far the answer is.
        stage: Stage,
        /// When the person was told that no answer came.
        noticed_at: Option<UnixMillis>,
        /// The credential, sealed.
        sealed: Vec<u8>,
        /// When it ends.
        expires_at: UnixMillis,
    }
}

impl From<CapabilityRow> for Capability {
    fn from(row: CapabilityRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            tenant: row.tenant,
            instance: row.instance,
            bot: BotKey { platform: row.platform.into(), bot: row.bot.into() },
            chat_id: row.chat_id,
            user_id: row.user_id,
            interaction_id: row.interaction_id,
            deferral: row.deferral,
            stage: row.stage,
            sealed: row.sealed,
            expires_at: row.expires_at,
        }
    }
}
