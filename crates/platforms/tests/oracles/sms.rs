//! Twilio's own validator and ours are of one opinion.

use super::peer::Peer;
use angelia_core::secret::Secret;
use angelia_platforms::sms::verify::{Keys, Signed, is_authentic};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const SHARED: &str = "a shared key";
const KEY: &str = "webhooks_sharedkey_1";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

struct Oracle(Peer);

impl Oracle {
    fn start() -> Self {
        Self(Peer::start("twilio_oracle.py"))
    }

    /// Has the vendor sign a request; `signed_url` is what it takes for the address.
    fn sign(&mut self, request: &mut Request, signed_url: Option<&str>) {
        let mut question = request.question("sign");
        if let Some(url) = signed_url {
            question["signed_url"] = url.into();
        }
        let answer = self.0.ask(&question);
        request.url = answer["url"].as_str().unwrap().to_owned();
        request.signature = answer["signature"].as_str().unwrap().to_owned();
    }

    fn accepts(&mut self, request: &Request) -> bool {
        self.0.ask(&request.question("validate"))["good"] == true
    }
}

#[derive(Clone, Debug)]
struct Request {
    url: String,
    form: bool,
    body: Vec<u8>,
    settings: Option<String>,
    signature: String,
}

impl Request {
    fn question(&self, what: &str) -> Value {
        // The vendor's caller chooses the secret by the same header.
        let secret = if self.settings.is_some() { SHARED } else { TOKEN };
        json!({
            "do": what, "url": self.url, "form": self.form, "body": STANDARD.encode(&self.body),
            "settings": self.settings, "signature": self.signature, "secret": secret,
        })
    }

    fn is_authentic(&self) -> bool {
        let (token, shared) = (Secret::new(TOKEN), Secret::new(SHARED));
        let keys = Keys { auth_token: &token, signing_key: Some((KEY, &shared)) };
        is_authentic(
            keys,
            Signed {
                url: &self.url,
                signature: &self.signature,
                settings: self.settings.as_deref(),
                content_type: Some(if self.form { FORM } else { "application/json" }),
                body: &self.body,
            },
        )
    }
}

/// Chance that is the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % most
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 16] = [
            "hello",
            " ",
            "  two  ",
            "\n",
            "é",
            "漢字",
            "😀",
            "+15550199",
            "&=?#%",
            "a/b",
            "\"q\"",
            "0",
            "\t",
            "ÅΔ",
            "e\u{301}",
            "=",
        ];
        (0..self.below(5)).map(|_| self.one(&WORDS)).collect()
    }

    fn url(&mut self) -> String {
        let scheme = self.one(&["https", "http"]);
        let host = self.one(&["bots.example.com", "127.0.0.1", "example.org"]);
        let port = self.one(&["", ":443", ":80", ":8443"]);
        let path = self.one(&["/webhooks/sms/main", "/a/webhooks/sms/main/status", "/"]);
        let query = self.one(&["", "?x=1&y=2", "?text=%20a%2Bb", "?q=a+b&q=c", "?empty=&n"]);
        format!("{scheme}://{host}{port}{path}{query}")
    }

    /// A request nobody signed yet.
    fn request(&mut self) -> Request {
        let form = self.below(4) != 0;
        let body =
            if form { self.form() } else { json!({ "Body": self.text(), "n": self.below(9) }).to_string() };
        let settings = match self.below(4) {
            0 => Some(format!("key={KEY},algorithm=HMAC_SHA256")),
            1 => Some(format!("algorithm=HMAC_SHA1, key={KEY}")),
            _ => None,
        };
        Request { url: self.url(), form, body: body.into_bytes(), settings, signature: String::new() }
    }

    /// Fields in any order, with empty values, names that come twice, and values too.
    fn form(&mut self) -> String {
        const NAMES: [&str; 10] =
            ["MessageSid", "From", "To", "Body", "NumMedia", "MediaUrl0", "a", "A", "new field", "é"];
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        for _ in 0..self.below(8) {
            let (name, value) = (self.one(&NAMES), self.text());
            form.append_pair(name, &value);
            if self.below(4) == 0 {
                form.append_pair(name, self.one(&[value.as_str(), "", "other"]));
            }
        }
        form.finish()
    }

    /// Changes something about a signed request.
    fn mutate(&mut self, request: &mut Request) {
        match self.below(8) {
            0 | 1 if !request.body.is_empty() => flip(&mut request.body, self),
            2 => {
                let mut signature = std::mem::take(&mut request.signature).into_bytes();
                flip(&mut signature, self);
                request.signature = String::from_utf8_lossy(&signature).into_owned();
            }
            3 => request.body.extend_from_slice(self.one(&[b"&Body=more" as &[u8], b"&x", b" ", b"&Body="])),
            4 => request.signature.truncate(self.below(28)),
            5 => {
                request.settings = match request.settings {
                    Some(_) => None,
                    None => Some(format!("key={KEY},algorithm=HMAC_SHA256")),
                }
            }
            6 => request.settings = Some(format!("key={KEY},algorithm=MD5")),
            _ => {
                let mut url = request.url.clone().into_bytes();
                flip(&mut url, self);
                // Nothing else is ever in a request line.
                if url.iter().all(|byte| byte.is_ascii_graphic()) {
                    request.url = String::from_utf8(url).unwrap();
                }
            }
        }
    }
}

fn flip(bytes: &mut [u8], dice: &mut Dice) {
    let bit = dice.below(bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
}

#[test]
fn what_the_vendor_signs_is_authentic() {
    let (mut oracle, mut dice) = (Oracle::start(), Dice(0x5eed));
    let mut ports = 0;
    for number in 0..1_500 {
        let mut request = dice.request();
        // Twilio signs some addresses with a port that was not given, and some without one that was.
        let signed_url = match (number % 3, request.form) {
            (0, true) => Some(other_spelling(&request.url)),
            _ => None,
        };
        ports += usize::from(signed_url.is_some());
        oracle.sign(&mut request, signed_url.as_deref());
        assert!(oracle.accepts(&request), "case {number}: {request:?}");
        assert!(request.is_authentic(), "case {number}: {request:?}");
    }
    assert!(ports > 300, "{ports}");
}

fn lower_scheme(url: &str) -> String {
    url.split_once(':')
        .map_or_else(|| url.to_owned(), |(scheme, rest)| format!("{}:{rest}", scheme.to_lowercase()))
}

/// The address without its port, or with one.
fn other_spelling(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap());
    let host = match host.split_once(':') {
        Some((host, _)) => host.to_owned(),
        None => format!("{host}:{}", if scheme == "https" { 443 } else { 80 }),
    };
    format!("{scheme}://{host}{path}")
}

#[test]
fn what_the_vendor_refuses_is_refused() {
    let (mut oracle, mut dice) = (Oracle::start(), Dice(0xbad));
    let (mut refused, mut harmless) = (0, 0);
    for number in 0..3_000 {
        let mut request = dice.request();
        oracle.sign(&mut request, None);
        dice.mutate(&mut request);
        let (vendor, ours) = (oracle.accepts(&request), request.is_authentic());
        // The vendor does not care how a scheme is spelt. We do, and never see one but our own.
        let spelt = || Request { url: lower_scheme(&request.url), ..request.clone() }.is_authentic();
        assert!(vendor == ours || vendor && spelt(), "case {number}: {vendor} {ours} {request:?}");
        refused += usize::from(!vendor);
        harmless += usize::from(vendor);
    }
    assert!(refused >= 1_000 && harmless > 50, "{refused} refused, {harmless} taken");
}

#[test]
fn no_bit_of_a_request_can_be_changed() {
    let mut oracle = Oracle::start();
    let form = "From=15550199&To=15550100&MessageSid=SM0123&Body=hello+there%20you&Empty=";
    for (body, settings) in
        [(form, None), (form, Some(format!("key={KEY},algorithm=HMAC_SHA256"))), ("{\"a\":1}", None)]
    {
        let url = "https://bots.example.com/webhooks/sms/main?x=1".to_owned();
        let form = body.starts_with('F');
        let mut good = Request { url, form, body: body.into(), settings, signature: String::new() };
        oracle.sign(&mut good, None);
        assert!(good.is_authentic());
        let mut flips = 0;
        let mut fails = |part: &str, bit: usize, bad: Request| {
            flips += 1;
            assert!(!bad.is_authentic(), "bit {bit} of the {part}: {bad:?}");
        };
        let flipped = |bytes: &[u8], bit: usize| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        for bit in 0..good.body.len() * 8 {
            fails("body", bit, Request { body: flipped(&good.body, bit), ..good.clone() });
        }
        for bit in 0..good.signature.len() * 8 {
            let signature = String::from_utf8_lossy(&flipped(good.signature.as_bytes(), bit)).into_owned();
            fails("signature", bit, Request { signature, ..good.clone() });
        }
        for bit in 0..good.url.len() * 8 {
            let url = String::from_utf8_lossy(&flipped(good.url.as_bytes(), bit)).into_owned();
            fails("address", bit, Request { url, ..good.clone() });
        }
        let bytes = good.body.len() + good.signature.len() + good.url.len();
        assert_eq!(flips, bytes * 8);
    }
}

/// The comparison would notice.
#[test]
fn the_oracle_objects() {
    let mut oracle = Oracle::start();
    let mut request = Dice(7).request();
    oracle.sign(&mut request, None);
    assert!(oracle.accepts(&request));
    request.signature = STANDARD.encode([0; 20]);
    assert!(!oracle.accepts(&request));
}
