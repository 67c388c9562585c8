//! Who holds an identity token, and for which tenant.
//!
//! Three sorts of bearers are taken: those of the built-in token endpoint,
//! signed ones of configured issuers, and those an account URL vouches for.

mod builtin;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod jwt;
mod oidc;
mod portal;

pub(super) use builtin::{BUILTIN, TOKEN_FOR};
pub use oidc::{LIMITS as KEY_LIMITS, OidcIssuer};

use crate::ssrf_guard::no_client;
use angelia_contract::token;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::Proof;
use angelia_core::limit_per_address::Address;
use angelia_core::records::Records;
use angelia_core::secret::Secret;
use angelia_core::store::{AccessStore, IdentityStore};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use builtin::Builtin;
use oidc::Oidc;
use portal::Portal;
use std::time::Duration;

/// How long an issuer may take to answer; gateways wait 15 s for us.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who may prove a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityOptions {
    /// Whether the built-in token endpoint is served.
    pub builtin: bool,
    /// Issuers whose signed tokens are taken.
    pub oidc: Vec<OidcIssuer>,
    /// An account URL that tells whose bearer it is given.
    pub portal: Option<String>,
}

impl Default for IdentityOptions {
    fn default() -> Self {
        Self { builtin: true, oidc: Vec::new(), portal: None }
    }
}

/// Everything that can prove a bearer.
pub(crate) struct Bearers {
    builtin: Option<Builtin>,
    oidc: Vec<Oidc>,
    portal: Option<Portal>,
}

impl Bearers {
    /// Ready to prove what `identity` allows; `key` signs the built-in tokens.
    pub(crate) fn new(identity: &IdentityOptions, key: Secret) -> Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("angelia/", env!("CARGO_PKG_VERSION"), " (relay connector)"))
            .build()
            .map_err(|e| no_client(&e))?;
        Ok(Self {
            builtin: identity.builtin.then_some(Builtin { key }),
            oidc: identity.oidc.iter().map(|issuer| Oidc::new(issuer.clone(), client.clone())).collect(),
            portal: identity.portal.clone().map(|url| Portal::new(url, client)),
        })
    }

    /// The issuers beside the built-in one, by the names tenants are linked to.
    pub(crate) fn issuers(&self) -> Vec<&str> {
        self.oidc.iter().map(Oidc::issuer).chain(self.portal.iter().map(Portal::issuer)).collect()
    }

    /// The built-in token endpoint, if it is served.
    pub(super) fn builtin(&self) -> Option<&Builtin> {
        self.builtin.as_ref()
    }

    async fn prove(&self, records: &dyn Records, bearer: &str, from: Address) -> Result<Proof> {
        // No other issuer's bearers have the form of ours.
        if let Some(builtin) = &self.builtin
            && let Ok(token) = token::parse(bearer)
        {
            return builtin.prove(records, &token).await;
        }
        if let Some(oidc) =
            oidc::issuer_of(bearer).and_then(|issuer| self.oidc.iter().find(|oidc| oidc.issuer() == issuer))
        {
            return oidc.prove(bearer, from).await;
        }
        match &self.portal {
            Some(portal) => portal.prove(bearer, from).await,
            None => Err(unproven()),
        }
    }
}

/// The tenant a request proves, and by whom. 401 if nothing is proven, 403 if
/// what is proven is no tenant here.
pub(super) async fn proven(
    bearers: &Bearers,
    records: &dyn Records,
    headers: &HeaderMap,
    from: Address,
) -> Result<(String, Proof)> {
    let bearer = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        .map(str::trim)
        .filter(|bearer| !bearer.is_empty())
        .ok_or_else(unproven)?;
    let proof = bearers.prove(records, bearer, from).await?;
    match tenant_of(records, &proof).await? {
        Some(tenant) => Ok((tenant, proof)),
        None => Err(Error::new(
            Kind::Forbidden,
            format!(
                "your identity is good, but {:?} of {} is no tenant here; ask the operator to link it \
                 (angelia tenant link)",
                proof.claim, proof.issuer
            ),
        )),
    }
}

/// The tenant a proof is of, as things stand now.
pub(super) async fn tenant_of(records: &dyn Records, proof: &Proof) -> Result<Option<String>> {
    if proof.issuer != BUILTIN {
        return records.tenant_of(&proof.issuer, &proof.claim).await;
    }
    let client = records.client(proof.subject.name()).await?;
    Ok(client.filter(|client| client.revoked_at.is_none()).map(|client| client.tenant))
}

/// One answer for everything that is not proven: it tells nothing to a guesser.
fn unproven() -> Error {
    Error::new(
        Kind::Unauthorized,
        "the identity token is missing, expired or not from an issuer this connector knows",
    )
}
