//! One request to a bucket: signed, bounded in time and in what it answers, tried again where that
//! can help. Every request may be made twice: the same bytes under the same name are the same object.

use super::failure::Failure;
use super::listing::code;
use super::signature::{Signer, Unsigned, date, hash, query};
use super::spool::Spooled;
use angelia_core::clock;
use angelia_core::error::{Error, Result};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, RANGE};
use reqwest::{Method, Response, StatusCode, Url, redirect};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A server that takes longer to be reached is not there.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// What an answer may take. Whoever is so slow is not asked again at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// What goes to a bucket goes at least as fast, in bytes a second: the largest file takes 100 s.
const SLOWEST: u64 = 256 * 1024;
/// How long is waited before each further attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];
/// Of a refusal so much is read.
const REFUSAL_BYTES: usize = 16 * 1024;

/// Who is asked, and in whose name.
#[derive(Clone, Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    signer: Signer,
    /// The bucket itself.
    root: Url,
    host: String,
}

/// What is asked.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    /// An object; the bucket itself, if it is empty.
    pub(super) key: &'a str,
    pub(super) query: &'a [(&'a str, &'a str)],
    /// The first byte and the last.
    pub(super) range: Option<(u64, u64)>,
    pub(super) body: Option<&'a Spooled>,
    /// The longest answer there can be.
    pub(super) longest: usize,
}

impl<'a> Ask<'a> {
    pub(super) fn new(method: Method, key: &'a str) -> Self {
        Self { method, key, query: &[], range: None, body: None, longest: REFUSAL_BYTES }
    }
}

impl Client {
    /// `proxied` if the way there may lead through the machine's proxy.
    pub(super) fn new(root: Url, signer: Signer, proxied: bool) -> Result<Self> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .redirect(redirect::Policy::none())
            .http1_only()
            .user_agent(concat!("angelia/", env!("CARGO_PKG_VERSION"), " (relay connector)"));
        let http = if proxied { http } else { http.no_proxy() };
        let http = http
            .build()
            .map_err(|error| Error::internal(format!("the HTTP client could not be made: {error}")))?;
        let name = root.host_str().unwrap_or_default();
        let host = root.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        Ok(Self { http, signer, root, host })
    }

    /// The server that is asked, for people.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Asks, again where that can help; what was answered.
    pub(super) async fn ask(&self, ask: &Ask<'_>) -> Result<Vec<u8>, Failure> {
        for pause in PAUSES {
            match self.ask_once(ask).await {
                Err(failure) if failure.may_pass() => tracing::debug!(?failure, "a bucket is asked again"),
                answered => return answered,
            }
            sleep(pause).await;
        }
        self.ask_once(ask).await
    }

    async fn ask_once(&self, ask: &Ask<'_>) -> Result<Vec<u8>, Failure> {
        let bytes = ask.body.map_or(0, Spooled::size);
        let within = ANSWER_WITHIN + Duration::from_secs(bytes / SLOWEST);
        let answered = timeout(within, async {
            let mut answer = self.request(ask)?.send().await?;
            match answer.status() {
                status
                    if status.is_success()
                        && ask.range.is_some()
                        && status != StatusCode::PARTIAL_CONTENT =>
                {
                    Err(Failure::Unreadable)
                }
                status if status.is_success() => read(&mut answer, ask.longest).await,
                _ => Err(refusal(answer).await),
            }
        });
        answered.await.unwrap_or(Err(Failure::TooSlow))
    }

    fn request(&self, ask: &Ask<'_>) -> Result<reqwest::RequestBuilder, Failure> {
        let mut url = self.root.clone();
        let path = format!("{}/{}", self.root.path().trim_end_matches('/'), ask.key);
        let query = query(ask.query);
        url.set_path(&path);
        url.set_query((!query.is_empty()).then_some(&query));
        let body_hash = ask.body.map_or_else(|| hash(b""), |body| body.hash().to_owned());
        let date = date(clock::wall());
        let headers = [("host", &*self.host), ("x-amz-content-sha256", &*body_hash), ("x-amz-date", &*date)];
        let unsigned = Unsigned {
            method: ask.method.as_str(),
            path: url.path(),
            query: &query,
            headers: &headers,
            body_hash: &body_hash,
        };
        let authorization = self.signer.authorization(&unsigned, &date);
        let mut request = self.http.request(ask.method.clone(), url).header(AUTHORIZATION, authorization);
        for (name, value) in &headers[1..] {
            request = request.header(*name, *value);
        }
        if let Some((first, last)) = ask.range {
            request = request.header(RANGE, format!("bytes={first}-{last}"));
        }
        if let Some(body) = ask.body {
            // With its length, so that a bucket never takes a part of it for the whole.
            request = request.header(CONTENT_LENGTH, body.size()).body(body.stream());
        }
        Ok(request)
    }
}

/// Reads an answer that has an end.
async fn read(answer: &mut Response, longest: usize) -> Result<Vec<u8>, Failure> {
    // What grows takes up to twice as much as comes.
    let announced = answer.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(announced.unwrap_or(0).min(longest));
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > longest {
            return Err(Failure::Unreadable);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn refusal(mut answer: Response) -> Failure {
    let status = answer.status().as_u16();
    let region =
        answer.headers().get("x-amz-bucket-region").and_then(|it| it.to_str().ok()).map(str::to_owned);
    let body = read(&mut answer, REFUSAL_BYTES).await.unwrap_or_default();
    Failure::Refused { status, code: code(&body).unwrap_or_default(), region }
}
