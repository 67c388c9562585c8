//! Calls to Twilio, and what their failures mean.

use super::parse::{Files, Page, sid};
use super::{Config, date, refusal};
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::OnceLock;
use std::time::Duration;
use url::form_urlencoded::Serializer;

const TWILIO: &str = "https://api.twilio.com";
/// The version of the API, which every path begins with.
const VERSION: &str = "2010-04-01";

const UNREACHABLE: &str = "Twilio cannot be reached: see that this server's network lets it out to \
                           api.twilio.com, and that `api_url`, if it is set, is right";

/// How long a connection may take to be made. Only until then is it certain
/// that nothing was done.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long a call may take: shorter than a gateway waits.
const CALL_WITHIN: Duration = Duration::from_secs(20);
/// Largest answer: a page of messages is some 200 kB.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// Messages on a page.
const PAGE: usize = 100;
/// The pause when Twilio says "too many" and not how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause believed.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Why a call did not give what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Too many calls: not before this much time has passed.
    RetryAfter(Duration),
    /// The credential is not the account's.
    Unauthorized,
    /// Twilio will not do it: its number for why, and what that means.
    Refused(u64, String),
    /// It was certainly not done.
    Unavailable(String),
    /// It may have been done.
    Unknown(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RetryAfter(pause) => write!(f, "Twilio wants a pause of {} s", pause.as_secs()),
            Self::Unauthorized => f.write_str(
                "Twilio does not take this credential: see `account_sid` and `auth_token` (Twilio's console, \
                 Account Info)",
            ),
            Self::Refused(_, why) | Self::Unavailable(why) | Self::Unknown(why) => f.write_str(why),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::RetryAfter(_) | Failure::Unavailable(_) => Self::unavailable(failure.to_string()),
            Failure::Unauthorized => Self::conflict(failure.to_string()),
            Failure::Refused(..) | Failure::Unknown(_) => Self::invalid(failure.to_string()),
        }
    }
}

/// One number's line to Twilio.
pub(super) struct Api {
    /// Made for the first call: a bot that only has to be known makes none.
    client: OnceLock<reqwest::Client>,
    root: String,
    account: String,
    token: Secret,
}

/// What Twilio answers to a message it took.
#[derive(Deserialize)]
struct Written {
    sid: String,
}

/// What Twilio answers when it refuses.
#[derive(Deserialize)]
struct Refusal {
    code: Option<u64>,
    message: Option<String>,
}

/// The numbers of an account.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Numbers {
    pub(super) incoming_phone_numbers: Vec<Number>,
}

/// One of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Number {
    pub(super) phone_number: String,
    pub(super) friendly_name: Option<String>,
    pub(super) sms_url: Option<String>,
    pub(super) sms_method: Option<String>,
    pub(super) sms_application_sid: Option<String>,
}

impl Api {
    /// The line of the account that a number belongs to.
    pub(super) fn new(config: &Config) -> Result<Self> {
        let root = config.api_url.as_deref().unwrap_or(TWILIO).trim_end_matches('/');
        let readable = url::Url::parse(root).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !readable {
            return Err(Error::invalid(
                "api_url must be like http://127.0.0.1:4000; leave it out for Twilio's own",
            ));
        }
        let (account, token) = (config.account_sid.clone(), config.auth_token.clone());
        Ok(Self { client: OnceLock::new(), root: root.to_owned(), account, token })
    }

    /// Sends a message; answers its id. Receipts for it go to `callback`.
    pub(super) async fn send(
        &self,
        [from, to]: [&str; 2],
        body: &str,
        callback: Option<&str>,
    ) -> Result<String, Failure> {
        let mut fields = vec![("To", to), ("From", from), ("Body", body)];
        fields.extend(callback.map(|callback| ("StatusCallback", callback)));
        let request = self.request(Method::POST, &self.path("Messages.json"))?;
        let request =
            request.header("content-type", "application/x-www-form-urlencoded").body(encoded(&fields));
        let Written { sid: id } = self.call(request).await?;
        sid(Some(&id)).ok_or_else(|| Failure::Unknown("Twilio's answer names no message".into()))
    }

    /// Where the first page of what a number received since then is.
    pub(super) fn first_page(&self, to: &str, since: i64) -> String {
        let fields = [("To", to), ("DateSent>", &date::write(since)), ("PageSize", &PAGE.to_string())];
        format!("{}?{}", self.path("Messages.json"), encoded(&fields))
    }

    /// A page of messages.
    pub(super) async fn page(&self, path: &str) -> Result<Page, Failure> {
        let mut page: Page = self.get(path).await?;
        // What Twilio says is not where our credential goes.
        let ours = format!("{}?", self.path("Messages.json"));
        page.is_cut = page.next_page_uri.take_if(|next| !next.starts_with(&ours)).is_some();
        Ok(page)
    }

    /// The files of a message.
    pub(super) async fn files(&self, message: &str) -> Result<Files, Failure> {
        self.get(&self.path(&format!("Messages/{message}/Media.json"))).await
    }

    /// Where a file of a message is, as Twilio tells it to webhooks; `None` behind
    /// an address of the operator's own, which is nobody else's business.
    pub(super) fn file_url(&self, message: &str, file: &str) -> Option<String> {
        (self.root == TWILIO)
            .then(|| format!("{TWILIO}{}", self.path(&format!("Messages/{message}/Media/{file}"))))
    }

    /// What Twilio knows of a number; nothing if it is not the account's.
    pub(super) async fn number(&self, number: &str) -> Result<Option<Number>, Failure> {
        let query = encoded(&[("PhoneNumber", number)]);
        let found: Numbers = self.get(&format!("{}?{query}", self.path("IncomingPhoneNumbers.json"))).await?;
        Ok(found.incoming_phone_numbers.into_iter().find(|found| found.phone_number == number))
    }

    /// A path below the account.
    fn path(&self, what: &str) -> String {
        format!("/{VERSION}/Accounts/{}/{what}", self.account)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.call(self.request(Method::GET, path)?).await
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Failure> {
        let request = self.client()?.request(method, format!("{}{path}", self.root)).timeout(CALL_WITHIN);
        Ok(request.basic_auth(&self.account, Some(self.token.expose())))
    }

    fn client(&self) -> Result<&reqwest::Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(CONNECT_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("angelia/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|_| {
            Failure::Unavailable("the HTTP client could not be made: see the TLS setup".into())
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    async fn call<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failure> {
        let answer = request.send().await.map_err(|error| unsent(&error))?;
        let status = answer.status().as_u16();
        let pause = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let body = capped(answer).await?;
        match status {
            200..=299 => serde_json::from_slice(&body)
                .map_err(|_| Failure::Unknown("Twilio's answer cannot be read".into())),
            _ => Err(failed(status, pause, &body)),
        }
    }
}

fn encoded(fields: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(fields).finish()
}

/// What it means that there is no answer.
fn unsent(error: &reqwest::Error) -> Failure {
    if error.is_connect() || error.is_builder() {
        Failure::Unavailable(UNREACHABLE.into())
    } else if error.is_timeout() {
        Failure::Unknown("Twilio did not answer in time".into())
    } else {
        Failure::Unknown("the connection to Twilio broke".into())
    }
}

/// A body up to [`MAX_ANSWER`].
async fn capped(mut answer: reqwest::Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unsent(&error))? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(Failure::Unknown("Twilio's answer is too large".into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What an answer means that is not the one hoped for.
fn failed(status: u16, pause: Option<u64>, body: &[u8]) -> Failure {
    let refusal = serde_json::from_slice::<Refusal>(body).ok();
    match (status, refusal) {
        (429, _) => Failure::RetryAfter(pause.map_or(DEFAULT_PAUSE, Duration::from_secs).min(LONGEST_PAUSE)),
        (401, Some(Refusal { code: Some(refusal::AUTHENTICATE), .. })) => Failure::Unauthorized,
        (400..=499, Some(Refusal { code: Some(code), message })) => {
            Failure::Refused(code, refusal::explained(code, &message.unwrap_or_default()))
        }
        // Whoever answers so on the way has passed nothing on.
        (300..=499, _) => Failure::Unavailable(format!(
            "something that is not Twilio answered with HTTP status {status}: see that `api_url`, if it is \
             set, is right, and which proxy stands in between"
        )),
        // A server that failed may have failed after it did its work.
        _ => Failure::Unknown(format!("Twilio answered with HTTP status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(api_url: Option<&str>) -> Result<Api> {
        Api::new(&Config {
            id: "+15550100".into(),
            name: "main".into(),
            account_sid: "AC1".into(),
            auth_token: Secret::new("hunter2"),
            signing_key: None,
            api_url: api_url.map(str::to_owned),
        })
    }

    #[test]
    fn every_answer_has_its_meaning() {
        let refused = br#"{"code":21610,"message":"Attempt to send to unsubscribed recipient","status":400}"#;
        assert!(matches!(failed(400, None, refused), Failure::Refused(21610, why) if why.contains("STOP")));
        let unauthorized = br#"{"code":20003,"message":"Authenticate","status":401}"#;
        assert_eq!(failed(401, None, unauthorized), Failure::Unauthorized);
        assert_eq!(failed(429, Some(7), b""), Failure::RetryAfter(Duration::from_secs(7)));
        assert_eq!(failed(429, None, b"{}"), Failure::RetryAfter(DEFAULT_PAUSE));
        assert_eq!(failed(429, Some(u64::MAX), b"{}"), Failure::RetryAfter(LONGEST_PAUSE));
        for status in [301, 400, 401, 404, 407] {
            assert!(matches!(failed(status, None, b"<html>"), Failure::Unavailable(_)), "{status}");
        }
        for status in [500, 502, 503] {
            assert!(matches!(failed(status, None, refused), Failure::Unknown(_)), "{status}");
        }
    }

    #[test]
    fn addresses_are_below_the_account() {
        let own = api(None).unwrap();
        assert_eq!(
            own.first_page("+15550100", 0),
            "/2010-04-01/Accounts/AC1/Messages.json?To=%2B15550100&DateSent%3E=1970-01-01T00%3A00%3A00Z&PageSize=100"
        );
        let file = "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM1/Media/ME1";
        assert_eq!(own.file_url("MM1", "ME1").as_deref(), Some(file));
        assert_eq!(api(Some("http://10.0.0.1:4000")).unwrap().file_url("MM1", "ME1"), None);
        for odd in ["", "twilio", "ftp://x", "file:///etc/passwd"] {
            assert!(api(Some(odd)).is_err(), "{odd}");
        }
    }
}
