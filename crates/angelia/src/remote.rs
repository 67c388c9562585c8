//! Asking a server: the running one through its admin API, or, when none
//! runs, one opened over the data directory just for the question. A store that
//! servers share is never opened for that: they would not hear of what changed.

use crate::config::Config;
use crate::elsewhere::Elsewhere;
use crate::files::absolute;
use crate::open::{self, Purpose};
use crate::presence::{self, Holder};
use angelia_connector::admin::Call;
use angelia_core::connections::Lasting;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::secret::Secret;
use angelia_engines::store::sqlite;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tower::ServiceExt;

/// Longest time a running server may take for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The same for what goes through everything there is.
const LONG_TIMEOUT: Duration = Duration::from_secs(3600);
/// Largest answer taken.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// A server to ask.
pub(crate) enum Remote {
    /// One that runs.
    Running { client: reqwest::Client, url: String, token: Secret },
    /// One opened for the question.
    Opened { router: Router, token: Secret },
}

impl Remote {
    /// Finds out which of the two it is, after waiting for whoever has the data directory.
    ///
    /// `makes` tells whether the question may make a data directory that is not there.
    pub(crate) async fn open(config: &Config, makes: bool) -> Result<Self> {
        let data_dir = &config.server.data_dir;
        if config.store.is_shared() {
            return match presence::find_server(data_dir).await? {
                Some((url, token)) => Self::at(url, token),
                None => Err(not_opened(data_dir)),
            };
        }
        if !makes && !open::has_data(data_dir) && !sqlite::is_locked(data_dir) {
            return Err(Error::unavailable(format!(
                "no server is running and {} holds no data; start one with: angelia serve",
                data_dir.display()
            )));
        }
        match presence::find(data_dir).await? {
            Holder::Server(url, token) => Self::at(url, token),
            Holder::Us(lock) => {
                let public_url = config.server.public_url(config.server.listen);
                let opened =
                    open::open(config, lock, public_url, Lasting::default(), Purpose::Command).await?;
                let router = opened.server.admin_router();
                Ok(Self::Opened { router, token: open::admin_token(data_dir)? })
            }
        }
    }

    /// The server that runs, or that is just starting; an error if there is none.
    pub(crate) async fn find_running(config: &Config) -> Result<Self> {
        let data_dir = &config.server.data_dir;
        // Looking must not make a data directory.
        let is_there = open::has_data(data_dir) || sqlite::is_locked(data_dir);
        if is_there && let Holder::Server(url, token) = presence::find(data_dir).await? {
            return Self::at(url, token);
        }
        let data_dir = absolute(data_dir);
        Err(Error::unavailable(format!(
            "no server is running on {}; start one with: angelia serve",
            data_dir.display()
        )))
    }

    /// The server that runs, if one does.
    pub(crate) fn running(config: &Config) -> Result<Option<Self>> {
        presence::server(&config.server.data_dir)?.map(|(url, token)| Self::at(url, token)).transpose()
    }

    /// One that was named.
    pub(crate) fn elsewhere(server: &Elsewhere) -> Result<Self> {
        Self::at(server.url.clone(), server.token.clone())
    }

    fn at(url: String, token: Secret) -> Result<Self> {
        // Whoever answers must not send the token on to somebody else.
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let client = client.build().map_err(Error::defect)?;
        Ok(Self::Running { client, url, token })
    }

    /// Asks, and reads the answer.
    pub(crate) async fn call<A: DeserializeOwned>(&self, call: Call<A>) -> Result<Reply<A>> {
        self.ask(call, TIMEOUT).await
    }

    /// The same, for a question that may take long.
    pub(crate) async fn call_patiently<A: DeserializeOwned>(&self, call: Call<A>) -> Result<Reply<A>> {
        self.ask(call, LONG_TIMEOUT).await
    }

    async fn ask<A: DeserializeOwned>(&self, call: Call<A>, patience: Duration) -> Result<Reply<A>> {
        let Call { method, path, body, .. } = call;
        let (status, answer) = match self {
            Self::Running { client, url, token } => {
                let request = client.request(method, format!("{url}{path}")).bearer_auth(token.expose());
                let mut request = request.timeout(patience);
                if let Some(body) = body {
                    request = request.json(&body);
                }
                let unreachable = |e: reqwest::Error| {
                    Error::unavailable(format!("the server at {url} does not answer: {e}")).caused_by(e)
                };
                let response = request.send().await.map_err(unreachable)?;
                let status = response.status().as_u16();
                (status, response.bytes().await.map_err(unreachable)?)
            }
            Self::Opened { router, token } => {
                let request = Request::builder()
                    .method(method)
                    .uri(path)
                    .header(AUTHORIZATION, format!("Bearer {}", token.expose()))
                    .header(CONTENT_TYPE, "application/json")
                    .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))
                    .map_err(Error::defect)?;
                let response = router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
                let status = response.status().as_u16();
                let body = to_bytes(response.into_body(), MAX_ANSWER).await;
                (status, body.map_err(Error::defect)?)
            }
        };
        read(status, &answer)
    }
}

/// What to say where a command must not open the store itself.
fn not_opened(data_dir: &Path) -> Error {
    Error::unavailable(format!(
        "no server is running on {}, and the store is in PostgreSQL, where a command does not open it by itself: \
         a server elsewhere that uses it would not hear of what changed. Start one with: angelia serve, or ask one \
         that runs with --server URL",
        absolute(data_dir).display()
    ))
}

/// What a server answered.
pub(crate) struct Reply<A> {
    /// To the letter, for scripts.
    pub(crate) value: Value,
    /// As it is read here. A server of another release may say something else: what it did is
    /// done, and what it said is still there to be shown.
    pub(crate) read: Result<A>,
}

fn read<A: DeserializeOwned>(status: u16, answer: &[u8]) -> Result<Reply<A>> {
    let value: Value = serde_json::from_slice(answer).unwrap_or(Value::Null);
    if (200..300).contains(&status) {
        let read = A::deserialize(&value).map_err(|e| {
            Error::internal(format!("the server's answer cannot be read; is it of another release? {e}"))
                .caused_by(e)
        });
        return Ok(Reply { value, read });
    }
    let text = value["error"].as_str().map_or_else(
        || format!("the server answered {status}: {}", String::from_utf8_lossy(answer).trim()),
        str::to_owned,
    );
    Err(Error::new(Kind::from_http_status(status), text))
}
