//! What Twilio posts and lists, read into the same shape.

use super::address::is_sender;
use super::verify::is_form;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use url::form_urlencoded;

/// Longest id of a message; Twilio's have 34 characters.
const MAX_SID: usize = 64;
/// Attachments looked at; Twilio takes ten.
pub(super) const MAX_MEDIA: usize = 20;
/// Longest address and type of an attachment.
const MAX_MEDIA_TEXT: usize = 2_048;

/// A message somebody sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// Twilio's id.
    pub(super) sid: String,
    /// Who sent it.
    pub(super) from: String,
    /// The number it was sent to.
    pub(super) to: String,
    /// What was written.
    pub(super) body: String,
    /// What came with it.
    pub(super) media: Vec<Attachment>,
    /// What Twilio took it for: `STOP`, `START` or `HELP`.
    pub(super) opt_out: Option<String>,
}

/// A picture or another file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attachment {
    /// Where it is; empty if nobody can tell.
    pub(super) url: String,
    /// What it is fetched by.
    pub(super) at: Option<String>,
    /// What it is.
    pub(super) mime: Option<String>,
}

/// What a file of a message is fetched by, below the account; `None` if the ids are none.
pub(super) fn file_at(message: &str, file: &str) -> Option<String> {
    let is_plain = |id: &str| {
        !id.is_empty() && id.len() <= MAX_SID && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    (is_plain(message) && is_plain(file)).then(|| format!("Messages/{message}/Media/{file}"))
}

/// The same of an address that Twilio names.
fn at_address(url: &str) -> Option<String> {
    let mut parts = url.split('/').rev();
    let (file, media, message, messages) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    file_at(message, file).filter(|_| (messages, media) == ("Messages", "Media"))
}

/// What became of a message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    /// The message.
    pub(super) sid: String,
    /// Twilio's word for it.
    pub(super) word: String,
    /// Twilio's number for what went wrong.
    pub(super) error: Option<String>,
}

/// The fields of a request.
pub(super) struct Fields(HashMap<String, String>);

impl Fields {
    /// Reads a body that is known to be Twilio's.
    pub(super) fn of(content_type: Option<&str>, body: &[u8]) -> Self {
        if is_form(content_type) {
            let fields = form_urlencoded::parse(body);
            return Self(fields.map(|(name, value)| (name.into_owned(), value.into_owned())).collect());
        }
        let object: HashMap<String, Value> = serde_json::from_slice(body).unwrap_or_default();
        let text = |value: Value| match value {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        Self(object.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// What was written, whatever the rest is.
    pub(super) fn body(&self) -> Option<&str> {
        self.get("Body")
    }

    /// Whether it came another way than as a text message: senders and receivers
    /// there are written as `whatsapp:+15550199`.
    pub(super) fn is_other_channel(&self) -> bool {
        ["To", "From"].iter().any(|name| self.get(name).is_some_and(|address| address.contains(':')))
    }

    /// The message; or why it cannot be read, without any text of it.
    pub(super) fn message(&self) -> Result<Received, &'static str> {
        let received = Received {
            sid: sid(self.get("MessageSid")).ok_or("it has no MessageSid")?,
            from: self
                .get("From")
                .filter(|from| is_sender(from))
                .ok_or("it has no sender that can be read")?
                .into(),
            to: self.get("To").ok_or("it has no receiver")?.into(),
            body: self.get("Body").unwrap_or_default().into(),
            media: self.media(),
            opt_out: self.get("OptOutType").filter(|word| !word.is_empty()).map(str::to_owned),
        };
        Ok(received)
    }

    fn media(&self) -> Vec<Attachment> {
        let count = self.get("NumMedia").and_then(|count| count.parse().ok()).unwrap_or(0_usize);
        let short = |text: &&str| !text.is_empty() && text.len() <= MAX_MEDIA_TEXT;
        let one = |number: usize| {
            let url = self.get(&format!("MediaUrl{number}")).filter(short);
            let mime = self.get(&format!("MediaContentType{number}")).filter(short).map(str::to_owned);
            let shown = url.filter(|url| is_open(url)).unwrap_or_default();
            Attachment { at: url.and_then(at_address), url: shown.into(), mime }
        };
        (0..count.min(MAX_MEDIA)).map(one).collect()
    }

    /// What became of a message; `None` if it does not say.
    pub(super) fn status(&self) -> Option<Status> {
        let word = self.get("MessageStatus").or_else(|| self.get("SmsStatus"))?;
        let plain = |text: &str, is: fn(&u8) -> bool| {
            (1..=32).contains(&text.len()) && text.as_bytes().iter().all(is)
        };
        let error = self.get("ErrorCode").filter(|code| plain(code, u8::is_ascii_digit));
        plain(word, |byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-')).then_some(())?;
        Some(Status {
            sid: sid(self.get("MessageSid").or_else(|| self.get("SmsSid")))?,
            word: word.to_owned(),
            error: error.map(str::to_owned),
        })
    }
}

/// Whether an address may be handed on. Twilio's are of two sorts, by a setting of
/// the account: whoever knows one may fetch the file, or only whoever has the
/// account's credential. Neither contains a credential: the account's id in it
/// opens nothing. One that does contain one is not Twilio's, and stays here.
fn is_open(address: &str) -> bool {
    url::Url::parse(address).is_ok_and(|url| {
        matches!(url.scheme(), "https" | "http") && url.username().is_empty() && url.password().is_none()
    })
}

/// An id as Twilio writes them.
pub(super) fn sid(text: Option<&str>) -> Option<String> {
    let is_sid = |text: &&str| {
        (1..=MAX_SID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.filter(is_sid).map(str::to_owned)
}

/// One page of a list of messages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Page {
    /// Newest first.
    pub(super) messages: Vec<Listed>,
    /// Where the next page is.
    pub(super) next_page_uri: Option<String>,
    /// Whether there is a next page, and not where it may be asked for.
    #[serde(skip)]
    pub(super) is_cut: bool,
}

/// One message in a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Listed {
    pub(super) sid: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) body: Option<String>,
    pub(super) direction: Option<String>,
    pub(super) num_media: Option<String>,
    pub(super) date_sent: Option<String>,
    pub(super) date_created: Option<String>,
}

impl Listed {
    /// How many files came with it.
    pub(super) fn files(&self) -> usize {
        self.num_media.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}

/// The files of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Files {
    pub(super) media_list: Vec<ListedFile>,
}

/// One of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListedFile {
    pub(super) sid: Option<String>,
    pub(super) content_type: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Option<&str> = Some("application/x-www-form-urlencoded");

    #[test]
    fn a_form_and_json_are_the_same_message() {
        let form = Fields::of(
            FORM,
            b"MessageSid=SM1&From=%2B15550199&To=%2B15550100&Body=a+b%20%F0%9F%98%80&NumMedia=0&New=x",
        );
        let json = r#"{"MessageSid":"SM1","From":"+15550199","To":"+15550100","Body":"a b 😀","NumMedia":0,"New":[1]}"#;
        let json = Fields::of(Some("application/json"), json.as_bytes());
        let expected = Received {
            sid: "SM1".into(),
            from: "+15550199".into(),
            to: "+15550100".into(),
            body: "a b 😀".into(),
            ..Received::default()
        };
        assert_eq!(form.message(), Ok(expected.clone()));
        assert_eq!(json.message(), Ok(expected));
    }

    #[test]
    fn what_is_missing_is_told_without_the_text() {
        for (body, why) in [
            ("From=%2B15550199&To=%2B1555&Body=secret", "MessageSid"),
            ("MessageSid=SM/1&From=%2B15550199&To=%2B1555&Body=secret", "MessageSid"),
            ("MessageSid=SM1&To=%2B1555&Body=secret", "sender"),
            ("MessageSid=SM1&From=a%20b&To=%2B1555&Body=secret", "sender"),
            ("MessageSid=SM1&From=%2B15550199&Body=secret", "receiver"),
        ] {
            let told = Fields::of(FORM, body.as_bytes()).message().unwrap_err();
            assert!(told.contains(why) && !told.contains("secret"), "{told}");
        }
        assert!(Fields::of(Some("application/json"), b"not json").message().is_err());
    }

    #[test]
    fn other_channels_are_told_by_their_addresses() {
        let is_other = |body: &str| Fields::of(FORM, body.as_bytes()).is_other_channel();
        assert!(is_other("MessageSid=SM1&From=whatsapp%3A%2B15550199&To=whatsapp%3A%2B15550100"));
        assert!(is_other("From=messenger%3A123&To=%2B15550100"));
        assert!(!is_other("From=%2B15550199&To=%2B15550100&Body=a%3Ab") && !is_other(""));
    }

    #[test]
    fn a_file_is_fetched_by_its_place_below_the_account() {
        let at = at_address("https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM1/Media/ME1");
        assert_eq!(at.as_deref(), Some("Messages/MM1/Media/ME1"));
        for odd in
            ["https://api.twilio.com/Media/ME1", "", "x/Messages/../Media/ME1", "x/Messages/MM1/Media/a%2fb"]
        {
            assert_eq!(at_address(odd), None, "{odd}");
        }
    }

    #[test]
    fn files_come_with_their_type_and_without_credentials() {
        let body = "MessageSid=MM1&From=%2B15550199&To=%2B1555&NumMedia=3\
            &MediaUrl0=https%3A%2F%2Fapi.twilio.com%2FMedia%2FME1&MediaContentType0=image%2Fjpeg\
            &MediaUrl1=https%3A%2F%2Fu%3Ap%40api.twilio.com%2FMedia%2FME2&MediaContentType1=image%2Fpng";
        let media = Fields::of(FORM, body.as_bytes()).message().unwrap().media;
        let seen: Vec<_> = media.iter().map(|file| (file.url.as_str(), file.mime.as_deref())).collect();
        let first = ("https://api.twilio.com/Media/ME1", Some("image/jpeg"));
        assert_eq!(seen, [first, ("", Some("image/png")), ("", None)]);
        let many = Fields::of(FORM, b"MessageSid=MM1&From=%2B15550199&To=%2B1555&NumMedia=99999999");
        assert_eq!(many.message().unwrap().media.len(), MAX_MEDIA);
    }

    #[test]
    fn a_status_is_words_and_numbers() {
        let status = |body: &str| Fields::of(FORM, body.as_bytes()).status();
        let failed = Status { sid: "SM1".into(), word: "undelivered".into(), error: Some("30003".into()) };
        assert_eq!(status("MessageSid=SM1&MessageStatus=undelivered&ErrorCode=30003"), Some(failed));
        let sent = Status { sid: "SM1".into(), word: "sent".into(), error: None };
        assert_eq!(status("SmsSid=SM1&SmsStatus=sent&ErrorCode=x"), Some(sent));
        assert_eq!(status("MessageSid=SM1"), None);
        assert_eq!(status("MessageSid=SM1&MessageStatus=a%20b"), None);
    }
}
