//! One endpoint of the admin API, with the types of what is asked and answered:
//! whoever serves it and whoever asks it use the same value, so they agree.

use angelia_core::error::{Error, Result};
use axum::Json;
use axum::extract::{FromRequest, Query, Request};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;
use url::Url;

/// An endpoint whose path names nothing.
pub struct Whole;
/// An endpoint whose path names one thing.
pub struct Named;

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

/// An endpoint: `P` is what its path names, `Q` what is asked, `A` the answer.
pub struct Endpoint<P, Q, A> {
    pub(super) verb: Verb,
    /// Its path, with `{…}` where it names something.
    pub path: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    types: PhantomData<fn(P, Q) -> A>,
}

impl<P, Q, A> Clone for Endpoint<P, Q, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, Q, A> Copy for Endpoint<P, Q, A> {}

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

    pub(super) fn filter(self) -> MethodFilter {
        match self {
            Self::Read => MethodFilter::GET,
            Self::Act | Self::Make => MethodFilter::POST,
            Self::Purge => MethodFilter::DELETE,
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

impl<P, Q, A> Endpoint<P, Q, A> {
    pub(super) const fn new(verb: Verb, path: &'static str, summary: &'static str) -> Self {
        Self { verb, path, summary: summary.trim_ascii(), types: PhantomData }
    }
}

impl<P, Q: Default + DeserializeOwned, A> Endpoint<P, Q, A> {
    /// What a request asks; a refusal if it cannot be read.
    pub(super) async fn read(self, request: Request) -> Result<Q, Response> {
        if size_of::<Q>() == 0 {
            // Whoever asks for nothing in particular need not say so.
            return Ok(Q::default());
        }
        if self.verb.has_body() {
            let read = Json::<Q>::from_request(request, &()).await;
            return read.map(|Json(ask)| ask).map_err(IntoResponse::into_response);
        }
        let read = Query::<Q>::try_from_uri(request.uri());
        read.map(|Query(ask)| ask).map_err(IntoResponse::into_response)
    }
}

impl<P, Q: Serialize, A> Endpoint<P, Q, A> {
    fn call(self, mut path: String, ask: &Q) -> Result<Call<A>> {
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

impl<Q: Serialize, A> Endpoint<Whole, Q, A> {
    /// The request that asks this.
    pub fn ask(self, ask: &Q) -> Result<Call<A>> {
        self.call(self.path.to_owned(), ask)
    }
}

impl<Q: Serialize, A> Endpoint<Named, Q, A> {
    /// The request that asks this of the thing with this name. Names and message
    /// ids may hold anything; a path may not.
    pub fn ask(self, name: &str, ask: &Q) -> Result<Call<A>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::types::{Nothing, OfTenant, Selection};

    #[test]
    fn ids_survive_the_path() {
        const X: Endpoint<Named, Nothing, Nothing> = Endpoint::new(Verb::Read, "/{id}/x", "");
        const LIST: Endpoint<Whole, Selection, Nothing> = Endpoint::new(Verb::Read, "/x", "");
        const NAMED: Endpoint<Whole, OfTenant, Nothing> = Endpoint::new(Verb::Read, "/x", "");
        assert_eq!(X.ask("a/b c?d", &Nothing {}).unwrap().path, "/a%2Fb%20c%3Fd/x");
        assert!(X.ask("..", &Nothing {}).is_err());
        let selection = Selection { entry: Some("1&2".into()), ..Selection::default() };
        assert_eq!(LIST.ask(&selection).unwrap().path, "/x?entry=1%262&dead=false");
        assert_eq!(NAMED.ask(&OfTenant { tenant: None }).unwrap().path, "/x");
    }

    #[test]
    fn what_was_not_given_is_not_sent() {
        const ACT: Endpoint<Whole, OfTenant, Nothing> = Endpoint::new(Verb::Act, "/x", "");
        assert_eq!(ACT.ask(&OfTenant { tenant: None }).unwrap().body, Some(serde_json::json!({})));
    }
}
