//! Tokens of the built-in endpoint: the client's id, signed, for an hour.
//!
//! They have the form of upgrade tokens under a key of their own. The client
//! is looked up each time, so revoking it ends its tokens as well.

use super::unproven;
use angelia_contract::token::{self, Token};
use angelia_core::clock;
use angelia_core::error::Result;
use angelia_core::identity::{Proof, Subject};
use angelia_core::records::Records;
use angelia_core::secret::{Secret, fingerprint};
use angelia_core::store::{AccessStore, Client};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// The issuer's name in records; no URL is like it.
pub(in super::super) const BUILTIN: &str = "builtin";
/// How long a token is good.
pub(in super::super) const TOKEN_FOR: Duration = Duration::from_secs(3600);

/// The built-in issuer.
pub(in super::super) struct Builtin {
    /// What is in every key that signs.
    pub(super) key: Secret,
}

impl Builtin {
    /// What signs a client's tokens. Its secret is in it, so that a new secret ends old tokens.
    fn key_of(&self, client: &Client) -> Secret {
        let secret: String = client.secret_fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = fingerprint(&format!("{}/{secret}", self.key.expose()));
        Secret::new(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    pub(super) async fn prove(&self, records: &dyn Records, token: &Token) -> Result<Proof> {
        token.check_time(clock::wall().seconds()).map_err(|_| unproven())?;
        let client = records.client(token.gateway_id()).await?;
        let signed =
            |client: &Client| token.first_match(std::iter::once(self.key_of(client).expose())).is_some();
        let good = |client: &Client| client.revoked_at.is_none() && signed(client);
        let client = client.filter(good).ok_or_else(unproven)?;
        let subject = Subject::new(BUILTIN, &client.client_id);
        Ok(Proof { issuer: BUILTIN.into(), claim: client.tenant, subject })
    }

    /// A token for the client with this id and secret; `None` if that is not proven.
    pub(in super::super) async fn issue(
        &self,
        records: &dyn Records,
        client_id: &str,
        client_secret: &str,
    ) -> Result<Option<Secret>> {
        let client = records.client(client_id).await?;
        let good = |client: &Client| {
            let same: bool = client.secret_fingerprint.ct_eq(&fingerprint(client_secret)).into();
            same && client.revoked_at.is_none()
        };
        Ok(client.filter(good).map(|client| {
            let now = clock::wall().seconds();
            Secret::new(token::mint(
                &client.client_id,
                self.key_of(&client).expose(),
                now,
                TOKEN_FOR.as_secs(),
            ))
        }))
    }
}
