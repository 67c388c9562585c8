//! The requests of one connection, one after the other.

use super::connection::Connection;
use super::misdirected::Misdirected;
use super::pipelining::Ahead;
use angelia_core::allowed_hosts::Hosts;
use angelia_core::clock::{self, Mono};
use angelia_core::connections::{ANSWER_WITHIN, Doing, UPLOAD_WITHIN, time_for};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::header::{CONTENT_LENGTH, HOST};
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::time::timeout;
use tower::ServiceExt;

/// Asked by what watches over servers, by whatever name it has for them.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

/// Where gateways send files, which take longer than anything else.
const UPLOADS: &str = "/relay/media";

/// Where people do, below their room.
const UPLOADS_OF_ROOMS: (&str, &str) = ("/chat/api/rooms/", "/files");

/// What the requests of a connection need to be answered.
#[derive(Clone)]
pub(super) struct Visit {
    pub(super) router: Router,
    pub(super) connection: Arc<Connection>,
    pub(super) ahead: Arc<Ahead>,
    pub(super) hosts: Arc<Hosts>,
    /// What becomes of who asks for another host.
    pub(super) misdirected: Arc<Misdirected>,
    /// The address the connection came to.
    pub(super) here: IpAddr,
    /// Where it came from, if that is known.
    pub(super) peer: Option<SocketAddr>,
}

impl hyper::service::Service<Request<Incoming>> for Visit {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let ahead = self.connection.asks();
        let visit = self.clone();
        Box::pin(async move {
            let response = visit.answer(request, ahead).await;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                visit.connection.does(Doing::Relay);
            }
            let has_end = response.headers().contains_key(CONTENT_LENGTH);
            Ok(response.map(|body| Answer::begin(body, visit.connection, has_end)))
        })
    }
}

impl Visit {
    /// Answers, in its turn if it was sent ahead. The library begins a request only
    /// when the answer before it is with the kernel; but the kernel holds megabytes,
    /// so tens of thousands of requests run before anybody has to read an answer.
    async fn answer(&self, request: Request<Incoming>, ahead: bool) -> Response {
        let doing =
            if hyper::body::Body::is_end_stream(request.body()) { Doing::Answering } else { Doing::Asking };
        if !ahead {
            self.connection.does(doing);
            return self.in_time(request).await;
        }
        self.connection.does(Doing::Ahead);
        self.ahead.in_turn(|| self.connection.does(doing), self.in_time(request)).await
    }

    async fn in_time(&self, request: Request<Incoming>) -> Response {
        if !self.is_meant(&request) {
            return self.misdirected.refuse(request.headers().get(HOST).map(HeaderValue::as_bytes));
        }
        let connection = self.connection.clone();
        let mut request = request.map(|body| Body::new(Question { body, connection }));
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        let within = if takes_files(request.uri().path()) { UPLOAD_WITHIN } else { ANSWER_WITHIN };
        match timeout(within, self.router.clone().oneshot(request)).await {
            Ok(response) => response.unwrap_or_else(|never| match never {}),
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "this took too long; try again\n").into_response(),
        }
    }

    fn is_meant(&self, request: &Request<Incoming>) -> bool {
        let headers = request.headers().get_all(HOST).into_iter().map(HeaderValue::as_bytes);
        let url = request.uri().authority().map(|authority| authority.as_str());
        PROBES.contains(&request.uri().path()) || self.hosts.admit(url, headers, self.here)
    }
}

fn takes_files(path: &str) -> bool {
    let (begins, ends) = UPLOADS_OF_ROOMS;
    path == UPLOADS || path.starts_with(begins) && path.ends_with(ends)
}

/// A request's body; the connection is told when it is complete.
struct Question {
    body: Incoming,
    connection: Arc<Connection>,
}

impl hyper::body::Body for Question {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if self.body.is_end_stream() || !matches!(frame, Some(Ok(_))) {
            self.connection.received();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.connection.received();
    }
}

/// An answer's body; the connection is quiet again when all of it was handed over. One that has an end
/// is asked for at a pace, also while nobody asks at all.
pub(super) struct Answer {
    body: Body,
    connection: Arc<Connection>,
    /// Since when it has been going, if it has an end, and how much of it went.
    going: Option<(Mono, u64)>,
}

impl Answer {
    fn begin(body: Body, connection: Arc<Connection>, has_end: bool) -> Self {
        let answer = Self { body, connection, going: has_end.then(|| (clock::mono(), 0)) };
        answer.goes_on();
        answer
    }

    fn goes_on(&self) {
        let due = self.going.map(|(since, went)| since + time_for(went));
        self.connection.is_due(due);
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref().map(Bytes::len));
        if let (Some(bytes), Some((_, went))) = (bytes, &mut self.going) {
            *went += bytes as u64;
            self.goes_on();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.connection.is_due(None);
        self.connection.does(Doing::Quiet);
    }
}
