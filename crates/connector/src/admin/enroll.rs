//! `POST /relay/enroll` and `POST /relay/provision`: how a gateway gets its secret.
//!
//! The bearer proves the tenant. Of the body only the gateway's own id, its
//! instance within that tenant, its wake URL and its name count: platform, bot,
//! endpoint and route keys grant nothing.

use super::bearer::{proven, tenant_of};
use super::gateways::{check_display_name, check_wake_url};
use super::router::{answer, failure};
use super::self_service::{SelfService, peer};
use angelia_core::audit::Actor;
use angelia_core::clock;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::{
    GatewayRecord, MAX_NAME, Proof, Provision, ROTATION_WINDOW, check_name, judge_provision,
};
use angelia_core::seal::{self, Sealed};
use angelia_core::secret::{Secret, fingerprint};
use angelia_core::store::{AccessStore, GatewayChange, IdentityStore, NewGateway};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;

/// Largest body of either request.
const MAX_BODY: usize = 64 * 1024;
/// Most bots one gateway fronts.
const MAX_FRONTS: usize = 32;

/// What a gateway asks with.
trait Ask: DeserializeOwned + Send + Sync + 'static {
    /// The id that it gives itself.
    fn gateway_id(&self) -> &str;

    /// Refuses what could never be granted.
    fn check(&self) -> Result<()> {
        check_name("gateway id", self.gateway_id())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Enroll {
    enrollment_token: String,
    gateway_id: String,
}

impl Ask for Enroll {
    fn gateway_id(&self) -> &str {
        &self.gateway_id
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provisioning {
    gateway_id: String,
    platform: Option<String>,
    bot_id: Option<String>,
    instance_id: Option<String>,
    wake_url: Option<String>,
    display_name: Option<String>,
}

impl Ask for Provisioning {
    fn gateway_id(&self) -> &str {
        &self.gateway_id
    }

    fn check(&self) -> Result<()> {
        check_name("gateway id", &self.gateway_id)?;
        self.instance_id.as_deref().map_or(Ok(()), |instance| check_name("instance id", instance))?;
        self.display_name.as_deref().map_or(Ok(()), check_display_name)
    }
}

pub(crate) async fn enroll(State(service): State<Arc<SelfService>>, request: Request) -> Response {
    serve(service, request, "gateway.enroll", Proven::<Enroll>::enroll).await
}

pub(crate) async fn provision(State(service): State<Arc<SelfService>>, request: Request) -> Response {
    serve(service, request, "gateway.provision", Proven::<Provisioning>::provision).await
}

/// Answers a request even if its caller hangs up: a refusal is written down then too.
async fn serve<Q: Ask, F>(
    service: Arc<SelfService>,
    request: Request,
    action: &'static str,
    grant: fn(Proven<Q>) -> F,
) -> Response
where
    F: Future<Output = Result<Value>> + Send + 'static,
{
    let served = tokio::spawn(async move {
        let (mut actor, mut tenant, mut target) = (Actor::stranger(), String::new(), String::new());
        let granted = async {
            let (Parts { headers, extensions, .. }, body) = request.into_parts();
            let records = &*service.ports.records;
            let proof;
            (tenant, proof) = proven(&service.bearers, records, &headers, peer(&extensions)).await?;
            actor = Actor::subject(&proof.subject);
            let ask: Q = read(&read_body(body, MAX_BODY).await?)?;
            target = ask.gateway_id().to_owned();
            ask.check()?;
            let _turn = service.turn().await?;
            let (tenant, actor) = (tenant.clone(), actor.clone());
            let proven = Proven { service: service.clone(), tenant, proof, actor, ask };
            let grant = async move {
                proven.still().await?;
                grant(proven).await
            };
            service.identities.change(grant).await
        };
        let granted = granted.await;
        if let Err(error) = &granted {
            service.refusal_log.refused(&actor, action, &tenant, &target, error).await;
        }
        answer(StatusCode::OK, granted)
    });
    served.await.unwrap_or_else(|_| failure(&Error::internal("the request broke off")))
}

/// A request whose tenant is proven.
struct Proven<Q> {
    service: Arc<SelfService>,
    tenant: String,
    proof: Proof,
    actor: Actor,
    ask: Q,
}

impl<Q: Ask> Proven<Q> {
    /// Asks once more, when nothing can change any more until the gateway is
    /// stored: a tenant, link or client may have gone since the proof.
    async fn still(&self) -> Result<()> {
        if tenant_of(&*self.service.ports.records, &self.proof).await?.as_ref() == Some(&self.tenant) {
            return Ok(());
        }
        Err(Error::new(Kind::Forbidden, "this tenant or client is not known any more"))
    }

    /// Whether the tenant may make one more gateway now; within a change until it is made.
    fn may_make(&self) -> Result<()> {
        self.service.making.lock().check(&self.tenant, clock::mono())
    }

    fn made(&self) {
        self.service.making.lock().made(&self.tenant, clock::mono());
    }

    /// Seals a secret of the gateway that asks.
    fn seal(&self, secret: &Secret) -> Result<Sealed> {
        self.service.keys.seal(secret, &seal::gateway_secret(&self.tenant, self.ask.gateway_id()))
    }

    fn new_gateway(&self, sealed_secret: &Sealed) -> NewGateway {
        NewGateway {
            tenant: self.tenant.clone(),
            gateway_id: self.ask.gateway_id().to_owned(),
            instance: None,
            sealed_secret: sealed_secret.to_vec(),
            wake_url: None,
            display_name: None,
            while_busy: None,
            shared_groups: false,
            subject: Some(self.proof.subject.clone()),
            most: self.service.per_tenant,
        }
    }
}

impl Proven<Enroll> {
    async fn enroll(self) -> Result<Value> {
        let Self { service, tenant, ask, actor, .. } = &self;
        let secret = Secret::mint();
        let sealed = self.seal(&secret)?;
        let token = fingerprint(&ask.enrollment_token);
        let old_until = clock::wall().after(ROTATION_WINDOW);
        let is_new = service.identities.now().find(tenant, &ask.gateway_id).is_none();
        if is_new {
            self.may_make()?;
        }
        let new = self.new_gateway(&sealed);
        let stored = service.ports.records.enroll(token, new, old_until, actor).await?;
        if is_new {
            self.made();
        }
        let record = service.identities.know(&stored).await?;
        tracing::info!(tenant = %record.tenant, gateway = %record.gateway_id, "a gateway enrolled");
        granted(service, &record, &secret).await
    }
}

impl Proven<Provisioning> {
    async fn provision(self) -> Result<Value> {
        let (record, secret) = self.secret().await?;
        self.note_front(&record).await?;
        granted(&self.service, &record, &secret).await
    }

    /// The gateway's record and the secret its subject gets: the same one for a
    /// day, so that several provisions of one start agree.
    async fn secret(&self) -> Result<(Arc<GatewayRecord>, Secret)> {
        let Self { service, tenant, proof, ask, actor } = self;
        let known = service.identities.now().find(tenant, &ask.gateway_id);
        let secret = Secret::mint();
        match (judge_provision(known.as_deref(), &proof.subject, clock::wall())?, known) {
            (Provision::Same, Some(record)) => {
                let secret = record.secrets.iter().find(|secret| secret.valid_until.is_none());
                let secret =
                    secret.ok_or_else(|| Error::internal("this gateway has no secret"))?.secret.clone();
                Ok((self.keep_up(&record).await?, secret))
            }
            (Provision::Renew, Some(record)) => {
                let id = &record.gateway_id;
                let sealed = self.seal(&secret)?;
                let old_until = clock::wall().after(ROTATION_WINDOW);
                let renew =
                    service.ports.records.rotate_gateway(tenant, id, sealed.to_vec(), Some(old_until), actor);
                let stored = renew.await?;
                let record = service.identities.know(&stored).await?;
                Ok((self.keep_up(&record).await?, secret))
            }
            _ => {
                ask.wake_url.as_deref().map_or(Ok(()), |url| check_wake_url(&service.wake, url))?;
                self.may_make()?;
                let sealed = self.seal(&secret)?;
                let new = NewGateway {
                    instance: ask.instance_id.clone(),
                    wake_url: ask.wake_url.clone(),
                    display_name: ask.display_name.clone(),
                    ..self.new_gateway(&sealed)
                };
                let stored = service.ports.records.create_gateway(new, actor).await?;
                self.made();
                Ok((service.identities.know(&stored).await?, secret))
            }
        }
    }

    /// Takes over what a known gateway says differently now. What it leaves out stays.
    async fn keep_up(&self, record: &Arc<GatewayRecord>) -> Result<Arc<GatewayRecord>> {
        let Self { service, tenant, proof, ask, actor } = self;
        let wake_url = self.new_wake_url(record).await;
        let name = ask.display_name.as_ref().filter(|name| record.display_name.as_ref() != Some(*name));
        let instance = ask.instance_id.as_ref().filter(|name| record.instance_name != **name);
        if wake_url.is_none() && name.is_none() && instance.is_none() {
            return Ok(record.clone());
        }
        let change = GatewayChange {
            wake_url: wake_url.map(|url| Some(url.clone())),
            display_name: name.map(|name| Some(name.clone())),
            instance: instance.cloned(),
            subject: Some(proof.subject.clone()),
            ..GatewayChange::default()
        };
        let id = &record.gateway_id;
        if let Err(error) = service.pace.may_change(record) {
            // It gets its secret all the same: without it, it could not even fetch what waits.
            tracing::warn!(%tenant, gateway = %id, %error, "the settings stay as they were");
            return Ok(record.clone());
        }
        let stored = match service.ports.records.change_gateway(tenant, id, change.clone(), actor).await {
            // What waits in its old inbox would be left behind: it moves at a later start.
            Err(error) if error.kind() == Kind::Conflict && change.instance.is_some() => {
                tracing::warn!(%tenant, gateway = %id, %error, "the instance id stays as it was");
                if wake_url.is_none() && name.is_none() {
                    return Ok(record.clone());
                }
                let change = GatewayChange { instance: None, ..change };
                service.ports.records.change_gateway(tenant, id, change, actor).await?
            }
            stored => stored?,
        };
        service.identities.know(&stored).await
    }

    /// A wake URL that is not the one we know. One that could never be called is
    /// not taken, and told in the audit log; the gateway gets its secret all the
    /// same, or a setting that was let pass once would keep it out for ever.
    async fn new_wake_url(&self, record: &GatewayRecord) -> Option<&String> {
        let Self { service, tenant, ask, actor, .. } = self;
        let url = ask.wake_url.as_ref().filter(|url| record.wake_url.as_ref() != Some(*url))?;
        let Err(error) = check_wake_url(&service.wake, url) else { return Some(url) };
        tracing::warn!(%tenant, gateway = %record.gateway_id, %error, "the wake URL stays as it was");
        service.refusal_log.refused(actor, "gateway.set", tenant, &record.gateway_id, &error).await;
        None
    }

    /// Remembers which bot the gateway answers for: a tie-break among its tenant's own.
    async fn note_front(&self, record: &GatewayRecord) -> Result<()> {
        let Some(platform) = self.ask.platform.as_deref().filter(|platform| *platform != "relay") else {
            return Ok(());
        };
        let bot = self.ask.bot_id.clone().unwrap_or_default();
        if platform.is_empty() || platform.len().max(bot.len()) > MAX_NAME {
            return Ok(());
        }
        let mut fronts = self.service.identities.now().fronts(record.instance);
        if fronts.len() < MAX_FRONTS && fronts.insert((platform.to_owned(), bot)) {
            self.service.identities.keep_fronts(record.instance, fronts).await?;
        }
        Ok(())
    }
}

/// What a gateway is told: its secret, and the tenant's real routes.
async fn granted(service: &SelfService, record: &GatewayRecord, secret: &Secret) -> Result<Value> {
    let delivery_key = service.delivery_key(&record.tenant).await?;
    let known = service.identities.now();
    let mut places: Vec<String> = known
        .routes()
        .iter()
        .filter(|route| route.tenant == record.tenant)
        .filter(|route| route.instance.is_none_or(|instance| instance == record.instance))
        .map(|route| route.place.to_string())
        .collect();
    places.sort();
    Ok(json!({
        "secretIssued": true,
        "secret": secret.expose(),
        "deliveryKey": delivery_key.expose(),
        "tenant": record.tenant,
        "gatewayId": record.gateway_id,
        "routeKeys": places,
    }))
}

/// Reads a body. Keys we do not know may come from newer gateways and are let be.
/// What was sent is never repeated: it may hold a token.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        let text = error.to_string();
        Error::invalid(match error.classify() {
            Category::Data if text.starts_with("missing field") => format!("the body is incomplete: {text}"),
            Category::Data => "something in the body has the wrong type".into(),
            _ => "the body is no JSON".to_owned(),
        })
    })
}

/// Takes a body once its sender is known.
pub(super) async fn read_body(body: Body, most: usize) -> Result<Bytes> {
    axum::body::to_bytes(body, most)
        .await
        .map_err(|_| Error::invalid(format!("the body is larger than {most} bytes, or broke off")))
}
