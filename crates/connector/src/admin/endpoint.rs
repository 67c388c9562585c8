//! One endpoint of the admin API, with the types of what is asked and answered: how it
//! is asked, read and served. Both sides use the same value, so they agree.

use super::Admin;
use super::router::answer;
use angelia_core::error::{Error, Result};
use axum::Json;
use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;
use std::sync::Arc;
use url::Url;

/// What the path of an endpoint names: nothing.
pub const WHOLE: usize = 0;
/// One thing.
pub const NAMED: usize = 1;

/// How many things a path names.
pub(super) const fn names_in(path: &str) -> usize {
    let (mut names, mut at) = (WHOLE, 0);
    while at < path.len() {
        names += (path.as_bytes()[at] == b'{') as usize;
        at += 1;
    }
    names
}

/// What an endpoint does, which tells its method and the status of success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Looks; what is asked stands in the query.
    Read,
    /// Changes something.
    Act,
    /// Makes something.
    Make,
    /// Throws something away.
    Purge,
}

/// An endpoint: its path names `N` things, `Q` is what is asked, `A` the answer.
pub struct Endpoint<const N: usize, Q, A> {
    pub(super) verb: Verb,
    /// Its path, with `{…}` where it names something.
    pub path: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    types: PhantomData<fn(Q) -> A>,
}

/// A request to an endpoint, ready to be sent; the answer is an `A`.
pub struct Call<A> {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub path: String,
    /// What is sent, as JSON.
    pub body: Option<Value>,
    answer: PhantomData<fn() -> A>,
}

impl Verb {
    pub(super) fn method(self) -> Method {
        match self {
            Self::Read => Method::GET,
            Self::Act | Self::Make => Method::POST,
            Self::Purge => Method::DELETE,
        }
    }

    /// The status of success.
    pub(super) fn status(self) -> StatusCode {
        if self == Self::Make { StatusCode::CREATED } else { StatusCode::OK }
    }

    /// Whether what is asked is sent as a body.
    pub(super) fn has_body(self) -> bool {
        matches!(self, Self::Act | Self::Make)
    }
}

impl<const N: usize, Q, A> Endpoint<N, Q, A> {
    pub(super) const fn new(verb: Verb, path: &'static str, summary: &'static str) -> Self {
        Self { verb, path, summary: summary.trim_ascii(), types: PhantomData }
    }
}

/// What a request asks; a refusal if it cannot be read.
async fn read<Q: Default + DeserializeOwned>(verb: Verb, request: Request) -> Result<Q, Response> {
    if size_of::<Q>() == 0 {
        // Whoever asks for nothing in particular need not say so.
        return Ok(Q::default());
    }
    if verb.has_body() {
        let read = Json::<Q>::from_request(request, &()).await;
        return read.map(|Json(ask)| ask).map_err(IntoResponse::into_response);
    }
    let read = Query::<Q>::try_from_uri(request.uri());
    read.map(|Query(ask)| ask).map_err(IntoResponse::into_response)
}

impl<const N: usize, Q: Serialize, A> Endpoint<N, Q, A> {
    fn call(&self, mut path: String, ask: &Q) -> Result<Call<A>> {
        let mut body = None;
        if self.verb.has_body() {
            let mut said = serde_json::to_value(ask).map_err(Error::defect)?;
            // What was not given is not sent.
            if let Value::Object(fields) = &mut said {
                fields.retain(|_, value| !value.is_null());
            }
            body = Some(said);
        } else {
            let query = serde_urlencoded::to_string(ask).map_err(Error::defect)?;
            if !query.is_empty() {
                path = format!("{path}?{query}");
            }
        }
        Ok(Call { method: self.verb.method(), path, body, answer: PhantomData })
    }
}

impl<Q: Serialize, A> Endpoint<WHOLE, Q, A> {
    /// The request that asks this.
    pub fn ask(&self, ask: &Q) -> Result<Call<A>> {
        self.call(self.path.to_owned(), ask)
    }
}

impl<Q: Serialize, A> Endpoint<NAMED, Q, A> {
    /// The request that asks this of the thing with this name. Names and message
    /// ids may hold anything; a path may not.
    pub fn ask(&self, name: &str, ask: &Q) -> Result<Call<A>> {
        if ["", ".", ".."].contains(&name) {
            return Err(Error::invalid(format!("{name:?} names nothing")));
        }
        let mut url = Url::parse("http://admin").map_err(Error::defect)?;
        let segments = self.path.split('/').skip(1);
        let segments = segments.map(|part| if part.starts_with('{') { name } else { part });
        url.path_segments_mut().map_err(|()| Error::internal("no path"))?.clear().extend(segments);
        self.call(url.path().to_owned(), ask)
    }
}

/// An endpoint with who answers it, without its types.
pub(super) struct Row {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// Describes what is asked.
    pub(super) ask: fn(&mut SchemaGenerator) -> Schema,
    /// Describes what is answered.
    pub(super) answer: fn(&mut SchemaGenerator) -> Schema,
    pub(super) route: MethodRouter<Arc<Admin>>,
}

impl Row {
    pub(super) fn new<const N: usize, Q, A>(
        endpoint: Endpoint<N, Q, A>,
        handler: impl Handler<N, Q, A>,
    ) -> Self
    where
        Q: Default + DeserializeOwned + JsonSchema + Send + 'static,
        A: Serialize + JsonSchema + 'static,
    {
        let Endpoint { verb, path, summary, .. } = endpoint;
        let serve = async move |State(admin), name: Option<Path<String>>, request: Request| {
            let ask = match read(verb, request).await {
                Ok(ask) => ask,
                Err(refusal) => return refusal,
            };
            let name = name.map(|Path(name)| name).unwrap_or_default();
            answer(verb.status(), handler.answer(admin, name, ask).await)
        };
        Self {
            verb,
            path,
            summary,
            ask: if verb.has_body() { SchemaGenerator::subschema_for::<Q> } else { Q::json_schema },
            answer: SchemaGenerator::subschema_for::<A>,
            route: match verb {
                Verb::Read => get(serve),
                Verb::Act | Verb::Make => post(serve),
                Verb::Purge => delete(serve),
            },
        }
    }
}

/// A function that answers an endpoint; it gets the name in the path where there is one.
pub(super) trait Handler<const N: usize, Q, A>: Clone + Send + Sync + 'static {
    fn answer(&self, admin: Arc<Admin>, name: String, ask: Q) -> impl Future<Output = Result<A>> + Send;
}

impl<F, T, Q, A> Handler<WHOLE, Q, A> for F
where
    F: Fn(Arc<Admin>, Q) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = Result<A>> + Send,
{
    fn answer(&self, admin: Arc<Admin>, _: String, ask: Q) -> impl Future<Output = Result<A>> + Send {
        self(admin, ask)
    }
}

impl<F, T, Q, A> Handler<NAMED, Q, A> for F
where
    F: Fn(Arc<Admin>, String, Q) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = Result<A>> + Send,
{
    fn answer(&self, admin: Arc<Admin>, name: String, ask: Q) -> impl Future<Output = Result<A>> + Send {
        self(admin, name, ask)
    }
}

/// A function that changes who is known here: one at a time, to its end even if whoever
/// asked hangs up, and counting here before they are answered. What it does after the
/// commit, and needs it to be known for, comes after
/// [`follow`](crate::identities::Identities::follow) or
/// [`know`](crate::identities::Identities::know).
#[derive(Clone)]
pub(super) struct Change<H>(pub(super) H);

impl<const N: usize, Q, A, H> Handler<N, Q, A> for Change<H>
where
    Q: Send + 'static,
    A: Send + 'static,
    H: Handler<N, Q, A>,
{
    async fn answer(&self, admin: Arc<Admin>, name: String, ask: Q) -> Result<A> {
        let (handler, identities) = (self.0.clone(), admin.identities.clone());
        identities.change(async move { handler.answer(admin, name, ask).await }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::types::{Nothing, OfTenant, Selection};

    #[test]
    fn ids_survive_the_path() {
        const X: Endpoint<NAMED, Nothing, Nothing> = Endpoint::new(Verb::Read, "/{id}/x", "");
        const LIST: Endpoint<WHOLE, Selection, Nothing> = Endpoint::new(Verb::Read, "/x", "");
        const OF_TENANT: Endpoint<WHOLE, OfTenant, Nothing> = Endpoint::new(Verb::Read, "/x", "");
        assert_eq!(X.ask("a/b c?d", &Nothing {}).unwrap().path, "/a%2Fb%20c%3Fd/x");
        assert!(X.ask("..", &Nothing {}).is_err());
        let selection = Selection { entry: Some("1&2".into()), ..Selection::default() };
        assert_eq!(LIST.ask(&selection).unwrap().path, "/x?entry=1%262&dead=false");
        assert_eq!(OF_TENANT.ask(&OfTenant { tenant: None }).unwrap().path, "/x");
    }

    #[test]
    fn what_was_not_given_is_not_sent() {
        const ACT: Endpoint<WHOLE, OfTenant, Nothing> = Endpoint::new(Verb::Act, "/x", "");
        assert_eq!(ACT.ask(&OfTenant { tenant: None }).unwrap().body, Some(serde_json::json!({})));
    }
}
