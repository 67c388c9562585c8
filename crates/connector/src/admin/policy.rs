//! `POST /relay/policy`: what a gateway asks to be spared. Enforced at once.

use super::SelfService;
use super::enroll::{read, read_body};
use super::router::{answer, failure};
use crate::relay::{Caller, identify};
use angelia_core::admission::Policy;
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::GatewayRecord;
use angelia_core::store::AccessStore;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Largest body: a thousand scopes, and what else there is.
const MAX_BODY: usize = 256 * 1024;
/// Most scopes of one policy: far more channels than anybody sets free by hand.
const MAX_SCOPES: usize = 1_000;
/// Longest scope or platform name.
const MAX_SCOPE: usize = 128;
/// Platforms one instance may declare something for.
const MAX_POLICIES: usize = 32;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declared {
    platform: String,
    #[serde(default = "yes")]
    require_address: bool,
    #[serde(default)]
    free_response_scopes: Vec<String>,
    #[serde(default)]
    allow_other_bots: bool,
}

fn yes() -> bool {
    true
}

pub(crate) async fn declare(State(service): State<Arc<SelfService>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let caller = identify(&service.identities.now(), &head.headers);
    let record = match caller {
        Caller::Gateway(record) => record,
        Caller::Revoked(record) => {
            let error = Error::new(Kind::Forbidden, "this gateway was revoked");
            service.refusal_log.refused_gateway(&record, "policy.set", &error).await;
            return failure(&error);
        }
        Caller::Unknown(_) => {
            let error = Error::new(Kind::Unauthorized, "unknown gateway id, wrong secret or expired token");
            service.refusal_log.refused_stranger("policy.set", "", &error).await;
            return failure(&error);
        }
    };
    let set = async {
        let (platform, policy) = declared(read(&read_body(body, MAX_BODY).await?)?)?;
        // Gateways declare it at every start: only a change waits for its turn, and is written.
        if is_known(&service, &record, &platform, &policy) {
            return Ok(());
        }
        service.identities.change(set(service.clone(), record, platform, policy)).await
    };
    // Gateways take any other success for a failure.
    answer(StatusCode::OK, set.await.map(|()| json!({ "ok": true })))
}

async fn set(
    service: Arc<SelfService>,
    record: Arc<GatewayRecord>,
    platform: String,
    policy: Policy,
) -> Result<()> {
    // Much may have happened while the body was on its way.
    let record = service.identities.now().find(&record.tenant, &record.gateway_id);
    let record = record.filter(|record| record.revoked_at.is_none());
    let record = record.ok_or_else(|| Error::new(Kind::Forbidden, "this gateway was revoked"))?;
    let known = service.identities.snapshot();
    if known.policy(record.instance, &platform).is_none() && known.policies(record.instance) >= MAX_POLICIES {
        return Err(Error::invalid(format!("policies for {MAX_POLICIES} platforms are declared already")));
    }
    if let Err(error) = service.pace.may_change(&record) {
        service.refusal_log.refused_gateway(&record, "policy.set", &error).await;
        return Err(error);
    }
    let actor = Actor::gateway(&record.tenant, &record.gateway_id);
    service.ports.records.set_policy(record.instance, &platform, policy, &actor).await
}

/// Whether a gateway that may declare something has declared just this before.
fn is_known(service: &SelfService, record: &GatewayRecord, platform: &str, policy: &Policy) -> bool {
    let known = service.identities.now();
    let now = known.find(&record.tenant, &record.gateway_id).filter(|now| now.revoked_at.is_none());
    now.is_some_and(|now| known.policy(now.instance, platform) == Some(policy))
}

/// The platform and the policy that a gateway declares, within bounds.
fn declared(declared: Declared) -> Result<(String, Policy)> {
    let Declared { platform, require_address, free_response_scopes, allow_other_bots } = declared;
    let fits = |text: &String| !text.is_empty() && text.len() <= MAX_SCOPE;
    if !fits(&platform) {
        return Err(Error::invalid("the platform's name is missing or too long"));
    }
    if free_response_scopes.len() > MAX_SCOPES || !free_response_scopes.iter().all(fits) {
        return Err(Error::invalid(format!(
            "freeResponseScopes may have {MAX_SCOPES} entries of 1 to {MAX_SCOPE} bytes"
        )));
    }
    // Published gateways say `false` whenever they declare something else, and
    // mean nothing by it: taken at its word it would open every room to chatter.
    let require_address = require_address || allow_other_bots || !free_response_scopes.is_empty();
    Ok((platform, Policy { require_address, free_scopes: free_response_scopes, allow_other_bots }))
}
