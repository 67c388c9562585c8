//! Calls to WeCom's API, and what its error codes mean.

use super::Wecom;
use crate::kit::{self, ApiError, ErrorKind, Fetched, Opened, Provider};
use crate::platform::{FetchedFile, OutgoingFile};
use angelia_core::error::Result;
use angelia_core::secret::Secret;
use futures_util::StreamExt;
use reqwest::Method;
use reqwest::header::CONTENT_DISPOSITION;
use reqwest::multipart::Form;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use url::form_urlencoded::Serializer;

/// The method that gives an access token.
const GET_TOKEN: &str = "gettoken";

/// How soon a call is made again that WeCom had no time for.
const BUSY_AGAIN: Duration = Duration::from_secs(2);
/// How soon after too many calls in a minute. WeCom does not say, and counts minutes.
const LIMIT_AGAIN: Duration = Duration::from_secs(60);
/// Longest description kept of a refusal.
const MAX_DESCRIPTION: usize = 120;

/// Who is called. The longest answer is an app's description with everybody who may see it.
pub(super) static WECOM: Provider = Provider {
    name: "WeCom",
    url: "https://qyapi.weixin.qq.com",
    default_pause: LIMIT_AGAIN,
    ..Provider::USUAL
};

/// How long the transfer of a file may take.
const FETCH_WITHIN: Duration = Duration::from_secs(110);
/// As much is read of what is said in the place of a file.
const MAX_REFUSAL: usize = 4_096;

/// What every answer has.
#[derive(Deserialize)]
struct Answer {
    errcode: i64,
    #[serde(default)]
    errmsg: String,
}

#[derive(Deserialize)]
struct Uploaded {
    media_id: String,
}

#[derive(Deserialize)]
struct Token {
    access_token: String,
    #[serde(default)]
    expires_in: u64,
}

impl Wecom {
    /// Fetches an access token.
    pub(super) async fn fetch_token(&self) -> Fetched {
        let query = [("corpid", self.config.corp_id.as_str()), ("corpsecret", self.config.secret.expose())];
        let Token { access_token, expires_in } = self.ask(GET_TOKEN, &query, None).await?;
        Ok((Secret::new(access_token), expires_in))
    }

    /// Calls a method with the access token, if it may still be called when that is there; once
    /// more with a new token if WeCom does not take the old one any more, for then nothing
    /// was done.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        query: Option<(&str, &str)>,
        body: Option<&Value>,
        may: impl Fn() -> bool,
    ) -> Result<T, ApiError> {
        let token = self.token.get(self.fetch_token()).await?;
        if !may() {
            return Err(ApiError::withdrawn());
        }
        let ask = async |token: &Secret| {
            let query: Vec<_> = [("access_token", token.expose())].into_iter().chain(query).collect();
            self.ask(method, &query, body).await
        };
        match ask(&token).await {
            Err(error) if error.kind == ErrorKind::Token => {
                self.account.health.count("tokens_refused");
                ask(&self.token.other_than(self.fetch_token(), &token, error).await?).await
            }
            asked => asked,
        }
    }

    /// Gives WeCom a file to send, if it may still be sent when the access token is there; answers its
    /// id.
    pub(super) async fn upload(
        &self,
        sort: &str,
        file: &OutgoingFile,
        may: impl Fn() -> bool,
    ) -> Result<String, ApiError> {
        let token = self.token.get(self.fetch_token()).await?;
        if !may() {
            return Err(ApiError::withdrawn());
        }
        match self.upload_once(sort, file, &token).await {
            Err(error) if error.kind == ErrorKind::Token => {
                let next = self.token.other_than(self.fetch_token(), &token, error).await?;
                self.upload_once(sort, file, &next).await
            }
            uploaded => uploaded,
        }
        // Nobody sees a file that was only uploaded.
        .map_err(|error| match error.kind {
            ErrorKind::Unknown => ApiError::unavailable(error.why),
            _ => error,
        })
    }

    async fn upload_once(&self, sort: &str, file: &OutgoingFile, token: &Secret) -> Result<String, ApiError> {
        let query = [("access_token", token.expose()), ("type", sort)];
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        let request = self.client.request(Method::POST, &format!("/cgi-bin/media/upload?{query}"))?;
        let request = request.timeout(WECOM.call_within + file.takes());
        let answer =
            self.client.call(request.multipart(Form::new().part("media", file.part().await?))).await?;
        let Uploaded { media_id } = self.read_answer("media/upload", &answer)?;
        Ok(media_id)
    }

    /// Begins to fetch a file by its id.
    pub(super) async fn fetch(&self, id: &str) -> Result<FetchedFile> {
        let token = self.token.get(self.fetch_token()).await.map_err(ApiError::of_read)?;
        let opened = match self.open(id, &token).await {
            Err(error) if error.kind == ErrorKind::Token => {
                let next = self.token.other_than(self.fetch_token(), &token, error).await;
                self.open(id, &next.map_err(ApiError::of_read)?).await
            }
            opened => opened,
        };
        opened.map_err(ApiError::of_read)?.file(&WECOM)
    }

    async fn open(&self, id: &str, token: &Secret) -> Result<Opened, ApiError> {
        let query = [("access_token", token.expose()), ("media_id", id)];
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        let path = format!("/cgi-bin/media/get?{query}");
        let request = self.client.request(Method::GET, &path)?.timeout(FETCH_WITHIN);
        let mut opened = self.client.open(request).await?;
        // A file says what it is called; a refusal is JSON under the same status.
        if opened.headers.contains_key(CONTENT_DISPOSITION) {
            return Ok(opened);
        }
        // A refusal is short. What is not is somebody else's page, and nobody reads that to its end.
        let mut body = Vec::new();
        while body.len() < MAX_REFUSAL
            && let Some(Ok(piece)) = opened.bytes.next().await
        {
            body.extend_from_slice(&piece[..piece.len().min(MAX_REFUSAL - body.len())]);
        }
        match serde_json::from_slice(&body) {
            Ok(Answer { errcode: 40001, .. }) => Err(bad_token()),
            Ok(Answer { errcode: 40007 | 41006, .. }) => Err(ApiError::refused(
                40007,
                "WeCom does not have it any more: files are kept for three days",
            )),
            Ok(Answer { errcode, errmsg }) => Err(meaning(errcode, &errmsg)),
            Err(_) => Err(WECOM.stranger(opened.status, None)),
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<T, ApiError> {
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        let path = format!("/cgi-bin/{method}?{query}");
        let request = match body {
            Some(body) => self.client.request(Method::POST, &path)?.json(body),
            None => self.client.request(Method::GET, &path)?,
        };
        self.read_answer(method, &self.client.call(request).await?)
    }

    fn read_answer<T: DeserializeOwned>(&self, method: &str, answer: &kit::Answer) -> Result<T, ApiError> {
        match serde_json::from_slice(&answer.body) {
            Ok(Answer { errcode: 0, .. }) => self.client.read(&answer.body),
            // Only one method is given the secret; to the others the credential is the token.
            Ok(Answer { errcode: 40001, .. }) if method != GET_TOKEN => Err(bad_token()),
            Ok(Answer { errcode, errmsg }) => Err(meaning(errcode, &errmsg)),
            Err(_) => Err(WECOM.stranger(answer.status, None)),
        }
    }
}

/// What an error code means.
fn meaning(code: i64, message: &str) -> ApiError {
    match code {
        -1 => ApiError::unavailable("WeCom is busy"),
        40014 | 41001 | 42001 => bad_token(),
        45009 | 45011 => WECOM.limited_for(LIMIT_AGAIN),
        45033 => WECOM.limited_for(BUSY_AGAIN),
        40001 | 40091 | 41004 => setup(
            code,
            "does not take the secret",
            "copy it again from the app's page in the admin console (App Management, the app, Secret)",
        ),
        40013 | 41002 => setup(
            code,
            "does not know the company",
            "see that `id` begins with the Company ID of My Company in the admin console",
        ),
        40056 | 41011 | 301002 => setup(
            code,
            "does not know the app, or the secret is another app's",
            "see that `id` ends with the AgentId of the app's page, and that `secret` is from the same page",
        ),
        60020 => setup(
            code,
            "does not let this server's address in",
            "add it to the app's Trusted IPs (企业可信IP) in the admin console",
        ),
        48002 | 48004 | 60011 => {
            setup(code, "does not let the app do this", "look at the app's permissions in the admin console")
        }
        81013 | 40003 | 60111 | 82001 => refused(
            code,
            "the person is not in the app's visible range any more, or has left the company: an administrator can \
             add them",
        ),
        _ => refused(code, description(message)),
    }
}

fn bad_token() -> ApiError {
    ApiError::new(ErrorKind::Token, "WeCom does not take the access token it gave")
}

fn setup(code: i64, what: &str, next: &str) -> ApiError {
    ApiError::setup(format!("WeCom {what} (errcode {code}): {next}"))
}

fn refused(code: i64, why: &str) -> ApiError {
    ApiError::refused(code, format!("WeCom refused (errcode {code}): {why}"))
}

/// WeCom's own words, without the hints and addresses that follow them.
fn description(message: &str) -> &str {
    let short = message.split([',', ';']).next().unwrap_or_default().trim();
    let end = short.char_indices().nth(MAX_DESCRIPTION).map_or(short.len(), |(end, _)| end);
    if end == 0 { "it does not say why" } else { &short[..end] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_meaning() {
        let kind = |code| meaning(code, "").kind;
        assert_eq!(kind(-1), ErrorKind::Unavailable);
        for code in [40014, 42001, 41001] {
            assert_eq!(kind(code), ErrorKind::Token);
        }
        assert!(matches!(kind(45009), ErrorKind::Limited { after, .. } if after == LIMIT_AGAIN));
        assert!(matches!(kind(45033), ErrorKind::Limited { after, .. } if after == BUSY_AGAIN));
        for code in [40001, 40013, 40056, 60020, 48002] {
            let ApiError { kind: ErrorKind::Setup, why } = meaning(code, "") else { panic!("{code}") };
            assert!(why.contains(&code.to_string()) && why.contains(": "), "{why}");
        }
        let told = meaning(
            44004,
            "empty content, hint: [1700000000_1_abc], from ip: 10.0.0.1, more info at https://x",
        );
        assert_eq!(told, ApiError::refused(44004, "WeCom refused (errcode 44004): empty content"));
        assert_eq!(description(""), "it does not say why");
        assert_eq!(description(&"你".repeat(500)).chars().count(), MAX_DESCRIPTION);
    }
}
