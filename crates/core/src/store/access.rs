//! What lets somebody in: clients, enrolment tokens, link codes; and what a
//! gateway declared about itself.

use super::{Later, NewGateway, StoredGateway};
use crate::admission::{Allow, Place, Policy};
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::inbox::InstanceId;

/// Of a bearer secret only what recognises it is kept.
pub type Fingerprint = [u8; 32];

/// An OAuth client of the built-in token endpoint.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Client {
    /// Its id.
    pub client_id: String,
    /// The tenant it proves.
    pub tenant: String,
    /// What recognises its secret.
    #[serde(skip)]
    pub secret: Fingerprint,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
}

/// A token that lets one gateway enrol, once.
#[derive(Clone, Debug)]
pub struct EnrollToken {
    /// What recognises it.
    pub fingerprint: Fingerprint,
    /// The tenant it is for.
    pub tenant: String,
    /// The only gateway it is for; `None` for any new one.
    pub gateway_id: Option<String>,
    /// Until when it is good.
    pub expires_at: UnixMillis,
}

/// Who may speak in a place that a code opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeAllow {
    /// Whoever types the code.
    Typist,
    /// As the operator said.
    Given(Allow),
}

/// A code that makes a route where it is typed, once.
#[derive(Clone, Debug)]
pub struct LinkCode {
    /// What recognises it.
    pub fingerprint: Fingerprint,
    /// The tenant that gets the place.
    pub tenant: String,
    /// Its instance that answers there, if not its default.
    pub instance: Option<InstanceId>,
    /// Who may speak there.
    pub allow: CodeAllow,
    /// Whether messages that do not address the bot are delivered too.
    pub free: bool,
    /// Until when it is good.
    pub expires_at: UnixMillis,
}

/// Clients, tokens, codes, policies.
pub trait AccessStore: Send + Sync {
    /// Makes a client; not found without its tenant.
    fn create_client(&self, client: Client, by: &Actor) -> Later<'_, ()>;

    /// Every client, oldest first.
    fn clients(&self) -> Later<'_, Vec<Client>>;

    /// The client with this id.
    fn client(&self, client_id: &str) -> Later<'_, Option<Client>>;

    /// Marks a client as revoked; not found if there is none.
    fn revoke_client(&self, client_id: &str, by: &Actor) -> Later<'_, Client>;

    /// Gives a client another secret; the one it had is void. Not found if there
    /// is none, a conflict if it was revoked.
    fn rotate_client(&self, client_id: &str, secret: Fingerprint, by: &Actor) -> Later<'_, Client>;

    /// Keeps an enrolment token; answers whether it is to replace a gateway
    /// that exists. Not found without its tenant, a conflict if that gateway was revoked.
    fn mint_enroll_token(&self, token: EnrollToken, by: &Actor) -> Later<'_, bool>;

    /// Uses up the token and, in the same commit, enrols `gateway`, or gives it
    /// a new secret where the token was made to replace it (its old ones are
    /// good until `old_until`). A refusal uses nothing up: forbidden if the token
    /// is unknown, used, expired, another tenant's or another gateway's; a
    /// conflict if the id is taken.
    fn enroll(
        &self,
        token: Fingerprint,
        gateway: NewGateway,
        old_until: UnixMillis,
        by: &Actor,
    ) -> Later<'_, StoredGateway>;

    /// Keeps a link code; not found without its tenant.
    fn mint_link_code(&self, code: LinkCode, by: &Actor) -> Later<'_, ()>;

    /// Uses up a code and, in the same commit, makes the route of `place` for
    /// every bot or the one named; answers its tenant. Forbidden if the code is
    /// unknown, used or expired; a conflict, with the code still good, if the
    /// place is taken.
    fn use_link_code(
        &self,
        code: Fingerprint,
        place: &Place,
        bot: Option<&str>,
        typist: &str,
        by: &Actor,
    ) -> Later<'_, String>;

    /// Replaces what an instance declared for a platform.
    fn set_policy(&self, instance: InstanceId, platform: &str, policy: Policy, by: &Actor) -> Later<'_, ()>;

    /// Every policy.
    fn policies(&self) -> Later<'_, Vec<(InstanceId, String, Policy)>>;

    /// Replaces the bots an instance answers for.
    fn set_fronts(&self, instance: InstanceId, fronts: Vec<(String, String)>) -> Later<'_, ()>;

    /// The bots every instance answers for, as (platform, bot).
    fn fronts(&self) -> Later<'_, Vec<(InstanceId, String, String)>>;
}
