//! The edge that providers post to: the exact bytes, within bounds, before
//! anybody looks into them.

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Memory that the requests of one bot may take while they are read and worked on:
/// room for thousands of a provider's, and nothing a stranger can exceed. It is
/// counted in bytes, so that whoever opens many connections and sends nothing
/// takes next to nothing of it.
const MEMORY: usize = 128 * 1024 * 1024;
/// What a request takes besides its body.
const OVERHEAD: usize = 8 * 1024;

/// What one bot takes from its provider.
#[derive(Clone)]
pub(crate) struct Hook {
    max_body: usize,
    within: Duration,
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
        Self { max_body, within, memory: Arc::new(Semaphore::new(MEMORY)) }
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
