//! The vault, as it is kept.

use crate::clock::UnixMillis;
use crate::inbox::InstanceId;
use crate::records::table::{field, record};
use crate::vault::{Capability, CapabilityId, Deferral, Stage};

field!(CapabilityId as i64, |id| id.0, |id| Some(CapabilityId(id)));
field!(Stage as String, |stage| stage.as_str().to_owned(), |word| Some(Stage::stored(&word)));
field!(Deferral as String, |deferral| deferral.as_str().to_owned(), |word| Some(Deferral::stored(&word)));

// Actions claim and release it where they are accepted and finished.
record! {
    impl Capability in "capabilities", key 1, finds [["instance"]], walks [["stage"] along "expires_at"] {
        id: CapabilityId,
        kind: String,
        tenant: String,
        instance: InstanceId,
        platform: String,
        bot: String,
        chat_id: String,
        user_id: String,
        interaction_id: String,
        deferral: Deferral,
        stage: Stage,
        noticed_at: Option<UnixMillis>,
        sealed: Vec<u8>,
        expires_at: UnixMillis,
    }
}
