//! Calls to Twilio, and what their failures mean.

use super::parse::{Files, Page, sid};
use super::{Config, date, refusal};
use crate::kit::{ApiError, Client, Opened, Provider};
use crate::platform::FetchedFile;
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use reqwest::header::LOCATION;
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use url::Url;
use url::form_urlencoded::Serializer;

/// Who is called. The longest answer is a page of messages, some 200 kB.
static TWILIO: Provider = Provider {
    name: "Twilio",
    url: "https://api.twilio.com",
    example: "http://127.0.0.1:4000",
    ..Provider::USUAL
};
/// The version of the API, which every path begins with.
const VERSION: &str = "2010-04-01";
/// How long the transfer of a file may take.
const FETCH_WITHIN: Duration = Duration::from_secs(110);
/// Messages on a page.
const PAGE: usize = 100;

const UNAUTHORIZED: &str = "Twilio does not take this credential: see `account_sid` and `auth_token` (Twilio's \
                            console, Account Info)";

/// One number's line to Twilio.
pub(super) struct Api {
    client: Client,
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
    code: Option<i64>,
    message: Option<String>,
}

/// The numbers of an account.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Numbers {
    incoming_phone_numbers: Vec<Number>,
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
        let client = Client::new(&TWILIO, config.api_url.as_deref())?;
        Ok(Self { client, account: config.account_sid.clone(), token: config.auth_token.clone() })
    }

    /// Sends a message, with the picture behind a link; answers its id. Receipts for it go to `callback`.
    pub(super) async fn send(
        &self,
        [from, to]: [&str; 2],
        body: &str,
        picture: Option<&str>,
        callback: Option<&str>,
    ) -> Result<String, ApiError> {
        let mut fields = vec![("To", to), ("From", from), ("Body", body)];
        fields.extend(picture.map(|picture| ("MediaUrl", picture)));
        fields.extend(callback.map(|callback| ("StatusCallback", callback)));
        let request = self.request(Method::POST, &self.path("Messages.json"))?;
        let request =
            request.header("content-type", "application/x-www-form-urlencoded").body(encoded(&fields));
        let Written { sid: id } = self.call(request).await?;
        sid(Some(&id)).ok_or_else(|| ApiError::unknown("Twilio's answer names no message"))
    }

    /// Where the first page of what a number received since then is.
    pub(super) fn first_page(&self, to: &str, since: i64) -> String {
        let fields = [("To", to), ("DateSent>", &date::write(since)), ("PageSize", &PAGE.to_string())];
        format!("{}?{}", self.path("Messages.json"), encoded(&fields))
    }

    /// A page of messages.
    pub(super) async fn page(&self, path: &str) -> Result<Page, ApiError> {
        let mut page: Page = self.get(path).await?;
        // What Twilio says is not where our credential goes.
        let ours = format!("{}?", self.path("Messages.json"));
        page.is_cut = page.next_page_uri.take_if(|next| !next.starts_with(&ours)).is_some();
        Ok(page)
    }

    /// The files of a message.
    pub(super) async fn files(&self, message: &str) -> Result<Files, ApiError> {
        self.get(&self.path(&format!("Messages/{message}/Media.json"))).await
    }

    /// Begins to fetch a file. Twilio says where it is, and there our credential is nobody's business.
    pub(super) async fn fetch(&self, at: &str) -> Result<FetchedFile> {
        let request = self.request(Method::GET, &self.path(at)).map_err(ApiError::of_read)?;
        let mut opened = self.open(request).await?;
        if matches!(opened.status, 301 | 302 | 303 | 307 | 308) {
            let to = opened.headers.get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| Url::parse(to).ok());
            let to = to.filter(|to| to.scheme() == "https" || self.client.leads_there(to, &[]));
            let to = to.ok_or_else(|| Error::not_found("Twilio does not say where it is"))?;
            opened = self.open(self.client.elsewhere(&to).map_err(ApiError::of_read)?).await?;
        }
        opened.file(&TWILIO)
    }

    async fn open(&self, request: RequestBuilder) -> Result<Opened> {
        self.client.open(request.timeout(FETCH_WITHIN)).await.map_err(ApiError::of_read)
    }

    /// Where a file of a message is, as Twilio tells it to webhooks; `None` behind
    /// an address of the operator's own, which is nobody else's business.
    pub(super) fn file_url(&self, message: &str, file: &str) -> Option<String> {
        let path = self.path(&format!("Messages/{message}/Media/{file}"));
        self.client.is_own().then(|| format!("{}{path}", TWILIO.url))
    }

    /// What Twilio knows of a number; nothing if it is not the account's.
    pub(super) async fn number(&self, number: &str) -> Result<Option<Number>, ApiError> {
        let query = encoded(&[("PhoneNumber", number)]);
        let found: Numbers = self.get(&format!("{}?{query}", self.path("IncomingPhoneNumbers.json"))).await?;
        Ok(found.incoming_phone_numbers.into_iter().find(|found| found.phone_number == number))
    }

    /// A path below the account.
    fn path(&self, what: &str) -> String {
        format!("/{VERSION}/Accounts/{}/{what}", self.account)
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ApiError> {
        Ok(self.client.request(method, path)?.basic_auth(&self.account, Some(self.token.expose())))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.call(self.request(Method::GET, path)?).await
    }

    async fn call<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ApiError> {
        let answer = self.client.call(request).await?;
        match answer.status {
            200..=299 => self.client.read(&answer.body),
            status => Err(failed(status, answer.retry_after(), &answer.body)),
        }
    }
}

fn encoded(fields: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(fields).finish()
}

/// What an answer means that is not the one hoped for.
fn failed(status: u16, pause: Option<u64>, body: &[u8]) -> ApiError {
    let refusal = serde_json::from_slice::<Refusal>(body).ok();
    match (status, refusal) {
        (429, _) => TWILIO.limited(pause),
        (401, Some(Refusal { code: Some(refusal::AUTHENTICATE), .. })) => ApiError::setup(UNAUTHORIZED),
        (400..=499, Some(Refusal { code: Some(code), message })) => {
            ApiError::refused(code, refusal::explained(code, &message.unwrap_or_default()))
        }
        (300..=499, _) => TWILIO.in_between(status),
        // A server that failed may have failed after it did its work.
        _ => ApiError::unknown(format!("Twilio answered with HTTP status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ErrorKind;
    use crate::platform::Reach;
    use std::time::Duration;

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
        let stopped = failed(400, None, refused);
        assert!(stopped.kind == ErrorKind::Refused(21610) && stopped.why.contains("STOP"));
        let unauthorized = br#"{"code":20003,"message":"Authenticate","status":401}"#;
        assert_eq!(failed(401, None, unauthorized).kind, ErrorKind::Setup);
        let limited = |after| ErrorKind::Limited { after, reach: Reach::Bot };
        assert_eq!(failed(429, Some(7), b"").kind, limited(Duration::from_secs(7)));
        assert_eq!(failed(429, None, b"{}").kind, limited(TWILIO.default_pause));
        assert_eq!(failed(429, Some(u64::MAX), b"{}").kind, limited(TWILIO.longest_pause));
        for status in [301, 400, 401, 404, 407] {
            assert_eq!(failed(status, None, b"<html>").kind, ErrorKind::Unavailable, "{status}");
        }
        for status in [500, 502, 503] {
            assert_eq!(failed(status, None, refused).kind, ErrorKind::Unknown, "{status}");
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
