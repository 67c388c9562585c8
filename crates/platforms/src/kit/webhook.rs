//! Webhooks, the edge that providers post to: the raw bytes of a body within bounds,
//! verified before anybody looks into them, and committed before they are acknowledged.

use super::Account;
use crate::ingress::Ingress;
use crate::nodes::{Carried, Forwarded};
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Memory that the requests of one bot may take while they are read and worked on:
/// room for thousands of a provider's, and nothing a stranger can exceed. It is
/// counted in bytes, so that whoever opens many connections and sends nothing
/// takes next to nothing of it.
const MEMORY: usize = 128 * 1024 * 1024;
/// What a request takes besides its body.
const OVERHEAD: usize = 8 * 1024;
/// How long a provider is let wait for an answer. Few wait longer themselves.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long the node that has a bot gets to take what was posted at another one. Half of what a
/// provider waits at most: there has to be time left to do without.
const FORWARD_WITHIN: Duration = Duration::from_secs(8);
/// How often whoever waits for that looks whether the bot came to this node: the other one may
/// be gone.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where a bot is posted to, below the public URL.
pub(crate) fn path(platform: &str, name: &str) -> String {
    format!("/webhooks/{platform}/{name}")
}

/// A header that is there once: of two, nobody knows which one was meant.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.to_str().ok()).flatten()
}

/// A bot that its provider posts to.
pub(crate) trait Receiver: Send + Sync + 'static {
    /// What an authentic request says.
    type Message: Send + 'static;

    /// The headers that [`Receiver::verify`] reads: what is passed on to another node has these.
    const HEADERS: &'static [&'static str];

    /// The bot.
    fn account(&self) -> &Account;

    /// What the bot works with.
    fn ingress(&self) -> &Ingress;

    /// Whether a request can be the provider's by what comes before its body. For
    /// strangers nothing is read, however much they send and however slowly.
    fn is_plausible(&self, _request: &Request) -> bool {
        true
    }

    /// What a request says that is the provider's; `None` if it is not.
    fn verify(&self, posted: &Posted) -> Option<Self::Message>;

    /// Whether it can be taken in without what the node remembers that has the bot, should that
    /// not answer. What cannot is refused: it is posted again, or read back.
    fn stands_alone(&self, _message: &Self::Message) -> bool {
        false
    }

    /// Takes it in, and only then answers.
    fn take(self: Arc<Self>, message: Self::Message, posted: Posted)
    -> impl Future<Output = Response> + Send;
}

/// What a receiver is posted to.
pub(crate) fn receive<R: Receiver>(receiver: Arc<R>, hook: Hook) -> MethodRouter {
    post(move |request: Request| {
        let (receiver, hook) = (receiver.clone(), hook.clone());
        async move { received(receiver, &hook, request).await }
    })
}

async fn received<R: Receiver>(receiver: Arc<R>, hook: &Hook, request: Request) -> Response {
    let due = Instant::now() + hook.answer_within;
    if !receiver.is_plausible(&request) {
        return refuse(receiver.account());
    }
    let posted = match hook.read(request).await {
        Ok(posted) => posted,
        Err(status) => return status.into_response(),
    };
    let Some(message) = receiver.verify(&posted) else { return refuse(receiver.account()) };
    if is_elsewhere(&*receiver, &posted) {
        let within = (hook.answer_within / 2).min(FORWARD_WITHIN);
        if let Some(answer) = forwarded(&*receiver, &posted, within).await {
            return answer;
        }
        if is_elsewhere(&*receiver, &posted) && !receiver.stands_alone(&message) {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
    }
    let taken = in_time(due, async move { receiver.take(message, posted).await }).await;
    taken.unwrap_or_else(|| StatusCode::SERVICE_UNAVAILABLE.into_response())
}

/// Whether another node has the bot, and does not have this from it.
fn is_elsewhere<R: Receiver>(receiver: &R, posted: &Posted) -> bool {
    let came_by_another = posted.parts.extensions.get::<Forwarded>().is_some();
    !came_by_another && !receiver.ingress().has(&receiver.account().key)
}

/// What the node answers that has the bot; `None` if it does not, or this one has it meanwhile.
async fn forwarded<R: Receiver>(receiver: &R, posted: &Posted, within: Duration) -> Option<Response> {
    let nodes = receiver.ingress().nodes.as_ref()?;
    let carried = Carried { parts: &posted.parts, headers: R::HEADERS, body: &posted.body };
    let comes_here = async {
        while is_elsewhere(receiver, posted) {
            sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        answer = nodes.forward(&receiver.account().key, carried, within) => answer,
        () = comes_here => None,
    }
}

/// The one answer to everything that is not the provider's.
pub(crate) fn refuse(account: &Account) -> Response {
    account.health.count("refused_signatures");
    StatusCode::UNAUTHORIZED.into_response()
}

/// What comes of work, if that is known in time. It is on its own: whoever hangs
/// up does not stop a commit half way. Nor is it given up when time is over: a provider
/// posts again, but not for long, and what is there twice is known by its id.
async fn in_time<T: Send + 'static>(
    due: Instant,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    timeout_at(due, tokio::spawn(work)).await.ok()?.ok()
}

/// What one bot takes from its provider.
#[derive(Clone)]
pub(crate) struct Hook {
    max_body: usize,
    within: Duration,
    answer_within: Duration,
    memory: Arc<Semaphore>,
}

/// A request whose bytes are here, and nothing of it is believed yet.
pub(crate) struct Posted {
    /// Method, URL and headers.
    pub(crate) parts: Parts,
    /// The body as it was sent.
    pub(crate) body: Bytes,
    /// Held for as long as the request is worked on.
    _memory: OwnedSemaphorePermit,
}

impl Hook {
    /// An edge that takes bodies up to `max_body` that are here `within` that time.
    pub(crate) fn new(max_body: usize, within: Duration) -> Self {
        let memory = Arc::new(Semaphore::new(MEMORY));
        Self { max_body, within, answer_within: ANSWER_WITHIN, memory }
    }

    /// One whose provider waits for an answer no longer than that, with what it takes to arrive.
    pub(crate) fn answering_within(self, answer_within: Duration) -> Self {
        Self { answer_within, ..self }
    }

    /// Reads a request; or the status that refuses it.
    pub(crate) async fn read(&self, request: Request) -> Result<Posted, StatusCode> {
        let (parts, body) = request.into_parts();
        let mut memory = self.take(OVERHEAD)?;
        let body = timeout(self.within, self.read_body(body, &mut memory));
        let body = body.await.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))?;
        Ok(Posted { parts, body, _memory: memory })
    }

    async fn read_body(&self, body: Body, memory: &mut OwnedSemaphorePermit) -> Result<Bytes, StatusCode> {
        let (mut chunks, mut read) = (body.into_data_stream(), BytesMut::new());
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| StatusCode::BAD_REQUEST)?;
            if read.len() + chunk.len() > self.max_body {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            memory.merge(self.take(chunk.len())?);
            read.extend_from_slice(&chunk);
        }
        Ok(read.freeze())
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, StatusCode> {
        let full = StatusCode::SERVICE_UNAVAILABLE;
        let bytes = u32::try_from(bytes).map_err(|_| full)?;
        self.memory.clone().try_acquire_many_owned(bytes).map_err(|_| full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn a_provider_waits_no_longer_than_it_would_and_the_work_goes_on() {
        let within = |millis| Instant::now() + Duration::from_millis(millis);
        assert_eq!(in_time(within(9_000), async { 7 }).await, Some(7));
        assert_eq!(in_time(within(9_000), async { panic!("on purpose") }).await, None::<()>);
        let (done, go, over) =
            (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let work = {
            let (done, go, over) = (done.clone(), go.clone(), over.clone());
            async move {
                go.notified().await;
                done.store(true, Ordering::SeqCst);
                over.notify_one();
            }
        };
        assert_eq!(in_time(within(20), work).await, None);
        assert!(!done.load(Ordering::SeqCst));
        go.notify_one();
        timeout(Duration::from_secs(9), over.notified()).await.expect("it goes on");
        assert!(done.load(Ordering::SeqCst));
    }

    #[test]
    fn of_two_headers_none_counts() {
        let mut headers = HeaderMap::new();
        assert_eq!(only(&headers, "x-signature"), None);
        headers.append("x-signature", "a".parse().unwrap());
        assert_eq!(only(&headers, "x-signature"), Some("a"));
        headers.append("x-signature", "b".parse().unwrap());
        assert_eq!(only(&headers, "x-signature"), None);
    }

    async fn read(hook: &Hook, body: Body) -> Result<Bytes, StatusCode> {
        hook.read(Request::new(body)).await.map(|posted| posted.body)
    }

    #[tokio::test]
    async fn bytes_come_whole_or_not_at_all() {
        let hook = Hook::new(4, Duration::from_millis(50));
        assert_eq!(read(&hook, Body::from("four")).await.unwrap(), "four");
        assert_eq!(read(&hook, Body::from("fives")).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let endless = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read(&hook, endless).await, Err(StatusCode::REQUEST_TIMEOUT));
        let broken = Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]));
        assert_eq!(read(&hook, broken).await, Err(StatusCode::BAD_REQUEST));
    }

    #[tokio::test]
    async fn a_crowd_is_turned_away_by_what_it_brings() {
        let roomy = Hook::new(1_000, Duration::from_secs(1));
        let hook = Hook { memory: Arc::new(Semaphore::new(2 * OVERHEAD + 1_000)), ..roomy };
        let large = hook.read(Request::new(Body::from(vec![0; 999]))).await.ok().unwrap();
        assert_eq!(read(&hook, Body::from("two")).await, Err(StatusCode::SERVICE_UNAVAILABLE));
        assert!(read(&hook, Body::from("2")).await.is_ok(), "what was refused gave back what it took");
        drop(large);
        assert!(read(&hook, Body::from("two")).await.is_ok());
    }

    #[tokio::test]
    async fn many_who_send_nothing_keep_nobody_out() {
        let hook = Hook::new(1_000, Duration::from_secs(60));
        let silent = || {
            let hook = hook.clone();
            let nothing = stream::pending::<Result<Bytes, std::io::Error>>();
            async move { hook.read(Request::new(Body::from_stream(nothing))).await.is_ok() }
        };
        let arrivals: Vec<_> = (0..4_000).map(|_| tokio::spawn(silent())).collect();
        while hook.memory.available_permits() > MEMORY - 4_000 * OVERHEAD {
            tokio::task::yield_now().await;
        }
        assert!(read(&hook, Body::from("ping")).await.is_ok());
        arrivals.iter().for_each(|one| one.abort());
    }
}
